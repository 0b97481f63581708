package client

import (
	"context"
	"crypto/rand"
	"errors"
	"net/http"
	"slices"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"vitrine/service/api"
)

// Client calls a decision service. Only Base is required; the zero value of another field stands for the default in
// parentheses. A client is safe for concurrent use. Its fields must not be changed after the first call.
//
// A call returns a *[api.Problem] if the service refuses it, and a transport error otherwise. Calls are retried after
// connection errors, timeouts and the statuses 429, 502, 503 and 504, but nothing else. The wait is the service's
// Retry-After plus a delay drawn uniformly from [0, w], where w doubles from 50 ms to 5 s.
//
// If Base lists several addresses, of processes that serve one log, these failures except 429 send the call to the next
// address at once, with the same decision id. The client waits only after all have failed: for the shortest wait that
// one of them asks for. Later calls begin with the address that did not fail.
type Client struct {
	Base string            // "http://127.0.0.1:8080", or several addresses with commas between them
	Key  string            // the token of an API key, or ""
	HTTP http.RoundTripper // sends requests (a transport that keeps up to 256 idle connections)

	Timeout  time.Duration  // of one attempt (10 s)
	Patience time.Duration  // from the first attempt to the beginning of the last (30 s); negative tries each address once
	Jitter   func() float64 // draws from [0, 1); it must be safe for concurrent use (math/rand/v2)

	Retrying func(err error, wait time.Duration) // is called before each retry; may be nil

	// ReadYourWrites makes reads wait for this client's writes, whichever process answers. All calls must go to one
	// log, also behind a load balancer, because every log numbers its own entries. The client must not outlive the log:
	// after a backup is restored reads would wait for lost entries.
	ReadYourWrites bool

	addresses addresses
	wrote     writes
}

// Decide asks which items to show. If the request lacks a decision id, Decide makes one, so that retries are one
// decision. Reusing an id for a different request is the problem "conflict".
func (c *Client) Decide(ctx context.Context, placement string, r *api.Request) (*api.Answer, error) {
	p, err := Prepare(r)
	if err != nil {
		return nil, err
	}
	return c.DecidePrepared(ctx, placement, r.Decision, p)
}

// DecidePrepared is Decide for an encoded request. If id is empty, it makes one.
func (c *Client) DecidePrepared(ctx context.Context, placement, id string, p *Prepared) (*api.Answer, error) {
	if id == "" {
		id = NewDecision()
	}
	s, err := c.send(ctx, "POST", api.PlacementPath(placement)+"/decisions", p.body(id))
	if err != nil {
		return nil, err
	}
	a := &api.Answer{Repeated: s.status == http.StatusOK}
	if err := s.decode(a); err != nil {
		return nil, err
	}
	return a, nil
}

// NewDecision draws a decision id of at least 128 random bits.
func NewDecision() string { return rand.Text() }

// Outcome reports the outcome of a decision: the id of the item that was taken, or "" if no item was taken. Reporting
// the same outcome twice is a no-op; a different one is the problem "conflict". An outcome after the attribution window
// counts too, but the policy does not learn from it.
func (c *Client) Outcome(ctx context.Context, placement, decision, item string) error {
	var o api.Outcome
	if item != "" {
		o.Choice = &item
	}
	return c.post(ctx, api.DecisionPath(placement, decision)+"/outcome", o)
}

// Choose reports the outcome of a decision, as Outcome does, for several items, several units, or other values than the
// revenues. Name each item once.
func (c *Client) Choose(ctx context.Context, placement, decision string, choices ...api.Choice) error {
	return c.post(ctx, api.DecisionPath(placement, decision)+"/outcome",
		api.Outcome{Choices: slices.Concat([]api.Choice{}, choices)})
}

// Measure reports values of an experiment's metrics for a decision, before its outcome.
func (c *Client) Measure(ctx context.Context, placement, decision string, metrics map[string]float64) error {
	return c.post(ctx, api.DecisionPath(placement, decision)+"/metrics", &api.Measurements{Metrics: metrics})
}

// Correct corrects a decision's earnings after its outcome, such as by a return, or by an item of the page that was bought
// later. Sending the same correction twice is a no-op; another one under its id is the problem "conflict".
func (c *Client) Correct(ctx context.Context, placement, decision string, correction api.Correction) error {
	return c.post(ctx, api.DecisionPath(placement, decision)+"/corrections", correction)
}

