package imdb

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
)

// readTar returns the reviews in an archive with the data set's layout.
func readTar(r io.Reader, path string) ([]Review, error) {
	var reviews []Review
	t := tar.NewReader(r)
	for {
		header, err := t.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, broken(path, err)
		}
		review, ok := named(header.Name)
		if !ok || header.Typeflag != tar.TypeReg {
			continue
		}
		text, err := io.ReadAll(io.LimitReader(t, longest+1))
		if err != nil {
			return nil, broken(path, err)
		}
		if review, err = review.with(text); err != nil {
			return nil, fmt.Errorf("%s: %s: %w", path, header.Name, err)
		}
		reviews = append(reviews, review)
	}
	// A compressed file's checksum is at its end.
	if _, err := io.Copy(io.Discard, r); err != nil {
		return nil, broken(path, err)
	}
	return reviews, nil
}
