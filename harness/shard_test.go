package harness

import "testing"

func TestShardsAreCountedFromOneOrFromZero(t *testing.T) {
	for in, want := range map[string]string{"2/5": "2/5", " 5/5 ": "5/5", "0+1/5": "1/5", "4+1/5": "5/5", "": "",
		"5+1/5": "-", "-1+1/5": "-", "+1/5": "-", "1+2/5": "-", "1+1+1/5": "-", "0/5": "-"} {
		v, err := plainShard(in)
		if err != nil {
			v = "-"
		}
		if v != want {
			t.Errorf("%q is %q, want %q", in, v, want)
		}
	}
}
