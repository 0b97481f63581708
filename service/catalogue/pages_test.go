package catalogue

import (
	"math/rand/v2"
	"strings"
	"testing"

	"vitrine/internal/expect"
	"vitrine/internal/fatal"
)

// Pages agree with a slice, and count the bytes of each text and its length. A text that was read stays valid.
func TestPages(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	var p pages
	var want []string
	text := func() string {
		return strings.Repeat(string(rune('a'+rng.IntN(26))), []int{0, 1, 5, 127, 128, 20_000}[rng.IntN(6)])
	}
	read, was := "", ""
	for step := range 3000 {
		switch n := len(want); {
		case n < 5 || rng.IntN(3) == 0 && n < 100:
			want = append(want, text())
			p.add(want[n])
		case rng.IntN(2) == 0:
			i := rng.IntN(n)
			read, was = p.at(int32(i)), want[i]
			want[i] = text()
			p.set(int32(i), want[i])
		default:
			want = want[:n-1]
			p.drop()
		}
		bytes := int64(0)
		for i, v := range want {
			if have := p.at(int32(i)); have != v {
				t.Fatalf("step %d: text %d of %d has %d bytes, want %d", step, i, len(want), len(have), len(v))
			}
			bytes += int64(len(appendString(nil, v)))
		}
		if p.n != len(want) || p.bytes != bytes || len(p.pages) != (p.n+textsOfPage-1)/textsOfPage {
			t.Fatalf("step %d: %d texts of %d bytes on %d pages, want %d of %d",
				step, p.n, p.bytes, len(p.pages), len(want), bytes)
		}
		expect.Equal(fatal.T(t), read, was, "step", step, "a text that was read has changed")
	}
}
