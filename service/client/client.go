package client

import (
	"context"
	"crypto/rand"
	"errors"
	"net/http"
	"net/url"
	"time"

	"github.com/go-json-experiment/json"

	"vitrine/service/api"
)

// Client asks a service. Only Base is needed; 0 is the value in parentheses. A client is
// safe for concurrent use, and is not changed after its first call.
//
// Calls return a *[api.Problem] where the service refuses, and what went wrong on the way otherwise.
// They are tried again after connections that fail or break off, attempts that take
// too long, and the statuses 429, 502, 503 and 504: not before the service's Retry-After, and then
// after a wait drawn uniformly from [0, w], where w doubles from 50 ms to 5 s.
// No other refusal is tried again.
type Client struct {
	Base string            // "http://127.0.0.1:8080"
	Key  string            // the token of an API key; "" sends none
	HTTP http.RoundTripper // (keeps up to 256 connections open)

	Timeout  time.Duration  // for one attempt (10 s)
	Patience time.Duration  // no attempt begins later than so long after the first (30 s); negative tries once
	Jitter   func() float64 // draws from [0, 1), for concurrent use (crypto/rand)

	Retrying func(err error, wait time.Duration) // told of each attempt that is followed by another; may be nil
}

// Decide asks what to show. A decision id is made where the request has none, so that an
// attempt that comes twice is one decision. Another request under an id
// that was used is the problem "conflict".
func (c *Client) Decide(ctx context.Context, placement string, r *api.Request) (*api.Answer, error) {
	p, err := Prepare(r)
	if err != nil {
		return nil, err
	}
	return c.DecidePrepared(ctx, placement, r.Decision, p)
}

// DecideFlat is Decide in the binary form, which costs both sides a fraction of JSON.
func (c *Client) DecideFlat(ctx context.Context, placement string, r *Flat) (*api.Answer, error) {
	return c.DecidePrepared(ctx, placement, r.Decision, r.Prepare())
}

// DecidePrepared is Decide for a request that was encoded before. An empty id is made.
func (c *Client) DecidePrepared(ctx context.Context, placement, id string, p *Prepared) (*api.Answer, error) {
	if id == "" {
		id = NewDecision()
	}
	s, err := c.send(ctx, "POST", placementPath(placement)+"/decisions", p.body(id))
	if err != nil {
		return nil, err
	}
	a := &api.Answer{Repeated: s.status == http.StatusOK}
	if s.mediaType == asBinary {
		err = unmarshalBinary(a, s.body)
	} else {
		err = s.decode(a)
	}
	if err != nil {
		return nil, err
	}
	return a, nil
}

// NewDecision draws a decision id of at least 128 random bits.
func NewDecision() string { return rand.Text() }

// Outcome tells what became of a decision: the id of the item that was taken, "" for none.
// Telling it again changes nothing; another one is the problem "conflict", and an item
// after the attribution window the problem "late".
func (c *Client) Outcome(ctx context.Context, placement, decision, item string) error {
	var o api.Outcome
	if item != "" {
		o.Choice = &item
	}
	return c.post(ctx, decisionPath(placement, decision)+"/outcome", o)
}

// Reward tells what became of a decision by what items that were shown have earned, as shares of a choice.
// The first reward of an item counts, so that telling it again changes nothing.
func (c *Client) Reward(ctx context.Context, placement, decision string, rewards ...api.Reward) error {
	return c.post(ctx, decisionPath(placement, decision)+"/rewards", api.Rewards{Rewards: rewards})
}

// Activate tells that what a deferred decision offered was shown. After the attribution window it
// is the problem "late".
func (c *Client) Activate(ctx context.Context, placement, decision string) error {
	_, err := c.send(ctx, "POST", decisionPath(placement, decision)+"/activate", payload{asJSON, "", nil})
	return err
}

// Decision returns a decision that the service remembers.
func (c *Client) Decision(ctx context.Context, placement, id string) (*api.Decision, error) {
	return get[api.Decision](ctx, c, decisionPath(placement, id))
}

// Put creates a placement, or changes it. After an attempt whose answer was lost created
// may be false for a placement that it created.
func (c *Client) Put(ctx context.Context, placement string, config *api.Placement) (created bool, err error) {
	text, err := json.Marshal(config)
	if err != nil {
		return false, err
	}
	a, err := c.send(ctx, "PUT", placementPath(placement), payload{asJSON, "", text})
	return err == nil && a.status == http.StatusCreated, err
}

// Placement returns the configuration of a placement, with all its values.
func (c *Client) Placement(ctx context.Context, placement string) (*api.Placement, error) {
	return get[api.Placement](ctx, c, placementPath(placement))
}

// Delete ends a placement. One that is gone at a second attempt was deleted by the first.
func (c *Client) Delete(ctx context.Context, placement string) error {
	a, err := c.send(ctx, "DELETE", placementPath(placement), payload{})
	var p *api.Problem
	if a.attempts > 1 && errors.As(err, &p) && p.Kind() == "not-found" {
		return nil
	}
	return err
}

// Placements returns the names of all placements, sorted.
func (c *Client) Placements(ctx context.Context) ([]string, error) {
	list, err := get[api.PlacementList](ctx, c, "/v1/placements")
	if err != nil {
		return nil, err
	}
	names := make([]string, len(list.Placements))
	for i := range names {
		names[i] = list.Placements[i].Name
	}
	return names, nil
}

// Stats returns the counters of a placement.
func (c *Client) Stats(ctx context.Context, placement string) (*api.Stats, error) {
	return get[api.Stats](ctx, c, placementPath(placement)+"/stats")
}

// RollBack makes a placement forget what it has learned since a version was kept, one of
// its Stats.Versions.
func (c *Client) RollBack(ctx context.Context, placement string, version uint64) error {
	return c.post(ctx, placementPath(placement)+"/rollback", api.Rollback{Version: version})
}

func placementPath(name string) string { return "/v1/placements/" + url.PathEscape(name) }

func decisionPath(placement, id string) string {
	return placementPath(placement) + "/decisions/" + url.PathEscape(id)
}

// post sends a value that JSON has.
func (c *Client) post(ctx context.Context, path string, v any) error {
	text, err := json.Marshal(v)
	if err != nil {
		return err
	}
	_, err = c.send(ctx, "POST", path, payload{asJSON, "", text})
	return err
}

func get[T any](ctx context.Context, c *Client, path string) (*T, error) {
	a, err := c.send(ctx, "GET", path, payload{})
	if err != nil {
		return nil, err
	}
	v := new(T)
	if err := a.decode(v); err != nil {
		return nil, err
	}
	return v, nil
}

// CloseIdleConnections closes the connections that no call uses.
func (c *Client) CloseIdleConnections() {
	if t, ok := c.transport().(interface{ CloseIdleConnections() }); ok {
		t.CloseIdleConnections()
	}
}
