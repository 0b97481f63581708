package hint

// Nearest returns the word of the list that is the fewest edits away from a misspelt one, the first of
// several, or "" if none is fewer than limit edits away. An edit inserts, deletes or replaces a byte.
func Nearest(misspelt string, words []string, limit int) string {
	best := ""
	for _, word := range words {
		if d := edits(misspelt, word); d < limit {
			best, limit = word, d
		}
	}
	return best
}

// edits returns the Levenshtein distance of a and b.
func edits(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j+1]+1, row[j]+1)
		}
	}
	return row[len(b)]
}
