package engine

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"vitrine/internal/fields"
	"vitrine/service/api"
	"vitrine/service/earnings/abtest"
	"vitrine/service/eventlog"
	"vitrine/service/feature"
	"vitrine/service/offer"
	"vitrine/service/page"
	"vitrine/service/setup"
	"vitrine/service/state"
)

// A follower decides with its own policy and sends calls to the leader. The leader checks each call against the state,
// writes the resulting entry, and answers. A call can be repeated: the leader answers a known decision with the
// recorded offer, and a known outcome with success. Package fields encodes calls and answers, as it does log entries.
// All processes of a service must run the same release.

// proposing is the part of an engine that reaches the leader of its log.
type proposing struct {
	propose func(ctx context.Context, proposal []byte) (answer []byte, err error)
	confirm func(ctx context.Context) error
	// clock returns the time of a call that continues after this engine began to lead: the clock may have been set
	// meanwhile, and with its earlier time a decision could end at once. nil keeps that time.
	clock   func() int64
	replica uint64        // of the engine, in the numbers of decisions that it proposes
	known   atomic.Uint64 // the last entry named by the leader
}

// remoteCall is a follower's call to the leader.
type remoteCall struct {
	what                whatCall
	placement, decision string
	offer               []byte // the entry of an offer
	changed             uint64 // the entry of the configuration that the offer or the values are for
	choices             []api.Choice
	rewards             []api.Reward
	correction          api.Correction
	metrics             map[string]float64
	values              []feature.Seen
}

type whatCall byte

const (
	callOffer whatCall = iota
	callOutcome
	callCorrect
	callReward
	callActivate
	callLogValues // values of categories
	callMeasure
	callPosition // asks what another follower may have seen in the log and told its callers
)

func (c *remoteCall) fields(f *fields.Fields) {
	f.Byte((*byte)(&c.what))
	f.String(&c.placement, &c.decision, &c.correction.ID, &c.correction.Item)
	f.Bytes(&c.offer)
	f.Uvarint(&c.changed)
	fields.List(f, &c.choices, func(c *api.Choice, f *fields.Fields) {
		f.String(&c.Item)
		fields.Optional(f, &c.Quantity, func(v *int, f *fields.Fields) { f.Count(v) })
		fields.Optional(f, &c.Value, func(v *float64, f *fields.Fields) { f.Float(v) })
	})
	fields.List(f, &c.rewards, func(r *api.Reward, f *fields.Fields) {
		f.String(&r.Item)
		f.Float(&r.Value)
	})
	names := slices.Sorted(maps.Keys(c.metrics))
	if f.Strings(&names); f.Reads() && len(names) > 0 {
		c.metrics = map[string]float64{}
	}
	for _, name := range names {
		v := c.metrics[name]
		f.Float(&v)
		if f.Reads() {
			c.metrics[name] = v
		}
	}
	fields.Optional(f, &c.correction.Value, func(v *float64, f *fields.Fields) { f.Float(v) })
	fields.List(f, &c.values, func(s *feature.Seen, f *fields.Fields) {
		f.String(&s.Feature)
		f.Strings(&s.Values)
	})
}

func (c *remoteCall) encode() []byte {
	f := fields.Writer(nil)
	c.fields(&f)
	return f.Rest()
}

// remoteError is the error of an answer.
type remoteError struct {
	kind        byte // 1 + the index in remoteKinds; 0: no error
	field, text string
	of          error
}

func (e *remoteError) Error() string { return e.text }

// Unwrap returns the corresponding error of this package.
func (e *remoteError) Unwrap() error { return e.of }

// remoteKinds are the errors that callers distinguish.
var remoteKinds = []error{
	ErrNotFound, ErrConflict, ErrNotShown, ErrLate, ErrWithdrawn, ErrEvicted, ErrMemory, ErrRelearning,
	ErrUnread, page.ErrPolicy, ErrFollower, ErrNoLeader, ErrStopped,
}

const (
	kindField = 254 // of an *api.FieldError
	kindOther = 255
)

func remoteErrorOf(err error) remoteError {
	var field *api.FieldError
	switch {
	case err == nil:
		return remoteError{}
	case errors.As(err, &field):
		return remoteError{kind: kindField, field: field.Field, text: field.Message}
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded): // the leader ends or is too slow
		return remoteError{kind: byte(slices.Index(remoteKinds, ErrStopped) + 1), text: err.Error()}
	}
	for i, of := range remoteKinds {
		if errors.Is(err, of) {
			return remoteError{kind: byte(i + 1), text: err.Error()}
		}
	}
	return remoteError{kind: kindOther, text: err.Error()}
}

// local returns this process's form of the error, or nil for kind 0.
func (e *remoteError) local() error {
	switch i := int(e.kind) - 1; {
	case e.kind == 0:
		return nil
	case e.kind == kindField:
		return &api.FieldError{Field: e.field, Message: e.text}
	case i < len(remoteKinds):
		e.of = remoteKinds[i]
	}
	return e
}

