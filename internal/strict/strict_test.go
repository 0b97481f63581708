package strict

import (
	"errors"
	"fmt"
	"testing"

	"vitrine/internal/expect"
)

func TestDecode(t *testing.T) {
	for _, c := range []struct {
		name, text string
		want       *Error // nil for no error
	}{
		{"good", "a = 1\n[b]\nc = 'x'\n", nil},
		{"good, with a byte order mark", "\ufeffa = 1\n[b]\nc = 'x'\n", nil},
		{"empty", "", nil},
		{"an unknown key", "a = 1\nd = 2\n", &Error{2, "d", `unknown key "d"`}},
		{"an unknown nested key", "a = 1\n\n[b]\nc = 'x'\ne.f = 2\n", &Error{5, "b.e.f", `unknown key "b.e.f"`}},
		{"a number for a string", "a = 1\n[b]\nc = 3\n",
			&Error{3, "", "b.c: wrong type: have a TOML integer, want a string in quotes"}},
		{"a number for a string in an inline table", "a = 1\nb = {c = 3}\n",
			&Error{2, "", "b.c: wrong type: have a TOML integer, want a string in quotes"}},
		{"a string for a table", "b = 'x'\n", &Error{1, "", "b: wrong type: a TOML string does not fit here"}},
		{"a key twice", "a = 1\na = 2\n", &Error{2, "", "key a is already defined"}},
		{"a table twice", "[b]\n[b]\n", &Error{2, "", "table b already exists"}},
		{"not TOML", "a = 1\nb = [\n", &Error{2, "", "array is incomplete"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var dst struct {
				A int `toml:"a"`
				B struct {
					C string `toml:"c"`
				} `toml:"b"`
			}
			err := Decode([]byte(c.text), &dst)
			var have *Error
			if err != nil && !errors.As(err, &have) {
				t.Fatalf("the error is a %T", err)
			}
			expect.Equal(t, have, c.want)
			if c.want == nil && c.text != "" && (dst.A != 1 || dst.B.C != "x") {
				t.Errorf("decoded %+v", dst)
			}
		})
	}
}

// A value without quotes that a type cannot read has a line and a key, like one in quotes.
func TestDecodeText(t *testing.T) {
	for _, c := range []struct {
		text string
		want Error
	}{
		{"n = 7\n[b]\nother = 7\n\nlevel = 7\n", Error{5, "", `b.level: 7: must be high`}},
		{"n = 7\nb.level = 7\n", Error{2, "", `b.level: 7: must be high`}},
		{"n = 7\nb = {other = 7, level = 1.5}\n", Error{2, "", `b.level: 1.5: must be high`}},
		{"\ufeff[b]\nlevel = true\n", Error{2, "", `b.level: true: must be high`}},
		{"[b]\nlevel = '7'\n", Error{2, "", `b.level: "7": must be high`}},
	} {
		var dst struct {
			N int `toml:"n"`
			B struct {
				Other int   `toml:"other"`
				Level level `toml:"level"`
			} `toml:"b"`
		}
		err, _ := errors.AsType[*Error](Decode([]byte(c.text), &dst))
		expect.Equal(t, err, &c.want)
	}
}

type level struct{}

func (level) UnmarshalText(text []byte) error { return fmt.Errorf("%q: must be high", text) }

func TestIn(t *testing.T) {
	var dst struct {
		A int `toml:"a"`
	}
	for _, c := range []struct {
		err  error
		want string
	}{
		{Decode([]byte("a = 1\nb = 2\n"), &dst), `x.toml:2: unknown key "b"`},
		{errors.New("no place"), "x.toml: no place"},
	} {
		expect.Equal(t, In("x.toml", c.err).Error(), c.want)
	}
	if err := Decode([]byte("\na = 'x'\n"), &dst); err == nil || err.(*Error).Line != 2 {
		t.Errorf("a value of the wrong type: %v", err)
	}
}
