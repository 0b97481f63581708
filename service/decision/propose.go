package decision

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/go-json-experiment/json"

	"vitrine/internal/fields"
	"vitrine/service/api"
	"vitrine/service/eventlog"
	"vitrine/service/feature"
	"vitrine/service/offer"
	"vitrine/service/setup"
)

// A follower decides with its own policy, and proposes what it has decided to the leader, which checks it against the
// state, writes it, and answers. A proposal can be sent again: the leader answers a decision that it has with what is
// recorded, and an outcome that it has with nothing new.
//
//	proposal  'o', the version of the configuration as a uvarint, and the entry of an offer; or
//	          'c' and a call as JSON
//	answer    'd', 'r', 'm' or 'e', the entry of the change or a later one as a uvarint, and
//	          'd' nothing: it is in the log; 'r' the entry of the recorded offer;
//	          'm' nothing: the placement has changed since; 'e' an error as JSON

// proposing is the part of an engine that reaches the leader of its log.
type proposing struct {
	propose func(ctx context.Context, proposal []byte) (answer []byte, err error)
	confirm func(ctx context.Context) error
	replica uint64        // of the engine, in the numbers of decisions that it proposes
	known   atomic.Uint64 // the last entry that the leader has named
}

// replicaShift is the place of the replica in the number of a decision. The leader's own decisions have replica 0, and go on
// from the numbers in the log; a follower begins with 1, so that no replica may follow twice.
const replicaShift = 40

// remoteCall is a proposal other than an offer.
type remoteCall struct {
	What      string         `json:"what"` // "outcome", "correct", "reward", "activate", "see" or "position"
	Placement string         `json:"placement,omitzero"`
	Decision  string         `json:"decision,omitzero"`
	Item      string         `json:"item,omitzero"`
	Rewards   []remoteReward `json:"rewards,omitempty"`
	Changed   uint64         `json:"changed,omitzero"`

	Correction *api.Correction `json:"correction,omitempty"`
	Seen       []feature.Seen  `json:"seen,omitempty"`
}

type remoteReward struct {
	Item  string  `json:"item"`
	Value float64 `json:"value"`
}

// remoteError is the error of an answer.
type remoteError struct {
	Kind  string `json:"kind"`
	Field string `json:"field,omitzero"`
	Text  string `json:"text"`

	of error
}

func (e *remoteError) Error() string { return e.Text }

// Unwrap returns the error of this package that it is.
func (e *remoteError) Unwrap() error { return e.of }

// remoteKinds are the errors that callers distinguish.
var remoteKinds = []struct {
	kind string
	err  error
}{
	{"not-found", ErrNotFound}, {"conflict", ErrConflict}, {"ambiguous", ErrAmbiguous}, {"not-shown", ErrNotShown}, {"late", ErrLate}, {"withdrawn", ErrWithdrawn}, {"evicted", ErrEvicted},
	{"memory", ErrMemory}, {"relearning", ErrRelearning}, {"unread", ErrUnread}, {"policy", ErrPolicy}, {"follower", ErrFollower}, {"stopped", ErrStopped}, {"no-leader", ErrNoLeader},
	{"stopped", context.Canceled}, {"stopped", context.DeadlineExceeded}, // of the leader, which ends or is too slow
}

const fieldKind = "field" // of an *api.FieldError

func remoteErrorOf(err error) *remoteError {
	var field *api.FieldError
	if errors.As(err, &field) {
		return &remoteError{Kind: fieldKind, Field: field.Field, Text: field.Message}
	}
	for _, k := range remoteKinds {
		if errors.Is(err, k.err) {
			return &remoteError{Kind: k.kind, Text: err.Error()}
		}
	}
	return &remoteError{Text: err.Error()}
}

func (e *remoteError) local() error {
	if e.Kind == fieldKind {
		return &api.FieldError{Field: e.Field, Message: e.Text}
	}
	for _, k := range remoteKinds {
		if e.Kind == k.kind && e.of == nil {
			e.of = k.err
		}
	}
	return e
}

// answer is what the leader says of a proposal.
type answer struct {
	what     byte
	entry    uint64 // of the change, or a later one
	recorded []byte // the entry of an offer that it had already
	err      error
}

func (a *answer) encode() []byte {
	data := binary.AppendUvarint([]byte{a.what}, a.entry)
	if a.err == nil {
		return append(data, a.recorded...)
	}
	text, err := json.Marshal(remoteErrorOf(a.err))
	if err != nil { // of a text that is not UTF-8
		text = []byte(`{"text":"the leader failed on this proposal"}`)
	}
	return append(data, text...)
}

