package settings

import (
	"fmt"
	"strings"
)

// Hint ends the message about a word that is not one of the legal ones: with
// the nearest, or with all of them.
func Hint(word string, legal []string) string {
	best, distance := "", 3
	for _, l := range legal {
		if d := edits(word, l); d < distance {
			best, distance = l, d
		}
	}
	if best != "" {
		return fmt.Sprintf(": did you mean %q?", best)
	}
	return ": must be one of " + strings.Join(legal, ", ")
}

// edits returns the distance of Levenshtein between two words.
func edits(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			above := row[j+1]
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			row[j+1] = min(cost, above+1, row[j]+1)
			diagonal = above
		}
	}
	return row[len(b)]
}
