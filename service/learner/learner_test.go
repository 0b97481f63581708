package learner_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"go.uber.org/goleak"

	"vitrine"
	"vitrine/internal/fatal"
	"vitrine/service/eventlog"
	"vitrine/service/eventlog/memlog"
	"vitrine/service/learner"
	"vitrine/service/offer"
	"vitrine/service/setup"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// ledger is a learner that notes the features of the items that were shown, and is its own policy.
type ledger struct {
	seen   []float64
	before func(x float64)
}

// Items with these features make a ledger panic, or refuse the round.
const (
	poison = 13
	sour   = 17
)

func (l *ledger) Observe(r vitrine.Round) error {
	x := r.Context.Features.At(0, 0)
	if l.before != nil {
		l.before(x)
	}
	if x == sour {
		return errors.New("sour")
	}
	l.seen = append(l.seen, x)
	if x == poison {
		panic("poison")
	}
	return nil
}

func (l *ledger) Policy() vitrine.Policy { return ledger{seen: append([]float64(nil), l.seen...)} }

func (l *ledger) MarshalBinary() ([]byte, error) {
	return binary.Append(nil, binary.LittleEndian, l.seen)
}

func (l *ledger) UnmarshalBinary(data []byte) error {
	l.seen = make([]float64, len(data)/8)
	_, err := binary.Decode(data, binary.LittleEndian, l.seen)
	return err
}

func (ledger) Offer(*vitrine.Context, *rand.Rand) vitrine.Offer { return vitrine.Offer{} }

func buildLedger(setup.Spec) (vitrine.Learner, error) { return new(ledger), nil }

const one = `{"max_size":1,"features":[{"name":"x","kind":"number"}],"policy":{"name":"ledger"}}`

// started starts a new learner until the end of the test.
func started(t *testing.T, build learner.Build, log learner.Log, begin func(*learner.Learner)) *learner.Learner {
	t.Helper()
	l := fatal.Or(learner.New(build, fatal.Or(setup.Parse([]byte(one)))(t)))(t)
	begin(l)
	run(t, l, log)
	return l
}

func run(t *testing.T, l *learner.Learner, log learner.Log) {
	ended := make(chan struct{})
	go func() { defer close(ended); l.Run(log, "home") }()
	t.Cleanup(func() { l.Stop(); <-ended })
}

// offered is a decision that shows an item with the given feature.
func offered(decision string, x float64) *eventlog.Offered {
	return &eventlog.Offered{Decision: decision, Candidates: 1, ItemIDs: []string{"i"}, Width: 1, Features: []float64{x}, Shown: []int32{0}, Propensity: 1, Mode: offer.ByPolicy, Answer: new(offer.Estimates).Append(nil)}
}

func write(t *testing.T, log *memlog.Store, bodies ...eventlog.Body) {
	t.Helper()
	for _, body := range bodies {
		e := &eventlog.Event{Placement: "home", Body: body}
		fatal.Or(log.Append(t.Context(), fatal.Or(e.Encode(nil))(t)))(t)
	}
}

// A learner that catches up, again after a restart, learns each round once: those after the gap has begun, and after the last one
// that it was given.
func TestCatchingUpAgain(t *testing.T) {
	log := new(memlog.Store)
	for n := range 20 { // the rounds end at entries 2, 4, …, 40
		write(t, log, offered(fmt.Sprint(n), 1), &eventlog.Chosen{Decision: fmt.Sprint(n)})
	}
	for _, c := range []struct{ given, after, want uint64 }{{0, 0, 20}, {10, 0, 15}, {0, 10, 15}, {30, 10, 5}, {40, 0, 0}} {
		l := started(t, buildLedger, log, func(l *learner.Learner) { l.Begin(c.given) })
		l.CatchUp(40, learner.Gap{After: c.after, From: 1, Rounds: 20})
		<-l.Reached()
		if got := l.Progress().Learned; got != c.want {
			t.Errorf("given up to %d, a learner has learned %d rounds after %d, want %d", c.given, got, c.after, c.want)
		}
	}
}
