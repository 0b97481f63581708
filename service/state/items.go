package state

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"vitrine/service/catalogue"
	"vitrine/service/eventlog"
	"vitrine/service/feature"
	"vitrine/service/setup"
)

// restock gives the items of a placement the features of its configuration.
func (s *State) restock(p *Placement) {
	if owner := s.owner(p); owner != p {
		c := p.Config.Inherit(owner.Config)
		if !c.Schema().Same(p.Config.Schema()) {
			p.Config, p.Worker.Config = c, c.Plain()
		}
	}
	schema := p.Config.Schema()
	switch {
	case p.Items.schema == schema:
		return
	case p.Items.Of == nil:
		p.Items.Of = catalogue.New(schema)
	case !p.Items.Of.Split().Schema().Same(schema):
		if learned, ok := schema.Since(p.Items.Of.Split().Schema()); ok {
			p.Items.Of.Learn(schema, learned)
		} else {
			s.refitItems(p, schema)
		}
	}
	p.Items.schema = p.Config.Schema()
	s.chargeItems(p, 0)
}

// refitItems gives a placement its items with other features. Their categories learn the items' values.
func (s *State) refitItems(p *Placement, schema *feature.Schema) {
	before, m := p.Items.Of, s.Refit
	s.Refit = nil
	if !m.Fits(before, schema) { // in a replay
		// A misfit is an item that is no longer available.
		m, _, _ = catalogue.NewRefit(context.Background(), before, schema)
	}
	p.Items.Of = m.After
	before.ChargeTo(nil)
	learned, _ := p.Items.Of.Split().Schema().Since(schema)
	for _, seen := range learned {
		_ = p.addValues(seen) // the catalogue found room for them
	}
}

// owner returns the placement that owns p's catalogue, or p itself if it shares no catalogue or the shared one is
// unusable. The categories of both learn together, because the catalogue's rows serve both.
func (s *State) owner(p *Placement) *Placement {
	owner := s.Placements[p.Config.CatalogueOf]
	if owner == nil || owner.Config.CatalogueOf != "" || !owner.Config.Schema().Equal(p.Config.Schema()) {
		return p
	}
	return owner
}

// chargeItems charges the budget with a placement's items, after held bytes were reserved. Lists of their groups take
// memory when decisions make them.
func (s *State) chargeItems(p *Placement, held int64) {
	p.Items.Of.ChargeTo(s.Budget)
	bytes := p.Items.Of.Bytes()
	s.Budget.Charge(bytes - p.Items.charged - held)
	p.Items.charged = bytes
}

// release gives back the memory of a placement.
func (s *State) release(p *Placement) {
	s.recharge(p, 0, 0)
	s.Budget.Charge(-p.Items.charged)
	p.Items.charged = 0
	if p.Items.Of != nil {
		p.Items.Of.ChargeTo(nil) // requests may still use it
	}
}

// ReleaseAll gives back the memory of all placements.
func (s *State) ReleaseAll() {
	for _, p := range s.Placements {
		s.release(p)
	}
}

// ItemsOf returns the catalogue that a placement uses, or nil if a shared one is missing or its features differ.
func (s *State) ItemsOf(p *Placement) *catalogue.Catalogue {
	owner := s.owner(p)
	if owner == p && p.Config.CatalogueOf != "" {
		return nil
	}
	return owner.Items.Of
}

// changeItems makes a catalogue change part of the state. The engine already applied a change that it wrote itself,
// because the catalogue locks itself.
func (s *State) changeItems(p *Placement, sequence uint64, b *eventlog.ItemsChanged) error {
	held := int64(0)
	if staged := s.Staged; staged != nil {
		held = staged.Held
	} else {
		change, err := p.Items.Of.NewChange(b.Put, b.Deleted)
		if err != nil {
			return err
		}
		if n := p.Items.Of.LenAfter(change); n > catalogue.MaxItems {
			return fmt.Errorf("the catalogue would have %d items, at most %d", n, catalogue.MaxItems)
		}
		if b.Before != p.Items.Of.Head().Version || !slices.Equal(b.Undo, p.Items.Of.UndoOf(b.Put, b.Deleted)) {
			return errors.New("the change was made to another version of the catalogue")
		}
		p.Items.Of.Apply(sequence, change)
	}
	s.chargeItems(p, held)
	return nil
}

// PrepareItems applies a catalogue change, so that decisions wait for the catalogue and not for the whole state. Apply
// reports any error in it.
func (s *State) PrepareItems(sequence uint64, event *eventlog.Event) *catalogue.Staged {
	b, ok := event.Body.(*eventlog.ItemsChanged)
	if !ok {
		return nil
	}
	p := s.Placements[event.Placement]
	if p == nil {
		return nil
	}
	change, err := p.Items.Of.NewChange(b.Put, b.Deleted)
	if err != nil || p.Items.Of.LenAfter(change) > catalogue.MaxItems {
		return nil
	}
	p.Items.Of.Apply(sequence, change)
	return &catalogue.Staged{Items: p.Items.Of, Change: change}
}

// PrepareRefit makes the catalogue for a change of features.
func (s *State) PrepareRefit(event *eventlog.Event) *catalogue.Refit {
	var config []byte
	switch b := event.Body.(type) {
	case *eventlog.PlacementPut:
		config = b.Config
	case *eventlog.LearnerReset:
		config = b.Config
	default:
		return nil
	}
	p := s.Placements[event.Placement]
	c, err := setup.Parse(config)
	if p == nil || err != nil || c.Schema().Equal(p.Config.Schema()) || p.Items.Of == nil {
		return nil
	}
	m, _, _ := catalogue.NewRefit(context.Background(), p.Items.Of, c.Inherit(p.Config).Schema())
	return m
}

// addValues gives values of a category columns of their own, in all placements that share the catalogue.
func (s *State) addValues(p *Placement, b *eventlog.CategoryValuesAdded) error {
	if err := p.addValues(feature.Seen{Feature: b.Feature, Values: b.Values}); err != nil {
		return err
	}
	for _, q := range s.Placements {
		if q != p && s.owner(q) == p {
			s.restock(q)
		}
	}
	return nil
}
