package decision

// Estimates reads the estimates of an offer and writes them again.
func Estimates(data []byte, shown int) ([]byte, error) {
	e, err := decodeEstimates(data, shown)
	if err != nil {
		return nil, err
	}
	return e.encode(nil), nil
}

// Fitting returns how many entries, from the first, one append takes.
func Fitting(entries [][]byte) int { return fitting(entries) }
