package abtest_test

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"gonum.org/v1/gonum/stat/distuv"
	"pgregory.net/rapid"

	"vitrine/internal/confseq"
	"vitrine/internal/expect"
	"vitrine/internal/fatal"
	"vitrine/internal/precise"
	_ "vitrine/internal/rapidseed"
	"vitrine/service/earnings/abtest"
)

// counts draws counts that sum to the number of buckets.
func counts(t *rapid.T, n int) []int {
	cuts := rapid.SliceOfN(rapid.IntRange(0, abtest.Buckets), n-1, n-1).Draw(t, "cuts")
	slices.Sort(cuts)
	list := make([]int, n)
	last := 0
	for i, c := range append(cuts, abtest.Buckets) {
		list[i], last = c-last, c
	}
	return list
}

// For any change of shares, each variant gets its count, a bucket moves only if its variant's share shrinks, and no
// other table moves fewer buckets.
func TestAllocate(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, abtest.MaxVariants).Draw(t, "variants")
		before := counts(t, n)
		table, moved := abtest.Allocate(nil, before)
		expect.Equal(fatal.T(t), moved, 0, "buckets moved from nowhere")
		for range 3 {
			after := counts(t, n)
			next, moved := abtest.Allocate(table, after)
			have, least, differ := make([]int, n), 0, 0
			for b, v := range next {
				have[v]++
				if table[b] == v {
					continue
				}
				differ++
				if after[table[b]] >= before[table[b]] {
					t.Fatalf("bucket %d leaves variant %d, whose count goes from %d to %d",
						b, table[b], before[table[b]], after[table[b]])
				}
			}
			for v := range after {
				least += max(0, before[v]-after[v])
			}
			if !slices.Equal(have, after) || differ != least || moved != least {
				t.Fatalf("counts %v, want %v; %d differ and %d are said to have moved, want %d",
					have, after, differ, moved, least)
			}
			table, before = next, after
		}
	})
}

func TestCount(t *testing.T) {
	for share, want := range map[float64]int{0: 0, 0.0001: 1, 0.1: 1000, 1.0 / 3: -1, 0.3333: 3333, 1: 10000, 1.5: -1,
		-0.1: -1, 0.00005: -1, math.NaN(): -1, 1e300: -1} {
		n, ok := abtest.Count(share)
		if ok != (want >= 0) || ok && n != want {
			t.Errorf("the share %v has %d buckets, %v, want %d", share, n, ok, want)
		}
	}
}

// Buckets are as uniform as chance, independent between two experiments, and equal to the documented hash.
func TestBucketsAreUniform(t *testing.T) {
	const units = 100_000
	var one [100]float64
	var both [10][10]float64
	for i := range units {
		u := abtest.Unit("home", fmt.Sprint("shopper-", i))
		a, b := abtest.Bucket(u, 1), abtest.Bucket(u, 2)
		one[a/100]++
		both[a/1000][b/1000]++
	}
	for name, cells := range map[string][]float64{"one experiment": one[:], "two experiments": slices.Concat(both[0][:],
		both[1][:], both[2][:], both[3][:], both[4][:], both[5][:], both[6][:], both[7][:], both[8][:], both[9][:])} {
		x, want := 0.0, units/float64(len(cells))
		for _, n := range cells {
			x += (n - want) * (n - want) / want
		}
		if p := 1 - (distuv.ChiSquared{K: float64(len(cells) - 1)}).CDF(x); p < 1e-4 {
			t.Errorf("%s: χ² = %v, p = %v", name, x, p)
		}
	}
	sum := sha256.Sum256([]byte("home\x00ann"))
	unit := binary.LittleEndian.Uint64(sum[:])
	expect.Equal(t, abtest.Unit("home", "ann"), unit, "the unit is")
	sum = sha256.Sum256(binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(nil, 7), unit))
	expect.Equal(t, abtest.Bucket(unit, 7), int(binary.LittleEndian.Uint64(sum[:])%10_000), "the bucket is")
}

