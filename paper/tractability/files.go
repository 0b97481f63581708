package tractability

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"vitrine/internal/replace"
	"vitrine/paper/experiments"
)

// Mark is the file that marks the directory of a measurement: its points.
const Mark = "tractability.csv"

const recordFile = "run.json"

var columns = []string{"policy", "items", "size", "offer_seconds", "offers", "round_seconds", "refused"}

// Record identifies a measurement: the setting, the program and the machine. Points of another record are not
// continued.
type Record struct {
	Experiment string  `json:"experiment"`
	Version    string  `json:"version"`
	Machine    string  `json:"machine"`
	Setting    Setting `json:"setting"`
}

// Survey is a finished or unfinished measurement.
type Survey struct {
	Record
	Points []Point
}

// Open returns the points in dir of the measurement r, none if dir has another measurement or none, and makes
// the directory.
func Open(dir string, r Record) (*Survey, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	want, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return nil, err
	}
	want = append(want, '\n')
	path := filepath.Join(dir, recordFile)
	if have, err := os.ReadFile(path); err == nil && bytes.Equal(have, want) {
		if s, err := Read(dir); err == nil {
			return s, nil
		}
	}
	s := &Survey{Record: r}
	if err := s.Write(dir); err != nil {
		return nil, err
	}
	return s, replace.File(path, want)
}

// Has reports whether an algorithm was measured at a size.
func (s *Survey) Has(policy string, c Cell) bool {
	return slices.ContainsFunc(s.Points, func(p Point) bool { return p.Policy == policy && p.Cell == c })
}

// Write writes the points.
func (s *Survey) Write(dir string) error {
	rows := [][]string{columns}
	for _, p := range s.Points {
		rows = append(rows, []string{
			p.Policy, strconv.Itoa(p.Items), strconv.Itoa(p.Size),
			seconds(p.Offer), strconv.Itoa(p.Offers), seconds(p.Round), p.Refused,
		})
	}
	var text bytes.Buffer
	if err := csv.NewWriter(&text).WriteAll(rows); err != nil {
		return err
	}
	return replace.File(filepath.Join(dir, Mark), text.Bytes())
}

func seconds(v float64) string { return strconv.FormatFloat(v, 'g', 4, 64) }

// Read reads what Open and Write wrote. Errors name the file and, if there is one, the line.
func Read(dir string) (*Survey, error) {
	s := &Survey{}
	for _, file := range []struct {
		name   string
		decode func([]byte) error
	}{
		{recordFile, func(text []byte) error { return json.Unmarshal(text, &s.Record) }},
		{Mark, func(text []byte) (err error) { s.Points, err = decode(text); return err }},
	} {
		path := filepath.Join(dir, file.name)
		text, err := os.ReadFile(path)
		if err == nil {
			err = file.decode(text)
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			err = fmt.Errorf("%s: %w; delete it and run vitrine reproduce %s again", path, err, experiments.Tractability)
		}
		if err != nil {
			return nil, err
		}
	}
	return s, nil
}

// decode reads the points.
func decode(text []byte) ([]Point, error) {
	rows, err := csv.NewReader(bytes.NewReader(text)).ReadAll()
	if err != nil {
		return nil, err
	}
	if len(rows) == 0 || !slices.Equal(rows[0], columns) {
		return nil, fmt.Errorf("the first line must be %s", strings.Join(columns, ","))
	}
	var points []Point
	for k, row := range rows[1:] {
		p := Point{Policy: row[0], Refused: row[6]}
		for i, dst := range map[int]*int{1: &p.Items, 2: &p.Size, 4: &p.Offers} {
			if *dst, err = strconv.Atoi(row[i]); err != nil || *dst < 0 {
				return nil, fmt.Errorf("line %d: %s = %q: must be a number", k+2, columns[i], row[i])
			}
		}
		for i, dst := range map[int]*float64{3: &p.Offer, 5: &p.Round} {
			if *dst, err = strconv.ParseFloat(row[i], 64); err != nil || !(*dst >= 0) || math.IsInf(*dst, 0) {
				return nil, fmt.Errorf("line %d: %s = %q: must be a number of seconds", k+2, columns[i], row[i])
			}
		}
		if p.Policy == "" || p.Items == 0 || p.Size == 0 {
			return nil, fmt.Errorf("line %d: a policy, items and a size must be there", k+2)
		}
		points = append(points, p)
	}
	return points, nil
}
