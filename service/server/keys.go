package server

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	"vitrine/service/keys"
	"vitrine/service/personalizer"
)

// authorize finds the caller's key and checks its scope.
func (s *Server) authorize(c *call, scope string) error {
	if s.keys == nil || scope == "" {
		return nil
	}
	for _, name := range []string{"Authorization", personalizer.KeyHeader} {
		if len(c.Header[name]) > 1 {
			return problemf(http.StatusBadRequest, "header", "the request has more than one header %s: send one key",
				name)
		}
	}
	key, err := s.keyOf(c)
	if err != nil {
		return err
	}
	c.key = key
	if !slices.Contains(key.Scopes, scope) {
		c.w.Header().Set("WWW-Authenticate", fmt.Sprintf(`Bearer realm="vitrine", error="insufficient_scope", scope=%q`,
			scope))
		return problemf(http.StatusForbidden, "forbidden", "the API key lacks the scope %q", scope)
	}
	return nil
}

// keyOf returns the key in a request's header, or else its session's key.
func (s *Server) keyOf(c *call) (keys.Key, error) {
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
		return keys.Key{}, problemf(http.StatusUnauthorized, "unauthorized", "an API key is needed, in the header %s",
			where)
	}
	key, ok := s.keys.Find(token)
	if !ok {
		c.w.Header().Set("WWW-Authenticate", `Bearer realm="vitrine", error="invalid_token"`)
		return keys.Key{}, problemf(http.StatusUnauthorized, "unauthorized", "the API key is unknown or was removed")
	}
	return key, nil
}
