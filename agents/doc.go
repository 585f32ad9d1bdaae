// Package agents drives a model through sessions the way a product's agent
// would: a [Profile] says how an agent uses memory (stores, limits, write
// policy, recall, flush, compaction, review, skills), and one loop runs every
// profile. Tools are sandboxed: reading tools return the content that a session
// brings, action tools only record what they are asked to do.
//
// The loop never touches a store. It hands every write, by whatever route, to
// [memory.Memory] as a draft, and gets every recall from there.
package agents
