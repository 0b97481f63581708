package figure

import (
	"strings"

	"gonum.org/v1/plot/vg"
)

// Look configures how regret is drawn. The zero value draws a band of ± 2 standard errors on a linear scale, with the
// labels from the files, and a size that fits the panels.
type Look struct {
	Band  Band
	Log   bool      // logarithmic scale of regret
	Width vg.Length // width of the whole picture; 0 fits the panels
	Paper bool      // names as in papers: ONL-MNL instead of onl-mnl
}

// Smallest and largest width of a picture.
const (
	MinWidth = 2 * vg.Inch
	MaxWidth = 40 * vg.Inch
)

// With returns the panel's picture with this look.
func (p Panel) With(l Look) Picture { return lookedPanel{p, l} }

// With returns the composite's picture with this look.
func (f Composite) With(l Look) Picture { return lookedComposite{f, l} }

type lookedPanel struct {
	Panel
	look Look
}

type lookedComposite struct {
	Composite
	look Look
}

// name returns a policy's name in the picture.
func (l Look) name(policy string) string {
	if l.Paper {
		return PaperName(policy)
	}
	return policy
}

// Words in labels that papers spell differently.
var printed = map[string]string{
	"onl": "ONL", "ucb": "UCB", "ts": "TS", "ofu": "OFU", "bma": "BMA", "mnl": "MNL", "eps": "ε",
}

// PaperName returns a policy's name in papers: OFU-MNL+ for ofu-mnl-plus, UCB-MNL (tuned) for ucb-mnl-tuned.
func PaperName(label string) string {
	base, isTuned := strings.CutSuffix(label, tuned)
	var name strings.Builder
	for i, word := range strings.Split(base, "-") {
		switch known, ok := printed[word]; {
		case word == "plus" && i > 0:
			name.WriteString("+")
			continue
		case ok:
			word = known
		}
		if i > 0 {
			name.WriteString("-")
		}
		name.WriteString(word)
	}
	if isTuned {
		name.WriteString(" (tuned)")
	}
	return name.String()
}
