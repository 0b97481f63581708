package choice

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"gonum.org/v1/gonum/mat"

	"vitrine/internal/kernel"
	"vitrine/internal/scratch"
)

// Options configure [Fit]. The zero value is a sensible default.
type Options struct {
	Errors    string     // covariance: "classic" (""), "robust" or "clustered"
	Steps     int        // maximum number of steps; 0 means 100
	Tolerance float64    // decrement at which it stops, times the mean weight if that is below 1; 0 means 1e-10
	Workers   int        // number of goroutines; 0 means one per processor. The result does not depend on it
	Watch     func(Step) // called before each step, unless nil
}

// IdentificationError reports that the data do not determine some coefficients: a combination of them can change
// without changing any choice probability.
type IdentificationError struct {
	Coefficients []string

	flat bool // whether the likelihood is flat at its maximum, although MNL's is not
}

func (e *IdentificationError) Error() string {
	const vary = "does not vary among the alternatives of any choice, or by less than a millionth of its size " +
		"(then subtract its mean)"
	if e.flat {
		return fmt.Sprintf("the data do not determine %s: the likelihood hardly changes along some combination of "+
			"them: fit a simpler model, or leave out variables that predict choices perfectly", strings.Join(e.Coefficients, ", "))
	}
	if len(e.Coefficients) == 1 {
		return fmt.Sprintf("the data do not determine the coefficient %s: its variable %s", e.Coefficients[0], vary)
	}
	return fmt.Sprintf("the data do not determine the coefficients %s: some combination of their variables "+
		"does not vary among the alternatives of any choice, or hardly", strings.Join(e.Coefficients, ", "))
}

// Fit estimates a specification by maximum likelihood. The error is an [IdentificationError] if the data do not
// determine the coefficients, and ctx's error if ctx ends. A log-likelihood that is not finite is an error too.
// Variables that predict choices perfectly are an error, unless the model is a multinomial logit, or they do so only
// in a class of a latent class model, within a nest, or with random coefficients. If the fit does not converge, Fit
// returns a Result that says so, without an error.
func Fit(ctx context.Context, spec *Spec, d *Data, o Options) (*Result, error) {
	o, err := o.resolve(spec, d)
	if err != nil {
		return nil, err
	}
	r, l, err := begin(ctx, spec, d)
	if err != nil {
		return nil, err
	}
	if r.Errors = o.Errors; o.Errors == "clustered" {
		r.Clusters = d.clusters()
	}
	if r.Offered, r.Chosen = frequencies(d); slices.Max(r.Chosen) == 0 {
		return nil, errors.New("every choice has the weight 0: check data.weight")
	} else if d.Outside && slices.Max(r.Chosen[:len(d.Alternatives)]) == 0 {
		return nil, errors.New("every choice takes the outside option: check data.chosen")
	}
	m := &minimiser{steps: o.Steps, tolerance: o.Tolerance, watch: o.Watch}
	start, err := m.start(ctx, r, l, d, o.Workers)
	if err != nil {
		return nil, err
	}
	objective := newObjective(l, d, o.Workers)
	best, err := m.newton(ctx, objective, start)
	if err != nil {
		return nil, err
	}
	if l, ok := l.(*mixed); ok {
		if best, err = m.mirrored(ctx, objective, l, best); err != nil {
			return nil, err
		}
		r.Mirrored = l.upright(best)
	}
	if math.IsNaN(best.value) || math.IsInf(best.value, 0) {
		return nil, fmt.Errorf("the log-likelihood is %v after %d steps: some choice has a probability of 0; "+
			"check the data for values out of scale, or try another model", -best.value, m.taken)
	}
	if _, concave := l.(mnl); concave {
		if flat := flatDirections(best.origin.hessian, best.origin.moment); len(flat) > 0 {
			return nil, &IdentificationError{Coefficients: involved(r.Names, flat, best.origin.moment)}
		}
		r.Separated = involved(r.Names, unboundedDirections(best), best.origin.moment)
	} else if err := r.diagnose(ctx, m, objective, best); err != nil {
		return nil, err
	}
	r.Coefficients, r.LogLikelihood = best.theta, -best.value
	if p, ok := l.(penalised); ok {
		r.LogLikelihood += p.penalty(nil, best.theta)
	}
	r.Steps, r.Decrement, r.Converged = m.taken, best.decrement, best.converged && r.Separated == nil
	if r.Covariance, err = covariance(ctx, objective, best, d, o.Errors); err != nil {
		return nil, err
	}
	r.hideSeparated()
	r.Null, r.Checksums, r.Columns = null(d), newChecksums(spec, d), d.columns
	r.ConstantsOnly, err = constantsOnly(ctx, d, r.Offered, r.Chosen, o.Workers)
	return r, err
}

