package text

import (
	"strings"
	"unicode"
)

// lower returns the text in lower case by the full mapping of the Unicode standard (Section 3.13), like Python's
// str.lower. It differs from strings.ToLower in two letters: İ becomes an i and a combining dot, and a Σ that ends a
// word becomes ς. A byte that is not UTF-8 becomes U+FFFD or stays.
func lower(text string) string {
	if strings.ContainsRune(text, 'İ') {
		text = strings.ReplaceAll(text, "İ", "i\u0307")
	}
	if strings.ContainsRune(text, 'Σ') {
		text = finalSigmas(text)
	}
	return strings.ToLower(text)
}

// finalSigmas replaces every Σ by ς that follows a cased letter and does not precede one. Case-ignorable letters do not
// count.
func finalSigmas(text string) string {
	var b strings.Builder
	inWord := false // whether the last rune that counts is a cased letter
	for i, r := range text {
		if r == 'Σ' && inWord && !startsCased(text[i+len("Σ"):]) {
			r = 'ς'
		}
		if !caseIgnorable(r) {
			inWord = cased(r)
		}
		b.WriteRune(r)
	}
	return b.String()
}

// startsCased reports whether the first rune that counts is a cased letter.
func startsCased(text string) bool {
	for _, r := range text {
		if !caseIgnorable(r) {
			return cased(r)
		}
	}
	return false
}

// cased implements definition D135 of the standard.
func cased(r rune) bool {
	return unicode.In(r, unicode.Lu, unicode.Ll, unicode.Lt, unicode.Other_Lowercase, unicode.Other_Uppercase)
}

// caseIgnorable implements definition D136 of the standard. The characters listed break words as MidLetter, MidNumLet
// or Single_Quote.
func caseIgnorable(r rune) bool {
	return unicode.In(r, unicode.Mn, unicode.Me, unicode.Cf, unicode.Lm, unicode.Sk) ||
		strings.ContainsRune("'.:·\u0387\u055f\u05f4\u2018\u2019\u2024\u2027\ufe13\ufe52\ufe55\uff07\uff0e\uff1a", r)
}