// Reward reports rewards of items shown, as shares of a choice. Only an item's first reward counts, so reporting it
// again is harmless.
func (c *Client) Reward(ctx context.Context, placement, decision string, rewards ...api.Reward) error {
	return c.post(ctx, api.DecisionPath(placement, decision)+"/rewards", api.Rewards{Rewards: rewards})
}

// Activate reports that the items of a deferred decision were shown. After the attribution window it
// is the problem "late".
func (c *Client) Activate(ctx context.Context, placement, decision string) error {
	_, err := c.send(ctx, "POST", api.DecisionPath(placement, decision)+"/activate", payload{mediaType: asJSON})
	return err
}

// Decision returns a decision. One that the service no longer remembers is the problem "not-found".
func (c *Client) Decision(ctx context.Context, placement, id string) (*api.Decision, error) {
	return get[api.Decision](ctx, c, api.DecisionPath(placement, id))
}

// Explain says why a decision shows its items.
func (c *Client) Explain(ctx context.Context, placement, id string) (*api.Explanation, error) {
	return get[api.Explanation](ctx, c, api.DecisionPath(placement, id)+"/explanation")
}

// Try returns the answer that a request would get now, and why, without recording anything.
func (c *Client) Try(ctx context.Context, placement string, r *api.Request) (*api.Trial, error) {
	return exchange[api.Trial](ctx, c, "POST", api.PlacementPath(placement)+"/try", r)
}

// Put creates or changes a placement. A change that would begin its learner again is the problem "loss". If the answer
// of an attempt was lost, created may be false although Put created the placement.
func (c *Client) Put(ctx context.Context, placement string, config *api.Placement) (created bool, err error) {
	return c.Change(ctx, placement, config, Change{})
}

// Change says how [Client.Change] may change a placement.
type Change struct {
	Reset   bool   // the learner may begin again; it is kept as a version
	Relearn bool   // another learner learns from the log, and then takes its place; not with Reset
	ETag    string // of the placement that is changed, from [Client.PlacementETag]; "" is any
}

// Change is Put with conditions. A change that would begin the learner again is the problem "loss" unless how.Reset
// or how.Relearn is set, and one of a placement with another ETag is the problem "precondition".
func (c *Client) Change(ctx context.Context, placement string, config *api.Placement,
	how Change) (created bool, err error) {
	text, err := json.Marshal(config)
	if err != nil {
		return false, err
	}
	query := ""
	switch {
	case how.Reset:
		query = "?reset=true"
	case how.Relearn:
		query = "?relearn=log"
	}
	a, err := c.send(ctx, "PUT", api.PlacementPath(placement)+query, payload{mediaType: asJSON, rest: text,
		match: how.ETag})
	return err == nil && a.status == http.StatusCreated, err
}

// PlacementETag is Placement with the ETag of the configuration, for [Change].
func (c *Client) PlacementETag(ctx context.Context, placement string) (config *api.Placement, etag string, err error) {
	a, err := c.send(ctx, "GET", api.PlacementPath(placement), payload{})
	if err != nil {
		return nil, "", err
	}
	config = new(api.Placement)
	return config, a.etag, a.decode(config)
}

// Versions returns the versions of a placement to roll back to, the oldest first.
func (c *Client) Versions(ctx context.Context, placement string) ([]api.Version, error) {
	list, err := get[api.VersionList](ctx, c, api.PlacementPath(placement)+"/versions")
	if err != nil {
		return nil, err
	}
	return list.Versions, nil
}

// Keep keeps a placement's knowledge as a version to roll back to, and returns its number. note says why.
func (c *Client) Keep(ctx context.Context, placement, note string) (version uint64, err error) {
	kept, err := exchange[api.Kept](ctx, c, "POST", api.PlacementPath(placement)+"/versions", api.Note{Note: note})
	if err != nil {
		return 0, err
	}
	return kept.Version, nil
}

// Placement returns the configuration of a placement, with its defaults filled in.
func (c *Client) Placement(ctx context.Context, placement string) (*api.Placement, error) {
	return get[api.Placement](ctx, c, api.PlacementPath(placement))
}

