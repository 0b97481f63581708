package choice

import (
	"slices"

	"vitrine/internal/scratch"
)

// design maps the columns of a block to the variables of the coefficients. Each coefficient's variable is a sum over
// its terms.
type design struct {
	names []string // of the coefficients
	terms [][]term // by coefficient
	more  int      // number of rows that columns leaves free after the coefficients' rows
}

// term is a variable in the utilities of certain alternatives.
type term struct {
	variable int    // index in the data; constant stands for the number 1
	in       []bool // by alternative; nil for all
}

const constant = -1

// newDesign resolves a utility's terms against data, over the alternatives of a model and its outside option.
func newDesign(u *Utility, alternatives []string, outside bool, d *Data) (*design, error) {
	list, err := u.terms(alternatives, outside)
	if err != nil {
		return nil, err
	}
	g := &design{}
	for _, t := range list {
		variable := constant
		if t.Variable != "1" {
			v, err := d.indices("utility", []string{t.Variable})
			if err != nil {
				return nil, err
			}
			variable = v[0]
		}
		resolved := term{variable: variable}
		for _, a := range t.Alternatives {
			if resolved.in == nil {
				resolved.in = make([]bool, len(d.Alternatives))
			}
			if i := slices.Index(d.Alternatives, a); i >= 0 {
				resolved.in[i] = true
			}
		}
		j := slices.Index(g.names, t.Name)
		if j < 0 {
			j = len(g.names)
			g.names = append(g.names, t.Name)
			g.terms = append(g.terms, nil)
		}
		g.terms[j] = append(g.terms[j], resolved)
	}
	return g, nil
}

func (g *design) dim() int { return len(g.names) }

// utility implements startable.
func (g *design) utility() *design { return g }

// columns returns the coefficients' variables in the rows of a block, x[j][i]. A coefficient for one variable in all
// utilities shares the block's memory. The others are stored in dst, which grows as needed.
func (g *design) columns(dst *matrix, b *block) [][]float64 {
	dst.resize(g.dim()+g.more, b.rows())
	for j, terms := range g.terms {
		if t := terms[0]; len(terms) == 1 && t.in == nil && t.variable != constant {
			dst.row[j] = b.x[t.variable]
			continue
		}
		sum := dst.own(j)
		clear(sum)
		for _, t := range terms {
			t.add(sum, b)
		}
	}
	return dst.row[:g.dim()]
}

// add adds the term's variable to sum.
func (t term) add(sum []float64, b *block) {
	for i, a := range b.alt {
		if t.in != nil && !t.in[a] {
			continue
		}
		if t.variable == constant {
			sum[i]++
		} else {
			sum[i] += b.x[t.variable][i]
		}
	}
}

// matrix is scratch memory. Its rows may be its own or borrowed.
type matrix struct {
	row  [][]float64
	data []float64
	n    int
}

func (m *matrix) resize(rows, n int) {
	if cap(m.data) < rows*n {
		m.data = make([]float64, rows*n)
	}
	m.row = scratch.Grow(m.row, rows)
	m.n = n
}

// own returns row j in the matrix's own memory.
func (m *matrix) own(j int) []float64 {
	m.row[j] = m.data[j*m.n : (j+1)*m.n : (j+1)*m.n]
	return m.row[j]
}
