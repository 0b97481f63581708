package text

import (
	"strings"

	"golang.org/x/text/cases"
	"golang.org/x/text/language"
)

// lower returns the text in lower case by the full mapping of the Unicode standard (Section 3.13), like Python's
// str.lower. It differs from strings.ToLower, which is faster, in two letters: İ becomes an i and a combining dot, and a
// Σ that ends a word becomes ς.
func lower(text string) string {
	if strings.ContainsRune(text, 'İ') || strings.ContainsRune(text, 'Σ') {
		return cases.Lower(language.Und, cases.HandleFinalSigma(true)).String(text)
	}
	return strings.ToLower(text)
}
