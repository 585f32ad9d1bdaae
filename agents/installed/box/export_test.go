package box

// SweepAgain sweeps a folder, also one that was swept before. Forward leads connections on.
var (
	SweepAgain = sweep
	Forward    = forward
)

// ManyConnections are the most that are led on at once.
const ManyConnections = manyConnections
