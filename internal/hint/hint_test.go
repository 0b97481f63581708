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
