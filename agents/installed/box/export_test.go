package box

// SweepAgain sweeps a folder, also one that was swept before.
var SweepAgain = sweep
