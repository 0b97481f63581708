package figure

import (
	"strings"

	"gonum.org/v1/plot/vg"
)

// Look says how regret is drawn. The zero value draws a band of ± 2 standard errors on a linear scale, labels
// as in the files, and a size that fits the panels.
type Look struct {
	Band  Band
	Log   bool      // a logarithmic scale of regret
	Width vg.Length // of the whole picture; 0 is wide enough for its panels
	Paper bool      // names as papers print them: ONL-MNL, not onl-mnl
}

// The smallest and the largest width of a picture.
const (
	MinWidth = 2 * vg.Inch
	MaxWidth = 40 * vg.Inch
)

// With returns the picture of the panel with this look.
func (p Panel) With(l Look) Picture { return lookedPanel{p, l} }

// With returns the picture of the composite with this look.
func (f Composite) With(l Look) Picture { return lookedComposite{f, l} }

type lookedPanel struct {
	Panel
	look Look
}

type lookedComposite struct {
	Composite
	look Look
}

// name returns the name of a policy in the picture.
func (l Look) name(policy string) string {
	if l.Paper {
		return PaperName(policy)
	}
	return policy
}

// Words of labels that papers spell differently.
var printed = map[string]string{
	"onl": "ONL", "ucb": "UCB", "ts": "TS", "ofu": "OFU", "bma": "BMA", "mnl": "MNL", "eps": "ε",
}

// PaperName returns the name of a policy in papers: OFU-MNL+ for ofu-mnl-plus, UCB-MNL (tuned) for
// ucb-mnl-tuned.
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
