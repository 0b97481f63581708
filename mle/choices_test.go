package mle_test

import (
	"fmt"
	"testing"

	"gonum.org/v1/gonum/mat"

	"vitrine"
	"vitrine/internal/expect"
	"vitrine/internal/fields"
	"vitrine/mle"
)

// Malformed rounds are a programmer's mistake and must panic: a wrong width would shift the rows of all later rounds,
// and a choice beyond the set would refer to an item of the next round.
func TestChoicesRefuseRoundsThatCannotBe(t *testing.T) {
	x := mat.NewDense(2, 3, nil)
	for want, call := range map[string]func(c *mle.Choices){
		"a round of 3 features an item for choices of 2": func(*mle.Choices) { mle.NewChoices(2).AppendRows(x, 0) },
		"a round of 3 features an item for choices of 4": func(*mle.Choices) {
			mle.NewChoices(4).Append(x, vitrine.Assortment{1}, 0)
		},
		"choice 3 is not a position in an assortment of 2 items": func(c *mle.Choices) { c.AppendRows(x, 3) },
		"choice 2 is not a position in an assortment of 1 items": func(c *mle.Choices) {
			c.Append(x, vitrine.Assortment{1}, 2)
		},
		"choice -1 is not a position in an assortment of 1 items": func(c *mle.Choices) {
			c.Append(x, vitrine.Assortment{1}, -1)
		},
		"row index out of range":                                 func(c *mle.Choices) { c.Append(x, vitrine.Assortment{0, 9}, 1) },
		"choice 1 is not a position in an assortment of 0 items": func(c *mle.Choices) { c.AppendRows(nil, 1) },
		"choice 4 is not a position in an assortment of 2 items": func(*mle.Choices) {
			mle.NewAffine(1, make([]float64, 3)).Append([]float64{0, 0}, x, 4)
		},
	} {
		c := mle.NewChoices(3)
		func() {
			defer func() {
				expect.Contains(t, fmt.Sprint(recover()), want, "panic of")
			}()
			call(c)
		}()
		if c.Append(x, vitrine.Assortment{0}, 1); c.Rounds() != 1 || len(c.Features().RawMatrix().Data) != 3 {
			t.Errorf("%s: the round was added", want)
		}
	}
	c := mle.NewChoices(3)
	c.AppendRows(x, 2)
	c.Append(x, vitrine.Assortment{1}, 1)
	c.Append(nil, nil, 0)
	if c.Rounds() != 3 || c.Rows() != 3 {
		t.Errorf("%d rounds of %d items, want 3 of 3", c.Rounds(), c.Rows())
	}
}

// A snapshot with a choice beyond its set is rejected even if the checksum is right.
func TestSnapshotWithAChoiceOfNothingIsRefused(t *testing.T) {
	f := fields.Reader([]byte{0, 1, 0, 100}) // no features; one round that ends at row 0, with choice 100
	mle.NewChoices(3).Fields(&f)
	expect.Part(f.Close())(t, "with choice 100")
}

// A history moved to a set with enough room grows there without further copies, even after its first rounds are
// dropped. Its rounds stay the same.
func TestHistoryStaysWhereItIs(t *testing.T) {
	const rounds = 40
	x := func(s int) *mat.Dense { return mat.NewDense(2, 3, []float64{float64(s), 1, 2, 3, 4, 5}) }
	c := mle.NewChoices(3)
	var place *float64
	grow := func(from, to int) {
		for s := from; s < to; s++ {
			if c.AppendRows(x(s), vitrine.Choice(s%3)); s == from {
				place = &c.Features().RawMatrix().Data[0]
			}
		}
		if &c.Features().RawMatrix().Data[0] != place {
			t.Errorf("rounds %d to %d: the features were copied", from, to)
		}
	}
	for s := range 10 {
		c.AppendRows(x(s), vitrine.Choice(s%3))
	}
	if c.HasRoom(1000) {
		t.Error("a set of 10 rounds has room for 1000")
	}
	seldom := mle.NewChoices(3) // items in one of four rounds
	for s := range 40 {
		if seldom.AppendRows(nil, vitrine.Outside); s%4 == 0 {
			seldom.AppendRows(x(s), 1)
		}
	}
	if seldom.HasRoom(1000) {
		t.Error("a set of 50 rounds, most of them empty, has room for 1000")
	}
	room := c.Room(rounds)
	room.AppendAll(c)
	c.Features().Set(0, 0, -1) // it shares no memory
	c = room
	if !c.HasRoom(rounds) || !mle.NewChoices(3).HasRoom(0) {
		t.Errorf("no room for %d rounds", rounds)
	}
	grow(10, rounds)
	for s := range rounds {
		if got := c.Round(s).Features().At(0, 0); got != float64(s) || c.Choice(s) != vitrine.Choice(s%3) {
			t.Errorf("round %d has %v and choice %d", s, got, c.Choice(s))
		}
	}
	var want []float64
	for s := range rounds - 31 {
		want = append(want, float64(c.Choice(31+s)), c.Round(31+s).Features().At(0, 0))
	}
	c.Drop(31)
	var got []float64
	for s := range c.Rounds() {
		got = append(got, float64(c.Choice(s)), c.Round(s).Features().At(0, 0))
	}
	expect.List(t, got, want, "rounds after the first 31 are")
	grow(rounds-31, rounds)
	if mle.NewChoices(3).Room(rounds).Rounds() != 0 { // width unknown
		t.Error("room is not empty")
	}
}
