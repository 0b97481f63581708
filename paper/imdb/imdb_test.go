package imdb

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/zstd"
	"gonum.org/v1/gonum/floats/scalar"
	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat"

	"vitrine/internal/expect"
	"vitrine/internal/fatal"
	"vitrine/internal/text"
)

// corpus returns 4n reviews of invented words, in Read's order. Positive reviews can be recognized by their praise.
func corpus(n int) []Review {
	rng := rand.New(rand.NewPCG(1, 2))
	var reviews []Review
	for _, split := range splits {
		for label := range labels {
			for id := range n {
				words := []string{"Café <br />\t“ÉTÉ” & 映画"}
				for range 10 + rng.IntN(20) {
					words = append(words, fmt.Sprintf("word%d", int(60*rng.Float64()*rng.Float64())))
				}
				for range 3 + rng.IntN(4) {
					words = append(words, [2]string{"bad", "good"}[label]+string(rune('a'+rng.IntN(3))))
				}
				rng.Shuffle(len(words), func(i, j int) { words[i], words[j] = words[j], words[i] })
				reviews = append(reviews, Review{split, label, id, 1 + 6*label + rng.IntN(4), strings.Join(words, " ")})
			}
		}
	}
	return reviews
}

func shuffled(reviews []Review) []Review {
	reviews = slices.Clone(reviews)
	rand.New(rand.NewPCG(3, 4)).Shuffle(len(reviews), func(i, j int) {
		reviews[i], reviews[j] = reviews[j], reviews[i]
	})
	return reviews
}

// fileName returns the review's path in the data set.
func fileName(r Review) string {
	return fmt.Sprintf("%s/%s/%d_%d.txt", r.Split, labels[r.Label], r.ID, r.Rating)
}

func asLines(reviews []Review) []byte {
	var b bytes.Buffer
	if err := encode(&b, reviews); err != nil {
		panic(err)
	}
	return b.Bytes()
}

func asZstd(content []byte) []byte {
	e, err := zstd.NewWriter(nil, zstd.WithEncoderCRC(true))
	if err != nil {
		panic(err)
	}
	return e.EncodeAll(content, nil)
}

func asGzip(content []byte) []byte {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	_, err := z.Write(content)
	if err := errors.Join(err, z.Close()); err != nil {
		panic(err)
	}
	return b.Bytes()
}

// asTar puts the reviews among unrelated files.
func asTar(reviews []Review) []byte {
	var entries [][2]string
	for name, content := range others {
		entries = append(entries, [2]string{"aclImdb/" + name, content})
	}
	for _, r := range reviews {
		entries = append(entries, [2]string{"aclImdb/" + fileName(r), r.Text})
	}
	return tarOf(entries...)
}

// tarOf returns an archive of files, given as pairs of name and content.
func tarOf(files ...[2]string) []byte {
	var b bytes.Buffer
	t := tar.NewWriter(&b)
	for _, f := range files {
		err := t.WriteHeader(&tar.Header{Name: f[0], Mode: 0o644, Size: int64(len(f[1]))})
		if _, more := t.Write([]byte(f[1])); errors.Join(err, more) != nil {
			panic(errors.Join(err, more))
		}
	}
	if err := t.Close(); err != nil {
		panic(err)
	}
	return b.Bytes()
}

// tarLink returns the beginning of an archive with a link.
func tarLink(name string) []byte {
	var b bytes.Buffer
	t := tar.NewWriter(&b)
	err := t.WriteHeader(&tar.Header{Typeflag: tar.TypeSymlink, Name: name, Linkname: "x"})
	if err := errors.Join(err, t.Flush()); err != nil {
		panic(err)
	}
	return b.Bytes()
}

// others are files that are not labelled reviews.
var others = map[string]string{
	"README":                  "read me",
	"imdb.vocab":              "the\nand\n",
	"train/urls_pos.txt":      "http://",
	"train/unsup/0_0.txt":     "no label",
	"train/pos/.DS_Store":     "\xff\xff",
	"train/pos/._0_9.txt":     "\xff\xff",
	"test/neg/notes.txt":      "notes",
	"test/neg/1_2.txt.bak":    "old",
	"extra/train/x/pos/1.txt": "elsewhere",
}

