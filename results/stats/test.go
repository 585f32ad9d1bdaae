package stats

// A Test is the outcome of a significance test.
type Test struct {
	// P is the p-value, from 0 to 1; two-sided unless the function says
	// otherwise. Where nothing was measured it is 1: no evidence.
	P float64 `json:"p"`
	// N is the number of observations that bear on it: of pairs that differ, of
	// clusters, of trials.
	N int `json:"n"`
	// Measured reports whether the test had data.
	Measured bool      `json:"measured"`
	Method   string    `json:"method"`
	Warnings []Warning `json:"-"`
}

func untested(method string, ws []Warning) Test {
	return Test{P: 1, Method: method, Warnings: ws}
}
