package figure_test

import (
	"bytes"
	"context"
	"testing"

	"vitrine/figure"
	"vitrine/internal/fatal"
	"vitrine/paper/sessions"
)

// The figure names its worlds, its axes and every line.
func TestSessions(t *testing.T) {
	rivers := sessions.Rivers([]uint64{0})
	rivers.Worlds, rivers.Sessions, rivers.Points, rivers.Policies = rivers.Worlds[:1], 20, 1, nil
	var svg bytes.Buffer
	fatal.If(t, figure.WriteSVG(&svg, figure.Sessions(*fatal.Or(rivers.Run(context.Background(), 1, func(int) {}))(t))))
	for _, dashes := range []string{"3,2", "3,8"} {
		if !bytes.Contains(svg.Bytes(), []byte("stroke-dasharray:"+dashes)) {
			t.Errorf("no exact plan has the dashes %s: the eye does not tell 3,2 from 3,3", dashes)
		}
	}

	s := sessions.Default([]uint64{0, 1})
	s.Worlds, s.Sessions, s.Points = [][]sessions.World{{{Kind: sessions.Linear, Size: 6}},
		{{Kind: sessions.Network, Size: 7}}}, 40, 4
	for i := range s.Policies {
		s.Policies[i].Warmup = 5
	}
	r := fatal.Or(s.Run(context.Background(), 1, func(int) {}))(t)
	svg.Reset()
	fatal.If(t, figure.WriteSVG(&svg, figure.Sessions(*r)))
	for _, label := range append(r.Labels(), "linear utilities, N = 6", "network utilities, N = 7", "session",
		"share of the optimum", "2 seeds", "10 sessions") {
		if !bytes.Contains(svg.Bytes(), []byte(label)) {
			t.Errorf("the picture does not say %q", label)
		}
	}
}
