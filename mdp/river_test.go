package mdp_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"
	"pgregory.net/rapid"

	"vitrine/internal/expect"
	"vitrine/internal/fatal"
	"vitrine/internal/stream"
	"vitrine/mdp"
	"vitrine/utility"
	"vitrine/utility/utilitytest"
)

// current is the truth of a random river: linear in d features, of every state in reach.
type current struct {
	*mdp.River
	phi   [][]*mat.Dense // S×A, |R|×d
	theta []float64
}

// flowing returns a river in which every action reaches two or all of three states, or only one.
func flowing(rng *rand.Rand, d, horizon int) current {
	c := current{River: &mdp.River{Horizon: horizon, Start: 2, Family: utility.NewLinear(d, false)},
		theta: make([]float64, d)}
	for j := range c.theta {
		c.theta[j] = rng.NormFloat64()
	}
	for range 3 {
		var moves []mdp.Move
		var all []*mat.Dense
		for a := range 2 {
			x := mat.NewDense(3-2*a*rng.IntN(2), d, nil)
			x.Apply(func(int, int, float64) float64 { return rng.NormFloat64() }, x)
			moves = append(moves, mdp.NewMove(rng.Perm(3)[:x.RawMatrix().Rows], x,
				func(dst []float64, x *mat.Dense) { utility.NewLinear(d, false).Utilities(dst, c.theta, x) }))
			moves[a].Reward = rng.Float64() / 2
			all = append(all, x)
		}
		c.Moves, c.phi = append(c.Moves, moves), append(c.phi, all)
	}
	return c
}

// softmax returns the probabilities of utilities of all states in reach.
func softmax(u []float64) []float64 {
	p := make([]float64, len(u))
	for k, v := range u {
		p[k] = math.Exp(v - floats.LogSumExp(u))
	}
	return p
}

// The probabilities of a move are those of f over all states in reach, whichever is first.
func TestMoves(t *testing.T) {
	c := flowing(rand.New(rand.NewPCG(1, 1)), 4, 3)
	for s, moves := range c.Moves {
		for a, m := range moves {
			u := mat.NewVecDense(len(m.Reach), nil)
			u.MulVec(c.phi[s][a], mat.NewVecDense(4, c.theta))
			expect.Equal(t, m.P, softmax(u.RawVector().Data), "state", s, "action", a, near(1e-12))
		}
	}
}

// near compares numbers up to an absolute error.
func near(tolerance float64) cmp.Option {
	return cmp.Comparer(func(x, y float64) bool { return math.Abs(x-y) <= tolerance })
}

func TestRelative(t *testing.T) {
	m := utility.NewMLP(3, []int{4}, utility.Sigmoid)
	utilitytest.TestModel(t, mdp.Relative(m))
	w, u, v, relative := make([]float64, m.NumParams()), make([]float64, 1), make([]float64, 1), make([]float64, 1)
	m.Init(w, rand.New(rand.NewPCG(1, 2)))
	x := []float64{0.3, -1, 2, 1, 0, -0.5}
	m.Utilities(u, w, mat.NewDense(1, 3, x[:3]))
	m.Utilities(v, w, mat.NewDense(1, 3, x[3:]))
	if mdp.Relative(m).Utilities(relative, w, mat.NewDense(1, 6, x)); math.Abs(u[0]-v[0]-relative[0]) > 1e-12 {
		t.Errorf("relative utility %v of %v and %v", relative, u, v)
	}
}

// The value of a course, computed backwards, equals its earnings forwards; no course earns more than Solve's.
func TestRiverAgainstAllCourses(t *testing.T) {
	const states, horizon = 3, 3
	for seed := range uint64(5) {
		c := flowing(rand.New(rand.NewPCG(seed, 0)), 4, horizon)
		best, v := c.Solve()
		maximum, sum := 0.0, 0.0
		for code := range 1 << (states * horizon) {
			course := c.Always(0)
			for k := range states * horizon {
				course[k/states][k%states] = code >> k & 1
			}
			at, earned := []float64{0, 0, 1}, 0.0
			for h := range horizon {
				next := make([]float64, states)
				for s, mass := range at {
					m := c.Moves[s][course[h][s]]
					earned += mass * m.Reward
					for k, to := range m.Reach {
						next[to] += mass * m.P[k]
					}
				}
				at = next
			}
			if value := c.Value(course)[0][c.Start]; math.Abs(value-earned) > 1e-12 {
				t.Fatalf("course %v earns %v, its value is %v", course, earned, value)
			}
			maximum, sum = max(maximum, earned), sum+earned
		}
		if got := c.Value(best)[0][c.Start]; math.Abs(got-maximum) > 1e-12 || math.Abs(v[0][c.Start]-maximum) > 1e-12 {
			t.Errorf("seed %d: V = %v, the optimal course earns %v, the best of all %v", seed, v[0][c.Start], got,
				maximum)
		}
		if got, want := c.Uniform()[0][c.Start], sum/(1<<(states*horizon)); math.Abs(got-want) > 1e-12 {
			t.Errorf("seed %d: uniform actions earn %v, want the mean %v of all courses", seed, got, want)
		}
	}
}

