package hint

import (
	"fmt"
	"strings"
)

// Nearest returns the word of the list that is the fewest edits away from a misspelt one, preferring the first. It
// returns "" unless that is fewer than limit edits. An edit inserts, deletes or replaces a byte.
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

// Legal returns the end of the message about an illegal word. It suggests the nearest legal word, if that is at most
// two edits away and fewer than the word's length, and otherwise lists all legal words.
func Legal(word string, legal []string) string {
	return Near(word, legal, ": must be one of "+strings.Join(legal, ", "))
}

// Near is [Legal] with a different ending if no legal word is near.
func Near(word string, legal []string, otherwise string) string {
	if best := Nearest(word, legal, min(3, len(word))); best != "" {
		return fmt.Sprintf(": did you mean %q?", best)
	}
	return otherwise
}

// List formats words as "one of a, b or c".
func List(words []string) string {
	if n := len(words); n > 1 {
		return "one of " + strings.Join(words[:n-1], ", ") + " or " + words[n-1]
	}
	return strings.Join(words, "")
}

// Count formats a count: "1 item", "2 items".
func Count(n int, word string) string {
	if n == 1 {
		return "1 " + word
	}
	return fmt.Sprintf("%d %ss", n, word)
}

// Grouped puts commas between the thousands of digits.
func Grouped(digits string) string {
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}
