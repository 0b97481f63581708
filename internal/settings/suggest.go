package settings

import (
	"fmt"
	"strings"

	"vitrine/internal/hint"
)

// Hint ends the message about a word that is not legal: with the nearest legal word, at most two edits away,
// or with all of them.
func Hint(word string, legal []string) string {
	if best := hint.Nearest(word, legal, 3); best != "" {
		return fmt.Sprintf(": did you mean %q?", best)
	}
	return ": must be one of " + strings.Join(legal, ", ")
}
