package server

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"vitrine/internal/hint"
	"vitrine/internal/sockets"
	"vitrine/service/api"
	"vitrine/service/catalogue"
	"vitrine/service/engine"
	"vitrine/service/keys"
	"vitrine/service/personalizer"
)

// handler answers a call, or returns the error to answer with.
type handler func(*call) error

// wrapper returns a handler that does its part and then calls the next one, or answers in its place. It also notes in
// the route what the OpenAPI document, metrics and traces need to know.
type wrapper func(s *Server, rt *route, next handler) handler

// within wraps a handler; the first wrapper is the outermost.
func (rt *route) within(s *Server, via []wrapper, h handler) handler {
	for _, w := range slices.Backward(via) {
		h = w(s, rt, h)
	}
	return h
}

// origin protects a service without keys from pages of other sites in a browser on this machine. Their requests name
// another origin, or another host if the site's name resolves to this machine.
func origin(s *Server, _ *route, next handler) handler {
	if s.keys != nil {
		return next
	}
	return func(c *call) error {
		if c.Host != "" && !sockets.IsLoopback(c.Host) || s.origin.Check(c.Request) != nil {
			return problemf(http.StatusForbidden, "forbidden", "without API keys the service answers only "+
				"requests to localhost and from its own pages")
		}
		return next(c)
	}
}

// key asks for a key with a scope.
func key(scope string) wrapper {
	return func(s *Server, rt *route, next handler) handler {
		rt.scope = scope
		return func(c *call) error {
			if err := s.authorize(c, scope); err != nil {
				return err
			}
			if scope == keys.ScopeAdmin && c.key.Name != "" {
				c.ctx = engine.WithCaller(c.ctx, c.key.Name)
			}
			return next(c)
		}
	}
}

// limit keeps the limits on requests and memory of a key and of all keys.
func limit(s *Server, rt *route, next handler) handler {
	rt.limited = true
	return func(c *call) error {
		account := s.accounts.of(c.key.Name)
		if err := s.admit(c, account, true); err != nil {
			return err
		}
		defer c.leave()
		c.ctx = catalogue.WithWork(c.ctx, account.work)
		c.memory = s.options.Budget.Account(c.key.Name, s.share(3, 4), time.Second)
		return next(c)
	}
}

// own finds the placement that a call names, and confines a limited key to its placements. The answer does not reveal
// whether another placement exists.
func own(s *Server, rt *route, next handler) handler {
	return func(c *call) error {
		c.placement = c.PathValue("name")
		if rt.contract != nil && c.placement == "" {
			c.placement = personalizer.Placement
			if len(c.key.Placements) == 1 {
				c.placement = c.key.Placements[0]
			}
		}
		switch {
		case c.key.Placements == nil:
		case c.placement != "" && !c.mine(c.placement):
			return fmt.Errorf("placement %q: %w", c.placement, engine.ErrNotFound)
		case c.placement == "":
			return problemf(http.StatusForbidden, "forbidden", "the API key is limited to placements, and this "+
				"concerns the whole service")
		}
		return next(c)
	}
}

// deadline limits the time for an answer.
func deadline(s *Server, rt *route, next handler) handler {
	rt.timed = true
	return func(c *call) error {
		ctx, cancel := context.WithTimeout(c.ctx, s.limits.Answer)
		defer cancel()
		c.ctx = ctx
		return next(c)
	}
}

// change checks that this process may still write, and names the last known entry in the answer.
func change(s *Server, rt *route, next handler) handler {
	rt.writes = true
	return func(c *call) error {
		if err := s.engine.Confirm(c.ctx); err != nil {
			return err
		}
		c.entry = s.engine.Entry
		return next(c)
	}
}

// entryParameter is the parameter of reads that must reflect their caller's writes.
var entryParameter = parameter{"entry", "an entry of the log, from the header " + api.EntryHeader +
	" of an answer: the answer to this request is from a state that has it. 503 with the problem lag if this " +
	"process does not have it within two seconds"}

// maxEntryWait is how long a read waits for an entry.
const maxEntryWait = 2 * time.Second

// upToDate waits until the state includes the entry that the query names, if any.
func upToDate(s *Server, rt *route, next handler) handler {
	rt.reads = true
	return func(c *call) error {
		if c.URL.RawQuery != "" {
			if err := s.awaitEntry(c.ctx, c.URL.Query()); err != nil {
				return err
			}
		}
		return next(c)
	}
}

// queried returns the handler of a route that refuses unknown keys in the query. Clients add the entry to every GET.
func (rt *route) queried(next handler) handler {
	return func(c *call) error {
		if c.URL.RawQuery == "" {
			return next(c)
		}
		var known []string
		for _, q := range rt.query {
			known = append(known, q.name)
		}
		if rt.reads || rt.method == http.MethodGet {
			known = append(known, entryParameter.name)
		}
		query, err := url.ParseQuery(c.URL.RawQuery)
		if err != nil {
			return problemf(http.StatusBadRequest, "query", "the query is not of the form key=value&key=value: %v", err)
		}
		for _, key := range slices.Sorted(maps.Keys(query)) {
			switch {
			case len(query[key]) > 1 && key != "id": // a shelf takes several
				return problemf(http.StatusBadRequest, "query", "the query has the key %q twice: send one value",
					api.Abbreviate(key, 40))
			case slices.Contains(known, key):
			case known == nil:
				return problemf(http.StatusBadRequest, "query", "the query has the key %q: this request takes no query",
					api.Abbreviate(key, 40))
			default:
				return problemf(http.StatusBadRequest, "query", "the query has the unknown key %q%s",
					api.Abbreviate(key, 40), hint.Legal(key, known))
			}
		}
		return next(c)
	}
}

func (s *Server) awaitEntry(ctx context.Context, query url.Values) error {
	text := query.Get(entryParameter.name)
	if text == "" {
		return nil
	}
	entry, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return api.Fieldf("/entry", "%q: must be a whole number, the header %s of an answer", api.Abbreviate(text, 40),
			api.EntryHeader)
	}
	ctx, cancel := context.WithTimeout(ctx, maxEntryWait)
	defer cancel()
	err = s.engine.WaitFor(ctx, entry)
	if errors.Is(err, context.DeadlineExceeded) {
		return problemf(http.StatusServiceUnavailable, "lag", "entry %d is not part of the state of this process, "+
			"which is at entry %d: try again, or ask the process that wrote it", entry, s.engine.Sequence())
	}
	return err
}

// catchUp reads the log to its end if this process does not know the placement: the leader may know it. Without a
// leader the placement cannot be declared unknown.
func catchUp(s *Server, _ *route, next handler) handler {
	return func(c *call) error {
		if _, err := s.engine.Config(c.placement); err != nil {
			if err := s.engine.CatchUp(c.ctx); err != nil {
				return err
			}
		}
		return next(c)
	}
}

// lead passes a call on to the leader if this process follows the log. It passes on a Rank only if the Rank may create
// the placement.
func lead(s *Server, rt *route, next handler) handler {
	if s.options.Forward == nil {
		return next
	}
	return func(c *call) error {
		if s.engine.Role() != engine.Follower || forwarded(c) {
			return next(c)
		}
		if rt.scope != keys.ScopeAdmin {
			if _, err := s.engine.Config(c.placement); err == nil {
				return next(c)
			}
		}
		return s.forward(c)
	}
}
