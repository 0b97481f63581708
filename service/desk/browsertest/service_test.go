package browsertest

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"vitrine/internal/expect"
	"vitrine/internal/fatal"
	"vitrine/service/api"
	"vitrine/service/client"
	"vitrine/service/demo"
	"vitrine/service/host"
)

// served is a service that a test looks at.
type served struct {
	*client.Client
	base string // "http://127.0.0.1:1234/"
}

// serve runs a service until the end of the test.
func serve(t *testing.T, change func(*host.Config, *host.Options)) *served {
	t.Helper()
	c := host.Default()
	c.Listen, c.Data = "127.0.0.1:0", filepath.Join(t.TempDir(), "data")
	var log bytes.Buffer
	o := host.Options{Logger: slog.New(slog.NewJSONHandler(&log, nil))}
	if change != nil {
		change(c, &o)
	}
	at, beside := make(chan string, 1), o.Serving
	o.Serving = func(ctx context.Context, address string) {
		at <- address
		if beside != nil {
			beside(ctx, address)
		}
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- host.Run(ctx, c, o) }()
	select {
	case address := <-at:
		s := &served{&client.Client{Base: "http://" + address}, "http://" + address + "/"}
		t.Cleanup(func() {
			s.CloseIdleConnections()
			stop()
			expect.Error(t, <-ended, nil, "the service", &log)
		})
		return s
	case err := <-ended:
		stop()
		t.Fatalf("the service ended: %v\n%s", err, &log)
		return nil
	}
}

// withDemo adds the shop of the demonstration.
func withDemo(c *host.Config, o *host.Options) {
	shop := demo.New(o.Logger)
	o.Demo = shop.Routes()
	o.Serving = func(ctx context.Context, address string) {
		if err := shop.Run(ctx, "http://"+address); err != nil && ctx.Err() == nil {
			o.Logger.Error("the shop", "cause", err.Error())
		}
	}
}

// withKey adds a key of all scopes with a token, one that may only read with the token "read-" and the first one, and one of
// another placement with "other-" and the first one.
func withKey(t *testing.T, token string) func(*host.Config, *host.Options) {
	all, reads, other := sha256.Sum256([]byte(token)), sha256.Sum256([]byte("read-"+token)),
		sha256.Sum256([]byte("other-"+token))
	text := fmt.Sprintf("[[key]]\nname = \"shop\"\nsha256 = %q\nscopes = [\"read\", \"decide\", \"outcome\", "+
		"\"admin\"]\n[[key]]\nname = \"reader\"\nsha256 = %q\nscopes = [\"read\"]\n[[key]]\nname = \"other\"\nsha256 = %q\n"+
		"scopes = [\"read\", \"admin\"]\nplacements = [\"other\"]\n", hex.EncodeToString(all[:]),
		hex.EncodeToString(reads[:]), hex.EncodeToString(other[:]))
	path := filepath.Join(t.TempDir(), "keys.toml")
	fatal.If(t, os.WriteFile(path, []byte(text), 0o600))
	return func(c *host.Config, _ *host.Options) { c.Keys = path }
}

// ask sends a request of JSON below the service, and decodes the answer into v unless it is nil.
func (s *served) ask(t *testing.T, method, path string, body, v any) {
	t.Helper()
	var text []byte
	if body != nil {
		var err error
		if text, err = json.Marshal(body); err != nil {
			t.Fatal(err)
		}
	}
	r, err := http.NewRequest(method, s.base+path, bytes.NewReader(text))
	fatal.If(t, err)
	answer := fatal.Or(http.DefaultClient.Do(r))(t)
	defer answer.Body.Close()
	text, err = io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode >= 300 {
		t.Fatalf("%s %s: %d %s, %v", method, path, answer.StatusCode, text, err)
	}
	if v != nil {
		fatal.If(t, json.Unmarshal(text, v))
	}
}

// Texts that would do harm if the desk took them for markup or for code. Each sets window.pwned.
var (
	script  = `"><script>window.pwned=1</script>`
	picture = `<img src=x onerror="window.pwned=1">`
	braces  = "${window.pwned=1}{{window.pwned=1}}'`\\"
)

