package hint_test

import (
	"errors"
	"fmt"
	"testing"

	"vitrine/internal/hint"
)

func TestHint(t *testing.T) {
	cause := errors.New("no such file")
	err := fmt.Errorf("data: %w", hint.New(cause, "name a directory"))
	if got := hint.Of(err); got != "name a directory" {
		t.Errorf("hint %q", got)
	}
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
		if got := hint.Near(word, legal, ": look"); got != want {
			t.Errorf("%q: %q, want %q", word, got, want)
		}
	}
	if got := hint.Legal("nowhere", legal); got != ": must be one of main, items" {
		t.Errorf("Legal: %q", got)
	}
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
		if got := hint.Nearest(c.misspelt, words, c.limit); got != c.want {
			t.Errorf("nearest to %q within %d is %q, want %q", c.misspelt, c.limit, got, c.want)
		}
	}
	if got := hint.Nearest("sitting", []string{"sittin", "kitten"}, 4); got != "sittin" {
		t.Errorf("the nearest is %q", got)
	}
	if got := hint.Nearest("kitten", []string{"sitting"}, 4); got != "sitting" {
		t.Errorf("three edits away is %q", got)
	}
	if got := hint.Nearest("kitten", []string{"sitting"}, 3); got != "" {
		t.Errorf("fewer than three edits away is %q", got)
	}
}
