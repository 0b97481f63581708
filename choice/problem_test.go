package choice

import (
	"context"

	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/optimize"
)

// minimization returns a specification's negative log-likelihood on data, including any penalty, with gradient and
// Hessian, for the methods in gonum's package optimize, and the parameters' names. For a model with a network, the
// Hessian is the expected information. The functions use one goroutine per processor, and are safe for concurrent use.
func minimization(spec *Spec, d *Data) (p optimize.Problem, names []string, err error) {
	_, l, err := begin(context.Background(), spec, d)
	if err != nil {
		return optimize.Problem{}, nil, err
	}
	o := newObjective(l, d, 0)
	at := func(x []float64, want order) *sums {
		s, err := o.at(context.Background(), x, want)
		if err != nil {
			panic(err) // the context never ends
		}
		return s
	}
	return optimize.Problem{
		Func: func(x []float64) float64 { return at(x, zeroth).value },
		Grad: func(grad, x []float64) { copy(grad, at(x, first).gradient) },
		Hess: func(hess *mat.SymDense, x []float64) { hess.CopySym(symmetric(at(x, second).hessian, o.dim)) },
	}, l.names(), nil
}
