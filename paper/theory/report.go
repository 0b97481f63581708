package theory

import (
	"errors"

	"vitrine/paper/experiments"
	"vitrine/paper/study"
)

// Report holds a study's results. Shares are over rounds, or over rounds and items, averaged over the seeds.
type Report struct {
	Study     Study      `json:"study"`
	Coverage  []Coverage `json:"coverage"`
	Path      []Path     `json:"path"`
	Constants []World    `json:"constants"`
	Growth    []Growth   `json:"growth"`
	Slopes    []Exponent `json:"slopes"`
	Schedule  []Asked    `json:"schedule"`
}

// Coverage summarises the witnesses for one β_T; see [Witness].
type Coverage struct {
	Beta       float64 `json:"beta"`
	Covered    float64 `json:"covered"`
	Always     float64 `json:"always"` // share of seeds
	Needed     float64 `json:"needed"` // median over the seeds, as are the next two
	Pilot      float64 `json:"pilot"`
	Final      float64 `json:"final"`
	Optimistic float64 `json:"optimistic"`
	Best       float64 `json:"optimistic_best"`
	Revenue    float64 `json:"revenue"`
	Potential  float64 `json:"potential"`
	Bound      float64 `json:"potential_bound"`
	Trace      float64 `json:"trace"`
	Gradient   float64 `json:"gradient"`
	Kappa      float64 `json:"kappa"` // median
	Regret     float64 `json:"regret"`
	SE         float64 `json:"se"`
}

// Path is a round of the witnesses for one β_T: the median and the 10% and 90% points of ‖ŵ_t − w̃*‖²_{V_t}, β_t, and
// the mean potential with its bound.
type Path struct {
	Beta      float64 `json:"beta"`
	Round     int     `json:"round"`
	Radius    float64 `json:"radius"` // β_t
	Low       float64 `json:"low"`
	Distance  float64 `json:"distance"`
	High      float64 `json:"high"`
	Potential float64 `json:"potential"`
	Bound     float64 `json:"bound"`
}

// World holds the constants for a seed's world.
type World struct {
	Seed uint64  `json:"seed"`
	Norm float64 `json:"norm"` // ‖w*‖
	Constants
	KappaData float64 `json:"kappa_data"` // the learner's, over the sets that it offered
	KappaUnit float64 `json:"kappa_unit"` // over all networks with ‖w‖ ≤ 1 and all items
	KappaNorm float64 `json:"kappa_norm"` // over all networks with ‖w‖ ≤ ‖w*‖ and all items
}

// The parts of a growth. Regret is over all rounds, or over the rounds after t_0: the theorem's t_0 grows as d_w √T,
// and so does the regret in Phase I, regardless of the learning there. Only Phase II shows the effect of the bonus and
// the estimate.
const (
	Total        = "total"
	Phase2       = "phase II"
	Kappa        = "kappa"         // κ from the data
	KappaBall    = "kappa, ball"   // over all networks with ‖w‖ ≤ 1 and all items
	Distance     = "distance"      // ‖ŵ_0 − w̃*‖²
	UtilityError = "utility error" // mean of (f_ŵ0 − f_w*)² over items
)

// Growth is a part's mean over seeds (most parts are regrets) at a value along an axis.
type Growth struct {
	Along  string  `json:"along"`
	Policy string  `json:"policy"`
	Part   string  `json:"part"`
	Value  int     `json:"value"`
	Mean   float64 `json:"mean"`
	SE     float64 `json:"se"`
}

// Exponent is a growth's slope.
type Exponent struct {
	Along  string `json:"along"`
	Policy string `json:"policy"`
	Part   string `json:"part"`
	Slope
}

// Asked is the schedule that the theorem requires with the constants, or the configured one, with its regret if it was
// played.
type Asked struct {
	Constants string  `json:"constants"`
	Rounds    int     `json:"rounds"`
	Params    int     `json:"params"`
	Kappa     float64 `json:"kappa"`
	Mu        float64 `json:"mu"`
	Cf        float64 `json:"c_f"`
	Cg        float64 `json:"c_g"`
	Ch        float64 `json:"c_h"`
	Warmup    float64 `json:"warmup"`
	Lambda    float64 `json:"lambda"`
	Beta      float64 `json:"beta"`
	MinRounds float64 `json:"min_rounds"`
	Regret    float64 `json:"regret"`
	SE        float64 `json:"se"`
}

// Title is the report's title.
const Title = "Theory against experience: coverage, optimism, constants, growth"

// Mark is the file that marks a report's directory.
const Mark = "coverage.csv"

// Write makes dir and writes run.json with the whole report, and its tables as CSV.
func (r *Report) Write(dir string) error {
	return study.Write(dir, r,
		study.File{Name: Mark, Content: study.Encode(r.Coverage)},
		study.File{Name: "path.csv", Content: study.Encode(r.Path)},
		study.File{Name: "constants.csv", Content: study.Encode(r.Constants)},
		study.File{Name: "growth.csv", Content: study.Encode(r.Growth)},
		study.File{Name: "slopes.csv", Content: study.Encode(r.Slopes)},
		study.File{Name: "schedule.csv", Content: study.Encode(r.Schedule)})
}

// Read reads the files that Write wrote. Errors name the file.
func Read(dir string) (*Report, error) {
	r := &Report{}
	err := study.Read(dir, experiments.Theory, r, func() error {
		if len(r.Coverage) == 0 || len(r.Path) == 0 || len(r.Growth) == 0 {
			return errors.New("a table is missing")
		}
		return study.Drawable(r.drawn()...)
	})
	if err != nil {
		return nil, err
	}
	return r, nil
}

// drawn returns the numbers that a picture draws.
func (r *Report) drawn() (all []float64) {
	for _, c := range r.Coverage {
		all = append(all, c.Beta, c.Covered, c.Always, c.Optimistic, c.Best, c.Revenue)
	}
	for _, p := range r.Path {
		all = append(all, p.Beta, p.Radius, p.Low, p.Distance, p.High, p.Potential, p.Bound)
	}
	for _, g := range r.Growth {
		all = append(all, g.Mean, g.SE)
	}
	return all
}
