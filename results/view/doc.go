// Package view is the local web page of `memtox view`: one or many runs, their
// trials, and each trial turn by turn.
//
//	runs, err := view.NewRuns("runs")
//	l, err := view.Listen(0)
//	s := view.NewServer(runs)
//	fmt.Println(s.URL(l.Addr()))
//	err = s.Serve(l)
//
// [Runs] finds run directories. Of an opened run a table of the columns that can
// be filtered and sorted stands in memory, some 200 bytes a trial; the page gets it
// whole and filters itself. The whole rows are packed (run.go) so that any trial opens at
// once. A run that goes on is read anew when it has grown. What a run comes to
// (figures.go) is what package summary says, as in the report. A trial's page (trial.go)
// is its transcript, with the row of every decision at the message that it is about.
//
// The page is a few static files (assets/) and JSON. Served, it is for the person at
// this machine alone: server.go listens to the loopback interface, asks for a
// token, checks the Host header, and sends a policy under which the browser runs
// no script but ours and asks nobody else for anything. As a bundle (bundle.go) it is
// files that any host serves and that open from the disk, the JSON packed into base64.
// Texts of cases, models and tools are hostile: they come as JSON, and the script shows
// them as text nodes and never as markup.
package view