func asFolder(t *testing.T, dir string, reviews []Review) {
	t.Helper()
	for name, content := range others {
		write(t, filepath.Join(dir, name), []byte(content))
	}
	for _, r := range reviews {
		write(t, filepath.Join(dir, fileName(r)), []byte(r.Text))
	}
}

func write(t *testing.T, name string, content []byte) string {
	t.Helper()
	fatal.If(t, os.MkdirAll(filepath.Dir(name), 0o755))
	fatal.If(t, os.WriteFile(name, content, 0o644))
	return name
}

func TestReadersAgree(t *testing.T) {
	want := corpus(5)
	mixed := shuffled(want)
	dir := t.TempDir()
	asFolder(t, filepath.Join(dir, "folder", "aclImdb"), want)
	lines := asLines(mixed)
	paths := map[string]string{
		"the folder":        filepath.Join(dir, "folder", "aclImdb"),
		"its parent":        filepath.Join(dir, "folder"),
		"lines":             write(t, filepath.Join(dir, "a", "imdb.jsonl"), lines),
		"their folder":      filepath.Join(dir, "a"),
		"compressed lines":  write(t, filepath.Join(dir, "b", "imdb.jsonl.zst"), asZstd(lines)),
		"their folder, zst": filepath.Join(dir, "b"),
		"archive":           write(t, filepath.Join(dir, "c", "aclImdb_v1.tar.gz"), asGzip(asTar(mixed))),
		"its folder":        filepath.Join(dir, "c"),
		"archive with a link": write(t, filepath.Join(dir, "link"),
			asGzip(append(tarLink("test/pos/9_9.txt"), asTar(mixed)...))),
		"another name": write(t, filepath.Join(dir, "reviews"), asZstd(lines)),
		"empty lines, CRLF": write(t, filepath.Join(dir, "crlf"),
			bytes.ReplaceAll(lines, []byte("\n"), []byte("\r\n\r\n"))),
		"other fields": write(t, filepath.Join(dir, "fields"),
			bytes.ReplaceAll(lines, []byte(`{"split"`), []byte(`{"url":null,"split"`))),
		"two frames of zstd": write(t, filepath.Join(dir, "frames"),
			append(asZstd(lines[:500]), asZstd(lines[500:])...)),
		"last line without end":  write(t, filepath.Join(dir, "noend"), bytes.TrimSuffix(lines, []byte("\n"))),
		"ids with leading zeros": func() string { return leadingZeros(t, filepath.Join(dir, "zeros"), want) }(),
	}
	for name, path := range paths {
		t.Run(name, func(t *testing.T) {
			var done, total int
			got := fatal.Or(Read(context.Background(), path, func(d, of int) {
				if d < done || d > of {
					t.Errorf("progress %d of %d after %d", d, of, done)
				}
				done, total = d, of
			}))(t)
			expect.Equal(t, got, want)
			if done != total || total == 0 {
				t.Errorf("progress ends at %d of %d", done, total)
			}
			expect.Equal(t, digest(got), digest(want), "another digest")
		})
	}
}

func leadingZeros(t *testing.T, dir string, reviews []Review) string {
	for _, r := range reviews {
		write(t, filepath.Join(dir, r.Split, labels[r.Label], fmt.Sprintf("%05d_%02d.txt", r.ID, r.Rating)),
			[]byte(r.Text))
	}
	return dir
}

