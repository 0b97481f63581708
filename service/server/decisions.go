package server

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"vitrine/service/api"
	"vitrine/service/budget"
	"vitrine/service/engine"
	"vitrine/service/offer"
	"vitrine/service/setup"
)

func (s *Server) decide(c *call) error {
	v, err := s.engine.View(c.placement)
	if err != nil {
		return err
	}
	r, release, err := c.readRequest(v)
	if err != nil {
		return err
	}
	o, err := s.engine.DecideFor(c.ctx, v, r, c.now)
	if err != nil {
		return err
	}
	if c.memory.Held(budget.Work) <= maxPooled { // without an answer the engine may still read the request
		release()
	}
	status := http.StatusOK
	if !o.Decoded { // otherwise the decision was made before
		status = http.StatusCreated
		c.w.Header()["Location"] = []string{api.DecisionPath(c.placement, o.Decision)}
	}
	reply := o.Reply()
	if c.key.Public { // revenues would follow from them
		reply.ExpectedRevenue, reply.OutsideProbability = nil, nil
		for k := range reply.Assortment {
			reply.Assortment[k].Probability = nil
		}
	}
	b, err := reply.AppendJSON(c.scratch().AvailableBuffer())
	if err != nil {
		return fmt.Errorf("an answer does not marshal: %w", err)
	}
	return c.answer(status, asJSON, b)
}

// readRequest reads a request, and reserves the memory that its decision takes. After release the request's memory may
// be reused.
func (c *call) readRequest(v *engine.View) (r *api.Request, release func(), err error) {
	body, err := c.jsonBody()
	if err != nil {
		return nil, nil, err
	}
	config := v.Config()
	most := maxItems(body, config)
	size := config.RequestSize(most)
	if err := c.memory.Reserve(c.ctx, size); err != nil {
		return nil, nil, err
	}
	reader := readers.Get().(*api.RequestReader)
	if r, err = reader.Read(body, config.MaxItems); err != nil {
		return nil, nil, err
	}
	r.Public = c.key.Public
	if err := c.key.Check(r); err != nil {
		return nil, nil, err
	}
	size = config.RequestSize(len(r.Items))
	if more := v.Page.CatalogueSize(r); more > 0 {
		size += more
		if err := c.memory.Reserve(c.ctx, size); err != nil {
			return nil, nil, err
		}
	}
	c.memory.Keep(budget.Work, size+int64(len(body)))
	return r, func() { readers.Put(reader) }, nil
}

// maxPooled limits the memory of a request that is kept for reuse, in bytes.
const maxPooled = 8 << 20

// maxItems returns an upper bound on the number of items of a request that is not read yet: each item is an object.
func maxItems(body []byte, c *setup.Config) int {
	return min(bytes.Count(body, []byte{'{'}), c.MaxItems)
}

// try answers a request without recording it.
func (s *Server) try(c *call) error {
	v, err := s.engine.View(c.placement)
	if err != nil {
		return err
	}
	r, _, err := c.readRequest(v)
	if err != nil {
		return err
	}
	if err := c.memory.Reserve(c.ctx, v.Page.TrialSize(r)); err != nil {
		return err
	}
	o, why, err := s.engine.Try(c.ctx, v, r, c.now)
	if err != nil {
		return err
	}
	return c.answerJSON(http.StatusOK, api.Trial{Answer: *o.Reply(), Explanation: *why})
}

var readers = sync.Pool{New: func() any { return new(api.RequestReader) }}

func (s *Server) outcome(c *call) error {
	const unset = "\xff" // in no JSON
	missing := new(0)
	// This default is invalid: the body must contain a choice or choices.
	o := api.Outcome{Choice: new(unset), Choices: []api.Choice{{Quantity: missing}}}
	err := c.readReport(&o)
	var field *api.FieldError
	switch {
	case errors.As(err, &field) && field.Field == errChoice.Field && !field.IsSyntax:
		return errChoice
	case err != nil:
		return err
	}
	isMissing := len(o.Choices) == 1 && o.Choices[0].Quantity == missing
	if isMissing {
		o.Choices = nil
	}
	switch {
	case o.Choice == nil: // only the choices count
	case *o.Choice == "", *o.Choice == unset && isMissing:
		return errChoice
	case *o.Choice == unset:
	case o.Choices != nil:
		return &api.FieldError{Field: "/choices", Message: "comes with choice: leave one of the two out"}
	default:
		o.Choices = []api.Choice{{Item: *o.Choice}}
	}
	err = s.engine.Choose(c.ctx, c.placement, c.PathValue("id"), o.Choices, c.now)
	if errors.Is(err, engine.ErrLate) {
		return c.answerJSON(http.StatusOK, api.LateOutcome{
			Status: "late",
			Detail: "The decision had ended before this outcome came. The outcome is recorded and its revenue " +
				"counts, but the policy does not learn from it.",
		})
	}
	return c.done(err)
}

func (s *Server) correct(c *call) error {
	var correction api.Correction
	if err := c.readReport(&correction); err != nil {
		return err
	}
	return c.done(s.engine.Correct(c.ctx, c.placement, c.PathValue("id"), correction, c.now))
}

// erase erases a shopper. No log and no answer names the shopper.
func (s *Server) erase(c *call) error {
	var e api.Erasure
	if err := c.read(&e); err != nil {
		return err
	}
	if e.ShopperID == "" {
		return api.Fieldf("/shopper_id", "is missing: it says whom to erase")
	}
	return c.done(s.engine.EraseShopper(c.ctx, e.ShopperID))
}

func (s *Server) rewards(c *call) error {
	var r api.Rewards
	if err := c.readReport(&r); err != nil {
		return err
	}
	if len(r.Rewards) == 0 {
		return &api.FieldError{Field: "/rewards", Message: "must have at least one reward"}
	}
	return c.done(s.engine.Reward(c.ctx, c.placement, c.PathValue("id"), r.Rewards, c.now))
}

func (s *Server) measure(c *call) error {
	var m api.Measurements
	if err := c.readReport(&m); err != nil {
		return err
	}
	return c.done(s.engine.Measure(c.ctx, c.placement, c.PathValue("id"), m.Metrics, c.now))
}

func (s *Server) activate(c *call) error {
	return c.done(s.engine.Activate(c.ctx, c.placement, c.PathValue("id"), c.now))
}

var errChoice = &api.FieldError{Field: "/choice", Message: "must be the id of an item that was shown, or null for none, unless there are choices"}

// searching returns the context of a call that may ask to search the log for a forgotten decision.
func (c *call) searching() (context.Context, error) {
	switch given := c.URL.Query().Get("search"); given {
	case "":
		return c.ctx, nil
	case "log":
		turn := func() (func(), error) { return c.server.searches.Take(c.ctx, c.key.Name) }
		return engine.WithSearch(c.ctx, turn), nil
	default:
		return nil, api.Fieldf("/search", "%q: must be log", api.Abbreviate(given, 40))
	}
}

func (s *Server) getDecision(c *call) error {
	ctx, err := c.searching()
	if err != nil {
		return err
	}
	d, err := s.engine.Decision(ctx, c.placement, c.PathValue("id"))
	if err != nil {
		return err
	}
	reply := api.Decision{
		Answer: *d.Offer.Reply(), Placement: d.Placement, Source: offer.SourceNames[d.Offer.Mode],
		Time: time.Unix(0, d.Time).UTC(), Status: d.Status,
		Choices: d.Choices, Earned: d.Earned, Corrections: d.Corrections,
	}
	if d.Choice != "" {
		reply.Choice = &d.Choice
	}
	return c.answerJSON(http.StatusOK, reply)
}
