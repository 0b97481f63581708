package utility

// NewRadial returns the family of a linear utility plus bumps: sigmoids whose level
// sets are spheres, or planes if ‖x‖² has coefficient 0:
//
//	f_w(x) = aᵀx + b + Σ_k γ_k (2 sigmoid(θ_kᵀ(‖x‖², x, 1)) − 1)
//
// Its prior has θ ~ N(0, 1) and γ ~ N(0, 1/m), for m units. It panics if d or
// the number of units is below 1.
func NewRadial(d, units int) *Additive { return newAdditive(d, units, radialUnit{}) }

type radialUnit struct{ sigmoidUnit }

func (radialUnit) name() string { return "radial" }

func (radialUnit) inputs(d int) (first, count int) { return 0, d + 2 }
