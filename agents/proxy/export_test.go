package proxy

// Bound sets what a trial may ask of the relay's model, in requests and bytes.
func (r *Relay) Bound(asks, bytes int) { r.most = bounds{asks, bytes} }
