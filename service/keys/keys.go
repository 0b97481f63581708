// Package keys implements a service's API keys: their scopes, their file, and changes to the file.
package keys

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/pelletier/go-toml/v2"

	"vitrine/internal/hint"
	"vitrine/internal/watch"
)

// The scopes, which are permissions of a key. No scope implies another.
const (
	ScopeDecide  = "decide"  // ask for decisions
	ScopeOutcome = "outcome" // report outcomes
	ScopeRead    = "read"    // read placements, decisions, statistics, events, metrics
	ScopeAdmin   = "admin"   // change placements
)

// Scopes lists all scopes.
var Scopes = []string{ScopeDecide, ScopeOutcome, ScopeRead, ScopeAdmin}

// Key is an API key in a file, which holds only the hash of the token. A token is 256 random bits and cannot be
// guessed, so a slow hash, which protects passwords that people choose, would only make requests more expensive.
type Key struct {
	Name       string   `toml:"name"`
	SHA256     string   `toml:"sha256"` // of the token, in hexadecimal
	Scopes     []string `toml:"scopes"`
	Placements []string `toml:"placements"` // the placements that it is limited to, which need not exist; nil is all
	Public     bool     `toml:"public"`     // published, for example in a web page: see [Key.Check]

	sum [sha256.Size]byte
}

// Covers reports whether a key limited to placements is for a placement; nil is not limited.
func Covers(placements []string, placement string) bool {
	return placements == nil || slices.Contains(placements, placement)
}

// TokenPrefix begins every token.
const TokenPrefix = "vitrine_"

// New makes a key and its token. The caller shows the token to the owner; it is stored nowhere.
func New(name string, scopes ...string) (token string, k Key) {
	var secret [32]byte
	rand.Read(secret[:])
	token = TokenPrefix + base64.RawURLEncoding.EncodeToString(secret[:])
	sum := sha256.Sum256([]byte(token))
	return token, Key{Name: name, SHA256: hex.EncodeToString(sum[:]), Scopes: scopes, sum: sum}
}

// Set is the API keys of a file. The file is read again when it changes, so keys can be added and
// removed without a restart. Its tables are
//
//	[[key]]
//	name = "shop"
//	sha256 = "9f86d081…"
//	scopes = ["decide", "outcome"]
//	placements = ["home"]
//	public = true
type Set struct {
	file *watch.Value[[]Key]
}

// Open reads a file of keys, which must hold at least one. If a changed file is invalid later, the keys remain as they
// were, and logger reports it.
func Open(path string, clock func() time.Time, logger *slog.Logger) (*Set, error) {
	file, err := watch.Files(func() ([]Key, error) { return read(path) }, clock, logger, path)
	if err != nil {
		return nil, err
	}
	return &Set{file}, nil
}

func read(path string) ([]Key, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	keys, err := decode(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return keys, nil
}

// All returns the keys, which must not be changed.
func (s *Set) All() []Key { return s.file.Get() }

// Problem says why the changed file cannot be read, or "". It is "" for a nil set.
func (s *Set) Problem() string {
	if s == nil {
		return ""
	}
	return s.file.Problem()
}

var errNone = errors.New("there is no [[key]]")

// decode decodes a file of keys. Its errors never quote the text of the file.
func decode(text []byte) ([]Key, error) {
	var file struct {
		Keys []Key `toml:"key"`
	}
	d := toml.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&file); err != nil {
		var at *toml.DecodeError
		var strict *toml.StrictMissingError
		switch {
		case errors.As(err, &strict):
			line, _ := strict.Errors[0].Position()
			return nil, fmt.Errorf("line %d: unknown key: a [[key]] has name, sha256, scopes, placements and public", line)
		case errors.As(err, &at):
			line, _ := at.Position()
			return nil, fmt.Errorf("line %d: not TOML, or a value of the wrong type", line)
		}
		return nil, errors.New("not a file of keys")
	}
	if len(file.Keys) == 0 {
		return nil, errNone
	}
	names := map[string]bool{}
	for i := range file.Keys {
		k := &file.Keys[i]
		if k.Name == "" || len(k.Name) > 64 || names[k.Name] {
			return nil, fmt.Errorf("key %d: the name must be unique and have from 1 to 64 bytes", i+1)
		}
		names[k.Name] = true
		sum, err := hex.DecodeString(k.SHA256)
		if err != nil || len(sum) != sha256.Size {
			return nil, fmt.Errorf("key %q: sha256 must have 64 hexadecimal digits", k.Name)
		}
		k.sum, k.SHA256 = [sha256.Size]byte(sum), strings.ToLower(k.SHA256)
		for _, other := range file.Keys[:i] {
			if other.sum == k.sum {
				return nil, fmt.Errorf("key %q: its sha256 is also key %q's, and a token stands for one key: remove one "+
					"of the two keys", k.Name, other.Name)
			}
		}
		if len(k.Scopes) == 0 {
			return nil, fmt.Errorf("key %q: scopes is missing: choose from %s", k.Name, strings.Join(Scopes, ", "))
		}
		for _, scope := range k.Scopes {
			if !slices.Contains(Scopes, scope) {
				return nil, fmt.Errorf("key %q: scope %q: unknown%s", k.Name, scope, hint.Legal(scope, Scopes))
			}
		}
		if err := k.checkPublic(); err != nil {
			return nil, err
		}
		if k.Placements != nil && len(k.Placements) == 0 || slices.Contains(k.Placements, "") {
			return nil, fmt.Errorf("key %q: placements must be names of placements; leave it out for all "+
				"placements", k.Name)
		}
	}
	return file.Keys, nil
}

// Find returns the key of a token. Its running time does not depend on how much of the token is right:
// it compares the whole hash with every key.
func (s *Set) Find(token string) (found Key, ok bool) {
	sum := sha256.Sum256([]byte(token))
	keys := s.All()
	for i := range keys {
		if subtle.ConstantTimeCompare(sum[:], keys[i].sum[:]) == 1 {
			found, ok = keys[i], true
		}
	}
	return found, ok
}

// OfHash returns the key with this hash of its token, in lower-case hexadecimal.
func (s *Set) OfHash(hash string) (Key, bool) {
	for _, key := range s.All() {
		if key.SHA256 == hash {
			return key, true
		}
	}
	return Key{}, false
}
