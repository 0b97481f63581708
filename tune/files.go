package tune

import (
	"bytes"
	"encoding/csv"
	"math"
	"slices"
	"strconv"
)

// Outcomes of a setting.
const (
	Winner     = "winner"     // won the search
	Finished   = "finished"   // played all training seeds
	Stopped    = "stopped"    // at an earlier rung
	Configured = "configured" // present setting in the panels, which does not compete
)

// Table holds a tuning's results on some seeds.
type Table struct {
	Tuning, Policy     string
	Parameters, Panels []string
	Rows               []Row // includes the winner and the configured setting
}

// Row is a setting in a table.
type Row struct {
	Outcome string
	Values  []string // by parameter
	Score   Score
}

// Find returns the first row with an outcome.
func (t Table) Find(outcome string) Row {
	return t.Rows[slices.IndexFunc(t.Rows, func(r Row) bool { return r.Outcome == outcome })]
}

// AllPanels is the panel's name in rows of fresh.csv that average over all panels.
const AllPanels = "all panels"

// TrainingCSV returns tune.csv, with a row per setting and the header
//
//	tuning,policy,setting,outcome,⟨parameters⟩,rung,seeds,regret,regret_se,
//	over_winner,over_winner_se,over_configured,over_configured_se,⟨panels⟩
//
// where regret is the mean over seeds and panels of the regret after the last round, over_… the difference to a setting
// on the seeds that both have played, and a panel's column the mean over its seeds. Undefined standard errors are
// empty.
func (t Table) TrainingCSV() []byte {
	rows := [][]string{slices.Concat(t.head(), []string{"rung", "seeds"}, measures, t.Panels)}
	for _, r := range t.Rows {
		row := append(t.prefix(r), strconv.Itoa(r.Score.Rung), strconv.Itoa(r.Score.Seeds()))
		row = append(row, t.measure(r)...)
		for p := range t.Panels {
			row = append(row, number(r.Score.Estimate(p).Mean))
		}
		rows = append(rows, row)
	}
	return encode(rows)
}

// FreshCSV returns fresh.csv, with a row per setting and panel, one per setting for all panels, and the header
//
//	tuning,policy,setting,outcome,⟨parameters⟩,panel,seeds,regret,regret_se,
//	over_winner,over_winner_se,over_configured,over_configured_se
func (t Table) FreshCSV() []byte {
	rows := [][]string{slices.Concat(t.head(), []string{"panel", "seeds"}, measures)}
	for _, r := range t.Rows {
		seeds := strconv.Itoa(r.Score.Seeds())
		rows = append(rows, slices.Concat(t.prefix(r), []string{AllPanels, seeds}, t.measure(r)))
		for p, panel := range t.Panels {
			rows = append(rows, slices.Concat(t.prefix(r), []string{panel, seeds}, t.measure(r, p)))
		}
	}
	return encode(rows)
}

// measures are the columns for a row's estimates.
var measures = []string{"regret", "regret_se", "over_winner", "over_winner_se", "over_configured", "over_configured_se"}

func (t Table) head() []string {
	return slices.Concat([]string{"tuning", "policy", "setting", "outcome"}, t.Parameters)
}

func (t Table) prefix(r Row) []string {
	setting := ""
	if r.Outcome != Configured {
		setting = strconv.Itoa(r.Score.Setting + 1)
	}
	return slices.Concat([]string{t.Tuning, t.Policy, setting, r.Outcome}, r.Values)
}

func (t Table) measure(r Row, panels ...int) []string {
	var cells []string
	for _, e := range []Estimate{
		r.Score.Estimate(panels...),
		r.Score.Difference(t.Find(Winner).Score, panels...),
		r.Score.Difference(t.Find(Configured).Score, panels...),
	} {
		cells = append(cells, number(e.Mean), number(e.SE))
	}
	return cells
}

func number(v float64) string {
	if math.IsNaN(v) {
		return ""
	}
	return strconv.FormatFloat(v, 'g', 6, 64)
}

func encode(rows [][]string) []byte {
	var out bytes.Buffer
	w := csv.NewWriter(&out)
	if err := w.WriteAll(rows); err != nil {
		panic("tune: " + err.Error()) // writing to a buffer cannot fail
	}
	return out.Bytes()
}
