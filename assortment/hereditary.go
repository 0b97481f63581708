package assortment

import "vitrine"

// hereditary is a family that says whether each part of a set is a set.
type hereditary interface{ hereditary() bool }

// Hereditary reports whether a family says that each part of one of its sets is one, too: nothing is demanded.
func Hereditary(c vitrine.Constraint) bool {
	h, ok := c.(hereditary)
	return ok && h.hereditary()
}

func (AtMost) hereditary() bool { return true }

func (p *Partition) hereditary() bool { return len(p.quota.Include) == 0 }

func (s *Shelf) hereditary() bool { return len(s.within.quota.Include) == 0 }
