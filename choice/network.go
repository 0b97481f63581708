package choice

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"gonum.org/v1/gonum/mat"

	"vitrine/internal/kernel"
	"vitrine/internal/scratch"
	"vitrine/utility"
)

// Network is a non-linear part of utilities, f_w(z), with the same parameters w for every alternative. z are the
// variables, standardised to mean 0 and standard deviation 1 over the rows of the fitted data.
//
// The fit maximises log-likelihood − ½ Penalty Σ_k ρ_k w_k², where ρ are the precisions of the family's prior
// ([utility.Precisions]). Without a penalty, networks have no finite estimate.
type Network struct {
	Variables  []string `toml:"variables" json:"variables"`
	Hidden     []int    `toml:"hidden" json:"hidden,omitempty"`         // widths of the hidden layers; nil means 8
	Activation string   `toml:"activation" json:"activation,omitempty"` // "tanh" (""), sigmoid, relu, softplus or sine
	Penalty    float64  `toml:"penalty" json:"penalty,omitempty"`       // 0 means 1
	Starts     int      `toml:"starts" json:"starts,omitempty"`         // number of random starts; 0 means 3
	Seed       uint64   `toml:"seed" json:"seed,omitempty"`             // seeds the starts

	// Model is the family, with len(Variables) features. nil means the multilayer perceptron given by Hidden and
	// Activation. Model files cannot hold any other family.
	Model utility.Model `toml:"-" json:"-"`
}

// Scale standardises a network's variables: z = (x − Mean)/SD.
type Scale struct {
	Mean []float64 `json:"mean"`
	SD   []float64 `json:"sd"`
}

// check returns an error that names the first invalid field.
func (n *Network) check() error {
	if len(n.Variables) == 0 {
		return fmt.Errorf(`utility.network has no variables: variables = ["cost", "time"]`)
	}
	if !(n.Penalty >= 0) || math.IsInf(n.Penalty, 1) {
		return fmt.Errorf("utility.network: penalty is %v: want a number above 0", n.Penalty)
	}
	if n.Starts < 0 {
		return fmt.Errorf("utility.network: starts is %d", n.Starts)
	}
	if n.Model != nil {
		if d := n.Model.NumFeatures(); d != len(n.Variables) {
			return fmt.Errorf("utility.network: the model has %d features for %d variables", d, len(n.Variables))
		}
		return nil
	}
	const most = 2000 // the Hessian has the square of this many entries
	params, in := 0, len(n.Variables)
	for _, h := range append(n.hidden(), 1) {
		if h < 1 || h > most {
			return fmt.Errorf("utility.network: hidden is %v: want widths from 1 to %d", n.Hidden, most)
		}
		params += h * (in + 1)
		in = h
	}
	if params > most {
		return fmt.Errorf("utility.network: hidden is %v: it makes %d parameters, and the most are %d",
			n.Hidden, params, most)
	}
	if _, err := n.activation(); err != nil {
		return fmt.Errorf("utility.network: activation: %w", err)
	}
	return nil
}

func (n *Network) starts() int { return cmp.Or(n.Starts, 3) }

func (n *Network) hidden() []int {
	if n.Hidden == nil {
		return []int{8}
	}
	return slices.Clone(n.Hidden)
}

func (n *Network) activation() (utility.Activation, error) {
	if n.Activation == "" {
		return utility.Tanh, nil
	}
	return utility.ParseActivation(n.Activation)
}

// model returns the family of a network that passed check.
func (n *Network) model() utility.Model {
	if n.Model != nil {
		return n.Model
	}
	a, _ := n.activation()
	return utility.NewMLP(len(n.Variables), n.hidden(), a)
}

func (n *Network) variables() []string {
	if n == nil {
		return nil
	}
	return n.Variables
}

func (n *Network) numParams() int {
	if n == nil {
		return 0
	}
	return n.model().NumParams()
}

// neural is the multinomial logit with a network in its utilities,
//
//	V_i = Σ_j β_j x_ij + f_w(z_i),   θ = (β, w)
//
// Its negative log-likelihood is not convex. In place of the Hessian, the minimiser uses the expected information:
// [mnl]'s Hessian for the variables ∇_θ V_i, which is positive definite together with the penalty.
type neural struct {
	mnl
	starting  Network
	precision []float64 // weight of the penalty for each parameter in w
}

// fitted is a network resolved against data.
type fitted struct {
	model     utility.Model
	variables []int // indices in the data
	Scale
}

