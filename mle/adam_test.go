package mle_test

import (
	"errors"
	"math"
	"testing"

	"vitrine/mle"
)

// quadratic is ½ Σ_j c_j w_j².
type quadratic []float64

func (q quadratic) Dim() int { return len(q) }

func (q quadratic) Gradient(dst, w []float64) float64 {
	v := 0.0
	for j, c := range q {
		dst[j] = c * w[j]
		v += c * w[j] * w[j] / 2
	}
	return v
}

func TestAdam(t *testing.T) {
	// By hand: for any gradient the first step is α in each coordinate, since m/(1−β_1) = ∇ and v/(1−β_2) = ∇².
	w := []float64{3, -2, 0}
	if r, err := (mle.Adam{Rate: 0.1, Steps: 1}).Minimize(quadratic{1, 100, 1}, w); err != nil ||
		r.Steps != 1 || r.Converged || r.Value != (quadratic{1, 100, 1}).Gradient(make([]float64, 3), w) {
		t.Errorf("after one step: %+v, error %v", r, err)
	}
	nearAll(t, "w after one step", w, []float64{2.9, -1.9, 0}, 1e-7)

	// The iterates of PyTorch's torch.optim.Adam([w], lr=0.1) from (1, −2) on (w_1² + 10 w_2²)/2, in float64.
	for k, want := range [][]float64{
		{0.900000001, -1.90000000005},
		{0.8004122297123382, -1.8001664857113877},
		{0.701586274504415, -1.7006233914339461},
		{0.603939062682108, -1.6015048944653312},
		{0.507963661927221, -1.502955780256633},
	} {
		w := []float64{1, -2}
		mle.Adam{Rate: 0.1, Steps: k + 1}.Minimize(quadratic{1, 10}, w)
		nearAll(t, "PyTorch's w", w, want, 1e-14)
	}
	w = []float64{1, 1}
	mle.Adam{Rate: 0.01, Steps: 5000}.Minimize(quadratic{1, 10}, w)
	nearAll(t, "the minimiser", w, []float64{0, 0}, 1e-6)
}

// The gradient of burst is w − 3 up to w = 1, and not a number beyond.
type burst struct{}

func (burst) Dim() int { return 1 }

func (burst) Gradient(dst, w []float64) float64 {
	if dst[0] = w[0] - 3; w[0] > 1 {
		dst[0] = math.NaN()
	}
	return 0
}

// Adam stops at the last point with a finite gradient.
func TestAdamStopsBeforeWhatIsNotFinite(t *testing.T) {
	for _, steps := range []int{9, 10, 11, 100} {
		w := []float64{0}
		r, err := mle.Adam{Rate: 0.11, Steps: steps}.Minimize(burst{}, w)
		if err != nil || r.Steps != 9 {
			t.Errorf("%+v, error %v", r, err)
		}
		if !(w[0] > 0.9 && w[0] <= 1) {
			t.Errorf("after %d steps: w = %v, want the last one up to 1", steps, w)
		}
	}
}

func TestAdamRefusesAStartThatIsNotFinite(t *testing.T) {
	w := []float64{2}
	if _, err := (mle.Adam{Rate: 1, Steps: 3}).Minimize(burst{}, w); !errors.Is(err, mle.ErrNotFinite) || w[0] != 2 {
		t.Errorf("w = %v, error %v", w, err)
	}
}
