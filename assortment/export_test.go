package assortment

// SetPlainItems changes the number of items beyond which candidates under a capacity are found separately for each
// call. The returned function restores the old value.
func SetPlainItems(n int) (undo func()) {
	before := plainItems
	plainItems = n
	return func() { plainItems = before }
}
