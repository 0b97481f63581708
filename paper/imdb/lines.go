package imdb

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"
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

// parseLine returns the review in a line. All five fields are required; others are ignored.
func parseLine(line []byte) (Review, error) {
	if !utf8.Valid(line) {
		return Review{}, errors.New("not UTF-8: convert the file, or get it again")
	}
	var fields struct {
		Split  *string `json:"split"`
		Label  *int    `json:"label"`
		ID     *int    `json:"id"`
		Rating *int    `json:"rating"`
		Text   *string `json:"text"`
	}
	if err := json.Unmarshal(line, &fields); err != nil {
		return Review{}, fmt.Errorf("not a review in JSON: %w", err)
	}
	switch f := fields; {
	case f.Split == nil:
		return Review{}, errors.New(`no split: want "train" or "test"`)
	case !slices.Contains(splits, *f.Split):
		return Review{}, fmt.Errorf(`split %q: want "train" or "test"`, *f.Split)
	case f.Label == nil:
		return Review{}, errors.New("no label: want 1 for positive or 0 for negative")
	case *f.Label != 0 && *f.Label != 1:
		return Review{}, fmt.Errorf("label %d: want 1 for positive or 0 for negative", *f.Label)
	case f.ID == nil:
		return Review{}, errors.New("no id: want 0, 1, … within split and label")
	case *f.ID < 0:
		return Review{}, fmt.Errorf("id %d: want 0, 1, … within split and label", *f.ID)
	case f.Rating == nil:
		return Review{}, errors.New("no rating: want 1 to 10 stars")
	case *f.Rating < 1 || *f.Rating > 10:
		return Review{}, fmt.Errorf("rating %d: want 1 to 10 stars", *f.Rating)
	case f.Text == nil:
		return Review{}, errors.New("no text")
	case loneSurrogate(line, *f.Text):
		return Review{}, errors.New("the text has half of a surrogate pair: mend the escape")
	}
	return Review{*fields.Split, *fields.Label, *fields.ID, *fields.Rating, *fields.Text}, nil
}

// loneSurrogate reports whether decoding the line put replacement characters
// into the text.
func loneSurrogate(line []byte, text string) bool {
	const replacement = "\ufffd"
	if !strings.Contains(text, replacement) {
		return false
	}
	return !bytes.Contains(line, []byte(replacement)) && !bytes.Contains(bytes.ToLower(line), []byte(`\ufffd`))
}
