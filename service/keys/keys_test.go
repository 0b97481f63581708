package keys

import (
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"vitrine/internal/expect"
	"vitrine/internal/fatal"
)

func TestKeyFiles(t *testing.T) {
	_, key := New("shop", ScopeRead)
	good := key.Table()
	for text, want := range map[string]string{
		"":                                   "there is no [[key]]",
		"key = 3":                            "line 1: not TOML, or a value of the wrong type",
		"[[key]]\nnam=''":                    "line 2: unknown key",
		strings.Replace(good, "shop", "", 1): "key 1: the name",
		good + good:                          "key 2: the name",
		strings.Replace(good, key.SHA256, key.SHA256[1:], 1): `key "shop": sha256 must have`,
		strings.Replace(good, `["read"]`, `[]`, 1):           `key "shop": scopes is missing`,
		strings.Replace(good, `["read"]`, `["read", "everything"]`,
			1): `key "shop": scope "everything": unknown: must be one of`,
		good + strings.Replace(strings.Replace(good, "shop", "desk", 1), key.SHA256, strings.ToUpper(key.SHA256),
			1): `key "desk": its sha256 is also key "shop"'s`,
		good + "placements = []":       `key "shop": placements must be`,
		good + `placements = ["a",""]`: `key "shop": placements must be`,
		good + `placements = "a"`:      "line 5: not TOML",
		good + "public = true":         `key "shop": scope "read": a public key may hold only decide and outcome`,
		good + "public = 1":            "line 5: not TOML",
	} {
		path := filepath.Join(t.TempDir(), "keys.toml")
		fatal.If(t, os.WriteFile(path, []byte(text), 0o600))
		_, err := Open(path, time.Now, slog.New(slog.DiscardHandler))
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), path) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
	expect.Refused(Open("there is none", time.Now, slog.New(slog.DiscardHandler)))(t,
		"a file that is not there has keys")
}

func TestTokensDiffer(t *testing.T) {
	var seen []string
	for range 10 {
		token, key := New("k", ScopeRead)
		if len(token) < 43 || slices.Contains(seen, token) || slices.Contains(seen, key.SHA256) {
			t.Fatalf("the token %q", token)
		}
		seen = append(seen, token, key.SHA256)
	}
}

func FuzzFile(f *testing.F) {
	_, key := New("shop", ScopeRead)
	f.Add(key.Table())
	f.Add("[[key]]\nname = 3")
	f.Add(key.Table() + "placements = [\"home\"]")
	path := filepath.Join(f.TempDir(), "keys.toml")
	f.Fuzz(func(t *testing.T, text string) {
		fatal.If(t, os.WriteFile(path, []byte(text), 0o600))
		k, err := Open(path, time.Now, slog.New(slog.DiscardHandler))
		if (k == nil) == (err == nil) {
			t.Errorf("keys %v and error %v", k, err)
		}
	})
}
