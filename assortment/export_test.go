package assortment

// SetPlainItems changes from how many items on candidates under a capacity are found anew for each call, and returns what undoes it.
func SetPlainItems(n int) (undo func()) {
	before := plainItems
	plainItems = n
	return func() { plainItems = before }
}