// Numbers of another program: the optimum, actions that are always right, and uniform ones.
func TestRiverSwim(t *testing.T) {
	for states, want := range map[int][3]float64{4: {2.6627, 2.6620, 0.1121}, 8: {2.6226, 2.6212, 0.0363}} {
		r := mdp.RiverSwim(states)
		_, v := r.Solve()
		got := [3]float64{v[0][0], r.Value(r.Always(1))[0][0], r.Uniform()[0][0]}
		if diff := cmp.Diff(want, got, near(5e-5)); diff != "" || r.Horizon != 3*states ||
			math.Abs(r.Kappa()-0.0175) > 1e-12 {
			t.Errorf("S = %d, H = %d, κ = %v: -want +got:\n%s", states, r.Horizon, r.Kappa(), diff)
		}
	}
}

// An accepted river is worth planning, and its instance is the seed's.
func TestRiversOfLanes(t *testing.T) {
	for name, draw := range map[string]func(*rand.Rand) (*mdp.River, int){"network": mdp.NetworkRiver,
		"cosine": mdp.CosineRiver} {
		total := 0
		for seed := range uint64(5) {
			r, rejected := draw(stream.New(seed, 0, stream.World))
			again, _ := draw(stream.New(seed, 0, stream.World))
			_, v := r.Solve()
			right := r.Value(r.Always(1))[0][0]
			if _, other := again.Solve(); v[0][0] < 3 || v[0][0] <= 2*right || other[0][0] != v[0][0] {
				t.Errorf("%s, seed %d: optimum %v and %v, always right %v", name, seed, v[0][0], other[0][0], right)
			}
			m := r.Moves[4][1] // φ = (δ, |δ|, δ s/S, δ c) of states 3 (s⁰), 4 and 5
			if x := m.Context.Features; m.Reach[2] != 5 || x.At(1, 0) != 1 || x.At(0, 0) != 0 || x.At(1, 1) != 1 ||
				x.At(1, 2) != 0.2 || x.At(1, 4) != -1 || x.At(1, 7) != -x.At(1, 3) {
				t.Errorf("%s: features %v", name, mat.Formatted(x))
			}
			total += rejected
		}
		if total == 0 {
			t.Errorf("%s: no instance was rejected", name)
		}
	}
}

// The cost of an error of the utilities: |Σ (P' − P) V| ≤ (H/2) max |Δu − c| for V in [0, H].
func TestRadiusBoundsTheError(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 3))
		n, horizon, c := 2+rng.IntN(4), 5.0, rng.NormFloat64()
		u, moved, largest := make([]float64, n), make([]float64, n), 0.0
		for k := range u {
			delta := rng.NormFloat64() * math.Exp(rng.NormFloat64())
			u[k] = 2 * rng.NormFloat64()
			moved[k], largest = u[k]+delta, max(largest, math.Abs(delta-c))
		}
		p, q, difference := softmax(u), softmax(moved), 0.0
		for k := range p {
			difference += (q[k] - p[k]) * horizon * rng.Float64()
		}
		if math.Abs(difference) > horizon/2*largest {
			t.Fatalf("u = %v, u' = %v: ΣPV moves by %v, the bound is %v", u, moved, difference, horizon/2*largest)
		}
	})
}

// swim plays random courses and returns the moves: states and actions.
func swim(t *testing.T, c current, s *mdp.Swimmer, sessions int) (all [][3]int) {
	rng := rand.New(rand.NewPCG(7, 7))
	for range sessions * c.Horizon {
		at, a := rng.IntN(3), rng.IntN(2)
		m := c.Moves[at][a]
		k := 0
		if rng.Float64() > m.P[0] && len(m.P) > 1 {
			k = 1 + rng.IntN(len(m.P)-1)
		}
		fatal.If(t, s.Observe(at, a, m.Reach[k]))
		if len(m.P) > 1 {
			all = append(all, [3]int{at, a, k})
		}
	}
	return all
}

