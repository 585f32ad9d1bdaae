package remote

// State is how many requests are in flight and waiting, and the limit as adapted.
func (c *Client) State() (inFlight, waiting, limit int) { return c.limiter.state() }

func (l *limiter) state() (inFlight, waiting, limit int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.inFlight, len(l.queue), max(1, int(l.limit))
}

// Stderr is the end of what it wrote to standard error, without secrets.
func (c *Child) Stderr() string { return c.opts.Redact.String(c.errs.kept()) }
