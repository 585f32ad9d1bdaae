package results

// Phase says which session of a trial it is.
type Phase string

// The sessions of a trial, in the order in which they are held.
const (
	PhaseWrite     Phase = "write"
	PhaseBetween   Phase = "between" // the ordinary sessions between the two others, as one
	PhaseRetrieval Phase = "retrieval"
)

// Title is what a person is told of a session: "write session".
func (p Phase) Title() string {
	if p == PhaseBetween {
		return "session between"
	}
	return string(p) + " session"
}

// PhaseAt is the phase of a session that does not say it: at a place in a
// transcript of a memtox that wrote the sessions between behind the two others.
func PhaseAt(i int) Phase {
	return [...]Phase{PhaseWrite, PhaseRetrieval, PhaseBetween}[min(i, 2)]
}
