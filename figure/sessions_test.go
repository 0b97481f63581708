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
	s := sessions.Default([]uint64{0, 1})
	s.Worlds, s.Sessions, s.Points = [][]sessions.World{{{Kind: sessions.Linear, Size: 6}},
		{{Kind: sessions.Network, Size: 7}}}, 40, 4
	for i := range s.Policies {
		s.Policies[i].Warmup = 5
	}
	r := fatal.Or(s.Run(context.Background(), 1, func(int) {}))(t)
	var svg bytes.Buffer
	fatal.If(t, figure.WriteSVG(&svg, figure.Sessions(*r)))
	for _, label := range append(r.Labels(), "linear utilities, N = 6", "network utilities, N = 7", "session",
		"share of the optimum", "2 seeds", "10 sessions") {
		if !bytes.Contains(svg.Bytes(), []byte(label)) {
			t.Errorf("the picture does not say %q", label)
		}
	}
}
