package text

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"strings"

	"vitrine/internal/sparse"
)

// Counts holds the counts of words in documents. The zero value is empty.
type Counts struct {
	id     map[string]int // by word, in order of first appearance
	ends   []int          // one past the last entry of each document
	word   []int32        // of an entry
	count  []float64
	latest []int // newest entry of each word
}

// Add counts the [Tokens] of another document.
func (c *Counts) Add(document string) {
	if c.id == nil {
		c.id = make(map[string]int)
	}
	first := len(c.word)
	for token := range Tokens(document) {
		id, known := c.id[token]
		if !known {
			id = len(c.id)
			// Without a copy, the token would keep its document in memory.
			c.id[strings.Clone(token)] = id
			c.latest = append(c.latest, -1)
		}
		if c.latest[id] < first {
			c.latest[id] = len(c.word)
			c.word, c.count = append(c.word, int32(id)), append(c.count, 0)
		}
		c.count[c.latest[id]]++
	}
	c.ends = append(c.ends, len(c.word))
}

// Vectors holds documents as weights of the words in a vocabulary.
type Vectors struct {
	Vocabulary []string       // sorted
	IDF        []float64      // of each word
	Weights    *sparse.Matrix // one row per document, one column per word
}

// TFIDF returns the term frequencies times inverse document frequencies of the n documents. If document i contains word
// t c_it times, and df_t documents contain it, the weight is
//
//	w_it = c_it idf_t / √(Σ_s (c_is idf_s)²),  idf_t = ln((1+n)/(1+df_t)) + 1
//
// Documents without words get zeros. These are the defaults of scikit-learn's TfidfVectorizer.
func (c *Counts) TFIDF() *Vectors {
	v := &Vectors{Vocabulary: slices.Sorted(maps.Keys(c.id))}
	column := make([]int32, len(c.id)) // of each word
	for j, word := range v.Vocabulary {
		column[c.id[word]] = int32(j)
	}
	v.IDF = make([]float64, len(c.id))
	for _, id := range c.word {
		v.IDF[column[id]]++
	}
	for j, df := range v.IDF {
		v.IDF[j] = math.Log(float64(1+len(c.ends))/(1+df)) + 1
	}

	columns, weights := make([]int32, len(c.word)), make([]float64, len(c.word))
	start := append([]int{0}, c.ends...)
	for i := range c.ends {
		lo, hi := start[i], start[i+1]
		order := make([]int, hi-lo)
		for k := range order {
			order[k] = lo + k
		}
		slices.SortFunc(order, func(p, q int) int { return cmp.Compare(column[c.word[p]], column[c.word[q]]) })
		sum := 0.0
		for k, p := range order {
			j := column[c.word[p]]
			w := c.count[p] * v.IDF[j]
			columns[lo+k], weights[lo+k] = j, w
			sum += w * w
		}
		for k := lo; k < hi; k++ {
			weights[k] /= math.Sqrt(sum)
		}
	}
	v.Weights = &sparse.Matrix{Columns: len(c.id), Start: start, Column: columns, Value: weights}
	return v
}
