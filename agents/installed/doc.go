// Package installed puts real products under test, from the user's own installation:
// --agent installed:hermes. A product brings its prompts, its memory and its own
// defenses, and memtox stands around it: its model is the run's, behind the relay of
// package proxy; what a case brings comes by the product's own channels; its memory is
// compared before and after each session.
//
// What is known of a product is data: products/NAME.yaml, see [Product]. What starts
// it, speaks to it and waits for it is a [Driver]. The rest is the same for all: to the
// harness an installed product is an agent of package external, to which [New]
// translates.
//
// A product runs in a [Box]: folders and processes that end with the trial, and with
// memtox however that ends.
package installed