// sum returns Σ p x xᵀ − (Σ p x)(Σ p x)ᵀ, and x with its mean subtracted.
func covariance(p []float64, x *mat.Dense) (*mat.Dense, *mat.Dense) {
	n, d := x.Dims()
	centred := mat.DenseCopyOf(x)
	for i := range n {
		for j := range d {
			for k, q := range p {
				centred.Set(i, j, centred.At(i, j)-q*x.At(k, j))
			}
		}
	}
	var weighted, cov mat.Dense
	weighted.Apply(func(i, _ int, v float64) float64 { return p[i] * v }, centred)
	cov.Mul(centred.T(), &weighted)
	return &cov, centred
}

func swimmer(t *testing.T, r *mdp.River, o mdp.SwimmerOptions, sessions int) *mdp.Swimmer {
	return fatal.Or(mdp.NewSwimmer(r, o, sessions, rand.New(rand.NewPCG(1, 1))))(t)
}

// The precision of ucrl-mnl-plus is λI and the covariances of φ at the estimates, and its bonuses are those of the
// paper: all from dense matrices of every state in reach.
func TestCentredBonusAgainstDense(t *testing.T) {
	const d, beta = 4, 0.3
	c := flowing(rand.New(rand.NewPCG(5, 5)), d, 6)
	s := swimmer(t, c.River, mdp.SwimmerOptions{Algorithm: "ucrl-mnl-plus", Beta: beta, Lambda: 2}, 20)
	want := mat.NewDense(d, d, nil)
	for i := range d {
		want.Set(i, i, 2)
	}
	rng := rand.New(rand.NewPCG(8, 8))
	for range 30 {
		at, a := rng.IntN(3), rng.IntN(2)
		m := c.Moves[at][a]
		fatal.If(t, s.Observe(at, a, m.Reach[rng.IntN(len(m.Reach))]))
		w, _ := s.Estimate()
		u := mat.NewVecDense(len(m.Reach), nil)
		u.MulVec(c.phi[at][a], mat.NewVecDense(d, w))
		cov, _ := covariance(softmax(u.RawVector().Data), c.phi[at][a])
		want.Add(want, cov)
	}
	w, a := s.Estimate()
	if !mat.EqualApprox(want, a, 1e-9) {
		t.Fatalf("A = %v, want %v", mat.Formatted(a), mat.Formatted(want))
	}
	s.Plan(rng)
	var inverse mat.Dense
	fatal.If(t, inverse.Inverse(want))
	length := func(x mat.Vector) float64 { return math.Sqrt(mat.Inner(x, &inverse, x)) }
	for state := range c.Moves {
		for act, m := range c.Moves[state] {
			phi := c.phi[state][act]
			u := mat.NewVecDense(len(m.Reach), nil)
			u.MulVec(phi, mat.NewVecDense(d, w))
			p := softmax(u.RawVector().Data)
			_, centred := covariance(p, phi)
			sum, longest := 0.0, 0.0
			for k := range p {
				sum += p[k] * length(centred.RowView(k))
				var g mat.VecDense
				g.SubVec(phi.RowView(k), phi.RowView(0))
				longest = max(longest, length(&g))
			}
			got, bonus := s.Move(state, act)
			if want := 6*beta*sum + 3*6*beta*beta*longest*longest; math.Abs(bonus-want) > 1e-9 ||
				!floats.EqualApprox(got, p, 1e-9) {
				t.Errorf("state %d, action %d: P̂ = %v, bonus %v; want %v and %v", state, act, got, bonus, p, want)
			}
		}
	}
}