func TestBadInput(t *testing.T) {
	good := corpus(3)
	lines := asLines(good)
	replace := func(from, to string) []byte {
		if !bytes.Contains(lines, []byte(from)) {
			t.Fatalf("no %q to replace", from)
		}
		return bytes.Replace(lines, []byte(from), []byte(to), 1)
	}
	with := func(r Review) []Review { return append(slices.Clone(good), r) }
	without := func(i int) []Review { return slices.Delete(slices.Clone(good), i, i+1) }
	archive := asGzip(asTar(good))
	zst := asZstd(lines)
	flipped := slices.Clone(zst)
	flipped[len(flipped)/2] ^= 0xff
	wrongSum := slices.Clone(archive)
	wrongSum[len(wrongSum)-6] ^= 1

	for _, c := range []struct {
		name    string
		content []byte
		want    []string // parts of the error
	}{
		{"truncated zst", zst[:len(zst)/2], []string{"FILE is truncated: get it again"}},
		{"zst without its last byte", zst[:len(zst)-1], []string{"FILE is truncated"}},
		{"damaged zst", flipped, []string{"FILE"}},
		{"truncated archive", archive[:len(archive)/2], []string{"FILE is truncated: get it again"}},
		{"archive without its last byte", archive[:len(archive)-1], []string{"FILE is truncated"}},
		{"only the head of an archive", archive[:5], []string{"FILE is truncated"}},
		{"archive with a wrong checksum", wrongSum, []string{"FILE is damaged, get it again", "checksum"}},
		{"gzip of something else", asGzip(bytes.Repeat([]byte("no archive "), 100)),
			[]string{"FILE is damaged, get it again"}},
		{"archive without reviews", asGzip(asTar(nil)), []string{"FILE: no reviews", Source}},
		{"empty file", nil, []string{"FILE: no reviews", Source}},
		{"empty lines", []byte("\n \n"), []string{"FILE: no reviews"}},
		{"binary file", []byte("\x7fELF\x01\x02\x00\xff"), []string{"FILE:1: not a review in JSON"}},
		{"text", []byte("Dear user\n"), []string{"FILE:1: not a review in JSON"}},
		{"truncated lines", lines[:len(lines)-20], []string{"FILE:12: not a review in JSON"}},
		{"a wrong line", replace("}\n{", "}\n{{"), []string{"FILE:2: not a review in JSON"}},
		{"an array", []byte("[]"), []string{"FILE:1: not a review in JSON"}},
		{"broken UTF-8", replace("“", "\xe2\x80"), []string{"FILE:1: not a review in JSON", "UTF-8"}},
		{"half a surrogate pair", replace("“", `\ud83d`), []string{"FILE:1: not a review in JSON", "surrogate"}},
		{"no split", replace(`"split":"train",`, ""), []string{`FILE:1: split ""`, `"train" or "test"`}},
		{"odd split", replace(`"split":"train"`, `"split":"val"`), []string{`FILE:1: split "val"`}},
		{"no label", replace(`"label":1,`, ""), []string{"FILE: review train/neg/0 is a duplicate"}},
		{"label null", replace(`"label":1`, `"label":null`), []string{"FILE: review train/neg/0 is a duplicate"}},
		{"odd label", replace(`"label":0`, `"label":-1`), []string{"FILE:1: label -1", "1 for positive or 0 for negative"}},
		{"label in words", replace(`"label":0`, `"label":"neg"`), []string{"FILE:1: not a review in JSON", "label"}},
		{"no id", replace(`"id":1,`, ""), []string{"FILE: review train/neg/0 is a duplicate"}},
		{"negative id", replace(`"id":0`, `"id":-1`), []string{"FILE:1: id -1"}},
		{"no rating", replace(`"rating":`, `"stars":`), []string{"FILE:1: rating 0"}},
		{"odd rating", replace(`"rating":`, `"rating":9`), []string{"FILE:1: rating 9", "1 to 10 stars"}},
		{"no text", replace(`"text":`, `"texts":`), []string{"FILE:1: no text"}},
		{"long line", append(slices.Clone(lines), bytes.Repeat([]byte("x"), longest+1)...),
			[]string{"FILE:13: the line has more than 1048576 bytes"}},
		{"id twice", asLines(with(good[4])), []string{"FILE: review train/pos/1 is a duplicate"}},
		{"id missing", asLines(without(7)), []string{"FILE: review test/neg/1 is missing", Source}},
		{"first id missing", asLines(without(0)), []string{"FILE: review train/neg/0 is missing"}},
		{"group missing", asLines(good[:9]), []string{"FILE: no reviews of test/pos", Source}},
		{"first group missing", asLines(good[3:]), []string{"FILE: no reviews of train/neg"}},
		{"id twice in an archive", asGzip(asTar(with(good[4]))), []string{"FILE: review train/pos/1 is a duplicate"}},
		{"broken UTF-8 in an archive", asGzip(asTar(with(Review{"test", 1, 3, 8, "\xff"}))),
			[]string{"FILE: aclImdb/test/pos/3_8.txt: not UTF-8"}},
		{"odd rating in an archive", asGzip(asTar(with(Review{"test", 1, 3, 11, ""}))),
			[]string{"FILE: aclImdb/test/pos/3_11.txt: rating 11"}},
		{"long text in an archive", asGzip(asTar(with(Review{"test", 1, 3, 8, strings.Repeat("x", longest+1)}))),
			[]string{"FILE: aclImdb/test/pos/3_8.txt: the text has more than"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			file := write(t, filepath.Join(t.TempDir(), "reviews"), c.content)
			_, err := Read(context.Background(), file, nil)
			wantError(t, err, file, c.want...)
		})
	}
}

