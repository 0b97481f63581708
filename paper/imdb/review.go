// Package imdb makes the world for the paper's semi-synthetic experiment from the Large Movie Review Dataset (Maas et
// al. 2011): the held-out reviews are the items, with 30 features each, and a network trained to separate positive from
// negative reviews is their true utility.
//
// The stages are [Read], TF-IDF, a truncated singular value decomposition, [HeldOut] and the training, in this order.
// [Prepare] runs all of them and keeps the result.
package imdb

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
)

// Source describes the data and says where to get it.
const Source = "the Large Movie Review Dataset v1.0, https://ai.stanford.edu/~amaas/data/sentiment/"

// Published is the number of labelled reviews in the published data set.
const Published = 50_000

// publishedDigest is the digest of the published data set.
const publishedDigest = "30b3da1e177b693c294f74691c316bfec93c1e0d69230e14201469a22432e00d"

// Review is a labelled review.
type Review struct {
	Split  string `json:"split"`  // the data set's own split: train or test
	Label  int    `json:"label"`  // 1 positive, 0 negative
	ID     int    `json:"id"`     // from 0 on within split and label
	Rating int    `json:"rating"` // stars, out of 10
	Text   string `json:"text"`   // as in the file, including <br />
}

var (
	splits = []string{"train", "test"}
	labels = []string{"neg", "pos"}
)

// Key names the review as the original directories do, as in train/pos/17.
func (r Review) Key() string {
	return fmt.Sprintf("%s/%s/%d", r.Split, labels[r.Label], r.ID)
}

// complete sorts the reviews: train before test, negative before positive, then by id. It checks that the ids within
// every split and label are 0, 1, ….
func complete(reviews []Review) error {
	slices.SortFunc(reviews, func(a, b Review) int {
		return cmp.Or(
			cmp.Compare(slices.Index(splits, a.Split), slices.Index(splits, b.Split)),
			cmp.Compare(a.Label, b.Label),
			cmp.Compare(a.ID, b.ID),
		)
	})
	if len(reviews) == 0 {
		return errors.New("no reviews: the data is " + Source)
	}
	rest := reviews
	for _, split := range splits {
		for label, name := range labels {
			n := 0
			for n < len(rest) && rest[n].Split == split && rest[n].Label == label {
				switch id := rest[n].ID; {
				case id > n:
					return fmt.Errorf("review %s/%s/%d is missing, the data is incomplete: it is %s",
						split, name, n, Source)
				case id < n:
					return fmt.Errorf("review %s is a duplicate: remove one", rest[n].Key())
				}
				n++
			}
			if n == 0 {
				return fmt.Errorf("no reviews of %s/%s, the data is incomplete: it is %s", split, name, Source)
			}
			rest = rest[n:]
		}
	}
	return nil
}

// digest returns the sha256, in hexadecimal, of the reviews as lines of JSON. It does not depend on the form of the
// files.
func digest(reviews []Review) string {
	h := sha256.New()
	encode(h, reviews)
	return hex.EncodeToString(h.Sum(nil))
}

// encode writes the reviews as lines of JSON. It returns w's errors.
func encode(w io.Writer, reviews []Review) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	for _, r := range reviews {
		if err := e.Encode(r); err != nil {
			return err
		}
	}
	return nil
}
