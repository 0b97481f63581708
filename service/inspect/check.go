package inspect

import (
	"context"
	"errors"
	"fmt"

	"vitrine/service/engine"
	"vitrine/service/eventlog"
	"vitrine/service/host"
	"vitrine/service/setup"
)

// Report is the result of [Log.Check].
type Report struct {
	Entries     int
	First, Last uint64 // entries
	Bytes       uint64
	Kinds       []Kind         // the number of entries of each kind
	Placements  []engine.Tally // the decisions of each placement, by outcome
	Faults      int
	Base        string // the snapshot that stands for removed entries, or "" if the log is complete
	BaseEntry   uint64 // the last entry of Base; only later ones are checked against the state
}

// Kind is a kind of entries and their number.
type Kind struct {
	Name    string // such as "Offered"
	Entries int
}

// check is a check in progress.
type check struct {
	*Report
	log   *Log
	audit *engine.Audit
	kinds map[string]int
	fault func(error)
}

// Check reads every entry of the log. It verifies the checksum and the sequence number, and that the service can have
// written the entry there. It calls fault for each fault. Check returns an error if the log cannot be read.
func (log *Log) Check(ctx context.Context, fault func(error)) (*Report, error) {
	k := &check{Report: &Report{First: log.First, Bytes: log.Bytes}, log: log, kinds: map[string]int{}}
	k.fault = func(err error) { k.Faults++; fault(err) }
	if err := k.run(ctx); err != nil {
		return nil, err
	}
	return k.Report, nil
}

func (k *check) run(ctx context.Context) (err error) {
	if k.audit, err = k.begin(ctx); err != nil {
		return err
	}
	defer k.audit.Close()
	next := k.First
	for entry, err := range k.log.entries(ctx, "checking", k.First) {
		var damage *eventlog.DamageError
		switch {
		case err != nil && (errors.As(err, &damage) || errors.Is(err, k.log.lost)):
			k.fault(err)
			continue
		case err != nil:
			return err
		}
		k.entry(next, entry)
		next++
	}
	k.Last = next - 1
	for _, body := range eventlog.Bodies() {
		name := eventlog.Name(body)
		if n := k.kinds[name]; n > 0 {
			k.Kinds = append(k.Kinds, Kind{name, n})
		}
	}
	k.Placements = k.audit.Tallies()
	if k.log.data != "" {
		if err := host.CheckShoppers(k.log.data, k.audit.Remembered()); err != nil {
			k.fault(err)
		}
	}
	return nil
}

// begin verifies the snapshots and returns the state before the first entry that is checked.
func (k *check) begin(ctx context.Context) (*engine.Audit, error) {
	for _, s := range k.log.snapshots {
		_, err := s.entry(ctx, k.log)
		if err == nil {
			_, err = engine.VerifySnapshot(setup.NewLearner, s.data)
		}
		if err != nil {
			k.fault(fmt.Errorf("%s: %w", s.path, err))
		}
	}
	if k.log.First == 1 {
		return engine.NewAudit(setup.NewLearner, nil)
	}
	base, upTo := k.log.base(ctx, k.log.snapshots, false)
	if base == nil {
		k.fault(fmt.Errorf("entries before %d were removed, and no snapshot has them: later entries cannot be "+
			"checked against them", k.log.First))
		return engine.NewAudit(setup.NewLearner, nil)
	}
	k.Base, k.BaseEntry = base.path, upTo
	return engine.NewAudit(setup.NewLearner, base.data)
}

// entry checks one entry. Entries up to the base are only decoded.
func (k *check) entry(sequence uint64, entry []byte) {
	k.Entries++
	var event *eventlog.Event
	var err error
	switch {
	case sequence == k.audit.Sequence()+1:
		event, err = k.audit.Entry(entry)
	default:
		var e eventlog.Event
		if e, err = eventlog.Decode(entry); err == nil {
			event = &e
		} else {
			err = fmt.Errorf("entry %d: %w", sequence, err)
		}
	}
	if event != nil {
		k.kinds[eventlog.Name(event.Body)]++
	}
	if err != nil {
		k.fault(err)
	}
}