// A line that is cut off by a failing reader is not to blame.
func TestReaderFails(t *testing.T) {
	half := strings.NewReader(`{"split":"train","la`)
	for _, cause := range []error{context.Canceled, context.DeadlineExceeded} {
		_, err := readLines(io.MultiReader(half, iotest.ErrReader(cause)), "FILE")
		expect.Error(t, err, cause)
		half.Reset(`{"split":"train","la`)
		archive := asTar(corpus(3))
		_, err = readTar(io.MultiReader(bytes.NewReader(archive[:len(archive)/2]), iotest.ErrReader(cause)), "FILE")
		expect.Error(t, err, cause)
	}
	_, err := readLines(io.MultiReader(half, iotest.ErrReader(io.ErrUnexpectedEOF)), "FILE")
	wantError(t, err, "FILE", "FILE is truncated")
	half.Reset(`{"split":"train","la`)
	_, err = readLines(io.MultiReader(half, iotest.ErrReader(errors.New("no such disk"))), "FILE")
	wantError(t, err, "FILE", "FILE is damaged", "no such disk")
}

func TestBadFolders(t *testing.T) {
	good := corpus(3)
	for _, c := range []struct {
		name string
		make func(dir string)
		want []string
	}{
		{"does not exist", func(string) {}, []string{"FILE does not exist", "ai.stanford.edu/~amaas/data/sentiment"}},
		{"empty", func(dir string) { _ = os.MkdirAll(dir, 0o755) },
			[]string{"FILE has neither the folders train and test", Source}},
		{"other files", func(dir string) { write(t, filepath.Join(dir, "train", "0_9.txt"), nil) },
			[]string{"FILE has neither", "imdb.jsonl.zst"}},
		{"a part is missing", func(dir string) { asFolder(t, dir, good[:3]) },
			[]string{filepath.Join("FILE", "test", "pos"), Source}},
		{"no reviews in a part", func(dir string) {
			asFolder(t, dir, good[:9])
			_ = os.MkdirAll(filepath.Join(dir, "test", "pos"), 0o755)
		}, []string{"FILE: no reviews of test/pos"}},
		{"id twice", func(dir string) {
			asFolder(t, dir, good)
			write(t, filepath.Join(dir, "train", "neg", "1_10.txt"), nil)
		}, []string{"FILE: review train/neg/1 is a duplicate"}},
		{"id missing", func(dir string) { asFolder(t, dir, good[1:]) },
			[]string{"FILE: review train/neg/0 is missing"}},
		{"broken UTF-8", func(dir string) {
			asFolder(t, dir, good)
			write(t, filepath.Join(dir, "train", "neg", "3_1.txt"), []byte("a\xc3"))
		}, []string{filepath.Join("FILE", "train", "neg", "3_1.txt") + ": not UTF-8"}},
		{"odd rating", func(dir string) {
			asFolder(t, dir, good)
			write(t, filepath.Join(dir, "train", "neg", "3_0.txt"), nil)
		}, []string{filepath.Join("FILE", "train", "neg", "3_0.txt") + ": rating 0"}},
		{"a folder for a file", func(dir string) {
			asFolder(t, dir, good)
			_ = os.MkdirAll(filepath.Join(dir, "train", "neg", "3_1.txt"), 0o755)
		}, []string{filepath.Join("FILE", "train", "neg", "3_1.txt")}},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "data")
			c.make(dir)
			_, err := Read(context.Background(), dir, nil)
			wantError(t, err, dir, c.want...)
		})
	}
}

