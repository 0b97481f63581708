package catalogue

import (
	"context"
	"sync/atomic"

	"vitrine/service/feature"
)

// Refit is a catalogue prepared for a change of features, so that the writer does not have to make it.
type Refit struct {
	before  *Catalogue
	version uint64 // of before
	schema  *feature.Schema
	After   *Catalogue
}

// NewRefit makes the catalogue for a schema's features. misfit is the reason why an item lacks them.
func NewRefit(ctx context.Context, before *Catalogue, schema *feature.Schema) (m *Refit, misfit, err error) {
	m = &Refit{before: before, version: before.Head().Version, schema: schema}
	m.After, misfit, err = before.WithSchema(ctx, schema)
	return m, misfit, err
}

// Fits reports whether the catalogue is still the one to make for a placement with the features of a schema.
func (m *Refit) Fits(before *Catalogue, schema *feature.Schema) bool {
	return m != nil && m.before == before && m.version == before.Head().Version && m.schema.Same(schema)
}

// Staged is a change with computed rows, so that the writer does not have to compute them.
type Staged struct {
	Items   *Catalogue
	Change  *Change
	Held    int64 // bytes reserved in the budget
	claimed atomic.Bool
}

// Claim gives the change to its first caller: the writer, or the change's maker if the writer did not take it.
func (s *Staged) Claim() bool { return s.claimed.CompareAndSwap(false, true) }
