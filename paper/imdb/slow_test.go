//go:build slow

package imdb

import (
	"context"
	"encoding/binary"
	"encoding/csv"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/klauspost/compress/zstd"

	"vitrine/internal/fatal"
	"vitrine/internal/text"
)

// dataFolder returns the directory with the reviews: imdb in VITRINE_DATA, or in ../shared/data next to the module.
func dataFolder(t *testing.T) string {
	t.Helper()
	data := os.Getenv("VITRINE_DATA")
	if data == "" {
		data = filepath.Join("..", "..", "shared", "data")
	}
	dir := filepath.Join(data, "imdb")
	if _, err := os.Stat(dir); err != nil {
		t.Skipf("no reviews: set VITRINE_DATA to a folder with paper/imdb/ in it; %s", Source)
	}
	return dir
}

// reference opens a file from the reference run with scikit-learn.
func reference(t *testing.T, name string) io.Reader {
	t.Helper()
	f, err := os.Open(filepath.Join(dataFolder(t), name))
	if err != nil {
		t.Skip("no reference: ", err)
	}
	z, err := zstd.NewReader(f)
	fatal.If(t, err)
	t.Cleanup(func() { z.Close(); f.Close() })
	return z
}

func near(t *testing.T, what string, got, want, tolerance float64) {
	t.Helper()
	if !(math.Abs(got-want) <= tolerance) {
		t.Errorf("%s is %v, want %v ± %g", what, got, want, tolerance)
	}
}

// The published data pass through all stages and give every number in the reference run.
func TestPublishedReviews(t *testing.T) {
	ctx := context.Background()
	reviews, err := Read(ctx, dataFolder(t), nil)
	fatal.If(t, err)
	if got, want := digest(reviews), "30b3da1e177b693c294f74691c316bfec93c1e0d69230e14201469a22432e00d"; len(
		reviews) != Published || got != want {
		t.Fatalf("%d reviews with digest %s, want %d with %s", len(reviews), got, Published, want)
	}

	t.Run("inverse document frequencies", func(t *testing.T) {
		var counts text.Counts
		for _, r := range reviews {
			counts.Add(r.Text)
		}
		v := counts.TFIDF()
		for j, word := range v.Vocabulary {
			switch word {
			case "the":
				near(t, word, v.IDF[j], 1.0088185942, 5e-11)
			case "movie":
				near(t, word, v.IDF[j], 1.4921220096, 5e-11)
			}
		}
	})

	t.Run("held out", func(t *testing.T) {
		rows, err := csv.NewReader(reference(t, "rows.csv.zst")).ReadAll()
		fatal.If(t, err)
		for i, held := range HeldOut(reviews) {
			if want := rows[i+1][5] == "1"; held != want {
				t.Fatalf("%s: held out is %v, want %v", reviews[i].Key(), held, want)
			}
		}
	})

	t.Run("features", func(t *testing.T) {
		// A start different from Prepare's finds the same triplets.
		f, err := reduce(ctx, reviews, rand.New(rand.NewPCG(8, 9)), Reporter{})
		fatal.If(t, err)
		content, err := io.ReadAll(reference(t, "features.f32le.zst"))
		fatal.If(t, err)
		if want := 4 * Dim * len(reviews); len(content) != want {
			t.Fatalf("reference of %d bytes, want %d", len(content), want)
		}
		at := func(i, j int) float64 {
			return float64(math.Float32frombits(binary.LittleEndian.Uint32(content[4*(i*Dim+j):])))
		}
		worst := 0.0
		for j := range Dim {
			dot := 0.0
			for i := range reviews {
				dot += at(i, j) * f.x.At(i, j)
			}
			sign := math.Copysign(1, dot)
			for i := range reviews {
				worst = max(worst, math.Abs(sign*f.x.At(i, j)-at(i, j)))
			}
		}
		t.Logf("the features are within %.2g of the reference", worst)
		near(t, "the largest difference of a feature", worst, 0, 1e-7)
	})

	t.Run("dataset", func(t *testing.T) {
		cache := t.TempDir()
		d, err := Prepare(ctx, dataFolder(t), cache, Reporter{Warn: func(err error) { t.Error(err) }})
		fatal.If(t, err)
		r := d.Report
		t.Logf("%+v", r)
		if r.Terms != 101_895 || r.Nonzeros != 6_826_529 {
			t.Errorf("%d terms and %d weights, want 101895 and 6826529", r.Terms, r.Nonzeros)
		}
		for i, want := range []float64{76.61152, 19.01548, 17.91665, 13.76251, 12.73835} {
			near(t, "a singular value", r.SingularValues[i], want, 5e-6)
		}
		near(t, "the last singular value", r.SingularValues[Dim-1], 6.7284, 5e-5)
		near(t, "the explained variance", r.ExplainedVariance, 0.0733, 5e-5)
		near(t, "the accuracy", r.Accuracy, 0.83, 0.01)
		near(t, "the mean utility", r.MeanUtility, 0, 0.2)
		near(t, "the standard deviation of the utility", r.SDUtility, 3.1, 0.3)
		if n, c := d.Features.Dims(); n != 10_000 || c != Dim {
			t.Errorf("%d×%d features", n, c)
		}
		var l listener
		again, err := Prepare(ctx, dataFolder(t), cache, l.reporter())
		fatal.If(t, err)
		if !same(d, again) || len(l.stages) != 1 || len(l.warnings) != 0 {
			t.Errorf("another dataset from the cache, after %v with %q", l.stages, l.warnings)
		}
	})
}
