package harness

import (
	"crypto/hmac"
	"crypto/sha256"
	"slices"
	"time"
)

// Calibration is a fixed piece of work: one HMAC-SHA256 of 600 bytes, about what
// signing a record takes. A latency as a multiple of it can be compared between
// machines, where microseconds cannot.
const (
	calibrationBytes  = 600
	calibrationRounds = 1000
	calibrationTries  = 9
)

// calibrate returns how many nanoseconds the calibration takes here: a thousand
// rounds on one processor, the median of a few tries, about five milliseconds in
// all.
func calibrate() float64 {
	text, key := make([]byte, calibrationBytes), []byte("memtox calibration")
	var sum [sha256.Size]byte
	took := make([]time.Duration, calibrationTries)
	for i := range took {
		began := time.Now()
		mac := hmac.New(sha256.New, key)
		for range calibrationRounds {
			mac.Reset()
			mac.Write(text)
			copy(text, mac.Sum(sum[:0])) // each round needs the one before
		}
		took[i] = time.Since(began)
	}
	slices.Sort(took)
	return float64(took[len(took)/2].Nanoseconds()) / calibrationRounds
}
