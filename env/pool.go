package env

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"

	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat/sampleuv"

	"vitrine/utility"
)

// Pool is a set of real items, with a utility fitted to real choices, for a semi-synthetic world. As [Contexts] it
// draws N distinct items.
type Pool struct {
	Features *mat.Dense    // M×d
	Model    utility.Model // of d features
	Params   []float64     // d_w
	// Sets optionally lists the choices used for the fit: their alternatives, as rows of Features.
	Sets [][]int32
}

// Draw implements [Contexts]: the rows of x are distinct rows of the pool, drawn uniformly. It panics if x has more
// rows than the pool or a different number of features.
func (p *Pool) Draw(x *mat.Dense, rng *rand.Rand) {
	n, _ := x.Dims()
	m, _ := p.Features.Dims()
	items := make([]int, n)
	sampleuv.WithoutReplacement(items, m, rng)
	for k, i := range items {
		x.SetRow(k, p.Features.RawRowView(i))
	}
}

// Truth returns the fitted utility f_w.
func (p *Pool) Truth() *Family { return &Family{model: p.Model, w: p.Params} }

// Checksum identifies the pool by 16 hexadecimal digits of the SHA-256 of the features, the parameters and the sets.
func (p *Pool) Checksum() string {
	h := sha256.New()
	var b [8]byte
	write := func(v float64) {
		binary.LittleEndian.PutUint64(b[:], math.Float64bits(v))
		h.Write(b[:])
	}
	m, _ := p.Features.Dims()
	for i := range m {
		for _, v := range p.Features.RawRowView(i) {
			write(v)
		}
	}
	for _, v := range p.Params {
		write(v)
	}
	for _, set := range p.Sets {
		write(float64(len(set)))
		for _, i := range set {
			write(float64(i))
		}
	}
	return fmt.Sprintf("%x", h.Sum(nil)[:8])
}

// Probability turns the utilities f_i of another truth into probabilities and uses these as utilities,
//
//	u_i = 1 / (1 + exp(−f_i))
//
// These utilities lie in (0, 1), so no assortment sells with certainty.
type Probability struct{ Truth }

// Utilities implements [Truth].
func (p Probability) Utilities(dst []float64, x *mat.Dense) {
	p.Truth.Utilities(dst, x)
	for i, f := range dst {
		dst[i] = 1 / (1 + math.Exp(-f))
	}
}
