package engine

import (
	"context"
	"math"
	"testing"
	"time"

	"vitrine/internal/fatal"
	"vitrine/service/api"
	"vitrine/service/catalogue"
	"vitrine/service/earnings/abtest"
	"vitrine/service/eventlog"
	"vitrine/service/offer"
	"vitrine/service/page"
	"vitrine/service/setup"
)

// PutCounted is PutItems, and returns how many records it has made.
func (e *Engine) PutCounted(ctx context.Context, name string, items []api.CatalogueItem) (made int, err error) {
	_, err = e.writeItems(ctx, name, 0, edits{
		n: len(items), field: "/items/%d", id: func(i int) string { return items[i].ID },
		record: func(c *catalogue.Catalogue, i int, field string) (string, bool, error) {
			made++
			record, err := catalogue.Encode(&items[i], c.Split().Schema(), field)
			return record, true, err
		},
	})
	return made, err
}

// Fitting returns how many entries, from the first, one append gets.
func Fitting(entries [][]byte) int { return fitting(entries) }

// PastKind returns the word for an event in the history.
func PastKind(body eventlog.Body) string {
	x, _ := pastEvent(&eventlog.Event{Body: body})
	return x.Kind
}

// RoundBytes returns the bytes of a round that waits for the learner.
func RoundBytes(numbers, shown int) int { return setup.RoundBytes(numbers, shown) }

// Whole returns an offer with all its candidates, if the placement records them.
func (e *Engine) Whole(t testing.TB, name string, o *eventlog.Offered) *eventlog.Offered {
	decoded, err := offer.Of(o)
	if err == nil && page.KnowsCandidates(decoded) && decoded.Catalogue.All {
		items := e.state.ItemsOf(e.state.Placements[name]).Freeze()
		if err = Rewind(t.Context(), e.store, items, decoded.Catalogue.Version, math.MaxInt); err == nil {
			o, err = page.Whole(decoded, items)
		}
	}
	fatal.If(t, err)
	return o
}

// SetMaxUndone sets how many changed items an explanation takes back, and returns how many it was.
func SetMaxUndone(n int) (was int) {
	was, maxUndone = maxUndone, n
	return was
}

// SetNumber sets the number after which the next decision of a placement is numbered.
func (e *Engine) SetNumber(placement string, number uint64) {
	e.state.Placements[placement].LastIssued.Store(number)
}

// SetLeaderPatience changes how long a follower waits for one answer of the leader, and for a leader, and returns what
// undoes it.
func SetLeaderPatience(attempt, patience time.Duration) (undo func()) {
	a, p := leaderAttempt, leaderPatience
	leaderAttempt, leaderPatience = attempt, patience
	return func() { leaderAttempt, leaderPatience = a, p }
}

// OfferCall encodes the call that proposes an offer.
func OfferCall(changed uint64, entry []byte) []byte {
	return (&remoteCall{what: callOffer, changed: changed, offer: entry}).encode()
}

// AnswerError returns the error of the leader's answer.
func AnswerError(data []byte) error {
	a, err := decodeAnswer(data)
	if err == nil {
		err = a.err
	}
	return err
}

// DecodeAnswer reads the leader's answer to a call. moved reports that the leader did not act, because the placement
// had changed.
func DecodeAnswer(data []byte) (moved bool, err error) {
	a, err := decodeAnswer(data)
	return a != nil && a.moved, err
}

// Evidence returns log M of the ratio of an experiment, its sums, and the variants of its buckets.
func (e *Engine) Evidence(placement string) (log float64, sums *abtest.Results, table []uint8) {
	e.mu.RLock()
	defer e.mu.RUnlock()
	x := e.state.Placements[placement].Experiment
	return x.Ratio.Log, x.Results.Copy(), x.Table
}
