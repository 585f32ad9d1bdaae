// Package cassette records what models are asked and what they answer, and
// replays it offline. A [Cassette] is put between the client library of a
// protocol and [remote.Client], above all retries: an exchange is one request and
// the answer that it got in the end, with how many attempts and how much time
// that took.
//
// A file is zstd over JSON lines, so "zstd -dc FILE | jq" reads it. The first
// line says what it is; each other line is one exchange:
//
//	{"trial":…,"hash":…,"n":1,"op":"POST /chat/completions","body":{…},
//	 "status":200,"type":"application/json","answer":"…","attempts":1,"took_us":…}
//
// An exchange is found again by its trial, the hash of its request, and which
// time the trial made this same request. Trial ids differ between epochs and
// arms, so epochs stay apart and identical requests of trials that run at the
// same time are not mixed up. The hash covers method, path behind the
// server's address, and canonical body (white space removed, members sorted);
// headers are neither hashed nor kept.
//
// Every exchange is written as soon as it is over. A process that is killed
// loses at most the line that it was writing: a torn end is dropped when the
// file is next read.
package cassette
