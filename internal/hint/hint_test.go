package hint_test

import (
	"errors"
	"fmt"
	"testing"

	"vitrine/internal/expect"
	"vitrine/internal/hint"
)

func TestHint(t *testing.T) {
	cause := errors.New("no such file")
	err := fmt.Errorf("data: %w", hint.New(cause, "name a directory"))
	expect.Equal(t, hint.Of(err), "name a directory", "hint")
	if err.Error() != "data: no such file" || !errors.Is(err, cause) {
		t.Errorf("%v", err)
	}
	if got := hint.Of(cause); got != "" {
		t.Errorf("hint %q of an error without one", got)
	}
}

func TestNear(t *testing.T) {
	legal := []string{"main", "items"}
	for word, want := range map[string]string{"mian": `: did you mean "main"?`, "nowhere": ": look", "": ": look"} {
		expect.Equal(t, hint.Near(word, legal, ": look"), want, word)
	}
	expect.Equal(t, hint.Legal("nowhere", legal), ": must be one of main, items", "Legal")
}

// Distances computed by hand: a deletion, a replacement, an insertion, and edits at both ends.
func TestNearest(t *testing.T) {
	words := []string{"lambda", "beta", "warmup"}
	for _, c := range []struct {
		misspelt string
		limit    int
		want     string
	}{
		{"lamda", 2, "lambda"}, {"lamda", 1, ""}, {"lumbda", 2, "lambda"}, {"betaa", 2, "beta"}, {"eta", 2, "beta"},
		{"warm", 3, "warmup"}, {"warm", 2, ""}, {"", 5, "beta"}, {"", 4, ""}, {"beta", 1, "beta"}, {"kitten", 3, ""},
	} {
		expect.Equal(t, hint.Nearest(c.misspelt, words, c.limit), c.want, "nearest to", c.misspelt, "within", c.limit,
			"is")
	}
	expect.Equal(t, hint.Nearest("sitting", []string{"sittin", "kitten"}, 4), "sittin", "the nearest is")
	expect.Equal(t, hint.Nearest("kitten", []string{"sitting"}, 4), "sitting", "three edits away is")
	expect.Equal(t, hint.Nearest("kitten", []string{"sitting"}, 3), "", "fewer than three edits away is")
}

func TestPrintable(t *testing.T) {
	for text, want := range map[string]string{
		"Größe 38\t½ 鞋\n":               "Größe 38\t½ 鞋\n",
		"\x1b]0;title\a\x1b[31m\x7f\r":  "\uFFFD]0;title\uFFFD\uFFFD[31m\uFFFD\uFFFD",
		"\u009b31m \x9b31m":             "\uFFFD31m \uFFFD31m",
		"sku\u202egpj.exe\u2066 \u200f": "sku\uFFFDgpj.exe\uFFFD \uFFFD",
	} {
		expect.Equal(t, hint.Printable(text), want, text)
	}
	expect.Equal(t, hint.Message("no a\nvitrine: error:\r\x1b b"), "no a\n  vitrine: error:\uFFFD\uFFFD b", "a message")
}
