package expiry_test

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"vitrine/internal/expect"
	"vitrine/internal/fatal"
	_ "vitrine/internal/rapidseed"
	"vitrine/service/expiry"
)

// decision is one with the start of its window by the present clock.
type decision struct {
	time, now int64
	entry     uint64
	id        string
	place     int
}

func (d *decision) Began() (time int64, entry uint64, id string) { return d.time, d.entry, d.id }
func (d *decision) Size() int                                    { return 10 + int(d.entry) }
func (d *decision) Place() *int                                  { return &d.place }

// A queue has the order, the bytes and the decisions held of a sorted list that moves each window by itself.
func TestQueue(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var q expiry.Queue[*decision]
		var list []*decision
		held := map[*decision]bool{}
		for entry := uint64(1); entry <= uint64(rapid.IntRange(1, 60).Draw(t, "entries")); entry++ {
			switch at := rapid.IntRange(0, 9).Draw(t, "what"); {
			case at == 0:
				m := expiry.Move{Entry: entry, Time: int64(entry) * int64(time.Hour), By: rapid.Int64Range(-3, 3).Draw(t, "by")}
				q.Move(m)
				for _, d := range list {
					d.now += m.By
					held[d] = held[d] || m.By != 0
				}
			case at < 4 && len(list) > 0:
				i := rapid.IntRange(0, len(list)-1).Draw(t, "which")
				q.Remove(list[i])
				delete(held, list[i])
				list = slices.Delete(list, i, i+1)
			default:
				at := rapid.Int64Range(0, 5).Draw(t, "time")
				d := &decision{time: at, now: at, entry: entry, id: fmt.Sprint(entry % 3)}
				q.Add(d)
				list = append(list, d)
			}
			want, bytes, oldest := slices.Clone(list), 0, entry+1
			slices.SortFunc(want, func(a, b *decision) int {
				return cmp.Or(cmp.Compare(a.now, b.now), cmp.Compare(a.entry, b.entry))
			})
			for _, d := range list {
				bytes, oldest = bytes+d.Size(), min(oldest, d.entry)
				expect.Equal(fatal.T(t), q.Since(d), d.now, "the window of", d, "began at")
			}
			if got := slices.Collect(q.All()); !slices.Equal(got, want) || !slices.Equal(q.Sorted(), want) {
				t.Fatalf("the order is %v and %v, want %v", got, q.Sorted(), want)
			}
			if q.Len() != len(list) || q.Bytes != bytes || q.Oldest(entry+1) != oldest {
				t.Fatalf("%d decisions of %d bytes, the first of entry %d, want %d, %d and %d", q.Len(), q.Bytes,
					q.Oldest(entry+1), len(list), bytes, oldest)
			}
			maps.DeleteFunc(held, func(_ *decision, is bool) bool { return !is })
			if h := q.Held(); (h != nil) != (len(held) > 0) || h != nil && h.Decisions != len(held) {
				t.Fatalf("held are %+v, want %d", h, len(held))
			}
		}
	})
}

// A move of a day ago is forgotten with the last decision from before it.
func TestMovesAreForgotten(t *testing.T) {
	var q expiry.Queue[*decision]
	d := &decision{entry: 1}
	q.Add(d)
	day := int64(25 * time.Hour)
	q.Move(expiry.Move{Entry: 2, Time: 0, By: 1})
	q.Move(expiry.Move{Entry: 3, Time: day, By: 1})
	expect.Equal(t, len(q.Moves), 2, "the moves are", q.Moves)
	q.Remove(d)
	q.Move(expiry.Move{Entry: 4, Time: 2 * day, By: 1})
	if len(q.Moves) != 1 || q.Moves[0].Entry != 4 {
		t.Errorf("the moves are %+v, want the last one", q.Moves)
	}
}