// answer is the leader's answer to a call.
type answer struct {
	entry    uint64 // of the change, or a later one
	moved    bool   // not applied: the placement changed since
	recorded []byte // the entry of an offer that the leader already held
	err      error
}

func (a *answer) fields(f *fields.Fields) {
	e := remoteErrorOf(a.err)
	f.Uvarint(&a.entry)
	f.Flag(&a.moved)
	f.Bytes(&a.recorded)
	f.Byte(&e.kind)
	f.String(&e.field, &e.text)
	if f.Reads() {
		a.err = e.local()
	}
}

func (a *answer) encode() []byte {
	f := fields.Writer(nil)
	a.fields(&f)
	return f.Rest()
}

var errAnswer = errors.New("the leader's answer is not one that this program knows: use one release for all")

func decodeAnswer(data []byte) (*answer, error) {
	f, a := fields.Reader(data), new(answer)
	a.fields(&f)
	if err := f.Close(); err != nil {
		return nil, fmt.Errorf("%w: %w", errAnswer, err)
	}
	return a, nil
}

// A follower repeats a call after leaderAttempt without an answer. After leaderPatience without a leader its callers
// get ErrNoLeader.
var leaderAttempt, leaderPatience = time.Second, 5 * time.Second

const leaderPause = 50 * time.Millisecond

// callLeader sends a call to the leader until the leader answers. It returns page.ErrStale if the placement changed or
// this engine now leads; by then the engine's state includes the leader's.
func (e *Engine) callLeader(ctx context.Context, c *remoteCall) (*answer, error) {
	if e.propose == nil {
		return nil, e.refusal()
	}
	request := c.encode()
	for begin := time.Now(); ; {
		if !e.isFollower.Load() {
			return nil, page.ErrStale
		}
		a, err := e.callLeaderOnce(ctx, request)
		switch {
		case err == nil && a.err == nil:
			return e.answered(ctx, a)
		case err == nil && !hasNoLeader(a.err):
			return a, a.err
		case err == nil:
			err = a.err
		case errors.Is(err, errAnswer):
			return nil, err
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if time.Since(begin) > leaderPatience {
			return nil, fmt.Errorf("%w: %w", ErrNoLeader, err)
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-e.stopped:
			return nil, e.stop()
		case <-time.After(leaderPause):
		}
	}
}

// hasNoLeader reports whether the process that answered does not lead, so that another one may.
func hasNoLeader(err error) bool {
	return errors.Is(err, ErrStopped) || errors.Is(err, ErrFollower) || errors.Is(err, ErrNoLeader)
}

// answered catches up if the placement changed.
func (e *Engine) answered(ctx context.Context, a *answer) (*answer, error) {
	if !a.moved {
		return a, nil
	}
	if err := e.WaitFor(ctx, a.entry); err != nil {
		return nil, err
	}
	return nil, page.ErrStale
}

func (e *Engine) callLeaderOnce(ctx context.Context, proposal []byte) (*answer, error) {
	ctx, cancel := context.WithTimeout(ctx, leaderAttempt)
	defer cancel()
	data, err := e.propose(ctx, proposal)
	if err != nil {
		return nil, err
	}
	a, err := decodeAnswer(data)
	if err != nil {
		return nil, err
	}
	for known := e.known.Load(); a.entry > known && !e.known.CompareAndSwap(known, a.entry); known = e.known.Load() {
	}
	return a, nil
}

// forward makes a change: by a call to the leader, or itself if this engine leads.
func (e *Engine) forward(ctx context.Context, c *remoteCall, now int64) error {
	for e.isFollower.Load() {
		if _, err := e.callLeader(ctx, c); err != page.ErrStale {
			return err
		}
		if e.clock != nil {
			now = e.clock()
		}
	}
	return e.perform(ctx, c, now)
}

// logValues logs new category values, except those that another request logged first.
func (e *Engine) logValues(ctx context.Context, name string, changed uint64, values []feature.Seen, now int64) error {
	if e.isFollower.Load() {
		a, err := e.callLeader(ctx, &remoteCall{what: callLogValues, placement: name, changed: changed, values: values})
		if err != nil {
			return err
		}
		return e.WaitFor(ctx, a.entry)
	}
	return e.submit(ctx, func(b *state.Batch) error { return b.LogValues(name, changed, values, now) })
}

// proposeOffer proposes an offer. It returns the leader's offer for an earlier request under this id, or nil if the
// leader wrote this one.
func (e *Engine) proposeOffer(ctx context.Context, v *View, entry []byte, own *eventlog.Offered) (*offer.Offer, error) {
	a, err := e.callLeader(ctx, &remoteCall{what: callOffer, offer: entry, changed: v.Changed})
	if err != nil || len(a.recorded) == 0 {
		return nil, err
	}
	event, err := eventlog.Decode(a.recorded)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errAnswer, err)
	}
	o, ok := event.Body.(*eventlog.Offered)
	if !ok || o.Decision != own.Decision {
		return nil, errAnswer
	}
	recorded, err := offer.Of(o)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errAnswer, err)
	}
	return recorded, nil
}