// diagnose finds the coefficients that a model other than MNL does not determine, although MNL does.
func (r *Result) diagnose(ctx context.Context, m *minimiser, o *objective, best *minimum) (err error) {
	if m.alike.hessian != nil {
		best.origin = m.alike
		r.Separated = involved(r.Names, unboundedDirections(best), best.origin.moment)
	}
	if l, ok := o.likelihood.(*nested); ok {
		r.Separated = l.atBounds(best.theta)
	} else if r.Separated == nil {
		if r.Separated, err = endless(ctx, o, best); err != nil {
			return err
		}
	}
	if l, ok := o.likelihood.(*mixed); ok && r.Separated == nil {
		if r.Separated, err = l.vanished(ctx, o, best); err != nil {
			return err
		}
	}
	if flat := flatDirections(best.hessian, best.moment); best.converged && r.Separated == nil && len(flat) > 0 {
		return &IdentificationError{Coefficients: involved(r.Names, flat, best.moment), flat: true}
	}
	if _, ok := inverse(best.hessian); !ok {
		best.converged = false // not a maximum
	}
	return nil
}

// endless returns the large coefficients, if all of them can grow a thousandfold without lowering the log-likelihood. A
// coefficient is large if it gives the utilities a standard deviation of 100: choices are then all but certain.
func endless(ctx context.Context, o *objective, best *minimum) (names []string, err error) {
	const large, fold, rounding = 100, 1000, 1e-6
	theta := slices.Clone(best.theta)
	for j, name := range o.names() {
		if math.Abs(theta[j])*math.Sqrt(best.origin.moment[j]/best.origin.weights()) > large {
			theta[j] *= fold
			names = append(names, name)
		}
	}
	if names == nil {
		return nil, nil
	}
	s, err := o.at(ctx, theta, zeroth)
	if err != nil || !(s.value <= best.value+rounding*best.origin.weight) {
		return nil, err
	}
	return names, nil
}

// vanished returns the lognormal coefficients that are as good as 0: their logarithms can fall without lowering the
// log-likelihood.
func (l *mixed) vanished(ctx context.Context, o *objective, best *minimum) (names []string, err error) {
	const fall, rounding = 20, 1e-9
	for _, v := range l.random {
		if !v.lognormal {
			continue
		}
		theta := slices.Clone(best.theta)
		theta[v.coefficient] -= fall
		s, err := o.at(ctx, theta, zeroth)
		if err != nil {
			return nil, err
		}
		if s.value <= best.value+rounding*best.origin.weight {
			names = append(names, o.names()[v.coefficient])
		}
	}
	return names, nil
}

// hideSeparated leaves out the covariances of coefficients without a finite estimate.
func (r *Result) hideSeparated() {
	for j, name := range r.Names {
		if slices.Contains(r.Separated, name) {
			for i := range r.Names {
				r.Covariance.SetSym(i, j, nan)
			}
		}
	}
}

// resolve validates the options and fills in their defaults.
func (o Options) resolve(spec *Spec, d *Data) (Options, error) {
	switch o.Errors {
	case "", "classic", "robust":
	case "clustered":
		if d.clusters() < 2 { // the scores of one cluster sum to 0
			return o, errors.New("clustered errors need data.cluster or data.panel, with several values")
		}
	default:
		return o, fmt.Errorf("errors is %q: want classic, robust or clustered", o.Errors)
	}
	if o.Workers < 0 {
		return o, fmt.Errorf("workers is %d: want at least 0, one for each processor", o.Workers)
	}
	if o.Steps < 0 || !(o.Tolerance >= 0) {
		return o, fmt.Errorf("steps is %d and tolerance %v: want at least 0, the default", o.Steps, o.Tolerance)
	}
	o.Steps = cmp.Or(o.Steps, 100)
	if spec.Utility.Network != nil {
		o.Tolerance = cmp.Or(o.Tolerance, 1e-6)
	}
	o.Tolerance = cmp.Or(o.Tolerance, 1e-10)
	return o, nil
}

