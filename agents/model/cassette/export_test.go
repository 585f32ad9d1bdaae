package cassette

// Held is how many exchanges the file held, and whether it ended within one.
func (c *Cassette) Held() (exchanges int, torn bool) { return len(c.known), c.torn }
