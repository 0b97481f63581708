package figure

import (
	"bufio"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// columns are the header of regret.csv.
var columns = []string{"experiment", "policy", "seed", "round", "regret"}

// Hints for a file that ends too early and for a malformed one.
const (
	again  = "run the experiment again, it continues where it stopped"
	remove = "delete the file and run the experiment again"
)

// ReadPanel reads the regret.csv at path, under the rules of [Decode].
func ReadPanel(path string) (Panel, error) {
	f, err := os.Open(path)
	if err != nil {
		return Panel{}, err
	}
	defer f.Close()
	return Decode(bufio.NewReader(f), path)
}

// Decode reads the cumulative expected regret of one experiment, with the
// header
//
//	experiment,policy,seed,round,regret
//
// and its rows grouped by policy, then by seed, the rounds of a seed counting
// 1, …, T. It reads r once and keeps only the curves, in the order of the
// file, with the title left empty.
//
// Every policy must have the same seeds and every seed the same rounds, so
// that a file that ends too early is never drawn. Errors name the file as
// given by name, the line if there is one, and what to do.
func Decode(r io.Reader, name string) (Panel, error) {
	d := decoder{source: source{file: name, hint: remove}}
	isCut, err := d.read(r, d.header, d.row)
	switch {
	case isCut:
		return Panel{}, d.cut()
	case err != nil:
		return Panel{}, err
	}
	return d.panel()
}

// source is a file of CSV that is being read.
type source struct {
	file string
	line int    // of the row at hand
	hint string // what to do about an error
}

// read passes the header and the rows on. It reports whether the last line has no end, and returns the first other error.
func (d *source) read(r io.Reader, header, row func([]string) error) (isCut bool, err error) {
	last := &lastByte{Reader: r}
	rows := csv.NewReader(last)
	rows.FieldsPerRecord = -1
	rows.ReuseRecord = true
	take := header
	for {
		cells, err := rows.Read()
		var syntax *csv.ParseError
		switch {
		case err == io.EOF:
			return d.line > 0 && last.b != '\n', nil
		case errors.As(err, &syntax):
			d.line = syntax.Line
			return false, d.wrong("%v", syntax.Err)
		case err != nil:
			return false, fmt.Errorf("%s: %w", d.file, err)
		}
		d.line, _ = rows.FieldPos(0)
		if err := take(cells); err != nil {
			_, next := rows.Read()
			return next == io.EOF && last.b != '\n', err
		}
		take = row
	}
}

func (d *source) wrong(format string, args ...any) error {
	return fmt.Errorf("%s:%d: %s; %s", d.file, d.line, fmt.Sprintf(format, args...), d.hint)
}

// lastByte remembers the last byte read: a truncated number is still a number, but its line has no end.
type lastByte struct {
	io.Reader
	b byte
}

func (l *lastByte) Read(p []byte) (int, error) {
	n, err := l.Reader.Read(p)
	if n > 0 {
		l.b = p[n-1]
	}
	return n, err
}

// decoder is the state between two rows.
type decoder struct {
	source
	experiment string
	policies   []*played
	runs       []run
}

// played is a curve under construction.
type played struct {
	name   string
	seeds  []uint64
	regret [][]float64 // by seed and round
}

// run is one policy under one seed: where it ends.
type run struct {
	policy string
	seed   uint64
	rounds int
	line   int
}

func (d *decoder) cut() error {
	return fmt.Errorf("%s:%d: truncated: the last line is not complete; %s", d.file, d.line, again)
}

func (d *decoder) header(row []string) error {
	if !slices.Equal(row, columns) {
		return d.wrong("the header is %q, want %q", strings.Join(row, ","), strings.Join(columns, ","))
	}
	return nil
}

func (d *decoder) row(row []string) error {
	if len(row) != len(columns) {
		return d.wrong("row has %d fields, want the %d of %q", len(row), len(columns), strings.Join(columns, ","))
	}
	seed, err := strconv.ParseUint(row[2], 10, 64)
	if err != nil {
		return d.wrong("seed %q is not a whole number from 0", row[2])
	}
	round, err := strconv.Atoi(row[3])
	if err != nil {
		return d.wrong("round %q is not a whole number", row[3])
	}
	regret, err := strconv.ParseFloat(row[4], 64)
	if err != nil || !(regret >= -rounding && regret <= maxValue) {
		return d.wrong("regret %q is not a finite number from 0", row[4])
	}

	if len(d.runs) == 0 {
		if !printable(row[0]) {
			return d.wrong("experiment %q is not a printable name", row[0])
		}
		d.experiment = strings.Clone(row[0])
	}
	if row[0] != d.experiment {
		return d.wrong("experiment %q follows rows of %q: a file holds one experiment", row[0], d.experiment)
	}
	if err := d.turn(row[1], seed); err != nil {
		return err
	}
	current := &d.runs[len(d.runs)-1]
	if round != current.rounds+1 {
		return d.wrong("round %d of seed %d of policy %s follows round %d: rounds must count 1, 2, 3, …", round, seed, row[1], current.rounds)
	}
	current.rounds, current.line = round, d.line
	d.policies[len(d.policies)-1].add(max(regret, 0))
	return nil
}

// Regret is a sum of differences to an optimum: rounding may leave it a little
// under 0, and its squares must not overflow.
const (
	rounding = 1e-6
	maxValue = 1e100
)

// turn begins a run when the policy or the seed changes.
func (d *decoder) turn(name string, seed uint64) error {
	if n := len(d.runs); n > 0 && d.runs[n-1].policy == name && d.runs[n-1].seed == seed {
		return nil
	}
	n := len(d.policies)
	if n == 0 || d.policies[n-1].name != name {
		if !printable(name) {
			return d.wrong("policy %q is not a printable name", name)
		}
		if slices.ContainsFunc(d.policies, func(p *played) bool { return p.name == name }) {
			return d.wrong("policy %s comes back after %s: rows must be grouped by policy, then by seed", name, d.policies[n-1].name)
		}
		d.policies = append(d.policies, &played{name: strings.Clone(name)})
	}
	p := d.policies[len(d.policies)-1]
	if slices.Contains(p.seeds, seed) {
		return d.wrong("seed %d of policy %s comes back after seed %d: rows must be grouped by policy, then by seed", seed, name, p.seeds[len(p.seeds)-1])
	}
	p.seeds = append(p.seeds, seed)
	p.regret = append(p.regret, nil)
	d.runs = append(d.runs, run{policy: p.name, seed: seed})
	return nil
}

func printable(name string) bool {
	return name != "" && utf8.ValidString(name) && !strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsPrint(r) })
}

