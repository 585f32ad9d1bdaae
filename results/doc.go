// Package results holds what a run leaves behind: its rows, their files and the
// journal that survives a crash.
//
// A finished trial is one [Trial] row, its [Decision] rows and a transcript. A
// [Journal] takes them while a run goes on, into a run directory; at the end it
// compacts them to trials.parquet and decisions.parquet. A [Reader] streams the
// rows of a finished, a running or a killed run alike, in the order of the plan.
// Every figure that memtox prints is computed from these rows: package
// results/summary does it and package results/render prints it.
//
// The columns and their meanings stand in SCHEMA.md, which is made from the
// comments of [Trial] and [Decision].
//
// The package imports nothing else of memtox but results/stats, so that other
// tools can read runs with it.
package results
