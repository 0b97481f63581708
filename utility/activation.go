package utility

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"vitrine/internal/kernel"
)

// Activation is the nonlinearity a of an [MLP], applied entry by entry.
type Activation int

// The activations. The derivative of ReLU at 0 is taken to be 0.
const (
	Sigmoid  Activation = iota // 1/(1 + exp(-z)), the paper's
	Tanh                       // tanh(z)
	ReLU                       // max(0, z)
	Softplus                   // log(1 + exp(z))
	Sine                       // sin(z)
)

var activations = []string{"sigmoid", "tanh", "relu", "softplus", "sine"}

// String returns the activation's name: sigmoid, tanh, relu, softplus or sine.
func (a Activation) String() string {
	if a < 0 || int(a) >= len(activations) {
		return fmt.Sprintf("Activation(%d)", int(a))
	}
	return activations[a]
}

// ParseActivation returns the activation with the given name. For an unknown name, the error lists the valid ones.
func ParseActivation(name string) (Activation, error) {
	i := slices.Index(activations, name)
	if i < 0 {
		return 0, fmt.Errorf("unknown activation %q: want one of %s", name, strings.Join(activations, ", "))
	}
	return Activation(i), nil
}

// apply replaces z by a(z) and, unless slope is nil, stores a'(z) in slope.
func (a Activation) apply(z, slope []float64) {
	switch a {
	case Sigmoid:
		kernel.Sigmoid(z, z)
		if slope != nil {
			kernel.MulComplement(slope, z)
		}
	case Tanh:
		kernel.Tanh(z, z)
		for i := range slope {
			slope[i] = 1 - float64(z[i]*z[i])
		}
	case ReLU:
		for i := range slope {
			slope[i] = 0
			if z[i] > 0 {
				slope[i] = 1
			}
		}
		for i, v := range z {
			z[i] = max(v, 0)
		}
	case Softplus:
		if slope != nil {
			kernel.Sigmoid(slope, z)
		}
		kernel.Softplus(z, z)
	case Sine:
		for i := range slope {
			slope[i] = math.Cos(z[i])
		}
		for i, v := range z {
			z[i] = math.Sin(v)
		}
	}
}
