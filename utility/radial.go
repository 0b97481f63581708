package utility

// NewRadial returns the family of linear utilities plus bumps. A bump is a sigmoid with spheres as level sets, or
// planes if ‖x‖² has coefficient 0:
//
//	f_w(x) = aᵀx + b + Σ_k γ_k (2 sigmoid(θ_kᵀ(‖x‖², x, 1)) − 1)
//
// The prior is θ ~ N(0, 1) and γ ~ N(0, 1/m), for m units. NewRadial panics if d or units is below 1.
func NewRadial(d, units int) *Additive { return newAdditive(d, units, radialUnit{}) }

type radialUnit struct{ sigmoidUnit }

func (radialUnit) name() string { return "radial" }

func (radialUnit) inputs(d int) (first, count int) { return 0, d + 2 }
