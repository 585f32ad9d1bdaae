// Package queue spreads the trials of one run over many processes, on NATS
// JetStream.
//
// A [Coordinator] holds the plan and the journal. It puts spans of the plan on a
// work queue, takes finished trials off another, writes each to the journal, and
// only then acknowledges it. A [Worker] takes a span, says that it is alive while
// it works, publishes each trial's row, and acknowledges the span last. So a span
// whose worker dies comes back to the queue, a trial that is published twice is
// journalled once, and nothing that a coordinator has acknowledged can be lost:
// every way to die costs at most work, never a row.
//
// A finished trial is on the server's disk before its worker forgets it. A span is
// not: what a server loses of the work queue the coordinator misses, and hands out
// again. An acknowledgement may be lost too, with a worker or a server. So a worker
// that is given a span which somebody had before, or which an earlier server took,
// asks the coordinator whether its trials are there already, and does not run them
// again.
//
// A queue carries one run at a time. Everything about it stands under the
// queue's name:
//
//	memtox-NAME         key-value bucket: key run is the Announcement
//	memtox-NAME-jobs    work queue of spans
//	memtox-NAME-rows    work queue of finished trials
//	memtox-NAME-large   object store of trials that no message holds
//	memtox.NAME.status  plain subject: a line a worker every two seconds
//	memtox.NAME.over    plain subject: the run that is over
//	memtox.NAME.done    plain subject: questions about a span, answered by the coordinator
//
// After a crash of the server or the coordinator the coordinator begins anew: it
// first journals the finished trials that wait, then empties the work queue and
// fills it with what the journal lacks. A worker that was busy meanwhile publishes
// what it has once it is connected again.
//
// Whoever may connect to the queue may publish rows. Rows are checked for being
// what the plan asks for and for their digest, not for being true: keep the
// token to those who are trusted to run trials.
package queue
