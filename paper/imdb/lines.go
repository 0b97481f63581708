package imdb

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/go-json-experiment/json"
)

// readLines returns the reviews from lines of JSON. Empty lines are skipped.
func readLines(r io.Reader, path string) ([]Review, error) {
	var reviews []Review
	s := bufio.NewScanner(r)
	s.Buffer(make([]byte, 1<<16), longest)
	line := 1
	for ; s.Scan(); line++ {
		if s.Err() != nil {
			break // in the middle of this line
		}
		if len(bytes.TrimSpace(s.Bytes())) == 0 {
			continue
		}
		review, err := parseLine(s.Bytes())
		if err != nil {
			return nil, fmt.Errorf("%s:%d: %w", path, line, err)
		}
		reviews = append(reviews, review)
	}
	if errors.Is(s.Err(), bufio.ErrTooLong) {
		return nil, fmt.Errorf("%s:%d: the line has more than %d bytes: is this a file of reviews?",
			path, line, longest)
	}
	if s.Err() != nil {
		return nil, broken(path, s.Err())
	}
	return reviews, nil
}

// parseLine returns the review in a line. Other fields are ignored. A missing label or id counts as 0, which [Read] finds
// if it makes a duplicate.
func parseLine(line []byte) (r Review, err error) {
	if err := json.Unmarshal(line, &r); err != nil {
		return r, fmt.Errorf("not a review in JSON: %w", err)
	}
	switch {
	case !slices.Contains(splits, r.Split):
		err = fmt.Errorf(`split %q: want "train" or "test"`, r.Split)
	case r.Label != 0 && r.Label != 1:
		err = fmt.Errorf("label %d: want 1 for positive or 0 for negative", r.Label)
	case r.ID < 0:
		err = fmt.Errorf("id %d: want 0, 1, … within split and label", r.ID)
	case r.Rating < 1 || r.Rating > 10:
		err = fmt.Errorf("rating %d: want 1 to 10 stars", r.Rating)
	case r.Text == "":
		err = errors.New("no text")
	}
	return r, err
}
