// Package proxy offers the reference model over HTTP, behind the OpenAI chat
// protocol and Ollama's, under the name "reference". With it the clients, the
// scheduling, the cassettes and the faults of real servers can be tried with no
// key, no network and no cost.
//
// The model of a request is "reference" (cautious), "reference:naive",
// "reference:cautious" or "reference:source-aware". What comes back through
// either client is what the model answers in process.
//
// Latency, refused requests and faults are settings. Faults are drawn from a
// seed, the request's content and how often it came, so a run meets the same
// faults whatever the order of its requests.
//
// A [Relay] offers any other model in the same way to an agent under test, and
// keeps what each trial asked of it.
package proxy
