package engine

// OfferBytes returns the bytes of the offers that an engine keeps.
func (e *Engine) OfferBytes() int {
	e.mu.RLock()
	defer e.mu.RUnlock()
	return e.state.Offers.Bytes
}