// harmful makes a placement whose features, categories and items have such names, with decisions and a version.
func (s *served) harmful(t *testing.T, name string) {
	t.Helper()
	ctx := t.Context()
	config := &api.Placement{MaxSize: 2, LogItems: "all", Policy: map[string]any{"name": "auto"},
		Features: []api.Feature{
			{Name: picture, Kind: "number"}, {Name: script, Kind: "category", Values: []string{picture, braces}},
			{Name: braces, Kind: "number", From: "shopper"},
		}}
	fatal.Or(s.Put(ctx, name, config))(t)
	for round := range 12 {
		r := &api.Request{Decision: fmt.Sprintf("harm-%d", round),
			User: api.Values{api.Number(braces, float64(round%3))}}
		for k, id := range []string{picture, script, braces} {
			r.Items = append(r.Items, api.Item{ID: id, Features: api.Values{api.Number(picture, float64((round*k)%5)),
				api.Text(script, []string{picture, braces}[k%2])}})
		}
		answer := fatal.Or(s.Decide(ctx, name, r))(t)
		fatal.If(t, s.Outcome(ctx, name, answer.Decision, answer.Items()[0]))
	}
	fatal.Or(s.Keep(ctx, name, script))(t)
}

// A placement and a decision with long names.
var (
	longName     = strings.Repeat("long-", 12)
	longDecision = strings.Repeat("long", 20) + "-3"
)

// many makes a placement with a thousand items of very long names, and a name as long as it may be.
func (s *served) many(t *testing.T, name string) {
	t.Helper()
	ctx := t.Context()
	long := strings.Repeat("averyverylongfeaturename", 4)
	config := &api.Placement{MaxSize: 10, Policy: map[string]any{"name": "auto"},
		Features: []api.Feature{{Name: long, Kind: "number"}}}
	fatal.Or(s.Put(ctx, name, config))(t)
	var items []api.CatalogueItem
	for i := range 1000 {
		items = append(items, api.CatalogueItem{ID: fmt.Sprintf("%04d-%s", i, strings.Repeat("item", 48)),
			Features: api.Values{api.Number(long, float64(i%7))}})
	}
	fatal.Or(s.PutItems(ctx, name, items))(t)
	for round := range 30 {
		answer := fatal.Or(s.Decide(ctx, name,
			&api.Request{Decision: strings.Replace(longDecision, "3", fmt.Sprint(round), 1)}))(t)
		fatal.If(t, s.Outcome(ctx, name, answer.Decision, answer.Items()[round%2]))
	}
}

// chosen waits for the n-th outcome of a placement's decisions in the log whose ids begin with a prefix, and returns the
// decision and the item that was taken, "" for none.
func (s *served) chosen(t *testing.T, placement, prefix string, n int) (id, item string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	r := fatal.Or(http.NewRequestWithContext(ctx, "GET", s.base+"v1/events?placement="+url.QueryEscape(placement),
		nil))(t)
	r.Header.Set("Last-Event-ID", "0") // from the beginning of the log
	answer := fatal.Or(http.DefaultClient.Do(r))(t)
	defer answer.Body.Close()
	shown := map[string][]string{}
	for lines := bufio.NewScanner(answer.Body); lines.Scan(); {
		data, ok := strings.CutPrefix(lines.Text(), "data: ")
		var e api.Event
		if !ok || json.Unmarshal([]byte(data), &e) != nil || !strings.HasPrefix(e.Decision, prefix) {
			continue
		}
		if e.Shown != nil {
			shown[e.Decision] = e.Shown
		}
		if e.Position == nil {
			continue
		}
		if n--; n == 0 {
			if *e.Position > 0 {
				item = shown[e.Decision][*e.Position-1]
			}
			return e.Decision, item
		}
	}
	t.Fatalf("the log has no such outcome of %s", placement)
	return "", ""
}

// shopState is what the shop of the demonstration says of itself.
type shopState struct {
	Totals []struct {
		Placement string
		Shoppers  int
		Earned    float64
	}
	Curves struct {
		Rounds  []int
		Optimum []float64
		Worth   [][]float64
	}
}

// shop lets at least n shoppers come as quickly as they can, closes the door, and returns the state then. b is any tab.
func (s *served) shop(t *testing.T, b *tab, n int) (state shopState) {
	t.Helper()
	s.ask(t, "PUT", "demo/speed", map[string]any{"speed": 1000}, nil)
	for len(state.Totals) == 0 || state.Totals[0].Shoppers < n {
		b.wait("true") // some time
		s.ask(t, "GET", "demo/state", nil, &state)
	}
	s.ask(t, "PUT", "demo/speed", map[string]any{"speed": 0}, nil)
	return state
}