// Delete deletes a placement. It returns nil if a retry finds that an earlier attempt deleted the placement.
func (c *Client) Delete(ctx context.Context, placement string) error {
	return c.remove(ctx, api.PlacementPath(placement))
}

func (c *Client) remove(ctx context.Context, path string) error {
	a, err := c.send(ctx, "DELETE", path, payload{})
	var p *api.Problem
	if a.unsure && errors.As(err, &p) && p.Kind() == "not-found" {
		return nil
	}
	return err
}

// EraseShopper makes all placements forget a shopper for good. A shopper whom they do not know is no error.
func (c *Client) EraseShopper(ctx context.Context, shopper string) error {
	return c.post(ctx, "/v1/erasures", api.Erasure{ShopperID: shopper})
}

// ClearAlarm clears the alarm of a placement's guard: its policy decides again.
func (c *Client) ClearAlarm(ctx context.Context, placement string) error {
	return c.remove(ctx, api.PlacementPath(placement)+"/alarm")
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
	return get[api.Stats](ctx, c, api.PlacementPath(placement)+"/stats")
}

// Experiments returns a placement's running experiment, if any, and the last ended ones.
func (c *Client) Experiments(ctx context.Context, placement string) (*api.Experiments, error) {
	return get[api.Experiments](ctx, c, api.PlacementPath(placement)+"/experiment")
}

// Insight returns a placement's sales and its policy's beliefs.
func (c *Client) Insight(ctx context.Context, placement string) (*api.Insight, error) {
	return get[api.Insight](ctx, c, api.PlacementPath(placement)+"/insight")
}

// RollBack returns a placement to one of its [Client.Versions]: it forgets everything learned since. Its present
// knowledge is kept as a version.
func (c *Client) RollBack(ctx context.Context, placement string, version uint64) error {
	return c.post(ctx, api.PlacementPath(placement)+"/rollback", api.Rollback{Version: version})
}

// post sends v as JSON.
func (c *Client) post(ctx context.Context, path string, v any) error {
	text, err := json.Marshal(v)
	if err != nil {
		return err
	}
	_, err = c.send(ctx, "POST", path, payload{mediaType: asJSON, rest: text})
	return err
}

func get[T any](ctx context.Context, c *Client, path string) (*T, error) {
	return receive[T](ctx, c, "GET", path, payload{})
}

// exchange sends v as JSON and reads the answer.
func exchange[T any](ctx context.Context, c *Client, method, path string, v any) (*T, error) {
	text, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	return receive[T](ctx, c, method, path, payload{mediaType: asJSON, rest: text})
}

// receive sends a body and reads the answer.
func receive[T any](ctx context.Context, c *Client, method, path string, body payload) (*T, error) {
	a, err := c.send(ctx, method, path, body)
	if err != nil {
		return nil, err
	}
	v := new(T)
	if err := a.decode(v); err != nil {
		return nil, err
	}
	return v, nil
}

// CloseIdleConnections closes the connections that are not in use.
func (c *Client) CloseIdleConnections() {
	if t, ok := c.transport().(interface{ CloseIdleConnections() }); ok {
		t.CloseIdleConnections()
	}
}

// Process returns the answering process's part in its log. A process that takes no requests, because it is starting,
// ending or far behind the log, is a problem.
func (c *Client) Process(ctx context.Context) (*api.Process, error) {
	return get[api.Process](ctx, c, "/readyz")
}

// Prepared is an encoded request without its decision id. A caller that asks the same question many
// times encodes it once, and calls [Client.DecidePrepared].
type Prepared struct{ rest []byte }

const asJSON = "application/json"

// Prepare encodes a request as JSON, without its decision id. It returns an error if a number is not
// finite or an object is not JSON.
func Prepare(r *api.Request) (*Prepared, error) {
	rest := *r
	rest.Decision = ""
	text, err := json.Marshal(rest)
	if err != nil {
		return nil, err
	}
	return &Prepared{text[1:]}, nil // without the brace: body puts decision_id first
}

// body returns the request with a decision id.
func (p *Prepared) body(id string) payload {
	head, _ := jsontext.AppendQuote([]byte(`{"decision_id":`), id) // it replaces invalid UTF-8, which the service refuses
	if len(p.rest) > 1 {                                           // more than a brace
		head = append(head, ',')
	}
	return payload{mediaType: asJSON, head: head, rest: p.rest}
}
