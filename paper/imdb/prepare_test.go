package imdb

import (
	"context"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"gonum.org/v1/gonum/mat"

	"vitrine/internal/expect"
	"vitrine/internal/fatal"
)

// listener records the calls of a Reporter.
type listener struct {
	stages   []Stage
	warnings []string
}

func (l *listener) reporter() Reporter {
	return Reporter{
		Progress: func(s Stage, _, _ int) {
			if len(l.stages) == 0 || l.stages[len(l.stages)-1] != s {
				l.stages = append(l.stages, s)
			}
		},
		Warn: func(err error) { l.warnings = append(l.warnings, err.Error()) },
	}
}

// prepare runs Prepare on a small corpus, and drops the warning about its size.
func prepare(t *testing.T, path, cache string) (*Dataset, listener) {
	t.Helper()
	var l listener
	d := fatal.Or(Prepare(context.Background(), path, cache, l.reporter()))(t)
	if len(l.warnings) == 0 || !strings.Contains(l.warnings[0], "labelled reviews, where the data set has 50000") {
		t.Errorf("warnings %q do not begin with the number of reviews", l.warnings)
	} else {
		l.warnings = l.warnings[1:]
	}
	return d, l
}

func same(a, b *Dataset) bool {
	return mat.Equal(a.Features, b.Features) && slices.Equal(a.Params, b.Params) && cmp.Equal(a.Report, b.Report)
}

var (
	whole  = []Stage{Reading, Counting, Decomposing, Training}
	cached = []Stage{Reading}
)

func TestPrepare(t *testing.T) {
	dir := t.TempDir()
	reviews := corpus(50)
	path := write(t, filepath.Join(dir, "imdb.jsonl"), asLines(reviews))
	cache := filepath.Join(dir, "new", "cache")
	d, l := prepare(t, path, cache)
	expect.Equal(t, l.stages, whole, "stages")
	if n, c := d.Features.Dims(); n != 40 || c != Dim || d.Model.NumFeatures() != Dim ||
		d.Model.NumParams() != len(d.Params) {
		t.Errorf("%d×%d features, a model of %d features, %d parameters", n, c, d.Model.NumFeatures(), len(d.Params))
	}
	r := d.Report
	if r.Reviews != 200 || len(r.SingularValues) != Dim ||
		!slices.IsSortedFunc(r.SingularValues, func(a, b float64) int { return int(math.Copysign(1, b-a)) }) {
		t.Errorf("report %+v", r)
	}
	if r.Accuracy < 0.75 || r.SDUtility < 0.5 || r.ExplainedVariance <= 0 || r.ExplainedVariance > 1 {
		t.Errorf("report %+v: the praise in these reviews tells their labels", r)
	}

	t.Run("from the cache", func(t *testing.T) {
		again, l := prepare(t, path, cache)
		if !same(d, again) {
			t.Error("another dataset")
		}
		expect.Equal(t, l.stages, cached, "stages")
	})
	t.Run("the same from every form and on any number of processors", func(t *testing.T) {
		folder := filepath.Join(dir, "aclImdb")
		asFolder(t, folder, reviews)
		archive := write(t, filepath.Join(dir, "aclImdb_v1.tar.gz"), asGzip(asTar(shuffled(reviews))))
		zst := write(t, filepath.Join(dir, "imdb.jsonl.zst"), asZstd(asLines(shuffled(reviews))))
		for processors, form := range []string{folder, archive, zst} {
			previous := runtime.GOMAXPROCS(1 + processors)
			other, l := prepare(t, form, "")
			runtime.GOMAXPROCS(previous)
			if !same(d, other) || !slices.Equal(l.stages, whole) {
				t.Errorf("%s gives another dataset, after %v", form, l.stages)
			}
			if _, l := prepare(t, form, cache); !slices.Equal(l.stages, cached) {
				t.Errorf("%s is not taken from the cache: %v", form, l.stages)
			}
		}
	})
	t.Run("other reviews are not taken from the cache", func(t *testing.T) {
		other := slices.Clone(reviews)
		other[7].Text += " more"
		file := write(t, filepath.Join(dir, "other.jsonl"), asLines(other))
		if _, l := prepare(t, file, cache); !slices.Equal(l.stages, whole) {
			t.Errorf("stages %v", l.stages)
		}
	})
}

// The stages give the same results as when the cache got its version. If this fails on purpose, increment the version.
func TestVersion(t *testing.T) {
	path := write(t, filepath.Join(t.TempDir(), "imdb.jsonl"), asLines(corpus(50)))
	d, _ := prepare(t, path, "")
	got := []float64{version, mat.Norm(d.Features, 1), mat.Norm(mat.NewVecDense(len(d.Params), d.Params), 1)}
	want := []float64{1, 23.160640116722174, 137.5863981323509}
	expect.Equal(t, got, want, "version and norms of features and parameters", cmpopts.EquateApprox(1e-8, 0))
}

