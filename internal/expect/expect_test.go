package expect_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp/cmpopts"

	"vitrine/internal/expect"
)

// reports collects a check's reports.
type reports struct {
	*testing.T
	all []string
}

func (r *reports) Error(args ...any) { r.all = append(r.all, fmt.Sprint(args...)) }

func TestTexts(t *testing.T) {
	call := func(err error) (int, error) { return 0, err }
	broken := errors.New("printer: no ink")
	for _, c := range []struct {
		name  string
		check func(...any) expect.Text
		holds map[string]bool
	}{
		{"Message", expect.Message, map[string]bool{"printer: no ink": true, "printer": false, "ink": false}},
		{"Prefix", expect.Prefix, map[string]bool{"printer: no ink": true, "printer": true, "ink": false}},
		{"Part", expect.Part, map[string]bool{"printer: no ink": true, "printer": true, "ink": true, "red": false}},
	} {
		for want, holds := range c.holds {
			r := &reports{T: t}
			c.check(call(broken))(r, want, "printing")
			expect.Equal(t, len(r.all) == 0, holds, c.name, "of", want, "reports", r.all)
			before := len(r.all)
			c.check(call(nil))(r, want)
			if len(r.all) == before {
				t.Errorf("%s accepts a call without an error", c.name)
			}
		}
	}
	r := &reports{T: t}
	expect.Refused(call(broken))(r)
	expect.Refused(call(nil))(r, "printing")
	if len(r.all) != 1 || r.all[0] != "printing: no error" {
		t.Errorf("reports %q", r.all)
	}
	r = &reports{T: t}
	expect.Message(broken)(r, "no paper", "page", 7)
	if want := "page 7: the error is printer: no ink\n want no paper"; len(r.all) != 1 || r.all[0] != want {
		t.Errorf("reports %q, want %q", r.all, want)
	}
}

func TestValues(t *testing.T) {
	r := &reports{T: t}
	expect.Equal(r, 3, 3)
	expect.Equal(r, []int(nil), []int{}, cmpopts.EquateEmpty(), "pages")
	if len(r.all) > 0 {
		t.Errorf("reports %q", r.all)
	}
	expect.Contains(r, "3 pages", "pages")
	expect.Equal(r, 3, 4, "pages", 7)
	expect.Equal(r, []int{3}, []int{4}, "pages")
	expect.Contains(r, "3 pages", "ink", "the report")
	expect.List(r, []int{}, nil)
	expect.List(r, []int{3}, []int{4}, "pages")
	if len(r.all) != 4 || r.all[3] != "pages: [3], want [4]" || r.all[2] != "the report: \"ink\" is not in\n3 pages" || r.all[0] != "pages 7: 3, want 4" || !strings.HasPrefix(r.all[1], "pages: -want +got:\n") {
		t.Errorf("reports %q", r.all)
	}
}
