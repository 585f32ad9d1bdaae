// Package report turns a run into one page that can be sent to somebody: HTML
// that loads nothing and runs no script, or Markdown.
//
//	rep, err := report.Read(ctx, reader, report.Options{})
//	err = rep.HTML(w)
//
// [Read] passes once over the rows, in memory that does not grow with their
// number. Every rate comes from package summary; this package adds the
// distributions of latencies, the checks that spoke and the ledger of what was
// not scored, and draws.
//
// The page is a list of sections ([Report] makes them once); a section has
// figures, and every figure has a plot and the table of the numbers in it. HTML
// shows the plot and opens the table below it, Markdown has the table. Where outcomes
// are states, the sections about words, times and settings are folded too. What a section
// says and tabulates stands in words.md. Plots are SVG by the templates of plots.svg (places
// come from plot_*.go): rates on an axis from 0 to 1 with their intervals drawn; a title and
// a description for screen readers. Maps of rates are tables whose cells are coloured by how
// bad they are (heat.go), in colours that colour-blind readers can tell apart and that never
// carry a meaning alone. On a phone everything fits the width: plots are narrow, and the rows
// of wide tables become cards.
//
// Texts of the run (names of cases and defenses, reasons, settings) are hostile:
// they are escaped, their control characters are shown, and the page's content
// security policy allows its own style sheet and nothing else.
package report
