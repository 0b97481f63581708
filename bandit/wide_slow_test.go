//go:build slow

package bandit

import (
	"testing"

	"gonum.org/v1/gonum/stat"
)

// On 20 worlds wide earns 0.962 of the optimum, as with BMA-MNL of version 4 within: 0.961.
func TestWideLearnsIDsInManyWorlds(t *testing.T) {
	var shares []float64
	for seed := range uint64(20) {
		w := newIDs(101 + seed)
		l := must(NewAuto(w.problem(), AutoOptions{}, newRand()))
		shares = append(shares, w.play(t, l, 0, 700))
	}
	mean, sd := stat.MeanStdDev(shares, nil)
	t.Logf("earns %.4f ± %.4f of the optimum", mean, stat.StdErr(sd, 20))
	if mean < 0.95 {
		t.Errorf("earns %.4f of the optimum", mean)
	}
}