// mirrored returns the best minimum of a mixed logit: that one, or one found from its mirror image in a random
// coefficient.
func (m *minimiser) mirrored(ctx context.Context, o *objective, l *mixed, best *minimum) (*minimum, error) {
	for k := range l.random {
		other, err := m.newton(ctx, o, l.mirror(best.theta, k))
		if err != nil {
			return nil, err
		}
		if other.converged && (other.value < best.value || !best.converged) {
			best = other
		}
	}
	return best, nil
}

// begin validates a specification, and returns the likelihood and a Result without an estimate.
func begin(ctx context.Context, spec *Spec, d *Data) (*Result, likelihood, error) {
	if err := spec.checkModel(); err != nil {
		return nil, nil, err
	}
	if d.Unobserved {
		return nil, nil, errors.New("the data do not say what was chosen: set data.chosen")
	}
	r := &Result{Spec: spec, Alternatives: d.Alternatives, Outside: d.Outside, Choices: d.Choices, Rows: d.Rows,
		ZeroWeight: d.zeroWeight()}
	if n := spec.Utility.Network; n != nil {
		scale, err := newScale(n.Variables, d)
		if err != nil {
			return nil, nil, err
		}
		r.Scale = scale
	}
	l, err := r.likelihoodOn(ctx, d)
	if err != nil {
		return nil, nil, err
	}
	if n, ok := l.(*nested); ok {
		if err := n.checkTogether(d); err != nil {
			return nil, nil, err
		}
	}
	r.Names = l.names()
	return r, l, nil
}

// start returns the minimiser's starting point. It is 0 for MNL, which has a concave likelihood, and is derived from
// MNL's estimate for the other models.
func (m *minimiser) start(ctx context.Context, r *Result, l likelihood, d *Data, workers int) ([]float64, error) {
	s, ok := l.(startable)
	if !ok {
		return make([]float64, len(l.names())), nil
	}
	best := &minimum{}
	if s.utility().dim() > 0 {
		var err error
		o := newObjective(mnl{design: s.utility(), outside: d.Outside}, d, workers)
		if best, err = m.newton(ctx, o, make([]float64, o.dim)); err != nil {
			return nil, err
		}
		if flat := flatDirections(best.origin.hessian, best.origin.moment); len(flat) > 0 {
			return nil, &IdentificationError{Coefficients: involved(o.names(), flat, best.origin.moment)}
		}
		// Variables that predict choices perfectly in MNL do so in every model that contains it.
		if r.Separated = involved(o.names(), unboundedDirections(best), best.origin.moment); r.Separated != nil {
			return nil, errors.New(r.Separation())
		}
	}
	v, ok := s.(several)
	if !ok {
		return s.start(best, 0), nil
	}
	climbing, starts := v.climb()
	o := newObjective(climbing, d, workers)
	var err error
	if m.alike, err = alike(ctx, o, d); err != nil {
		return nil, err
	}
	if flat := flatDirections(m.alike.hessian, m.alike.moment); len(flat) > 0 {
		return nil, fmt.Errorf("model.membership: the data do not determine %s: some combination of the variables "+
			"is the same for all decision makers: leave one of them out",
			strings.Join(involved(o.names(), flat, m.alike.moment), ", "))
	}
	var highest *minimum
	for n := range starts {
		c := &minimiser{steps: 200, tolerance: 1e-2}
		climbed, err := c.newton(ctx, o, v.start(best, n))
		if err != nil {
			return nil, err
		}
		m.taken += c.taken
		if highest == nil || climbed.value < highest.value {
			highest = climbed
		}
	}
	return highest.theta, nil
}

// alike returns the information at 0, where all classes are alike: no class has lost its decision makers, and none
// predicts a choice perfectly.
func alike(ctx context.Context, o *objective, d *Data) (curvature, error) {
	s, err := o.at(ctx, make([]float64, o.dim), second)
	if err != nil {
		return curvature{}, err
	}
	return curvature{symmetric(s.hessian, o.dim), s.moment, d.Choices, meanWeight(d.blocks)}, nil
}

