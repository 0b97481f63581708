package sessions_test

import (
	"bytes"
	"context"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"vitrine/internal/expect"
	"vitrine/internal/fatal"
	"vitrine/internal/stream"
	"vitrine/mdp"
	"vitrine/paper/sessions"
)

var network = sessions.World{Kind: sessions.Network, Size: 6}

// small is the study of a few short runs.
func small() sessions.Study {
	s := sessions.Default([]uint64{0, 1})
	s.Worlds, s.Sessions, s.Points = [][]sessions.World{{{Kind: sessions.Linear, Size: 6}, network}}, 40, 4
	for i := range s.Policies {
		s.Policies[i].Warmup = min(s.Policies[i].Warmup, 10)
	}
	return s
}

// smallRivers is small in rivers.
func smallRivers() sessions.Study {
	s := sessions.Rivers([]uint64{0, 1})
	s.Sessions, s.Points = 8, 4
	for i := range s.Policies {
		s.Policies[i].Warmup = min(s.Policies[i].Warmup, 2)
	}
	return s
}

// files returns what a directory holds.
func files(t *testing.T, dir string) map[string]string {
	all := map[string]string{}
	for _, e := range fatal.Or(os.ReadDir(dir))(t) {
		all[e.Name()] = string(fatal.Or(os.ReadFile(filepath.Join(dir, e.Name())))(t))
	}
	return all
}

// A study is the same bytes with any number of workers, is read as it was written, and covers every policy.
func TestSameBytes(t *testing.T) {
	for _, s := range []sessions.Study{small(), smallRivers()} {
		var first map[string]string
		for _, workers := range []int{1, 8} {
			dir, runs := t.TempDir(), make(chan int, 100)
			r := fatal.Or(s.Run(context.Background(), workers, func(n int) { runs <- n }))(t)
			if len(runs) != s.Runs() {
				t.Errorf("%s: %d runs were counted of %d", s.Name, len(runs), s.Runs())
			}
			fatal.If(t, r.Write(dir))
			if first == nil {
				first = files(t, dir)
			}
			expect.Equal(t, files(t, dir), first, s.Name, workers, "workers")
			again := fatal.Or(sessions.Read(dir))(t)
			if diff := cmp.Diff(r.Study, again.Study); diff != "" || len(again.Points) != len(r.Points) {
				t.Errorf("%d points instead of %d: %s", len(again.Points), len(r.Points), diff)
			}
			var text bytes.Buffer
			again.Print(&text)
			for _, name := range append(r.Labels()[1:], slices.Concat(s.Worlds...)[1].String()) {
				if !strings.Contains(text.String(), name) {
					t.Errorf("%s is missing in\n%s", name, &text)
				}
			}
		}
	}
}

// A point is the mean of its sessions, and a curve the mean of its seeds' shares.
func TestCurve(t *testing.T) {
	s := small()
	s.Worlds, s.Policies = [][]sessions.World{{network}}, s.Policies[:1]
	r := fatal.Or(s.Run(context.Background(), 1, func(int) {}))(t)
	want := make([]float64, s.Points)
	for _, seed := range s.Seeds {
		w := mdp.NetworkShop(6, stream.New(seed, 0, stream.World))
		_, v := w.Solve()
		a := fatal.Or(s.Policies[0].Agent(w, s.Sessions, stream.New(seed, 0, stream.Learner)))(t)
		fatal.If(t, mdp.Play(w, a, s.Sessions, seed, func(k int, value float64) error {
			want[k/10] += value / v[0][w.Start] / 10 / 2
			return nil
		}))
	}
	at, mean, se := r.Curve(network, s.Policies[0].Label)
	for k, v := range want {
		if at[k] != float64(10*(k+1)) || mean[k]-v > 1e-12 || v-mean[k] > 1e-12 || !(se[k] > 0) || v >= 1 {
			t.Errorf("point %d: session %v, share %v ± %v, want %v", k, at[k], mean[k], se[k], v)
		}
	}
	if at, best, se := r.Curve(network, sessions.Optimum); len(best) != 1 || at[0] != 0 || best[0] != 1 || se[0] != 0 {
		t.Errorf("the optimum is %v ± %v of itself", best, se)
	}
}

// The plans of RiverSwim that need no learning earn the shares of another program's 2.6627, 2.6620 and 0.1121.
func TestPlansWithoutLearning(t *testing.T) {
	s, swim := smallRivers(), sessions.World{Kind: sessions.RiverSwim, Size: 4}
	s.Worlds, s.Policies = [][]sessions.World{{swim}}, nil
	r := fatal.Or(s.Run(context.Background(), 1, func(int) {}))(t)
	for label, want := range map[string]float64{sessions.Optimum: 1, sessions.Right: 0.99974,
		sessions.Uniform: 0.0421} {
		if _, share, _ := r.Curve(swim, label); len(share) != 1 || math.Abs(share[0]-want) > 5e-5 {
			t.Errorf("%s: %v of the optimum, want %v", label, share, want)
		}
	}
}

func TestErrors(t *testing.T) {
	ctx, stop := context.WithCancel(context.Background())
	stop()
	expect.Fails(small().Run(ctx, 2, func(int) {}))(t, context.Canceled)
	s := small()
	s.Policies[0].Learner = "best"
	expect.Part(s.Run(context.Background(), 1, func(int) {}))(t, `vql: there is no learner "best"`)
	s = smallRivers()
	s.Policies[0].Learner = "best"
	expect.Part(s.Run(context.Background(), 1, func(int) {}))(t, `onl-mdp: there is no algorithm "best"`)
	r := fatal.Or(small().Run(context.Background(), 1, func(int) {}))(t)
	for want, damage := range map[string]func(*sessions.Report){
		`vql has no points in the world "linear utilities, N = 6"`: func(r *sessions.Report) {
			r.Points = r.Points[:2]
		},
		"the study has no worlds": func(r *sessions.Report) { r.Study.Worlds = nil },
	} {
		dir, damaged := t.TempDir(), *r
		damage(&damaged)
		fatal.If(t, damaged.Write(dir))
		if _, err := sessions.Read(dir); err == nil || !strings.Contains(err.Error(), want) ||
			!strings.Contains(err.Error(), "vitrine reproduce sessions") {
			t.Errorf("error %v, want %q", err, want)
		}
	}
}
