package learner

import (
	"vitrine"
	"vitrine/bandit"
	"vitrine/service/api"
	"vitrine/service/feature"
)

const maxFamilyPoints = 128

// note notes a policy's weights after some rounds.
func (f *families) note(pi vitrine.Policy, learned uint64) {
	a, ok := pi.(interface{ Families() []bandit.Weight })
	if !ok {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if n := len(f.points); n > 0 && learned < f.points[n-1].learned { // after a roll back
		f.next = learned
	}
	if learned < f.next {
		return
	}
	if f.stride = max(f.stride, 1); len(f.points) == maxFamilyPoints {
		for i := range maxFamilyPoints / 2 {
			f.points[i] = f.points[2*i]
		}
		f.points, f.stride = f.points[:maxFamilyPoints/2], 2*f.stride
	}
	f.points = append(f.points, familyPoint{learned, a.Families()})
	f.next = learned + f.stride
}

// Families returns the history of the weights of the utility families, or nil if the policy averages none.
func (l *Learner) Families() (list []api.FamilyHistory) {
	f := &l.families
	f.mu.Lock()
	defer f.mu.Unlock()
	at := map[string]int{}
	for _, p := range f.points {
		for _, w := range p.weights {
			i, ok := at[w.Family]
			if !ok {
				i = len(list)
				at[w.Family] = i
				list = append(list, api.FamilyHistory{Family: w.Family})
			}
			list[i].Points = append(list[i].Points, api.FamilyPoint{Learned: p.learned, Weight: w.Weight})
		}
	}
	return list
}

// Outliers returns the values that a policy's learner left out, or nil.
func Outliers(pi vitrine.Policy, schema *feature.Schema) *api.Outliers {
	p, ok := pi.(interface{ Outliers() bandit.Outliers })
	if !ok {
		return nil
	}
	o := p.Outliers()
	if o.Values == 0 {
		return nil
	}
	return &api.Outliers{Values: uint64(o.Values), Feature: schema.At(o.Column), Since: uint64(o.Since),
		Rounds: uint64(o.Rounds)}
}
