package model

import "testing"

func TestOneObjectIsOneObject(t *testing.T) {
	for reply, ok := range map[string]bool{
		`{"a":"x"}`: true, " {\"a\":\"x\"}\n": true, "```json\n{\"a\":\"x\"}\n```": true, "```\n{\"a\":\"x\"}```": true,
		`{"a":"x","b":{"a":"y","c":["a","a"]},"c":[{"a":1},{"a":2}]}`: true,
		`{"a":"x","a":"y"}`: false, `{"a":"x","A":"y"}`: false, `{"a":"x"} {}`: false, `{"a":"x"} so`: false,
		`so {"a":"x"}`: false,
		"":             false, "x": false, `"a"`: false, `[{"a":"x"}]`: false, `{"a":`: false, `{"a":1}`: false,
		"```{\"a\":\"x\"}": false,
	} {
		var v struct{ A string }
		if err := OneObject(reply, &v); (err == nil) != ok || ok && v.A != "x" {
			t.Errorf("%q: %v, %+v", reply, err, v)
		}
	}
}