func TestDamagedCache(t *testing.T) {
	dir := t.TempDir()
	path := write(t, filepath.Join(dir, "imdb.jsonl"), asLines(corpus(20)))
	want, _ := prepare(t, path, dir)
	files, err := filepath.Glob(filepath.Join(dir, "imdb-v1-*.bin"))
	if err != nil || len(files) != 1 {
		t.Fatalf("cache %v, %v", files, err)
	}
	file := files[0]
	good := fatal.Or(os.ReadFile(file))(t)
	flipped := slices.Clone(good)
	flipped[len(flipped)/2] ^= 1
	for name, content := range map[string][]byte{
		"empty":         {},
		"truncated":     good[:len(good)/2],
		"one bit wrong": flipped,
		"of others":     encoded(t, want, "another key"),
		"another shape": encoded(t, &Dataset{Features: want.Features, Report: want.Report}, digest(corpus(20))),
	} {
		t.Run(name, func(t *testing.T) {
			write(t, file, content)
			got, l := prepare(t, path, dir)
			if !same(want, got) || !slices.Equal(l.stages, whole) {
				t.Errorf("another dataset, after %v", l.stages)
			}
			if len(l.warnings) != 1 || !strings.HasPrefix(l.warnings[0], file+": ") ||
				!strings.HasSuffix(l.warnings[0], "computing it again") {
				t.Errorf("warnings %q do not name %s", l.warnings, file)
			}
			if mended, err := os.ReadFile(file); err != nil || !slices.Equal(mended, good) {
				t.Errorf("the file is not mended: %v", err)
			}
		})
	}
}

func TestUnwritableCache(t *testing.T) {
	dir := t.TempDir()
	path := write(t, filepath.Join(dir, "imdb.jsonl"), asLines(corpus(20)))
	want, _ := prepare(t, path, "")
	for name, cache := range map[string]string{
		"a file":          path,
		"below a file":    filepath.Join(path, "cache"),
		"a folder's name": dir,
	} {
		t.Run(name, func(t *testing.T) {
			if cache == dir { // a directory is in the way of the file
				fatal.If(t, os.MkdirAll(filepath.Join(dir, "imdb-v1-"+digest(corpus(20))[:16]+".bin", "x"), 0o755))
			}
			got, l := prepare(t, path, cache)
			if !same(want, got) {
				t.Error("another dataset")
			}
			if n := len(l.warnings); n == 0 || !strings.Contains(l.warnings[n-1], "not kept") ||
				!strings.Contains(l.warnings[n-1], cache) {
				t.Errorf("warnings %q do not name %s", l.warnings, cache)
			}
		})
	}
}

func TestPrepareErrors(t *testing.T) {
	dir := t.TempDir()
	few := write(t, filepath.Join(dir, "few"), asLines(corpus(5)))
	_, err := Prepare(context.Background(), few, dir, Reporter{})
	wantError(t, err, few, "FILE: 20 reviews with", "at least 30 of both")
	_, err = Prepare(context.Background(), filepath.Join(dir, "none"), dir, Reporter{})
	wantError(t, err, filepath.Join(dir, "none"), "FILE does not exist")
}

// A cancelled context stops Prepare after each stage, without leaving a file.
func TestPrepareStops(t *testing.T) {
	dir := t.TempDir()
	reviews := corpus(20)
	folder := filepath.Join(dir, "aclImdb")
	asFolder(t, folder, reviews)
	for _, path := range []string{
		folder,
		write(t, filepath.Join(dir, "lines"), asLines(reviews)),
		write(t, filepath.Join(dir, "archive"), asGzip(asTar(reviews))),
		write(t, filepath.Join(dir, "compressed"), asZstd(asLines(reviews))),
	} {
		for i, stage := range whole {
			t.Run(filepath.Base(path)+" "+string(stage), func(t *testing.T) {
				var l listener
				report := l.reporter()
				listen := report.Progress
				ctx, cancel := context.WithCancel(context.Background())
				report.Progress = func(s Stage, done, total int) {
					listen(s, done, total)
					if s == stage {
						cancel()
					}
				}
				cache := filepath.Join(dir, "cache")
				expect.Fails(Prepare(ctx, path, cache, report))(t, context.Canceled)
				expect.Equal(t, l.stages, whole[:i+1], "stages")
				expect.Fails(os.Stat(cache))(t, os.ErrNotExist, "the cache is there")
			})
		}
	}
}
