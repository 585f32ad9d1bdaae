// Package gate stands between an agent and its model, and judges each of the model's
// calls before the agent gets it.
//
// A refused call never reaches the agent. The proxy answers it in the agent's place, asks
// the model again and hands on the next reply. So the agent's own history lacks what was
// refused: a [Gate] keeps a ledger of it and puts it back into every later request, or the
// model would try again and again. Agents trim, rename, compact and write anew what they
// send. A refused exchange therefore finds its place by the ids of calls, which the gate
// gives itself, and by what the user said; never by the words of a reply.
//
// What a [Judge] thinks of a prompt or a call is not the gate's concern. Where the judge or
// the model fails, nothing is handed on.
package gate
