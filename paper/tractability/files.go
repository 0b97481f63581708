package tractability

import (
	"errors"
	"reflect"
	"slices"

	"vitrine/paper/experiments"
	"vitrine/paper/study"
)

// Mark is the file that marks a measurement's directory: its points.
const Mark = "tractability.csv"

// Record identifies a measurement by the setting, the program and the machine. A measurement continues only from points
// with the same record.
type Record struct {
	Experiment string  `json:"experiment"`
	Version    string  `json:"version"`
	Machine    string  `json:"machine"`
	Setting    Setting `json:"setting"`
}

// Survey is a finished or unfinished measurement.
type Survey struct {
	Record
	Points []Point `json:"points"`
}

// Open makes dir if necessary and returns its points for the measurement r. There are none if dir is empty or holds
// another measurement.
func Open(dir string, r Record) (*Survey, error) {
	s, err := Read(dir)
	if err == nil && reflect.DeepEqual(s.Record, r) {
		return s, nil
	}
	s = &Survey{Record: r}
	return s, s.Write(dir)
}

// Has reports whether an algorithm was measured at a size.
func (s *Survey) Has(policy string, c Cell) bool {
	return slices.ContainsFunc(s.Points, func(p Point) bool { return p.Policy == policy && p.Cell == c })
}

// Write writes the points and the record.
func (s *Survey) Write(dir string) error {
	return study.Write(dir, s, study.File{Name: Mark, Content: study.Encode(s.Points)})
}

// Read reads run.json. Errors name the file.
func Read(dir string) (*Survey, error) {
	s := &Survey{}
	err := study.Read(dir, experiments.Tractability, s, func() error {
		for _, p := range s.Points {
			if p.Policy == "" || p.Items <= 0 || p.Size <= 0 || p.Offer < 0 || p.Round < 0 {
				return errors.New("a point without a policy, items, a size or seconds from 0")
			}
			if err := study.Drawable(p.Offer, p.Round); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return s, nil
}
