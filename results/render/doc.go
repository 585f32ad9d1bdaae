// Package render prints tables: those of a run, of a sweep and of `memtox detect` as
// [Summary] lays them out, and any other as a [Table], for a terminal or a plain file,
// or as Markdown. [Write] does it for what is more than a table, from what a command says
// on a [Paper].
//
//	render.Summary(os.Stdout, s, "table", render.Options{Width: 120})
//
// Names come from cases and configurations and may be hostile; they are made inert. A
// rate is printed here and nowhere else: as k/n, percent and its interval ([Rate]), and
// 0/0 as "not measured".
package render
