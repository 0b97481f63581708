package text

import (
	"math"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"gonum.org/v1/gonum/floats/scalar"
	"pgregory.net/rapid"

	"vitrine/internal/expect"
	_ "vitrine/internal/rapidseed"
)

func TestTokens(t *testing.T) {
	for _, c := range []struct {
		text string
		want []string
	}{
		{"", nil},
		{"a I 7 _ - é", nil},
		{"It's a film, isn't it?", []string{"it", "film", "isn", "it"}},
		{"10/10!!! A+ for 1984's re-make", []string{"10", "10", "for", "1984", "re", "make"}},
		{"good.<br /><br />Not_great", []string{"good", "br", "br", "not_great"}},
		{"__ _x", []string{"__", "_x"}},
		{"CAFÉ Ærø Дом 映画 ½¾ x²", []string{"café", "ærø", "дом", "映画", "½¾", "x²"}},
		{"cafe\u0301s", []string{"cafe"}}, // a combining accent is not a letter
		{"don’t stop", []string{"don", "stop"}},
		{"ab\u00a0cd\tef\ngh", []string{"ab", "cd", "ef", "gh"}},
		{"İSTANBUL Iİx", []string{"stanbul", "ii"}}, // İ lowers to i and a combining dot
		{"ΟΔΟΣ ΣΑΣ, ΟΔΟΣ'ΣΑ", []string{"οδος", "σας", "οδοσ", "σα"}},
		{"ab\xffcd\xc3", []string{"ab", "cd"}},
	} {
		expect.Equal(t, slices.Collect(Tokens(c.text)), c.want, c.text)
	}
	for token := range Tokens("stops where asked") {
		expect.Equal(t, token, "stops", "went on to")
		break
	}
}

// Results of Python 3.11 for the same strings.
func TestLower(t *testing.T) {
	for text, want := range map[string]string{
		"Σ":             "σ",
		"AΣ":            "aς",
		"AΣ.":           "aς.",
		"AΣ.b":          "aσ.b",
		"A.'Σ \u0301b":  "a.'ς \u0301b",
		"AΣ\u0301B":     "aσ\u0301b",
		"1Σ":            "1σ",
		"aς Σς":         "aς σς",
		"İΣ":            "i\u0307ς",
		"ǅ K Å":         "ǆ k å",
		"plain, ASCII!": "plain, ascii!",
	} {
		expect.Equal(t, lower(text), want, text, "becomes")
	}
}

func FuzzTokens(f *testing.F) {
	for _, seed := range []string{"It's a film", "ΟΔΟΣ'ΣΑ İx", "x² ½¾ __", "ab\xffcd", "a\u0345Σ"} {
		f.Add(seed)
	}
	word := regexp.MustCompile(`[\p{L}\p{N}_]{2,}`)
	f.Fuzz(func(t *testing.T, text string) {
		// The pattern treats both lower-case sigmas as one.
		fold := strings.NewReplacer("İ", "i\u0307", "ς", "σ")
		want := word.FindAllString(fold.Replace(strings.ToLower(fold.Replace(text))), -1)
		var got []string
		for token := range Tokens(text) {
			got = append(got, fold.Replace(token))
		}
		expect.Equal(t, got, want)
	})
}

func count(documents ...string) *Counts {
	c := new(Counts)
	for _, d := range documents {
		c.Add(d)
	}
	return c
}

func TestTFIDF(t *testing.T) {
	v := count("The cat sat.", "The cat and the DOG!", "a", "Dog").TFIDF()
	expect.Equal(t, v.Vocabulary, []string{"and", "cat", "dog", "sat", "the"}, "vocabulary")
	once, twice := math.Log(5.0/2)+1, math.Log(5.0/3)+1
	near := cmp.Comparer(func(a, b float64) bool { return scalar.EqualWithinRel(a, b, 1e-15) })
	expect.Equal(t, v.IDF, []float64{once, twice, twice, once, twice}, "idf", near)
	first := math.Sqrt(twice*twice + once*once + twice*twice)
	second := math.Sqrt(once*once + 6*twice*twice)
	expect.Equal(t, v.Weights.Start, []int{0, 3, 7, 7, 8}, "rows")
	expect.Equal(t, v.Weights.Column, []int32{1, 3, 4, 0, 1, 2, 4, 2}, "columns")
	want := []float64{
		twice / first, once / first, twice / first,
		once / second, twice / second, twice / second, 2 * twice / second,
		1,
	}
	expect.Equal(t, v.Weights.Value, want, "weights", near)
}

func TestTFIDFOfNothing(t *testing.T) {
	for name, c := range map[string]*Counts{"no documents": count(), "no words": count("", "a ?")} {
		v := c.TFIDF()
		if m, n := v.Weights.Dims(); n != 0 || m != len(c.ends) || len(v.Vocabulary) != 0 {
			t.Errorf("%s: %d×%d weights of %v", name, m, n, v.Vocabulary)
		}
	}
}

// The rows follow the documents, with the same weights as computed by hand.
func TestTFIDFOfAnyDocuments(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		word := rapid.SampledFrom([]string{"aa", "bb", "cc", "dd", "ee", "x"})
		documents := rapid.SliceOfN(rapid.SliceOfN(word, 0, 8), 1, 6).Draw(t, "documents")
		c := new(Counts)
		df := map[string]float64{}
		for _, d := range documents {
			c.Add(strings.Join(d, " "))
			seen := map[string]bool{"x": true}
			for _, w := range d {
				if !seen[w] {
					seen[w] = true
					df[w]++
				}
			}
		}
		v := c.TFIDF()
		if len(v.Vocabulary) != len(df) || !slices.IsSorted(v.Vocabulary) {
			t.Fatalf("vocabulary %v of the words in %v", v.Vocabulary, df)
		}
		for i, d := range documents {
			row, sum := map[string]float64{}, 0.0
			for _, w := range d {
				if w != "x" {
					row[w] += math.Log(float64(1+len(documents))/(1+df[w])) + 1
				}
			}
			for _, w := range row {
				sum += w * w
			}
			lo, hi := v.Weights.Start[i], v.Weights.Start[i+1]
			if hi-lo != len(row) || !slices.IsSorted(v.Weights.Column[lo:hi]) {
				t.Fatalf("document %d has the columns %v", i, v.Weights.Column[lo:hi])
			}
			for p := lo; p < hi; p++ {
				want := row[v.Vocabulary[v.Weights.Column[p]]] / math.Sqrt(sum)
				if !scalar.EqualWithinRel(v.Weights.Value[p], want, 1e-14) {
					t.Fatalf("document %d has %v where %v is right", i, v.Weights.Value[p], want)
				}
			}
		}
	})
}