// add appends the next round of the latest seed.
func (p *played) add(regret float64) {
	run := &p.regret[len(p.regret)-1]
	*run = append(*run, regret)
}

// panel makes the panel after the last row. It checks that no run ends early and no seed is missing.
func (d *decoder) panel() (Panel, error) {
	if len(d.runs) == 0 {
		return Panel{}, fmt.Errorf("%s: truncated: no rounds; %s", d.file, again)
	}
	rounds := 0
	for _, r := range d.runs {
		rounds = max(rounds, r.rounds)
	}
	for _, r := range d.runs {
		if r.rounds < rounds {
			return Panel{}, fmt.Errorf("%s:%d: truncated: seed %d of policy %s ends at round %d of %d; %s",
				d.file, r.line, r.seed, r.policy, r.rounds, rounds, again)
		}
	}
	panel := Panel{Name: d.experiment}
	for _, p := range d.policies {
		if first := d.policies[0]; !slices.Equal(p.seeds, first.seeds) {
			return Panel{}, fmt.Errorf("%s: truncated: policy %s has other seeds (%d) than policy %s (%d); %s",
				d.file, p.name, len(p.seeds), first.name, len(first.seeds), again)
		}
		panel.Curves = append(panel.Curves, Curve{Policy: p.name, Regret: p.regret})
	}
	return panel, nil
}