// The sampled bonuses are, on average, Hβ times the same norms and the mean of the largest of M normal draws.
func TestSampledBonuses(t *testing.T) {
	c := flowing(rand.New(rand.NewPCG(5, 5)), 4, 6)
	const plans = 4000
	for _, algorithm := range []string{"rrl-mnl", "orrl-mnl"} {
		o := mdp.SwimmerOptions{Algorithm: algorithm, Beta: 0.3, Lambda: 2}
		s := swimmer(t, c.River, o, 20)
		swim(t, c, s, 5)
		var length, fixed float64 // of action 0 in state 0
		draws := math.Ceil(1 - math.Log(6)/math.Log(math.Erfc(-math.Sqrt2/2)/2))
		if algorithm == "rrl-mnl" {
			s.Plan(rand.New(rand.NewPCG(1, 1)))
			_, length = s.Longest(0, 0)
		} else {
			plus := swimmer(t, c.River, mdp.SwimmerOptions{Algorithm: "ucrl-mnl-plus", Beta: 0.3, Lambda: 2}, 20)
			swim(t, c, plus, 5)
			plus.Plan(rand.New(rand.NewPCG(1, 1)))
			_, all := plus.Move(0, 0)
			_, longest := plus.Longest(0, 0)
			fixed = 3 * 6 * 0.3 * 0.3 * longest * longest
			length = (all - fixed) / (6 * 0.3)
			draws = math.Ceil(1 - math.Log(6*3)/math.Log(math.Erfc(-math.Sqrt2/2)/2))
		}
		rng, got, top := rand.New(rand.NewPCG(2, 2)), 0.0, 0.0
		for range plans {
			s.Plan(rng)
			_, bonus := s.Move(0, 0)
			got += (bonus - fixed) / plans
			largest := math.Inf(-1)
			for range int(draws) {
				largest = max(largest, rng.NormFloat64())
			}
			top += largest / plans
		}
		if want := 6 * 0.3 * length * top; math.Abs(got/want-1) > 0.03 {
			t.Errorf("%s: mean bonus %v, want %v", algorithm, got, want)
		}
	}
}

// rrl-mnl steps by A⁻¹∇ℓ with A = λI + (κ/2) Σ g gᵀ.
func TestGradientSteps(t *testing.T) {
	const d = 4
	c := flowing(rand.New(rand.NewPCG(5, 5)), d, 6)
	s := swimmer(t, c.River, mdp.SwimmerOptions{Algorithm: "rrl-mnl", Lambda: 2}, 20)
	theta, a := mat.NewVecDense(d, nil), mat.NewDense(d, d, nil)
	for i := range d {
		a.Set(i, i, 2)
	}
	for _, move := range swim(t, c, s, 5) {
		phi := c.phi[move[0]][move[1]]
		u := mat.NewVecDense(len(c.Moves[move[0]][move[1]].Reach), nil)
		u.MulVec(phi, theta)
		slope, step := mat.NewVecDense(d, nil), mat.NewVecDense(d, nil)
		for k, p := range softmax(u.RawVector().Data) {
			slope.AddScaledVec(slope, p, phi.RowView(k))
			var g mat.VecDense
			g.SubVec(phi.RowView(k), phi.RowView(0))
			var outer mat.Dense
			outer.Outer(c.Kappa()/2, &g, &g)
			a.Add(a, &outer)
		}
		slope.SubVec(slope, phi.RowView(move[2]))
		fatal.If(t, step.SolveVec(a, slope))
		theta.SubVec(theta, step)
	}
	w, _ := s.Estimate()
	if !floats.EqualApprox(w, theta.RawVector().Data, 1e-9) {
		t.Errorf("θ = %v, want %v", w, theta.RawVector().Data)
	}
}

// For linear f, onl-mdp with maximum likelihood is ucrl-mnl: the same estimates and courses, as long as no Q exceeds H.
func TestLinearONLIsUCRL(t *testing.T) {
	c := flowing(rand.New(rand.NewPCG(9, 9)), 4, 6)
	plain, network := swimmer(t, c.River, mdp.SwimmerOptions{Algorithm: "ucrl-mnl", Beta: 0.02, Lambda: 1}, 30),
		mdp.NewBatchONL(t, c.River, mdp.SwimmerOptions{Beta: 0.02, Lambda: 1}, 30)
	at := c.Start
	for k := range 30 {
		rng := rand.New(rand.NewPCG(uint64(k), 1))
		course, other := plain.Plan(rng), network.Plan(rng)
		expect.Equal(fatal.T(t), other, course, "session", k, "-ucrl-mnl +onl-mdp")
		v, a := plain.Estimate()
		if w, b := network.Estimate(); !floats.EqualApprox(v, w, 1e-3) || !mat.EqualApprox(a, b, 1e-9) {
			t.Fatalf("session %d: ŵ = %v and %v, A = %v and %v", k, v, w, mat.Formatted(a), mat.Formatted(b))
		}
		for h := range c.Horizon {
			m := c.Moves[at][course[h][at]]
			next := m.Reach[mdp.Draw(m.P, rng.Float64())]
			fatal.If(t, plain.Observe(at, course[h][at], next))
			fatal.If(t, network.Observe(at, course[h][at], next))
			at = next
		}
	}
}

