// Package view is the local web page of `memtox view`: one or many runs, their
// trials, and each trial turn by turn.
//
//	shelf, err := view.NewShelf("runs")
//	l, err := view.Listen(0)
//	s := view.NewServer(shelf)
//	fmt.Println(s.URL(l.Addr()))
//	err = s.Serve(l)
//
// A [Shelf] finds run directories. Of an opened run a table of the columns that
// can be filtered and sorted stands in memory, some 100 bytes a trial; the whole
// rows are packed (pack.go) so that any trial opens at once. A run that goes on
// is read anew when it has grown. A trial's page (trial.go, place.go) puts every
// decision at the message where it was made and gives every piece of text its
// origin.
//
// The page is a few static files (assets/) and JSON. It is for the person at
// this machine alone: server.go listens to the loopback interface, asks for a
// token, checks the Host header, and sends a policy under which the browser runs
// no script but ours and asks nobody else for anything. Texts of cases, models
// and tools are hostile: the server sends them as JSON, the script shows them as
// text nodes and never as markup.
package view
