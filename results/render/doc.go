// Package render prints a summary: as tables for a terminal or a plain file, as
// Markdown, or as JSON.
//
//	render.Table(os.Stdout, s, render.Options{Width: 120})
//
// Names come from cases and configurations and may be hostile; they are made
// inert. Every rate is printed as k/n, percent and its interval, and 0/0 as "not
// measured".
package render