// Entry returns the last entry that the engine knows to be in the log: the state's last one, or a later one named by
// the leader. After a change it is at least the change's entry.
func (e *Engine) Entry() uint64 { return max(e.Sequence(), e.known.Load()) }

// Confirm returns ErrNoLeader if this engine believes it leads but may have been superseded. Such an engine must not
// report a decision as unknown. Call Confirm before a change. On a follower, Confirm returns nil.
func (e *Engine) Confirm(ctx context.Context) error {
	if e.confirm == nil || e.isFollower.Load() {
		return nil
	}
	if err := e.confirm(ctx); err != nil {
		return fmt.Errorf("%w: %w", ErrNoLeader, err)
	}
	return nil
}

// CatchUp waits until a follower's state includes every entry that the leader's state includes now. On the leader it
// waits until the state includes every log entry, because a follower may have applied the last ones first. It returns
// Confirm's error if another process may have written entries since.
func (e *Engine) CatchUp(ctx context.Context) error {
	if !e.isFollower.Load() {
		if err := e.Confirm(ctx); err != nil {
			return err
		}
		return e.inspect(ctx, func(*state.State) {})
	}
	a, err := e.callLeader(ctx, &remoteCall{what: callPosition})
	switch {
	case errors.Is(err, page.ErrStale):
		return nil
	case err != nil:
		return err
	}
	return e.WaitFor(ctx, a.entry)
}

// Accept makes the change that a follower proposes, at the leader's time, and returns the answer for the follower.
func (e *Engine) Accept(ctx context.Context, proposal []byte, now int64) []byte {
	a := new(answer)
	a.recorded, a.err = e.accept(ctx, proposal, now)
	if a.moved = errors.Is(a.err, page.ErrStale); a.moved {
		a.err = nil
	}
	a.entry = e.Sequence()
	return a.encode()
}

var errProposal = errors.New("the proposal is not one that this program knows: use one release for all")

func (e *Engine) accept(ctx context.Context, proposal []byte, now int64) (recorded []byte, err error) {
	if e.isFollower.Load() {
		return nil, ErrFollower
	}
	if err := e.Confirm(ctx); err != nil {
		return nil, err
	}
	f, c := fields.Reader(proposal), new(remoteCall)
	c.fields(&f)
	if err := f.Close(); err != nil {
		return nil, fmt.Errorf("%w: %w", errProposal, err)
	}
	switch c.what {
	case callOffer:
		return e.acceptOffer(ctx, c.changed, c.offer, now)
	case callOutcome:
		return nil, e.Choose(ctx, c.placement, c.decision, c.choices, now)
	case callCorrect:
		return nil, e.Correct(ctx, c.placement, c.decision, c.correction, now)
	case callReward:
		return nil, e.Reward(ctx, c.placement, c.decision, c.rewards, now)
	case callMeasure:
		return nil, e.Measure(ctx, c.placement, c.decision, c.metrics, now)
	case callActivate:
		return nil, e.Activate(ctx, c.placement, c.decision, now)
	case callLogValues:
		return nil, e.logValues(ctx, c.placement, c.changed, c.values, now)
	case callPosition:
		return nil, e.CatchUp(ctx)
	}
	return nil, errProposal
}

// acceptOffer writes an offer made under the placement's configuration as of entry changed. The log gets the leader's
// time. If the placement already holds this decision, from the same request, acceptOffer returns the recorded entry.
func (e *Engine) acceptOffer(ctx context.Context, changed uint64, entry []byte,
	now int64) (recorded []byte, err error) {
	event, err := eventlog.Decode(entry)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errProposal, err)
	}
	offered, ok := event.Body.(*eventlog.Offered)
	if !ok || offered.Decision == "" || len(offered.Decision) > setup.MaxDecision {
		return nil, errProposal
	}
	event.Time = now
	if entry, err = offer.Encode(nil, &event); err != nil {
		return nil, fmt.Errorf("%w: %v", errProposal, err)
	}
	for {
		v, err := e.View(event.Placement)
		if err != nil || v.Changed != changed {
			return nil, page.ErrStale
		}
		o, err := state.OfferOf(v.Page.Config, offered)
		if err == nil {
			err = abtest.CheckOffer(v.Page.Holdout, v.Page.Routes, o)
		}
		if err != nil { // otherwise the log would hold an entry that no process can apply
			return nil, fmt.Errorf("%w: %w", errProposal, err)
		}
		before, forgotten, err := e.earlier(ctx, event.Placement, offered.Decision, offered.Request)
		switch {
		case err != nil:
			return nil, err
		case before != nil && before.Number == o.Number: // this one, sent again
			return nil, nil
		case before != nil:
			recorded := &eventlog.Event{Time: now, Placement: event.Placement, Body: before.Offered}
			return recorded.Encode(nil)
		}
		if err := e.commitOffer(ctx, v, &event, o, forgotten, entry); !errors.Is(err, page.ErrStale) {
			return nil, err
		}
	}
}