// The sums equal the formulas applied to a list of all decisions.
func TestResultsByHand(t *testing.T) {
	type decision struct {
		v, bucket int
		x, bound  float64
		centre    float64
		shares    []float64
	}
	rng := rand.New(rand.NewPCG(4, 4))
	const control = 1
	r := abtest.NewResults(3)
	var all []decision
	shares := []float64{0.5, 0.3, 0.2}
	var lead, last confseq.Mean // for variants 0 and 2
	for block := range 20 {
		switch block {
		case 10:
			shares = []float64{0.4, 0.4, 0.2}
		case 15:
			shares = []float64{0.6, 0.4, 0} // only the other pair continues
		}
		b := r.Begin()
		var own, other confseq.Block
		for range 30 {
			v := rng.IntN(3)
			if shares[v] == 0 {
				v = 0
			}
			bucket := v*100 + rng.IntN(20)
			// shoppers in one bucket are alike
			d := decision{v, bucket, float64(bucket % 4), float64(bucket % 5), b.Centre, shares}
			d.bound = max(d.bound, d.x)
			all = append(all, d)
			b.Add(d.v, d.x, d.bound, shares)
			r.Cluster(d.bucket, d.v, d.x, b.Centre, shares)
			w := 0.0
			switch v {
			case 0:
				w = (d.x - b.Centre) / shares[0]
			case control:
				w = -(d.x - b.Centre) / shares[control]
			}
			own.Add(w, max(d.bound, b.Centre)/min(shares[0], shares[control]))
			if w = 0; shares[2] == 0 {
				continue
			}
			switch v {
			case 2:
				w = (d.x - b.Centre) / shares[2]
			case control:
				w = -(d.x - b.Centre) / shares[control]
			}
			other.Add(w, max(d.bound, b.Centre)/min(shares[2], shares[control]))
		}
		lead.Add(&own)
		last.Add(&other)
		r.Take(b)
	}
	earned, n := 0.0, 0.0
	for _, d := range all {
		if d.v == 2 {
			earned, n = earned+d.x, n+1
		}
	}
	t.Run("mean", func(t *testing.T) {
		if m := r.Variants[2].Mean; m.N != uint64(n) || math.Abs(m.Average()-earned/n) > 1e-12 || m.Bound != 4 {
			t.Errorf("variant 2 has %+v, want %v decisions of %v", m, n, earned/n)
		}
	})
	around := func(mean float64, of func(d decision) (value float64, counts bool)) float64 {
		sums := map[int]float64{}
		for _, d := range all {
			if v, counts := of(d); counts {
				sums[d.bucket] += v - mean
			}
		}
		total := 0.0
		for _, s := range sums {
			total += s * s
		}
		return total
	}
	t.Run("difference", func(t *testing.T) {
		alone := lead.Squares.Value()
		lead.Squares = precise.Of(max(lead.Squares.Value(), around(lead.Average(), func(d decision) (float64, bool) {
			switch d.v {
			case 0:
				return (d.x - d.centre) / d.shares[0], true
			case control:
				return -(d.x - d.centre) / d.shares[control], true
			}
			return 0, true
		})))
		if !(lead.Squares.Value() > 2*alone) {
			t.Errorf("the sum of squares by buckets is %v, and that of decisions %v", lead.Squares.Value(), alone)
		}
		wantLow, wantHigh := lead.Interval(0.05)
		low, estimate, high, ok := r.Difference(0, control, 0.05)
		for _, c := range [][2]float64{{low, wantLow}, {estimate, lead.Average()}, {high, wantHigh}} {
			if !ok || math.Abs(c[0]-c[1]) > 1e-9 {
				t.Errorf("the difference is %v in [%v, %v], want %v in [%v, %v]",
					estimate, low, high, lead.Average(), wantLow, wantHigh)
			}
		}
		if backLow, back, backHigh, ok := r.Difference(control, 0, 0.05); !ok || backLow != -high ||
			back != -estimate || backHigh != -low {
			t.Errorf("the other way round the difference is %v in [%v, %v]", back, backLow, backHigh)
		}
	})
	t.Run("while it had a share", func(t *testing.T) {
		if _, estimate, _, ok := r.Difference(2, control, 0.05); !ok || last.N != 450 ||
			math.Abs(estimate-last.Average()) > 1e-12 {
			t.Errorf("variant 2 differs by %v, want %v of the %d decisions while it had a share",
				estimate, last.Average(), last.N)
		}
	})
	t.Run("interval of a mean", func(t *testing.T) {
		mean := r.Variants[2].Mean
		mean.Squares = precise.Of(max(mean.Squares.Value(), around(mean.Average(), func(d decision) (float64, bool) {
			return d.x, d.v == 2
		})))
		wantLow, wantHigh := mean.Interval(0.05)
		if low, high := r.Earns(2, 0.05); math.Abs(low-wantLow) > 1e-9 || math.Abs(high-wantHigh) > 1e-9 {
			t.Errorf("variant 2 earns in [%v, %v], want [%v, %v]", low, high, wantLow, wantHigh)
		}
	})
	if _, _, _, ok := r.Difference(control, control, 0.05); ok {
		t.Error("the control differs from itself")
	}
}

