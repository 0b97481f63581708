package choice

import (
	"strconv"

	"vitrine/internal/table"
)

// numbering numbers a column's distinct values from 0.
type numbering struct {
	names    []string
	byText   map[string]int
	byNumber map[float64]int
}

func (n *numbering) of(text string) int {
	if k, ok := n.byText[text]; ok {
		return k
	}
	if n.byText == nil {
		n.byText, n.byNumber = map[string]int{}, map[float64]int{}
	}
	k := len(n.names)
	n.names = append(n.names, text)
	n.byText[text] = k
	return k
}

// at returns the number of entry i in a column. Unless nil, rename replaces text first.
func (n *numbering) at(c *table.Column, i int, rename func(string) string) int {
	if c.Text == nil {
		if k, ok := n.byNumber[c.Number[i]]; ok {
			return k
		}
	}
	text := c.String(i)
	if rename != nil {
		text = rename(text)
	}
	k := n.of(text)
	if c.Text == nil {
		n.byNumber[c.Number[i]] = k
	}
	return k
}

// keyPart is the value in one of the columns that identify a choice.
type keyPart struct {
	number float64
	text   string
}

func (p keyPart) String() string {
	if p.text != "" {
		return p.text
	}
	return table.FormatNumber(p.number)
}

// keys holds the choices' keys so far. Increasing numbers take little memory.
type keys struct {
	other map[string]bool // nil as long as keys are increasing numbers
	list  []float64       // those numbers, until one does not increase
}

// add adds a key and reports whether it is new.
func (k *keys) add(key []keyPart) bool {
	if k.other == nil {
		n := len(k.list)
		if len(key) == 1 && key[0].text == "" && (n == 0 || key[0].number > k.list[n-1]) {
			k.list = append(k.list, key[0].number)
			return true
		}
		k.other = make(map[string]bool, 2*n)
		for _, v := range k.list {
			k.other[keyText([]keyPart{{number: v}})] = true
		}
		k.list = nil
	}
	text := keyText(key)
	if k.other[text] {
		return false
	}
	k.other[text] = true
	return true
}

// keyText returns a text that distinguishes different keys.
func keyText(key []keyPart) string {
	if len(key) == 1 {
		return key[0].String()
	}
	var text []byte
	for _, p := range key {
		text = strconv.AppendQuote(text, p.String())
	}
	return string(text)
}
