package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"vitrine/internal/expect"
	"vitrine/internal/fatal"
	"vitrine/internal/long"
	"vitrine/internal/replace"
	"vitrine/service/api"
	"vitrine/service/engine"
	"vitrine/service/eventlog/filelog"
	"vitrine/service/host"
)

var (
	flips      = flag.Int("flips", 12, "how many bits TestFlips flips, one at a time")
	flipRounds = flag.Int("flip-rounds", 40, "decisions in the log that it flips them in, of 14 KB each")
)

// stocked makes the data directory of a service that ended: a log, a snapshot of its end, and with cut a log
// without its beginning and a base.
func stocked(t *testing.T, rounds int, cut bool) (data string) {
	t.Helper()
	data = filepath.Join(t.TempDir(), "data")
	err := withEngine(data, func(ctx context.Context, e *engine.Engine, store *filelog.Store) error {
		features := make([]string, 40)
		for j := range features {
			features[j] = fmt.Sprintf(`{"name":"f%d","kind":"number"}`, j)
		}
		now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).UnixNano()
		put := fmt.Sprintf(`{"max_size":3,"log_items":"all","policy":{"name":"uniform"},"memory_bytes":7000000,"features":[%s]}`, strings.Join(features, ","))
		if _, err := e.Put(ctx, "home", []byte(put), now); err != nil {
			return err
		}
		snapshot := func() error {
			bytes, upTo, err := e.Snapshot(ctx)
			if err = errors.Join(err, replace.File(filepath.Join(data, host.SnapshotFile), bytes)); err != nil || !cut {
				return err
			}
			_, err = (&host.Retention{Size: uint64(rounds) * 7000, Log: store, Data: data}).Apply(ctx, upTo,
				time.Time{})
			return err
		}
		rng := rand.New(rand.NewPCG(13, 3))
		for i := range rounds {
			now += int64(time.Second)
			r := &api.Request{Decision: fmt.Sprint("d", i)}
			for k := range 40 {
				row := make(api.Values, len(features))
				for j := range row {
					row[j] = api.Number(fmt.Sprint("f", j), rng.NormFloat64())
				}
				r.Items = append(r.Items, api.Item{ID: fmt.Sprint("i", k), Features: row})
			}
			a, err := e.Decide(ctx, "home", r, now)
			if err == nil {
				err = e.Outcome(ctx, "home", a.Decision, a.IDs()[0], now)
			}
			if err == nil && i == rounds*3/4 {
				err = snapshot()
			}
			if err != nil {
				return err
			}
		}
		return snapshot()
	})
	fatal.If(t, err)
	return data
}

// entriesOf returns all entries of a log.
func entriesOf(t *testing.T, data string) (first uint64, entries [][]byte) {
	t.Helper()
	err := withLog(data, func(ctx context.Context, store *filelog.Store) error {
		x, err := store.Extent(ctx)
		if err != nil {
			return err
		}
		first = x.First
		for entry, err := range store.Entries(ctx, first) {
			if err != nil {
				return err
			}
			entries = append(entries, bytes.Clone(entry))
		}
		return nil
	})
	fatal.If(t, err)
	return first, entries
}

// A refusal must name a file of the data directory, or an entry.
var namesIt = regexp.MustCompile(`\.wal is damaged after byte|/mark: the mark of|from entry \d+ on`)

// A bit flips somewhere in the data directory of an ended service: in the log before its snapshot or after it, in the
// mark, a snapshot, a base. The next start is refused, with the file or the entry named, or it mends the directory with
// a warning. No loss goes unreported, and a refused directory is not changed.
func TestFlips(t *testing.T) {
	long.Test(t)
	t.Parallel()
	sources := map[bool]string{}
	refused, mended, tried := map[string]int{}, map[string]int{}, map[string]int{}
	rng := rand.New(rand.NewPCG(*killSeed, 13))
	for i := range *flips {
		cut := i%3 == 0
		if sources[cut] == "" {
			sources[cut] = stocked(t, *flipRounds, cut)
		}
		file, data := serviceFile(t, "")
		fatal.If(t, os.CopyFS(data, os.DirFS(sources[cut])))
		before := filepath.Join(t.TempDir(), "before")
		fatal.If(t, os.CopyFS(before, os.DirFS(data)))
		path, at := flip(t, rng, data, i)
		name := strings.Trim(filepath.Base(path), "0123456789")
		tried[name]++
		said := fmt.Sprintf("flip %d, bit %d of %s (cut %v)", i, at, path, cut)
		spoilt := fatal.Or(os.ReadFile(path))(t)

		p := program.Serve(t, file)
		if p.Ready() != "" {
			p.Stop()
			expect.Contains(t, p.Said(), `"level":"WARN"`, said, "the service starts in silence")
			mended[name]++
			wantFirst, want := entriesOf(t, before)
			first, have := entriesOf(t, data)
			if first != wantFirst || len(have) < len(want) {
				t.Errorf("%s: entries %d to %d, and there were %d to %d:\n%s", said, first, first+uint64(len(have))-1,
					wantFirst, wantFirst+uint64(len(want))-1, p.Said())
				continue
			}
			for i := range want {
				if !bytes.Equal(have[i], want[i]) {
					t.Fatalf("%s: entry %d is another one", said, first+uint64(i))
				}
			}
			if output, code := command(t, "check", data); code != 0 {
				t.Errorf("%s: check after it: exit status %d\n%s", said, code, output)
			}
			if output, code := command(t, "replay", data); code != 0 {
				t.Errorf("%s: replay after it: exit status %d\n%s", said, code, output)
			}
		} else {
			if code := p.ProcessState.ExitCode(); code != 1 || !namesIt.MatchString(p.Said()) {
				t.Errorf("%s: exit status %d, and nothing is named:\n%s", said, code, p.Said())
			}
			refused[name]++
			if now, err := os.ReadFile(path); err != nil || !bytes.Equal(now, spoilt) {
				t.Errorf("%s: the file was changed, %v", said, err)
			}
			if output, code := command(t, "check", data); code != 1 || !namesIt.MatchString(output) {
				t.Errorf("%s: check: exit status %d\n%s", said, code, output)
			}
		}
		fatal.If(t, errors.Join(os.RemoveAll(filepath.Dir(file)), os.RemoveAll(before)))
	}
	var all []string
	for _, name := range slices.Sorted(maps.Keys(tried)) {
		all = append(all, fmt.Sprintf("%s %d refused, %d mended", name, refused[name], mended[name]))
	}
	held(t, fmt.Sprintf("seed %d: %d flips of one bit, each refused with its place named or mended with a "+
		"warning, none silent: %s", *killSeed, *flips, strings.Join(all, "; ")))
}

// flip flips a bit of a data directory: every other time one of the log's entries, else one of any file.
func flip(t *testing.T, rng *rand.Rand, data string, i int) (path string, bit int) {
	t.Helper()
	var files []string
	err := filepath.WalkDir(data, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		info, err := d.Info()
		if err == nil && info.Size() > 0 && (i%2 == 1 || filepath.Ext(path) == ".wal") {
			files = append(files, path)
		}
		return err
	})
	fatal.If(t, err)
	path = files[rng.IntN(len(files))]
	content := fatal.Or(os.ReadFile(path))(t)
	bit = rng.IntN(8 * len(content))
	content[bit/8] ^= 1 << (bit % 8)
	fatal.If(t, os.WriteFile(path, content, 0o600))
	return path, bit
}
