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

// columns is the header of regret.csv.
var columns = []string{"experiment", "policy", "seed", "round", "regret"}

// Hints for a truncated file and for a malformed one.
const (
	again  = "run the experiment again, it continues where it stopped"
	remove = "delete the file and run the experiment again"
)

// ReadPanel reads the regret.csv at path, following the rules of [Decode].
func ReadPanel(path string) (Panel, error) {
	f, err := os.Open(path)
	if err != nil {
		return Panel{}, err
	}
	defer f.Close()
	return Decode(bufio.NewReader(f), path)
}

// Decode reads the cumulative expected regret of one experiment, with the header
//
//	experiment,policy,seed,round,regret
//
// and its rows grouped by policy, then by seed, with the rounds of a seed counting 1, …, T. It reads r once and keeps
// only the curves, in the order of the file, with an empty title.
//
// Every policy must have the same seeds and every seed the same rounds, so that a truncated file is never drawn. Errors
// call the file name, give the line if known, and say what to do.
func Decode(r io.Reader, name string) (Panel, error) {
	d := decoder{file: name}
	isCut, err := d.read(r)
	switch {
	case isCut:
		return Panel{}, d.cut()
	case err != nil:
		return Panel{}, err
	}
	return d.complete()
}

// decoder is the state between rows.
type decoder struct {
	file  string
	line  int // number of the current row
	panel Panel
	seeds [][]uint64 // by curve
	ends  [][]int    // last line of each run
}

// read passes on the header and the rows. It reports whether the last line is unterminated, and returns the first other
// error.
func (d *decoder) read(r io.Reader) (isCut bool, err error) {
	last := &lastByte{Reader: r}
	rows := csv.NewReader(last)
	rows.FieldsPerRecord = -1
	rows.ReuseRecord = true
	take := d.header
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
		take = d.row
	}
}

func (d *decoder) wrong(format string, args ...any) error {
	return fmt.Errorf("%s:%d: %s; %s", d.file, d.line, fmt.Sprintf(format, args...), remove)
}

// lastByte remembers the last byte read: a truncated number is still a number, but its line is unterminated.
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

	if d.panel.Name == "" {
		if !printable(row[0]) {
			return d.wrong("experiment %q is not a printable name", row[0])
		}
		d.panel.Name = strings.Clone(row[0])
	}
	if row[0] != d.panel.Name {
		return d.wrong("experiment %q follows rows of %q: a file holds one experiment", row[0], d.panel.Name)
	}
	if err := d.turn(row[1], seed); err != nil {
		return err
	}
	n := len(d.seeds) - 1
	last := len(d.seeds[n]) - 1
	run := &d.panel.Curves[n].Regret[last]
	if round != len(*run)+1 {
		return d.wrong("round %d of seed %d of policy %s follows round %d: rounds must count 1, 2, 3, …",
			round, seed, row[1], len(*run))
	}
	*run, d.ends[n][last] = append(*run, max(regret, 0)), d.line
	return nil
}

// Regret is a sum of differences to an optimum: rounding may leave it slightly below 0, and its squares must not
// overflow.
const (
	rounding    = 1e-6
	leastRegret = 1e-12 // smaller ones are rounding errors even where all are small
	maxValue    = 1e100
)

// turn starts a run when the policy or the seed changes.
func (d *decoder) turn(name string, seed uint64) error {
	n := len(d.seeds) - 1
	if n < 0 || d.panel.Curves[n].Policy != name {
		if !printable(name) {
			return d.wrong("policy %q is not a printable name", name)
		}
		if slices.ContainsFunc(d.panel.Curves, func(c Curve) bool { return c.Policy == name }) {
			return d.wrong("policy %s comes back after %s: rows must be grouped by policy, then by seed",
				name, d.panel.Curves[n].Policy)
		}
		d.panel.Curves = append(d.panel.Curves, Curve{Policy: strings.Clone(name)})
		d.seeds, d.ends = append(d.seeds, nil), append(d.ends, nil)
		n++
	}
	seeds, curve := d.seeds[n], &d.panel.Curves[n]
	if len(seeds) > 0 && seeds[len(seeds)-1] == seed {
		return nil
	}
	if slices.Contains(seeds, seed) {
		return d.wrong("seed %d of policy %s comes back after seed %d: rows must be grouped by policy, then by seed",
			seed, name, seeds[len(seeds)-1])
	}
	d.seeds[n], d.ends[n], curve.Regret = append(seeds, seed), append(d.ends[n], 0), append(curve.Regret, nil)
	return nil
}

func printable(name string) bool {
	return name != "" && utf8.ValidString(name) && !strings.ContainsFunc(name, func(r rune) bool {
		return !unicode.IsPrint(r)
	})
}

// complete returns the panel after the last row. It checks that no run is truncated and no seed is missing.
func (d *decoder) complete() (Panel, error) {
	if len(d.seeds) == 0 {
		return Panel{}, fmt.Errorf("%s: truncated: no rounds; %s", d.file, again)
	}
	rounds := 0
	for _, c := range d.panel.Curves {
		for _, run := range c.Regret {
			rounds = max(rounds, len(run))
		}
	}
	for n, c := range d.panel.Curves {
		for k, run := range c.Regret {
			if len(run) < rounds {
				return Panel{}, fmt.Errorf("%s:%d: truncated: seed %d of policy %s ends at round %d of %d; %s",
					d.file, d.ends[n][k], d.seeds[n][k], c.Policy, len(run), rounds, again)
			}
		}
		if !slices.Equal(d.seeds[n], d.seeds[0]) {
			return Panel{}, fmt.Errorf("%s: truncated: policy %s has other seeds than policy %s; %s",
				d.file, c.Policy, d.panel.Curves[0].Policy, again)
		}
	}
	return d.panel, nil
}