// The difference is undefined until both variants have decisions, and a bucket that moves starts again.
func TestResultsWithoutDecisions(t *testing.T) {
	r := abtest.NewResults(2)
	b := r.Begin()
	b.Add(0, 1, 1, []float64{0.5, 0.5})
	r.Cluster(7, 0, 1, 0, []float64{0.5, 0.5})
	r.Take(b)
	if _, _, _, ok := r.Difference(1, 0, 0.05); ok {
		t.Error("a variant without decisions differs")
	}
	before, _ := abtest.Allocate(nil, []int{abtest.Buckets, 0})
	after := slices.Clone(before)
	after[7] = 1
	if r.Move(before, before); r.Clusters[7].N != 1 {
		t.Error("a bucket that stays has begun again")
	}
	if r.Move(before, after); r.Clusters[7] != (abtest.Cluster{}) {
		t.Error("a bucket that has moved goes on")
	}
}

// The formula by hand for a few units: their order matters only for the maximum.
func TestRatioByHand(t *testing.T) {
	p := []float64{0.5, 0.3, 0.2}
	lgamma := func(x float64) float64 { v, _ := math.Lgamma(x); return v }
	n := []float64{4, 0, 7}
	want := lgamma(100) - lgamma(111)
	for i := range n {
		want += lgamma(100*p[i]+n[i]) - lgamma(100*p[i]) - n[i]*math.Log(p[i])
	}
	for _, order := range [][]int{{0, 2}, {2, 0}} {
		var r abtest.Ratio
		r.Begin(3)
		most := 0.0
		for _, i := range order {
			for range int(n[i]) {
				r.Add(i, p[i])
				most = max(most, r.Log)
			}
		}
		if math.Abs(r.Log-want) > 1e-9 || math.Abs(r.P()-math.Exp(-most)) > 1e-9 {
			t.Errorf("the evidence is %v and p is %v, want %v and %v", r.Log, r.P(), want, math.Exp(-most))
		}
	}
}

// The test errs as rarely as promised, at all times, even if the shares change; and it detects 48% instead of 50%.
func TestRatio(t *testing.T) {
	play := func(seed uint64, share, truth float64) (p float64) {
		rng := rand.New(rand.NewPCG(seed, 9))
		var r abtest.Ratio
		r.Begin(2)
		for i := range 20_000 {
			if i == 5000 {
				share, truth = share/2, truth/2
				r.Begin(2)
			}
			if rng.Float64() < truth {
				r.Add(0, share)
			} else {
				r.Add(1, 1-share)
			}
		}
		return r.P()
	}
	const alpha, runs = 0.05, 200
	wrong, seen := 0, 0
	for seed := range uint64(runs) {
		if play(seed, 0.5, 0.5) < alpha {
			wrong++
		}
		if seed < 20 && play(seed, 0.5, 0.47) < 0.001 {
			seen++
		}
	}
	if most := alpha*runs + 3*math.Sqrt(alpha*(1-alpha)*runs); float64(wrong) > most {
		t.Errorf("%d of %d right divisions are refused, at most %.0f may be", wrong, runs, most)
	}
	if seen < 19 {
		t.Errorf("%d of 20 wrong divisions are seen", seen)
	}
}
