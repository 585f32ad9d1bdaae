package text

// Cut is s without what stands behind its first n bytes, and without the
// character that these end in the middle of.
func Cut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && s[n]&0xC0 == 0x80 {
		n--
	}
	return s[:n]
}

// Clip is [Cut] for a reader: an ellipsis shows that something is missing.
func Clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return Cut(s, n) + "…"
}
