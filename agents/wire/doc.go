// Package wire is what every model behind HTTP shares: a hardened client with
// one limit of requests in flight, typed errors, retries, rate limits and caps;
// the care for secrets; and the ways in which tools are shown to a model and its
// calls are read back.
//
// A [Client] is an [net/http.RoundTripper]. It sits at the bottom, under the
// cassette and under the client library of a protocol:
//
//	model.Model (agents/openai, agents/ollama)
//	  → client library
//	    → cassette.Cassette      what was asked and answered, above all retries
//	      → wire.Client          limits, attempts, whole bodies
//	        → http.Transport
//
// The Client hands up whole answers only: it reads a body to its end, within
// bounds of size and time, before anybody above sees it. So an answer that was
// cut, truncated or endless is an attempt that failed, and is tried again like
// any other; streams keep the times at which their pieces came.
//
// [Converse] is one turn of a model: it sends a request by a protocol, corrects
// a malformed tool call once, and reckons what the turn cost.
package wire
