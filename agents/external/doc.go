// Package external puts any agent, in any language, under test: exec:COMMAND
// speaks JSON Lines, http:URL the same messages as POST requests.
// docs/your-own-agent.md describes the protocol for those who connect one.
//
// Such an agent brings its own loop, its own model and its own memory. memtox
// tells it what the user says, runs its tool calls in the sandbox, answers the
// writes that it proposes with the verdict of the defense, and reads its memory
// when a session is over. What the agent stored without asking is found there.
//
// Its model can be the one of the run, behind a [proxy.Relay] that speaks the OpenAI
// chat protocol: there the defense sees what of the memory enters a prompt, and each call
// before the agent gets it.
//
// The agent is not trusted. One that dies, hangs, answers out of turn, or whose
// memory changes between two readings fails its trial, which is not scored.
package external
