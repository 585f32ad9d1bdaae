package guardserve

// Bound makes the client forget its context when that has more contents.
func (c *Client) Bound(contents int) { c.most = contents }
