package imdb

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// hasLayout reports whether path is a directory in the data set's layout.
func hasLayout(path string) bool {
	for _, split := range splits {
		for _, label := range labels {
			if info, err := os.Stat(filepath.Join(path, split, label)); err == nil && info.IsDir() {
				return true
			}
		}
	}
	return false
}

// readFolder returns the reviews in a directory with that layout.
func readFolder(ctx context.Context, root string, progress func(done, total int)) ([]Review, error) {
	type file struct {
		name   string
		review Review
	}
	var files []file
	for _, split := range splits {
		for _, label := range labels {
			dir := filepath.Join(root, split, label)
			entries, err := os.ReadDir(dir)
			if err != nil {
				return nil, fmt.Errorf("%w: the data is %s", err, Source)
			}
			for _, e := range entries {
				name := filepath.Join(dir, e.Name())
				if review, ok := named(path.Join(split, label, e.Name())); ok {
					files = append(files, file{name, review})
				}
			}
		}
	}
	reviews := make([]Review, len(files))
	for i, f := range files {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		text, err := os.ReadFile(f.name)
		if err != nil {
			return nil, err
		}
		if reviews[i], err = f.review.with(text); err != nil {
			return nil, fmt.Errorf("%s: %w", f.name, err)
		}
		progress(i+1, len(files))
	}
	return reviews, nil
}

// named returns a review without its text, given the path of its file, which ends in <split>/<label>/<id>_<rating>.txt.
// ok is false for all other files.
func named(name string) (r Review, ok bool) {
	dir, base := path.Split(name)
	dir, label := path.Split(path.Clean(dir))
	base, isText := strings.CutSuffix(base, ".txt")
	id, rating, isPair := strings.Cut(base, "_")
	n, errID := strconv.ParseUint(id, 10, 31)
	stars, errRating := strconv.ParseUint(rating, 10, 31)
	r = Review{Split: path.Base(dir), Label: slices.Index(labels, label), ID: int(n), Rating: int(stars)}
	ok = isText && isPair && errID == nil && errRating == nil && r.Label >= 0 && slices.Contains(splits, r.Split)
	return r, ok
}

// with returns the review with the text from its file.
func (r Review) with(text []byte) (Review, error) {
	switch {
	case r.Rating < 1 || r.Rating > 10:
		return Review{}, fmt.Errorf("rating %d in the name: want 1 to 10 stars", r.Rating)
	case len(text) > longest:
		return Review{}, fmt.Errorf("the text has more than %d bytes: is this a review?", longest)
	case !utf8.Valid(text):
		return Review{}, errors.New("not UTF-8: convert the file, or get it again")
	}
	r.Text = string(text)
	return r, nil
}
