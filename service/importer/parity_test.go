package importer_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/parquet-go/parquet-go"

	"vitrine/internal/fatal"
	"vitrine/service/engine"
	"vitrine/service/eventlog/memlog"
	"vitrine/service/importer"
	"vitrine/service/page"
	"vitrine/service/server"
	"vitrine/service/setup"
)

// live is a service that events come to by HTTP.
type live struct {
	*testing.T
	engine *engine.Engine
	server *server.Server
	now    time.Time
}

func newEngine(t *testing.T) *engine.Engine {
	t.Helper()
	e := fatal.Or(engine.Open(t.Context(), engine.Options{Store: new(memlog.Store), Build: setup.NewLearner}))(t)
	t.Cleanup(e.Close)
	return e
}

func newLive(t *testing.T) *live {
	l := &live{T: t, engine: newEngine(t), now: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}
	l.server = server.New(server.Options{Engine: l.engine, Clock: func() time.Time { return l.now },
		Personalizer: true})
	return l
}

func (l *live) send(method, path, body string, answer any) {
	l.Helper()
	w := httptest.NewRecorder()
	r := httptest.NewRequest(method, "http://localhost"+path, strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	l.server.ServeHTTP(w, r)
	if w.Code/100 != 2 {
		l.Fatalf("%s %s: %d %s", method, path, w.Code, w.Body)
	}
	if answer != nil {
		fatal.If(l, json.Unmarshal(w.Body.Bytes(), answer))
	}
}

// state returns the saved state of a placement's learner, and its number of rounds.
func state(t *testing.T, e *engine.Engine, placement string) (string, uint64) {
	t.Helper()
	fatal.If(t, e.Wait(t.Context()))
	m := fatal.Or(e.Model(t.Context(), placement))(t)
	return m.State, m.Learned
}

// imported returns what a placement of the same configuration learns from a file.
func imported(t *testing.T, from *engine.Engine, placement, path string, m *importer.Mapping) (string, uint64) {
	t.Helper()
	c := fatal.Or(from.Config(placement))(t)
	e := newEngine(t)
	fatal.If(t, e.Create(t.Context(), placement, c.Canonical(), 1))
	log := fatal.Or(importer.Open(t.Context(), path, m))(t)
	defer log.Close()
	var waiting []*page.Imported
	flush := func() {
		fatal.If(t, e.Import(t.Context(), placement, waiting...))
		waiting = waiting[:0]
	}
	fatal.Or(log.Read(t.Context(), placement, c, func(d *page.Imported) error {
		if waiting = append(waiting, d); len(waiting) == 256 {
			flush()
		}
		return nil
	}))(t)
	flush()
	return state(t, e, placement)
}

// events is the number of events of a test of parity.
func events() int {
	if testing.Short() {
		return 500
	}
	return 10_000
}

func file(t *testing.T, name string, text []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	fatal.If(t, os.WriteFile(path, text, 0o600))
	return path
}

func same(t *testing.T, format string, e *engine.Engine, placement, path string, m *importer.Mapping) {
	t.Helper()
	want, n := state(t, e, placement)
	got, k := imported(t, e, placement, path, m)
	if got != want || n == 0 || k != n {
		t.Errorf("%s: the learner of %d rounds by HTTP is not that of %d imported ones", format, n, k)
	}
}

// The same events by HTTP and in a log of Azure Personalizer teach the same to the last bit: Ranks and rewards between
// −1 and 1, of one slot and of several. Lines have Personalizer's export format, with a name twice.
func TestPersonalizerLogsTeachAsTheirCalls(t *testing.T) {
	t.Parallel()
	const root = "/personalizer/v1.1-preview.3"
	actions := []string{"Cappucino", "Cold brew", "Iced mocha", "Latte"}
	features := []string{`{"type":"hot","origin":"kenya"},{"price":3.5}`, `{"type":"cold","price":2.25,"organic":true}`,
		`{"type":"cold","price":4,"roast":{"shade":"light","hours":2}}`, `{"price":3}`}
	rng := rand.New(rand.NewPCG(1, 2))
	one, several := newLive(t), newLive(t)
	for _, l := range []*live{one, several} { // docs/personalizer.md's, with fewer buckets and a policy that learns online
		l.send("PUT", "/v1/placements/personalizer",
			`{"max_size":2,"mode":"explore","explore_share":0.2,"log_items":"shown","attribution_window":"10m","features":[{"name":"id","kind":"category","columns":8},{"name":"price","kind":"number"},{"name":"action","kind":"object","columns":8},{"name":"context","kind":"object","from":"shopper","columns":4},{"name":"action in context","kind":"cross","of":["action","context"]}],"policy":{"name":"ofu-mnl-plus"}}`, nil)
	}
	var cb, ccb bytes.Buffer
	for k := range events() {
		context := fmt.Sprintf(`{"timeofday":%q,"weather":"Sunny"},{"visits":%d}`,
			[]string{"Morning", "Evening"}[rng.IntN(2)], rng.IntN(5))
		id := fmt.Sprintf("%032x", k)
		if k%5 == 0 {
			id = fmt.Sprint("shopper ", k) // becomes a hash
		}
		var ranks, multi []string
		for i, a := range actions {
			ranks = append(ranks, fmt.Sprintf(`{"id":%q,"features":[%s]}`, a, features[i]))
			multi = append(multi, fmt.Sprintf(`{"_tag":%q,"i":{"constant":1,"id":%[1]q},"j":[%s]}`, a, features[i]))
		}
		c := fmt.Sprintf(`{"FromUrl":[%s],"_multi":[%s]`, context, strings.Join(multi, ","))
		at := one.now.Format("2006-01-02T15:04:05.0000000Z")
		reward := []float64{0, 0, 0.05, 0.4, 1, -0.3}[rng.IntN(6)]

		var r struct {
			Ranking []struct {
				ID          string  `json:"id"`
				Probability float64 `json:"probability"`
			} `json:"ranking"`
		}
		body := fmt.Sprintf(`{"eventId":%q,"contextFeatures":[%s],"actions":[%s]`, id, context,
			strings.Join(ranks, ","))
		one.send("POST", root+"/rank", body+"}", &r)
		event := strings.ReplaceAll(id, " ", "%20")
		one.send("POST", root+"/events/"+event+"/reward", fmt.Sprintf(`{"value":%v}`, reward), nil)
		var a, p []string
		for _, x := range r.Ranking {
			for i, name := range actions {
				if name == x.ID {
					a, p = append(a, fmt.Sprint(i+1)), append(p, fmt.Sprint(float32(x.Probability)))
				}
			}
		}
		fmt.Fprintf(&cb, `{"_label_cost":%v,"_label_probability":%s,"_label_probability":%[2]s,"_label_Action":%s,"_labelIndex":0,"o":[{"v":%v,"EventId":%q,"ActionTaken":false}],"Timestamp":%q,"Version":"1","EventId":%[5]q,"a":[%[7]s],"c":%[8]s},"p":[%[9]s],"VWState":{"m":"N/A"},"_original_label_cost":%[1]v}`+"\n",
			-reward, p[0], a[0], reward, id, at, strings.Join(a, ","), c, strings.Join(p, ","))

		one.now = one.now.Add(time.Millisecond)
		if k >= events()/5 {
			continue
		}
		several.now = one.now
		var s struct {
			Slots []struct {
				RewardActionID string `json:"rewardActionId"`
			} `json:"slots"`
		}
		several.send("POST", root+"/multislot/rank",
			body+`,"slots":[{"id":"hero","baselineAction":"Latte"},{"id":"side","baselineAction":"Cappucino"}]}`, &s)
		rewards := []float64{reward, []float64{0, 0.2, 1}[rng.IntN(3)]}
		several.send("POST", root+"/multislot/events/"+event+"/reward",
			fmt.Sprintf(`{"reward":[{"slotId":"hero","value":%v},{"slotId":"side","value":%v}]}`, rewards[0],
				rewards[1]), nil)
		var outcomes []string
		for j, slot := range s.Slots {
			for i, name := range actions {
				if name == slot.RewardActionID {
					outcomes = append(outcomes,
						fmt.Sprintf(`{"_label_cost":%v,"_id":%q,"_a":[%d],"_p":[1],"_o":[{"v":%v,"EventId":%q,"ActionTaken":false}],"_original_label_cost":%[1]v}`, -rewards[j], []string{"hero", "side"}[j], i, rewards[j], id))
				}
			}
		}
		fmt.Fprintf(&ccb, `{"Timestamp":%q,"Version":"1","EventId":%q,"c":%s,"_slots":[{"_id":"hero"},{"_id":"side"}]},"_outcomes":[%s],"VWState":{"m":"N/A"}}`+"\n", at, id, c, strings.Join(outcomes, ","))
	}
	m := &importer.Mapping{Format: "personalizer"}
	same(t, "one slot", one.engine, "personalizer", file(t, "cb.json", cb.Bytes()), m)
	same(t, "several slots", several.engine, "personalizer", file(t, "ccb.json", ccb.Bytes()), m)
}

// The same decisions and outcomes by HTTP and in a file of any other format teach the same to the last bit.
func TestFilesTeachAsTheirCalls(t *testing.T) {
	t.Parallel()
	const n = 8
	l := newLive(t)
	l.send("PUT", "/v1/placements/home",
		`{"max_size":3,"log_items":"all","seed":5,"features":[{"name":"price","kind":"number","center":10,"scale":3},{"name":"brand","kind":"category","values":["acme","zeta"]},{"name":"age","kind":"number","from":"shopper","scale":10},{"name":"x","kind":"cross","of":["brand","age"]}],"policy":{"name":"ofu-mnl-plus"}}`, nil)
	rng := rand.New(rand.NewPCG(3, 4))
	price, revenue, brand := make([]float64, n), make([]float64, n), make([]string, n)
	var items []string
	var csv, jsonl, dsjson, sessions, obp, contexts bytes.Buffer
	contexts.WriteString("item_id,revenue,price,brand\n")
	for i := range n {
		price[i], revenue[i], brand[i] = 20*rng.Float64(), rng.Float64(), []string{"acme", "zeta"}[i%2]
		items = append(items, fmt.Sprintf(`{"id":"sku%d","features":{"price":%v,"brand":%q},"revenue":%v}`, i, price[i],
			brand[i], revenue[i]))
		fmt.Fprintf(&contexts, "sku%d,%v,%v,%s\n", i, revenue[i], price[i], brand[i])
	}
	csv.WriteString("id;at;sku;place;got;price;brand;age;revenue\n")
	obp.WriteString("decision_id,timestamp,item_id,position,click,propensity_score,age\n")
	type row struct {
		ID      string    `parquet:"decision_id"`
		Time    time.Time `parquet:"time,timestamp(microsecond)"`
		Item    string    `parquet:"item"`
		Shown   int32     `parquet:"shown"`
		Chosen  bool      `parquet:"chosen"`
		Revenue float64   `parquet:"revenue"`
		Price   float64   `parquet:"price"`
		Brand   string    `parquet:"brand"`
		Age     int64     `parquet:"age"`
	}
	var table bytes.Buffer
	rows := parquet.NewGenericWriter[row](&table)
	for k := range events() {
		id, age := fmt.Sprint("d", k), 20+rng.IntN(50)
		var a struct {
			Assortment []struct {
				ID string `json:"id"`
			} `json:"assortment"`
		}
		l.send("POST", "/v1/placements/home/decisions",
			fmt.Sprintf(`{"decision_id":%q,"items":[%s],"shopper":{"age":%d}}`, id, strings.Join(items, ","), age), &a)
		var page []string
		for _, x := range a.Assortment {
			page = append(page, x.ID)
		}
		choice, taken, other := "null", rng.IntN(len(page)+1), 1+rng.IntN(3*len(page))
		report := `{"choice":null}`
		isTaken := func(place int) bool { return place > 0 && taken > 0 && (place == taken || place == other) }
		switch {
		case taken > 0 && other <= len(page) && other != taken: // a basket
			choice = fmt.Sprintf("[%q,%q]", page[taken-1], page[other-1])
			report = fmt.Sprintf(`{"choices":[{"item":%q},{"item":%q}]}`, page[taken-1], page[other-1])
		case taken > 0:
			choice = `"` + page[taken-1] + `"`
			report = `{"choice":` + choice + `}`
		}
		l.send("POST", "/v1/placements/home/decisions/"+id+"/outcome", report, nil)

		stamp := l.now.Format(time.RFC3339Nano)
		place, outcomes, actions := map[string]int{}, []string{}, []string{}
		for j, sku := range page {
			place[sku] = j + 1
			click := 0
			if isTaken(j + 1) {
				click = 1
			}
			fmt.Fprintf(&obp, "%s,%s,%s,%d,%d,0.4,%d\n", id, stamp, sku, j+1, click, age)
			outcomes = append(outcomes, fmt.Sprintf(`{"_label_cost":%d,"_a":[%s],"_p":[0.4]}`, -click, sku[3:]))
		}
		var batch []row
		var objects []string
		for i := range n {
			sku := fmt.Sprint("sku", i)
			chosen := isTaken(place[sku])
			fmt.Fprintf(&csv, "%s;%d;%s;%d;%t;%v;%s;%d;%v\n", id, l.now.UnixMilli(), sku, place[sku], chosen, price[i],
				brand[i], age, revenue[i])
			batch = append(batch, row{id, l.now, sku, int32(place[sku]), chosen, revenue[i], price[i], brand[i],
				int64(age)})
			actions = append(actions, fmt.Sprintf(`{"_tag":%q,"_revenue":%v,"item":{"price":%v,"brand":%q}}`, sku,
				revenue[i], price[i], brand[i]))
		}
		fatal.Or(rows.Write(batch))(t)
		for i := range n {
			objects = append(objects, fmt.Sprintf(`{"sku":"sku%d","price":%v,"brand":%q,"min_gain":%v}`, i, price[i],
				brand[i], revenue[i]))
		}
		shown, _ := json.Marshal(page)
		fmt.Fprintf(&sessions, `{"id":%q,"at":%q,"age":%d,"items":[%s],"page":%s,"bought":%s}`+"\n", id, stamp, age,
			strings.Join(objects, ","), shown, choice)
		fmt.Fprintf(&jsonl, `{"decision_id":%q,"time":%q,"shopper":{"age":%d},"items":[%s],"shown":%s,"choice":%s}`+"\n", id, stamp, age, strings.Join(items, ","), shown, choice)
		fmt.Fprintf(&dsjson, `{"EventId":%q,"Timestamp":%q,"c":{"User":{"age":%d},"_multi":[%s],"_slots":[{},{},{}]},"_outcomes":[%s]}`+"\n", id, stamp, age, strings.Join(actions, ","), strings.Join(outcomes, ","))
		l.now = l.now.Add(time.Millisecond)
	}
	fatal.If(t, rows.Close())
	columns := importer.Columns{Decision: "id", Time: "at", Item: "sku", Shown: "place", Chosen: "got"}
	same(t, "csv", l.engine, "home", file(t, "log.csv", csv.Bytes()), &importer.Mapping{Delimiter: ";",
		Columns: columns})
	same(t, "tsv", l.engine, "home", file(t, "log.tsv", bytes.ReplaceAll(csv.Bytes(), []byte(";"), []byte("\t"))),
		&importer.Mapping{Format: "tsv", Columns: columns})
	same(t, "sessions", l.engine, "home", file(t, "log.jsonl", sessions.Bytes()), &importer.Mapping{
		Format: "sessions", Columns: importer.Columns{Decision: "id", Time: "at", Item: "items.sku", Shown: "page",
			Chosen: "bought", Revenue: "items.worth"},
		Features: map[string]string{"price": "items.price", "brand": "items.brand"},
	})
	same(t, "parquet", l.engine, "home", file(t, "log.parquet", table.Bytes()), &importer.Mapping{})
	same(t, "jsonl", l.engine, "home", file(t, "log.jsonl", jsonl.Bytes()), &importer.Mapping{})
	same(t, "dsjson", l.engine, "home", file(t, "log.dsjson", dsjson.Bytes()), &importer.Mapping{Rewards: "choice"})
	same(t, "obp", l.engine, "home", file(t, "log.csv", obp.Bytes()), &importer.Mapping{Format: "obp",
		Items: file(t, "item_context.csv", contexts.Bytes())})
}
