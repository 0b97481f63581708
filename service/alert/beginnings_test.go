package alert

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"time"
)

// A problem is logged when it begins, and again only after it was gone for more than a minute.
func TestBeginnings(t *testing.T) {
	var text bytes.Buffer
	var b Beginnings
	now := time.Unix(0, 0)
	problem := Problem{Placement: "home", Level: "bad", Key: "%d lost", Text: "3 lost"}
	for i, c := range []struct {
		after  time.Duration
		stands bool
		logged int
	}{{0, true, 1}, {time.Second, true, 1}, {problemIsOver / 2, false, 1}, {time.Second, true, 1},
		{2 * problemIsOver, false, 1}, {time.Second, true, 2}} {
		now = now.Add(c.after)
		var problems []Problem
		if c.stands {
			problems = append(problems, problem)
		}
		b.Log(problems, now, slog.New(slog.NewTextHandler(&text, nil)))
		if n := strings.Count(text.String(), "3 lost"); n != c.logged {
			t.Errorf("%d: logged %d times, want %d:\n%s", i, n, c.logged, text.String())
		}
	}
}
