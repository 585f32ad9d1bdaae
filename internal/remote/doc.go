// Package remote is how memtox talks to services and programs: a hardened HTTP client
// with one limit of requests in flight, typed errors, retries, rate limits and caps,
// the care for secrets, and programs that speak on standard input and output.
//
// A [Client] is an [net/http.RoundTripper]. It sits at the bottom, under the
// cassette and under the client library of a protocol:
//
//	model.Model (agents/model/openai, agents/model/ollama)
//	  → client library
//	    → cassette.Cassette      what was asked and answered, above all retries
//	      → remote.Client          limits, attempts, whole bodies
//	        → http.Transport
//
// The Client hands up whole answers only: it reads a body to its end, within
// bounds of size and time, before anybody above sees it. So an answer that was
// cut, truncated or endless is an attempt that failed, and is tried again like
// any other; streams keep the times at which their pieces came.
//
// # Programs
//
// A program of the user's, an external guard or an agent under test, speaks JSON Lines
// on its standard input and output.
//
// The program is not trusted. It starts with a clean environment (see
// [Environment]) in a process group of its own; its lines are bounded; what it
// writes to standard error is kept in a bounded tail without secrets; writing to
// it never blocks longer than the caller allows; and when it is ended, its group
// ends with it.
package remote
