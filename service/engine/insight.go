package engine

import (
	"context"
	"errors"
	"slices"
	"time"

	"vitrine/bandit"
	"vitrine/internal/panics"
	"vitrine/service/api"
	"vitrine/service/earnings"
	"vitrine/service/eventlog"
	"vitrine/service/offer"
	"vitrine/service/page"
)

const maxItemRows = 100 // items with a computed utility

// Insight returns a placement's sales and its policy's beliefs. It is computed at most once in three seconds, outside
// the writer. It returns ErrNotFound or ctx's error.
func (e *Engine) Insight(ctx context.Context, name string, now int64) (*api.Insight, error) {
	v, err := e.View(name)
	if err != nil {
		return nil, err
	}
	return v.Placement.Insight.At(ctx, now, func() (*api.Insight, error) { return e.insight(ctx, v, now) })
}

func (e *Engine) insight(ctx context.Context, v *View, now int64) (*api.Insight, error) {
	e.mu.RLock()
	t, learner := v.Placement.Earnings.Copy(), v.Placement.Learner
	gains := v.Placement.Gains(t.Series.Recent(0, 0, 0))
	e.mu.RUnlock()
	current, config := *v.Worker.Current(), v.Config()
	x := &api.Insight{
		Placement: v.Page.Name, Mode: config.Mode, Policy: (&page.Policy{Config: config}).Name(),
		PolicyEntry: current.Entry, Time: time.Unix(0, now).UTC(),
		Gains: gains, Items: []api.ItemInsight{}, Families: v.Worker.Families(), Calibration: t.Counts.Calibrated(),
		Lag: v.Worker.Progress().Lag, Waiting: len(e.proposals), Latency: v.Placement.Latency.Report(),
	}
	if c := &t.Counts; c.Offered > 0 {
		x.ExplorationShare = float64(c.Chance) / float64(c.Offered)
	}
	x.Positions = page.Positions(t.Items.Places, current.Policy)
	x.Drift = t.Drift.Report()
	if o := &t.Items.Others; t.Items.Dropped > 0 {
		x.Others, x.Dropped = &api.ItemInsight{Shown: o.Shown, Taken: o.Taken, Revenue: o.Revenue.Value()}, t.Items.Dropped
	}
	ids, sold := t.Items.Top()
	for k, s := range sold {
		x.Items = append(x.Items, api.ItemInsight{ID: ids[k], Shown: s.Shown, Taken: s.Taken, Revenue: s.Revenue.Value()})
	}
	explainer, ok := current.Policy.(bandit.Explainer)
	if !ok {
		return x, ctx.Err()
	}
	rows, err := e.lastRows(ctx, v, learner, ids[:min(len(ids), maxItemRows)], sold)
	if err != nil || len(rows) == 0 {
		return x, err
	}
	// A policy that fails leaves out what it would say.
	_, _ = panics.Safely(func() error { page.Value(x, explainer, rows, config.Schema()); return nil })
	return x, nil
}

// lastRows reads the rows with which items were last shown. It leaves out rows that the log lost, and rows of earlier
// features, from before the entry that began the learner.
func (e *Engine) lastRows(ctx context.Context, v *View, learner uint64, ids []string,
	sold []earnings.Sold) (rows []page.ItemRow, err error) {
	offers := map[uint64]*eventlog.Offered{}
	width := v.Config().Schema().Width()
	for item, id := range ids {
		at := sold[item].Last
		if at <= learner {
			continue
		}
		o, read := offers[at]
		if !read {
			if o, err = e.offered(ctx, v.Page.Name, at); err != nil {
				return nil, err
			}
			offers[at] = o
		}
		if o == nil || o.Width != width {
			continue
		}
		if i := slices.Index(o.ItemIDs, id); i >= 0 {
			rows = append(rows, page.ItemRow{Item: item, Row: o.Features[i*width : (i+1)*width],
				Revenue: offer.Revenue(o.Revenue, i)})
		}
	}
	return rows, nil
}

// typical returns a row with the columns of the mean shopper, over the decisions that showed the items shown most, or
// nil. It is computed at most once in three seconds. The error is ctx's.
func (e *Engine) typical(ctx context.Context, v *View, now int64) ([]float64, error) {
	row, err := v.Placement.Typical.At(ctx, now, func() ([]float64, error) {
		e.mu.RLock()
		items, learner := v.Placement.Earnings.Items.Copy(), v.Placement.Learner
		e.mu.RUnlock()
		ids, sold := items.Top()
		rows, err := e.lastRows(ctx, v, learner, ids[:min(len(ids), maxItemRows)], sold)
		if err != nil || len(rows) == 0 {
			return nil, err
		}
		mean := make([]float64, len(rows[0].Row))
		for i, r := range rows {
			for j, x := range r.Row {
				mean[j] += (x - mean[j]) / float64(i+1)
			}
		}
		return mean, nil
	})
	if len(row) != v.Config().Schema().Width() { // the features have changed since
		row = nil
	}
	return row, err
}

// Try returns the offer that a request would get now, and its explanation, without recording anything: see
// [state.View.Try].
func (e *Engine) Try(ctx context.Context, v *View, r *api.Request, now int64) (*offer.Offer, *api.Explanation, error) {
	typical, err := e.typical(ctx, v, now)
	if err != nil {
		return nil, nil, err
	}
	seen := v.Current()
	if r, seen.Shopper, _, err = e.recognize(ctx, seen, r, now, ""); err != nil {
		return nil, nil, err
	}
	return v.Try(ctx, seen, r, now, typical)
}

// offered returns an entry's offer, or nil if it cannot be read. The error is ctx's.
func (e *Engine) offered(ctx context.Context, placement string, entry uint64) (*eventlog.Offered, error) {
	event, err := e.event(ctx, entry)
	switch {
	case errors.Is(err, ErrUnread):
		return nil, nil
	case err != nil || event.Placement != placement:
		return nil, err
	}
	o, _ := event.Body.(*eventlog.Offered)
	return o, nil
}
