package vitrine

import (
	"math/rand/v2"

	"vitrine/internal/portable"
)

// LogSumExp1 returns log(1 + Σ_i exp(u_i)), the log of the MNL denominator, without overflow or underflow:
//
//	m + log(exp(-m) + Σ_i exp(u_i - m)),  m = max(0, max_i u_i)
//
// It returns 0 for an empty u.
func LogSumExp1(u []float64) float64 {
	m := 0.0
	for _, v := range u {
		m = max(m, v)
	}
	sum := 0.0
	for _, v := range u {
		sum += portable.Exp(v - m)
	}
	if m == 0 {
		return portable.Log1p(sum)
	}
	return m + portable.Log(portable.Exp(-m)+sum)
}

// Probabilities stores in dst the MNL choice probabilities of an assortment of items with utilities u:
//
//	dst[0] = 1        / (1 + Σ_j exp(u_j))   the outside option
//	dst[k] = exp(u_k) / (1 + Σ_j exp(u_j))   the k-th item, k = 1, …, len(u)
//
// It panics unless len(dst) = len(u) + 1.
func Probabilities(dst, u []float64) {
	if len(dst) != len(u)+1 {
		panic("vitrine: Probabilities needs len(dst) = len(u) + 1")
	}
	m := 0.0
	for _, v := range u {
		m = max(m, v)
	}
	dst[0] = portable.Exp(-m)
	sum := dst[0]
	for k, v := range u {
		e := portable.Exp(v - m)
		dst[k+1] = e
		sum += e
	}
	for k := range dst {
		dst[k] /= sum
	}
}

// ExpectedRevenue returns the expected revenue of offering s to a customer with utilities u. u and r contain one entry
// for each of the N items; a nil r means revenues of 1:
//
//	R(S) = Σ_{i∈S} p(i | S) r_i = Σ_{i∈S} exp(u_i) r_i / (1 + Σ_{j∈S} exp(u_j))
//
// The empty assortment earns 0.
func ExpectedRevenue(s Assortment, u, r []float64) float64 {
	m := 0.0
	for _, i := range s {
		m = max(m, u[i])
	}
	num, sum := 0.0, portable.Exp(-m)
	for _, i := range s {
		e := portable.Exp(u[i] - m)
		sum += e
		num += float64(e * RevenueOf(r, i))
	}
	return num / sum
}

// RevenueOf returns the revenue of item i, which is 1 if r is nil.
func RevenueOf(r []float64, i int) float64 {
	if r == nil {
		return 1
	}
	return r[i]
}

// PlaceEffect returns how much a place in a display, such as a line of a list, adds to the utility of the item shown
// there. Places count from 0, and place p adds γ_p. Places beyond the end of γ use its last entry. If γ is empty, every
// place adds 0.
func PlaceEffect(gamma []float64, place int) float64 {
	if len(gamma) == 0 {
		return 0
	}
	return gamma[min(place, len(gamma)-1)]
}

// OrderedRevenue is [ExpectedRevenue] for a display with place effects. order lists the shown items from the first
// place on; the item in place p is worth u_i + γ_p to the customer (see [PlaceEffect]).
func OrderedRevenue(order []int, u, gamma, r []float64) float64 {
	shown, placed := make(Assortment, len(order)), make([]float64, len(order))
	var earned []float64
	if r != nil {
		earned = make([]float64, len(order))
	}
	for p, i := range order {
		shown[p], placed[p] = p, u[i]+PlaceEffect(gamma, p)
		if r != nil {
			earned[p] = r[i]
		}
	}
	return ExpectedRevenue(shown, placed, earned)
}

// DrawShocks fills dst with independent standard Gumbel shocks, computed as −log E for exponential E.
func DrawShocks(dst []float64, rng *rand.Rand) {
	for i := range dst {
		dst[i] = -portable.Log(rng.ExpFloat64())
	}
}

// Choose returns the choice from s of a customer with random utilities (McFadden 1974). With independent standard
// Gumbel shocks ([DrawShocks]), shock[0] for the outside option and shock[i+1] for item i, the choice
//
//	argmax over {0}∪S of shock[0] and u_i + shock[i+1], i ∈ S
//
// follows the MNL probabilities. Each shock belongs to an item rather than to a position in s, so several policies can
// be compared on the same customer. Choose panics unless len(shock) = len(u) + 1.
func Choose(s Assortment, u, shock []float64) Choice {
	if len(shock) != len(u)+1 {
		panic("vitrine: Choose needs len(shock) = len(u) + 1")
	}
	choice, best := Outside, shock[0]
	for k, i := range s {
		if v := u[i] + shock[i+1]; v > best {
			choice, best = Choice(k+1), v
		}
	}
	return choice
}
