package settings

import "vitrine/internal/hint"

// Hint ends the message about a word that is not legal: see [hint.Legal].
func Hint(word string, legal []string) string { return hint.Legal(word, legal) }
