//go:build !unix

package proxy_test

import "time"

// cpu is not told here.
func cpu() time.Duration { return 0 }
