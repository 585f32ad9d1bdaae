package harness

import "testing"

// The calibration loop does work that the compiler cannot leave out.
func TestCalibrationTakesTime(t *testing.T) {
	if d := calibrate(); d <= 0 {
		t.Errorf("the calibration took %v ns", d)
	}
}

func BenchmarkCalibrate(b *testing.B) {
	for b.Loop() {
		calibrate()
	}
}
