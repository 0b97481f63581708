package server

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
	"net/http"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/pelletier/go-toml/v2"

	"vitrine/internal/hint"
	"vitrine/service/personalizer"
)

// Scope is a permission of a key. No scope implies another.
type Scope string

// The scopes.
const (
	ScopeDecide  Scope = "decide"  // ask for decisions
	ScopeOutcome Scope = "outcome" // report outcomes
	ScopeRead    Scope = "read"    // read placements, decisions, statistics, events, metrics
	ScopeAdmin   Scope = "admin"   // change placements
)

// Scopes lists all scopes.
var Scopes = []Scope{ScopeDecide, ScopeOutcome, ScopeRead, ScopeAdmin}

// Key is an API key as its file has it. The file has only the hash of the token. A token has 256 random
// bits and cannot be guessed, so a slow hash, which protects passwords that people choose, would only
// make requests more expensive.
type Key struct {
	Name       string   `toml:"name"`
	SHA256     string   `toml:"sha256"` // of the token, in hexadecimal
	Scopes     []Scope  `toml:"scopes"`
	Placements []string `toml:"placements"` // the placements that it is limited to, which need not exist; nil is all
}

const tokenPrefix = "vitrine_"

// NewKey makes a key and its token. The caller shows the token to the owner; it is stored nowhere.
func NewKey(name string, scopes ...Scope) (token string, k Key) {
	var secret [32]byte
	rand.Read(secret[:])
	token = tokenPrefix + base64.RawURLEncoding.EncodeToString(secret[:])
	sum := sha256.Sum256([]byte(token))
	return token, Key{Name: name, SHA256: hex.EncodeToString(sum[:]), Scopes: scopes}
}

// Keys are the API keys of a file. The file is read again when it changes, so keys can be added and
// removed without a restart. Its tables are
//
//	[[key]]
//	name = "shop"
//	sha256 = "9f86d081…"
//	scopes = ["decide", "outcome"]
//	placements = ["home"]
type Keys struct {
	file *watched[[]storedKey]
}

type storedKey struct {
	name       string
	sum        [sha256.Size]byte
	scopes     []Scope
	placements []string
}

// OpenKeys reads a file of keys, which must have at least one. If a changed file is invalid later, the
// keys remain as they were, and logger reports it.
func OpenKeys(path string, clock func() time.Time, logger *slog.Logger) (*Keys, error) {
	file, err := watch(func() ([]storedKey, error) { return readKeys(path) }, clock, logger, path)
	if err != nil {
		return nil, err
	}
	return &Keys{file}, nil
}

func readKeys(path string) ([]storedKey, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	keys, err := parseKeys(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return keys, nil
}

var errNoKeys = errors.New("there is no [[key]]")

func parseKeys(text []byte) ([]storedKey, error) {
	keys, err := decodeKeys(text)
	if err != nil {
		return nil, err
	}
	stored := make([]storedKey, len(keys))
	for i, k := range keys {
		stored[i] = storedKey{name: k.Name, scopes: k.Scopes, placements: k.Placements}
		if _, err := hex.Decode(stored[i].sum[:], []byte(k.SHA256)); err != nil {
			return nil, err
		}
	}
	return stored, nil
}

// decodeKeys decodes a file of keys. Its errors never quote the text of the file.
func decodeKeys(text []byte) ([]Key, error) {
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
			return nil, fmt.Errorf("line %d: unknown key: a [[key]] has name, sha256, scopes and placements", line)
		case errors.As(err, &at):
			line, _ := at.Position()
			return nil, fmt.Errorf("line %d: not TOML, or a value of the wrong type", line)
		}
		return nil, errors.New("not a file of keys")
	}
	if len(file.Keys) == 0 {
		return nil, errNoKeys
	}
	names := map[string]bool{}
	for i, k := range file.Keys {
		if k.Name == "" || len(k.Name) > 64 || names[k.Name] {
			return nil, fmt.Errorf("key %d: the name must be unique and have from 1 to 64 bytes", i+1)
		}
		names[k.Name] = true
		if sum, err := hex.DecodeString(k.SHA256); err != nil || len(sum) != sha256.Size {
			return nil, fmt.Errorf("key %q: sha256 must have 64 hexadecimal digits", k.Name)
		}
		if len(k.Scopes) == 0 {
			return nil, fmt.Errorf("key %q: scopes is missing: choose from %s", k.Name, strings.Join(texts(Scopes), ", "))
		}
		for _, scope := range k.Scopes {
			if !slices.Contains(Scopes, scope) {
				return nil, fmt.Errorf("key %q: scope %q: unknown%s", k.Name, scope, hint.Legal(string(scope), texts(Scopes)))
			}
		}
		if k.Placements != nil && len(k.Placements) == 0 || slices.Contains(k.Placements, "") {
			return nil, fmt.Errorf("key %q: placements must be names of placements; leave it out for all placements", k.Name)
		}
	}
	return file.Keys, nil
}

// find returns the key of a token. Its running time does not depend on how much of the token is right:
// it compares the whole hash with every key.
func (k *Keys) find(token string) (storedKey, bool) {
	sum := sha256.Sum256([]byte(token))
	found := -1
	keys := k.file.get()
	for i := range keys {
		if subtle.ConstantTimeCompare(sum[:], keys[i].sum[:]) == 1 {
			found = i
		}
	}
	if found < 0 {
		return storedKey{}, false
	}
	return keys[found], true
}

// authorize finds the caller's key and checks that it has the scope.
func (s *Server) authorize(c *call, scope Scope) error {
	if s.keys == nil || scope == "" {
		return nil
	}
	for _, name := range []string{"Authorization", personalizer.KeyHeader} {
		if len(c.Header[name]) > 1 {
			return problemf(http.StatusBadRequest, "header", "the request has more than one header %s: send one key", name)
		}
	}
	key, err := s.keyOf(c)
	if err != nil {
		return err
	}
	c.key = key
	if !slices.Contains(key.scopes, scope) {
		c.w.Header().Set("WWW-Authenticate", fmt.Sprintf(`Bearer realm="vitrine", error="insufficient_scope", scope=%q`, scope))
		return problemf(http.StatusForbidden, "forbidden", "the API key lacks the scope %q", scope)
	}
	return nil
}

// keyOf returns the key that a request has in a header, or without one the key of its session.
func (s *Server) keyOf(c *call) (storedKey, error) {
	scheme, token, _ := strings.Cut(c.Header.Get("Authorization"), " ")
	where := "Authorization: Bearer KEY"
	if c.contract != nil {
		where = personalizer.KeyHeader + ": KEY"
		if key := c.Header.Get(personalizer.KeyHeader); key != "" {
			scheme, token = "Bearer", key
		}
	}
	if scheme == "" {
		if key, ok, err := s.bySession(c); ok || err != nil {
			return key, err
		}
	}
	if !strings.EqualFold(scheme, "Bearer") || token == "" {
		c.w.Header().Set("WWW-Authenticate", `Bearer realm="vitrine"`)
		return storedKey{}, problemf(http.StatusUnauthorized, "unauthorized", "an API key is needed, in the header %s", where)
	}
	key, ok := s.keys.find(token)
	if !ok {
		c.w.Header().Set("WWW-Authenticate", `Bearer realm="vitrine", error="invalid_token"`)
		return storedKey{}, problemf(http.StatusUnauthorized, "unauthorized", "the API key is unknown or was removed")
	}
	return key, nil
}

// covers reports whether a key limited to placements is for a placement; nil is not limited.
func covers(placements []string, placement string) bool {
	return placements == nil || slices.Contains(placements, placement)
}