var errAnswer = errors.New("the leader's answer is not one that this program knows: use one release for all")

func decodeAnswer(data []byte) (*answer, error) {
	f, a := fields.Reader(data), new(answer)
	f.Byte(&a.what)
	f.Uvarint(&a.entry)
	known, rest := f.Err() == nil, f.Rest()
	switch a.what {
	case 'd', 'm':
		known = known && len(rest) == 0
	case 'r':
		a.recorded = rest
	case 'e':
		e := new(remoteError)
		known = known && json.Unmarshal(rest, e) == nil
		a.err = e.local()
	default:
		known = false
	}
	if !known {
		return nil, errAnswer
	}
	return a, nil
}

// leaderAttempt is how long the leader has for an answer before it is asked again, and leaderPatience how long a follower
// waits for a leader before its callers are told that there is none.
var leaderAttempt, leaderPatience = time.Second, 5 * time.Second

const leaderPause = 50 * time.Millisecond

// tell sends a proposal to the leader until it is answered. errMoved means that the state has moved, or that this
// engine has become the leader; it has reached the leader's state by then.
func (e *Engine) tell(ctx context.Context, proposal []byte) (*answer, error) {
	if e.propose == nil {
		return nil, e.refusal()
	}
	for begin := time.Now(); ; {
		if !e.follows.Load() {
			return nil, errMoved
		}
		a, err := e.tellOnce(ctx, proposal)
		switch {
		case err == nil && a.err != nil && !errors.Is(a.err, ErrStopped) && !errors.Is(a.err, ErrFollower) && !errors.Is(a.err, ErrNoLeader):
			return a, a.err
		case err == nil && a.err == nil:
			for known := e.known.Load(); a.entry > known && !e.known.CompareAndSwap(known, a.entry); known = e.known.Load() {
			}
			if a.what == 'm' {
				if err := e.Reach(ctx, a.entry); err != nil {
					return nil, err
				}
				return nil, errMoved
			}
			return a, nil
		case errors.Is(err, errAnswer):
			return nil, err
		case err == nil:
			err = a.err
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

func (e *Engine) tellOnce(ctx context.Context, proposal []byte) (*answer, error) {
	ctx, cancel := context.WithTimeout(ctx, leaderAttempt)
	defer cancel()
	data, err := e.propose(ctx, proposal)
	if err != nil {
		return nil, err
	}
	return decodeAnswer(data)
}

// call sends a call to the leader.
func (e *Engine) call(ctx context.Context, c remoteCall) (*answer, error) {
	text, err := json.Marshal(c)
	if err != nil {
		return nil, api.Fieldf("", "%v", err)
	}
	return e.tell(ctx, append([]byte{'c'}, text...))
}

// ask is call for a change that local makes if this engine is the leader, or has become it.
func (e *Engine) ask(ctx context.Context, c remoteCall, local func() error) error {
	for e.follows.Load() {
		a, err := e.call(ctx, c)
		if a != nil {
			noteEntry(ctx, a.entry)
		}
		if err != errMoved {
			return err
		}
	}
	return local()
}

// proposeOffer proposes an offer. It returns the offer of an earlier request of this id that the leader has, nil if it has
// written this one.
func (e *Engine) proposeOffer(ctx context.Context, v view, entry []byte, own *eventlog.Offered) (*offer.Offer, error) {
	a, err := e.tell(ctx, append(binary.AppendUvarint([]byte{'o'}, v.changed), entry...))
	if err == nil {
		noteEntry(ctx, a.entry)
	}
	if err != nil || a.recorded == nil {
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

// Entry returns the last entry that the engine knows to be in the log: the last one of its state, or a later one
// that the leader has named. After a change it is at least the entry of the change.
func (e *Engine) Entry() uint64 { return max(e.Sequence(), e.known.Load()) }

// Confirm returns ErrNoLeader if this engine takes itself for the leader, and another process may have become it.
// Such an engine must not answer that it does not know a decision. Call Confirm before a change. On a follower it
// does nothing.
func (e *Engine) Confirm(ctx context.Context) error {
	if e.confirm == nil || e.follows.Load() {
		return nil
	}
	if err := e.confirm(ctx); err != nil {
		return fmt.Errorf("%w: %w", ErrNoLeader, err)
	}
	return nil
}

// CatchUp waits until a follower's state has all entries that the leader's has now. A leader's state has all entries of the
// log afterwards: a follower may have applied the last ones before it. The error is that of Confirm if another process may
// have written entries since.
func (e *Engine) CatchUp(ctx context.Context) error {
	if !e.follows.Load() {
		if err := e.Confirm(ctx); err != nil {
			return err
		}
		return e.inspect(ctx, func(*fold) {})
	}
	a, err := e.call(ctx, remoteCall{What: "position"})
	switch {
	case errors.Is(err, errMoved):
		return nil
	case err != nil:
		return err
	}
	return e.Reach(ctx, a.entry)
}

// Accept makes the change that a follower proposes, at the leader's time, and returns the answer for the follower.
func (e *Engine) Accept(ctx context.Context, proposal []byte, now int64) []byte {
	a := &answer{what: 'd'}
	a.recorded, a.err = e.accept(WithEntry(ctx, &a.entry), proposal, now)
	switch {
	case errors.Is(a.err, errMoved):
		a.what, a.err = 'm', nil
	case a.err != nil:
		a.what = 'e'
	case a.recorded != nil:
		a.what = 'r'
	}
	if a.entry == 0 || a.what == 'm' {
		a.entry = e.Sequence()
	}
	return a.encode()
}

var errProposal = errors.New("the proposal is not one that this program knows: use one release for all")

func (e *Engine) accept(ctx context.Context, proposal []byte, now int64) (recorded []byte, err error) {
	if e.follows.Load() {
		return nil, ErrFollower
	}
	if err := e.Confirm(ctx); err != nil {
		return nil, err
	}
	f, what, changed := fields.Reader(proposal), byte(0), uint64(0)
	switch f.Byte(&what); what {
	case 'o':
		if f.Uvarint(&changed); f.Err() == nil {
			return e.acceptOffer(ctx, changed, f.Rest(), now)
		}
	case 'c':
		var call remoteCall
		if err := json.Unmarshal(f.Rest(), &call); err != nil {
			return nil, fmt.Errorf("%w: %w", errProposal, err)
		}
		return nil, e.acceptCall(ctx, &call, now)
	}
	return nil, errProposal
}

func (e *Engine) acceptCall(ctx context.Context, c *remoteCall, now int64) error {
	switch c.What {
	case "outcome":
		return e.Outcome(ctx, c.Placement, c.Decision, c.Item, now)
	case "correct":
		if c.Correction == nil {
			return errProposal
		}
		return e.Correct(ctx, c.Placement, c.Decision, *c.Correction, now)
	case "reward":
		rewards := make([]api.Reward, len(c.Rewards))
		for i, r := range c.Rewards {
			rewards[i] = api.Reward{Item: r.Item, Value: r.Value}
		}
		return e.Reward(ctx, c.Placement, c.Decision, rewards, now)
	case "activate":
		return e.Activate(ctx, c.Placement, c.Decision, now)
	case "see":
		return e.see(ctx, c.Placement, c.Changed, c.Seen, now)
	case "position": // of what another follower may have seen in the log, and answered with
		return e.CatchUp(ctx)
	}
	return errProposal
}

// acceptOffer writes an offer that was made under the placement's configuration of an entry. The log has the leader's time.
// It returns the entry of the decision if the placement has one of this id from the same request.
func (e *Engine) acceptOffer(ctx context.Context, changed uint64, entry []byte, now int64) (recorded []byte, err error) {
	event, err := eventlog.Decode(entry)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errProposal, err)
	}
	offered, ok := event.Body.(*eventlog.Offered)
	if !ok || offered.Decision == "" || len(offered.Decision) > setup.MaxDecision {
		return nil, errProposal
	}
	event.Time = now
	if entry, err = event.Encode(nil); err != nil {
		return nil, fmt.Errorf("%w: %w", errProposal, err)
	}
	if size := eventlog.EntrySize(entry); size > eventlog.MaxBatch {
		return nil, fmt.Errorf("%w: it takes %d bytes of the log, at most %d fit", errProposal, size, eventlog.MaxBatch)
	}
	for {
		v, err := e.view(event.Placement)
		if err != nil || v.changed != changed {
			return nil, errMoved
		}
		o, err := offerOf(v.Config, offered)
		if err == nil {
			err = v.Routes.Check(o)
		}
		if err != nil { // the log would have an entry that no process can apply
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
		if err := e.commitOffer(ctx, v, &event, o, forgotten, entry, now); !errors.Is(err, errMoved) {
			return nil, err
		}
	}
}