// newScale returns the variables' means and standard deviations over the rows of data, with 1 in place of a standard
// deviation of 0.
func newScale(variables []string, d *Data) (*Scale, error) {
	list, err := d.indices("utility.network", variables)
	if err != nil {
		return nil, err
	}
	s := &Scale{}
	for _, v := range list {
		mean, square := 0.0, 0.0
		for _, b := range d.blocks {
			mean += kernel.Sum(b.x[v])
		}
		mean /= float64(d.Rows)
		for _, b := range d.blocks {
			for _, x := range b.x[v] {
				square += (x - mean) * (x - mean)
			}
		}
		sd := cmp.Or(math.Sqrt(square/float64(d.Rows)), 1)
		s.Mean, s.SD = append(s.Mean, mean), append(s.SD, sd)
	}
	return s, nil
}

// newNeural resolves the network against data.
func newNeural(linear mnl, n *Network, s *Scale, d *Data) (neural, error) {
	variables, err := d.indices("utility.network", n.Variables)
	if err != nil {
		return neural{}, err
	}
	net := &fitted{model: n.model(), variables: variables}
	if s != nil {
		net.Scale = *s
	}
	l := neural{mnl: linear, starting: *n, precision: make([]float64, net.model.NumParams())}
	l.network = net
	l.more = len(l.precision)
	utility.Precisions(net.model, l.precision)
	if n.Penalty > 0 {
		for k := range l.precision {
			l.precision[k] *= n.Penalty
		}
	}
	return l, nil
}

func (l neural) names() []string {
	names := slices.Clone(l.design.names)
	for k := range l.precision {
		names = append(names, fmt.Sprintf("network[%d]", k+1))
	}
	return names
}

// start implements startable: MNL's estimate without the network, and random weights.
func (l neural) start(linear *minimum, n int) []float64 {
	w := make([]float64, len(l.precision))
	l.network.model.Init(w, rand.New(rand.NewPCG(l.starting.Seed, uint64(n))))
	return append(slices.Clone(linear.theta), w...)
}

// climb implements several.
func (l neural) climb() (likelihood, int) {
	return l, l.starting.starts()
}

// penalty returns ½ Σ ρ w². Unless s is nil, it adds the penalty and its derivatives to s.
func (l neural) penalty(s *sums, theta []float64) float64 {
	at, dim, sum := l.dim(), len(theta), 0.0
	for k, rho := range l.precision {
		w := theta[at+k]
		sum += rho * w * w / 2
		if s != nil && s.gradient != nil {
			s.gradient[at+k] += rho * w
		}
		if s != nil && s.hessian != nil {
			s.hessian[packedAt(at+k, at+k, dim)] += rho
			s.moment[at+k] += rho
		}
	}
	if s != nil {
		s.value += sum
	}
	return sum
}

// networkScratch is a worker's memory for a network.
type networkScratch struct {
	z, gradients mat.Dense
	u            []float64
}

// add adds f_w to the utilities in a block's rows. Unless x is nil, it stores the gradients in the rows of x from index
// from on.
func (n *fitted) add(u []float64, x *matrix, from int, b *block, w []float64, s *networkScratch) {
	rows := b.rows()
	s.z.Reset()
	s.z.ReuseAs(rows, len(n.variables))
	for k, v := range n.variables {
		for i, value := range b.x[v] {
			s.z.Set(i, k, (value-n.Mean[k])/n.SD[k])
		}
	}
	s.u = scratch.Grow(s.u, rows)
	if x == nil {
		n.model.Utilities(s.u, w, &s.z)
		kernel.Axpy(u, 1, s.u)
		return
	}
	s.gradients.Reset()
	s.gradients.ReuseAs(rows, len(w))
	utility.Linearize(n.model, s.u, &s.gradients, w, &s.z)
	kernel.Axpy(u, 1, s.u)
	for k := range w {
		column := x.own(from + k)
		for i := range column {
			column[i] = s.gradients.At(i, k)
		}
	}
}

// check returns an error unless s, which was read from a file, fits the network.
func (s *Scale) check(n *Network) error {
	if n == nil && s == nil {
		return nil
	}
	if n == nil || s == nil || len(s.Mean) != len(n.Variables) || len(s.SD) != len(n.Variables) ||
		slices.ContainsFunc(s.SD, func(v float64) bool { return !(v > 0) }) {
		return fmt.Errorf("network_scale does not have a mean and a positive standard deviation for each variable " +
			"of the network")
	}
	return nil
}
