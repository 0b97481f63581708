// Package text turns text into weighted counts of its words.
package text

import (
	"iter"
	"unicode"
	"unicode/utf8"
)

// Tokens returns the words of a text, in lower case: the maximal runs of two or more letters, numbers (of any script)
// or underscores. It matches scikit-learn's TfidfVectorizer and its pattern (?u)\b\w\w+\b.
func Tokens(text string) iter.Seq[string] {
	return func(yield func(string) bool) {
		text := lower(text)
		start, runes := 0, 0
		for i, r := range text {
			if inWord(r) {
				if runes == 0 {
					start = i
				}
				runes++
				continue
			}
			if runes >= 2 && !yield(text[start:i]) {
				return
			}
			runes = 0
		}
		if runes >= 2 {
			yield(text[start:])
		}
	}
}

// inWord is \w of Python's re module.
func inWord(r rune) bool {
	if r < utf8.RuneSelf {
		return 'a' <= r && r <= 'z' || '0' <= r && r <= '9' || 'A' <= r && r <= 'Z' || r == '_'
	}
	return unicode.IsLetter(r) || unicode.IsNumber(r)
}
