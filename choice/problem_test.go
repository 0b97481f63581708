package choice

import (
	"context"

	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/optimize"
)

// minimization returns the negative log-likelihood of a specification on data, with its penalty if it
// has one, its gradient and its Hessian, for the methods of gonum's package optimize. names are
// those of the parameters. The Hessian of a model with a network is the expected information. The
// functions use one goroutine for each processor, and may be called from several.
func minimization(spec *Spec, d *Data) (p optimize.Problem, names []string, err error) {
	_, l, err := begin(spec, d)
	if err != nil {
		return optimize.Problem{}, nil, err
	}
	o := newObjective(l, d, 0)
	at := func(x []float64, want order) *sums {
		s, err := o.at(context.Background(), x, want)
		if err != nil {
			panic(err) // the context does not end
		}
		return s
	}
	return optimize.Problem{
		Func: func(x []float64) float64 { return at(x, zeroth).value },
		Grad: func(grad, x []float64) { copy(grad, at(x, first).gradient) },
		Hess: func(hess *mat.SymDense, x []float64) { hess.CopySym(symmetric(at(x, second).hessian, o.dim)) },
	}, l.names(), nil
}