// wantError checks that an error contains all parts. FILE in a part stands for the file.
func wantError(t *testing.T, err error, file string, parts ...string) {
	t.Helper()
	expect.Refused(err)(fatal.T(t))
	for _, part := range parts {
		if part = strings.ReplaceAll(part, "FILE", file); !strings.Contains(err.Error(), part) {
			t.Errorf("error %q does not say %q", err, part)
		}
	}
}

// The keys depend only on the numbers of reviews. The expected ones come from a program in another language.
func TestHeldOut(t *testing.T) {
	var reviews []Review
	for _, split := range splits {
		for label := range labels {
			for id := range Published / 4 {
				reviews = append(reviews, Review{Split: split, Label: label, ID: id})
			}
		}
	}
	held, count, positive := map[string]bool{}, 0, 0
	for i, h := range HeldOut(reviews) {
		if h {
			count++
			positive += reviews[i].Label
			held[reviews[i].Key()] = true
		}
	}
	if count != 10_000 || positive != 5_033 {
		t.Errorf("%d are held out, %d of them positive, want 10000 and 5033", count, positive)
	}
	for _, key := range []string{"test/pos/173", "test/neg/8224", "train/pos/5314", "train/neg/2151", "test/neg/5371"} {
		if !held[key] {
			t.Errorf("%s is not held out", key)
		}
	}
	for n, want := range []int{0, 0, 0, 1, 1, 1, 1, 1, 2} {
		got := 0
		for _, h := range HeldOut(reviews[:n]) {
			if h {
				got++
			}
		}
		if got != want {
			t.Errorf("%d of %d are held out, want %d", got, n, want)
		}
	}
}

// The features are U Σ of the weights, and the explained variance agrees with its definition.
func TestFeatures(t *testing.T) {
	reviews := corpus(20)
	f := fatal.Or(reduce(context.Background(), reviews, rand.New(rand.NewPCG(1, 1)), Reporter{}))(t)
	var counts text.Counts
	for _, r := range reviews {
		counts.Add(r.Text)
	}
	v := counts.TFIDF()
	a := mat.NewDense(len(reviews), len(v.Vocabulary), nil)
	for i := range reviews {
		for p := v.Weights.Start[i]; p < v.Weights.Start[i+1]; p++ {
			a.Set(i, int(v.Weights.Column[p]), v.Weights.Value[p])
		}
	}
	var svd mat.SVD
	if !svd.Factorize(a, mat.SVDThin) {
		t.Fatal("gonum's decomposition failed")
	}
	var u mat.Dense
	svd.UTo(&u)
	sigma := svd.Values(nil)[:Dim]
	expect.Equal(t, f.values, sigma, "singular values", cmp.Comparer(func(a, b float64) bool {
		return scalar.EqualWithinRel(a, b, 1e-11)
	}))
	kept := 0.0
	for j := range Dim {
		want, got := mat.Col(nil, j, &u), mat.Col(nil, j, f.x)
		sign := 1.0
		if mat.Dot(mat.NewVecDense(len(want), want), mat.NewVecDense(len(got), got)) < 0 {
			sign = -1
		}
		for i := range want {
			if w := sign * sigma[j] * want[i]; !scalar.EqualWithinAbs(got[i], w, 1e-9) {
				t.Fatalf("feature %d of review %d is %v, want %v", j, i, got[i], w)
			}
		}
		kept += stat.PopVariance(got, nil)
	}
	all := 0.0
	for j := range v.Vocabulary {
		all += stat.PopVariance(mat.Col(nil, j, a), nil)
	}
	if !scalar.EqualWithinRel(f.explained, kept/all, 1e-10) {
		t.Errorf("explained variance %v, want %v", f.explained, kept/all)
	}
	if f.terms != len(v.Vocabulary) || f.nonzeros != len(v.Weights.Value) {
		t.Errorf("%d terms and %d weights", f.terms, f.nonzeros)
	}
}