// unboundedDirections returns, as rows, the directions in which the estimate goes to infinity: a combination of
// variables predicts choices perfectly (Albert and Anderson 1984), so that the information about it vanishes.
// Information is measured in choices: 1 is the information from one choice at the minimiser's starting point.
func unboundedDirections(m *minimum) [][]float64 {
	const minInformation = 1e-3
	n := len(m.theta)
	var c mat.Cholesky
	if !c.Factorize(m.origin.hessian) {
		return nil
	}
	var l, inv mat.TriDense
	c.LTo(&l)
	if err := inv.InverseTri(&l); err != nil && !isCondition(err) {
		return nil
	}
	var product, half mat.Dense
	half.Mul(&inv, m.hessian)
	product.Mul(&half, inv.T())
	relative := symOf(n, func(i, j int) float64 { return float64(m.origin.choices) * product.At(i, j) })
	var e mat.EigenSym
	if !e.Factorize(relative, true) {
		return nil
	}
	var q, v mat.Dense
	e.VectorsTo(&q)
	v.Mul(inv.T(), &q)
	var list [][]float64
	for k, information := range e.Values(nil) {
		if information < minInformation {
			list = append(list, mat.Col(nil, k, &v))
		}
	}
	return list
}

// involved returns the parameters that take part in some direction, in units that make their moments equal. A moment of
// 0 keeps its unit, as in flatDirections.
func involved(names []string, directions [][]float64, moment []float64) (list []string) {
	const part = 1e-3
	for j, name := range names {
		if slices.ContainsFunc(directions, func(v []float64) bool {
			size := func(k int) float64 { return math.Abs(v[k]) * math.Sqrt(cmp.Or(moment[k], 1)) }
			largest := 0.0
			for k := range v {
				largest = max(largest, size(k))
			}
			return size(j) > part*largest
		}) {
			list = append(list, name)
		}
	}
	return list
}

// covariance returns the covariance of the estimate,
//
//	classic    H⁻¹
//	robust     H⁻¹ (Σ_s w_s² g_s g_sᵀ) H⁻¹
//	clustered  H⁻¹ (Σ_c g_c g_cᵀ) H⁻¹,  g_c = Σ_{s in c} w_s g_s
//
// for the choices' scores g_s, without corrections for small samples. Clusters are the data's clusters or else the
// panels.
func covariance(ctx context.Context, o *objective, m *minimum, d *Data, kind string) (*mat.SymDense, error) {
	inv, ok := inverse(m.hessian)
	if !ok {
		return symOf(o.dim, func(int, int) float64 { return nan }), nil
	}
	if kind == "" || kind == "classic" {
		return inv, nil
	}
	middle, err := o.outer(ctx, m.theta, d, kind == "clustered")
	if err != nil {
		return nil, err
	}
	var half, product mat.Dense
	half.Mul(inv, middle)
	product.Mul(&half, inv)
	return symOf(o.dim, func(i, j int) float64 { return (product.At(i, j) + product.At(j, i)) / 2 }), nil
}

// clusterOf returns the cluster of each choice in a block, which is its panel in data without clusters.
func (d *Data) clusterOf(b *block) []int32 {
	if d.Clusters == 0 {
		return b.panel
	}
	return b.cluster
}

// clusters returns the number of clusters among the choices.
func (d *Data) clusters() int {
	seen := map[int32]bool{}
	for _, b := range d.blocks {
		for _, c := range d.clusterOf(b) {
			seen[c] = true
		}
	}
	return len(seen)
}

// outer returns Σ_c g_c g_cᵀ. Unless clustered, each choice is its own cluster.
func (o *objective) outer(ctx context.Context, theta []float64, d *Data, clustered bool) (*mat.SymDense, error) {
	sum := make([]float64, max(d.Clusters, d.Panels)*o.dim)
	middle := make([]float64, kernel.PackedLen(o.dim))
	w := o.worker()
	var scores []float64
	for _, b := range o.blocks {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		scores = scratch.Grow(scores, b.choices()*o.dim)
		w.scores(scores, b, theta)
		cluster := d.clusterOf(b)
		for s := range b.end {
			score := scores[s*o.dim:][:o.dim]
			if clustered {
				kernel.Axpy(sum[int(cluster[s])*o.dim:][:o.dim], b.weightOf(s), score)
			} else {
				kernel.SymRankOne(middle, b.weightOf(s)*b.weightOf(s), score)
			}
		}
	}
	for ; clustered && len(sum) > 0; sum = sum[o.dim:] {
		kernel.SymRankOne(middle, 1, sum[:o.dim])
	}
	return symmetric(middle, o.dim), nil
}