// A course is backward induction on the swimmer's own probabilities and bonuses. Some algorithms bound Q by H, where
// actions tie, and all bound V.
func TestCourseIsBackwardInduction(t *testing.T) {
	c := flowing(rand.New(rand.NewPCG(5, 5)), 4, 6)
	for algorithm, clips := range map[string]bool{"ucrl-mnl": true, "rrl-mnl": true, "orrl-mnl": true,
		"ucrl-mnl-plus": false, "onl-mdp": false} {
		drawn := map[int]bool{}
		for _, beta := range []float64{0.02, 0.5, 20} {
			s := swimmer(t, c.River, mdp.SwimmerOptions{Algorithm: algorithm, Beta: beta, Lambda: 2}, 20)
			swim(t, c, s, 5)
			for k := range uint64(8) {
				course := s.Plan(rand.New(rand.NewPCG(k, 2)))
				drawn[course[0][0]] = drawn[course[0][0]] || clips && beta == 20
				next := make([]float64, 3)
				for h := c.Horizon - 1; h >= 0; h-- {
					v := make([]float64, 3)
					for state := range v {
						var q []float64
						for a, m := range c.Moves[state] {
							p, bonus := s.Move(state, a)
							value := m.Reward + bonus
							for i, to := range m.Reach {
								value += p[i] * next[to]
							}
							if clips {
								value = min(value, 6)
							}
							q = append(q, value)
						}
						if v[state] = floats.Max(q); q[course[h][state]] < v[state]-1e-12 {
							t.Fatalf("%s, β = %v: action %d of the values %v at step %d", algorithm, beta,
								course[h][state], q, h)
						}
						v[state] = min(v[state], 6)
					}
					next = v
				}
			}
		}
		if clips && (!drawn[0] || !drawn[1]) {
			t.Errorf("%s: ties are not drawn: %v", algorithm, drawn)
		}
	}
}

// Every algorithm finds the way through RiverSwim, and onl-mdp explores first where f is a network.
func TestSwim(t *testing.T) {
	r := mdp.RiverSwim(4)
	_, v := r.Solve()
	for _, algorithm := range []string{"ucrl-mnl", "ucrl-mnl-plus", "rrl-mnl", "orrl-mnl", "onl-mdp"} {
		last := 0.0
		fatal.If(t, mdp.Swim(r, swimmer(t, r, mdp.SwimmerOptions{Algorithm: algorithm, Beta: 0.01, Lambda: 1}, 300),
			300, 1, func(_ int, value float64) error {
				last = value
				return nil
			}))
		if last < 0.99*v[0][0] || last > v[0][0]+1e-12 {
			t.Errorf("%s earns %v at last, the optimum is %v", algorithm, last, v[0][0])
		}
	}
	network, _ := mdp.NetworkRiver(stream.New(0, 0, stream.World))
	s := swimmer(t, network, mdp.SwimmerOptions{Algorithm: "onl-mdp", Warmup: 2, Beta: 0.01, Lambda: 1}, 3)
	fatal.If(t, mdp.Swim(network, s, 3, 1, func(k int, _ float64) error {
		if w, _ := s.Estimate(); (w == nil) != (k < 2) || k == 2 && len(w) != 19 {
			t.Errorf("session %d: ŵ = %v", k, w)
		}
		return nil
	}))
	for _, wrong := range []mdp.SwimmerOptions{{Beta: 1}, {Beta: -1, Lambda: 1}, {Beta: 1, Lambda: math.NaN()}, {Lambda: math.Inf(1)}} {
		wrong.Algorithm = "ucrl-mnl"
		expect.Part(mdp.NewSwimmer(r, wrong, 1, nil))(t, "must be finite", wrong)
	}
	expect.Message(mdp.NewSwimmer(r, mdp.SwimmerOptions{Algorithm: "best"}, 1, nil))(t,
		`there is no algorithm "best": name onl-mdp, orrl-mnl, rrl-mnl, ucrl-mnl, ucrl-mnl-plus`)
}
