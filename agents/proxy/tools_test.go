package proxy

import (
	"fmt"
	"strings"
	"testing"
)

// A client that sends other tools each time does not fill the memory.
func TestToolListsAreBounded(t *testing.T) {
	for _, n := range []int{100, 64 << 10, 2 << 20} {
		var c toolCache
		for i := range 600 {
			if n > 1<<20 && i == 12 {
				break
			}
			raw := fmt.Sprintf(`[{"type":"function","function":{"name":"t%d","description":%q,"parameters":{"type":"object","properties":{}}}}]`, i, strings.Repeat("x", n))
			for range 2 {
				if tools, err := c.parse([]byte(raw)); err != nil || len(tools) != 1 || tools[0].Name != fmt.Sprintf("t%d", i) {
					t.Fatalf("%v, %v", tools, err)
				}
			}
		}
		bytes := 0
		for raw := range c.known {
			bytes += len(raw)
		}
		if len(c.known) > maxToolLists || bytes > maxToolBytes {
			t.Errorf("lists of %d bytes: %d are kept, of %d bytes", n, len(c.known), bytes)
		}
	}
}
