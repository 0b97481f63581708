package figure

import (
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
)

// Tuning is the search over a policy's parameters, from tune.csv.
type Tuning struct {
	Name       string
	Title      string // above the plot; empty means Name
	Policy     string
	Parameters []string
	Settings   []Setting // best first; the first is the winner
	Configured Setting   // the setting in the panels
}

// Setting is a choice of parameters with its outcome.
type Setting struct {
	Stopped    bool     // before playing all training seeds
	Values     []string // by parameter
	Seeds      int
	Regret, SE float64 // after the last round, mean over seeds and panels; SE is NaN for a single seed
	// Over is the regret minus the winner's, paired on the seeds that both have played.
	Over, OverSE float64
}

// The header of tune.csv, around the parameters and before the panels.
var (
	tuningHead = []string{"tuning", "policy", "setting", "outcome"}
	tuningTail = []string{"rung", "seeds", "regret", "regret_se", "over_winner", "over_winner_se", "over_configured",
		"over_configured_se"}
)

// Hint for a malformed tune.csv.
const tuneAgain = "tune again, it continues where it stopped"

// ReadTuning reads the tune.csv at path, following the rules of [DecodeTuning].
func ReadTuning(path string) (Tuning, error) {
	f, err := os.Open(path)
	if err != nil {
		return Tuning{}, err
	}
	defer f.Close()
	return DecodeTuning(f, path)
}

// DecodeTuning reads the results of a tuning, a row per setting, with the best first and the configured one last, and
// with the header
//
//	tuning,policy,setting,outcome,⟨parameters⟩,rung,seeds,regret,regret_se,
//	over_winner,over_winner_se,over_configured,over_configured_se,⟨panels⟩
//
// A truncated file is an error. Errors call the file name, give the line if known, and say what to do.
func DecodeTuning(r io.Reader, name string) (Tuning, error) {
	d := tuningDecoder{source: source{file: name, hint: tuneAgain}}
	kept := func(f func([]string) error) func([]string) error { // a CSV reader reuses its rows
		return func(row []string) error { return f(slices.Clone(row)) }
	}
	isCut, err := d.read(r, kept(d.header), kept(d.row))
	if err != nil {
		return Tuning{}, err
	}
	if !d.complete || isCut {
		return Tuning{}, fmt.Errorf("%s: truncated: it does not end with the row of the configured setting; %s",
			name, tuneAgain)
	}
	return d.tuning, nil
}

// tuningDecoder is the state between rows.
type tuningDecoder struct {
	source
	columns  int
	tuning   Tuning
	complete bool // whether the configured setting was read
}

func (d *tuningDecoder) header(row []string) error {
	n := len(tuningHead)
	if len(row) > n && slices.Equal(row[:n], tuningHead) {
		for i := n + 1; i+len(tuningTail) <= len(row); i++ {
			if slices.Equal(row[i:i+len(tuningTail)], tuningTail) {
				d.tuning.Parameters, d.columns = row[n:i], len(row)
				for _, word := range d.tuning.Parameters {
					if !printable(word) {
						return d.wrong("parameter %q is not a printable name", word)
					}
				}
				return nil
			}
		}
	}
	return d.wrong("the header is %q, want %q, at least one parameter, and %q",
		strings.Join(row, ","), strings.Join(tuningHead, ","), strings.Join(tuningTail, ","))
}

func (d *tuningDecoder) row(row []string) error {
	if len(row) != d.columns {
		return d.wrong("row has %d fields, want the %d of the header", len(row), d.columns)
	}
	if d.complete {
		return d.wrong("a row follows that of the configured setting")
	}
	t := &d.tuning
	if len(t.Settings) == 0 {
		t.Name, t.Policy = row[0], row[1]
		for _, word := range row[:2] {
			if !printable(word) {
				return d.wrong("%q is not a printable name", word)
			}
		}
	}
	if row[0] != t.Name || row[1] != t.Policy {
		return d.wrong("%s of %s follows rows of %s of %s: a file holds one tuning", row[0], row[1], t.Name, t.Policy)
	}
	outcome, cells := row[len(tuningHead)-1], row[len(tuningHead):]
	s := Setting{Stopped: outcome == "stopped", Values: cells[:len(t.Parameters)]}
	for _, v := range s.Values {
		if !printable(v) {
			return d.wrong("value %q is not printable", v)
		}
	}
	cells = cells[len(t.Parameters):]
	var err error
	if s.Seeds, err = strconv.Atoi(cells[1]); err != nil || s.Seeds < 1 {
		return d.wrong("seeds %q is not a whole number from 1", cells[1])
	}
	for i, dst := range []*float64{&s.Regret, &s.SE, &s.Over, &s.OverSE} {
		if err := d.number(dst, tuningTail[2+i], cells[2+i]); err != nil {
			return err
		}
	}
	switch first := len(t.Settings) == 0; {
	case first != (outcome == "winner"):
		return d.wrong("outcome %q: the first row must be the winner's, and no other", outcome)
	case outcome == "configured":
		t.Configured, d.complete = s, true
	case outcome == "winner", outcome == "finished", outcome == "stopped":
		t.Settings = append(t.Settings, s)
	default:
		return d.wrong("outcome %q: must be winner, finished, stopped or configured", outcome)
	}
	return nil
}

// number reads a number, or a standard error, which may be empty.
func (d *tuningDecoder) number(dst *float64, column, cell string) error {
	if cell == "" && strings.HasSuffix(column, "_se") {
		*dst = math.NaN()
		return nil
	}
	v, err := strconv.ParseFloat(cell, 64)
	if err != nil || !(math.Abs(v) <= maxValue) {
		return d.wrong("%s %q is not a finite number", column, cell)
	}
	*dst = v
	return nil
}
