package main

import (
	"bytes"
	"compress/gzip"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/parquet-go/parquet-go"

	"vitrine/internal/fatal"
)

// The corpus of testdata/assess: one simulated shop, logged in the shapes in which other programs log. go test
// ./cmd/vitrine -run TestAssessCorpus -rewrite writes it again.

// corpusItem is an item of the shop.
type corpusItem struct {
	id      string
	price   float64
	rating  float64
	brand   string
	revenue float64
}

// corpusPage is a page of three items, drawn uniformly from six candidates; a customer took one or none.
type corpusPage struct {
	id, session, user, device string
	age                       int
	time                      time.Time
	items                     []corpusItem
	shown                     []int // positions in items, in display order
	taken                     int   // position in shown, or −1
	also                      int   // a second item that was clicked, or −1
}

const corpusSize = 90

func corpus() (pages []corpusPage) {
	rng := rand.New(rand.NewPCG(7, 1))
	var shop []corpusItem
	for i := range 12 {
		price := math.Round(10*(4+10*rng.Float64())) / 10
		shop = append(shop, corpusItem{fmt.Sprintf("sku%02d", i+1), price, math.Round(10*(2+3*rng.Float64())) / 10,
			[]string{"acme", "zeta", "orion"}[i%3], math.Round(30*price) / 100})
	}
	at := time.Date(2026, 3, 1, 8, 0, 0, 0, time.UTC)
	for t := range corpusSize {
		at = at.Add(time.Duration(60+rng.IntN(600)) * time.Second)
		p := corpusPage{id: fmt.Sprintf("r%04d", t), session: fmt.Sprintf("s%03d", t/3),
			user: fmt.Sprintf("u%02d", t/3%17), device: []string{"phone", "desktop"}[rng.IntN(2)],
			age: 18 + rng.IntN(50), time: at, taken: -1, also: -1}
		for _, i := range rng.Perm(len(shop))[:6] {
			p.items = append(p.items, shop[i])
		}
		p.shown = rng.Perm(6)[:3]
		best := -math.Log(-math.Log(rng.Float64()))
		for k, i := range p.shown {
			x := p.items[i]
			u := 0.6 - 0.25*(x.price-9) + 0.9*(x.rating-3.5) - 0.3*float64(k) - math.Log(-math.Log(rng.Float64()))
			if u > best {
				best, p.taken = u, k
			}
		}
		if p.taken >= 0 && t%9 == 0 {
			p.also = (p.taken + 1) % 3
		}
		pages = append(pages, p)
	}
	return pages
}

func (p *corpusPage) place(i int) int {
	for k, j := range p.shown {
		if i == j {
			return k
		}
	}
	return -1
}

func bit(is bool) string {
	if is {
		return "1"
	}
	return "0"
}

func num(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }

// cells writes CSV.
func cells(comma rune, rows [][]string) []byte {
	var b bytes.Buffer
	w := csv.NewWriter(&b)
	w.Comma = comma
	_ = w.WriteAll(rows)
	return b.Bytes()
}

func jsonLine(b *bytes.Buffer, v any) {
	text, _ := json.Marshal(v)
	b.Write(append(text, '\n'))
}

type object = map[string]any

// corpusFiles returns the files by their names.
func corpusFiles() map[string][]byte {
	pages := corpus()
	files := map[string][]byte{}
	rng := rand.New(rand.NewPCG(7, 2))
	propensity := num(1.0 / 20) // 3 of 6

	//   1. Azure Personalizer, one slot. 2. Vowpal Wabbit's dsjson by another client, with outcomes of decisions
	//      elsewhere.
	var azure, plain bytes.Buffer
	for t, p := range pages {
		order := rng.Perm(6)
		a, prob := make([]int, 6), make([]float64, 6)
		for k, i := range order {
			a[k], prob[k] = i+1, 0.04
		}
		greedy := 0
		for k, i := range order {
			if p.items[i].rating > p.items[order[greedy]].rating {
				greedy = k
			}
		}
		if prob[greedy] = 0.8; rng.Float64() < 0.76 {
			order[0], order[greedy], a[0], a[greedy], prob[0], prob[greedy] = order[greedy], order[0], a[greedy], a[0],
				prob[greedy], prob[0]
		}
		x := p.items[order[0]]
		cost := 0.0
		if rng.Float64() < 1/(1+math.Exp(-(0.4-0.25*(x.price-9)+0.9*(x.rating-3.5)))) {
			cost = -1
		}
		var multi, other []object
		for _, x := range p.items {
			multi = append(multi, object{"_tag": x.id, "i": object{"constant": 1, "id": x.id},
				"j": []object{{"price": x.price, "rating": x.rating, "brand": x.brand}}})
			other = append(other, object{"_tag": x.id, "offer": object{"price": x.price, "rating": x.rating,
				"brand": x.brand}})
		}
		at := p.time.Format("2006-01-02T15:04:05.0000000Z")
		jsonLine(&azure, object{"_label_cost": cost, "_label_probability": prob[0], "_label_Action": a[0],
			"_labelIndex": a[0] - 1, "o": []object{{"v": -cost, "EventId": p.id, "ActionTaken": false}},
			"Timestamp": at, "Version": "1", "EventId": p.id, "a": a,
			"c": object{"FromUrl": []object{{"device": p.device, "age": p.age}}, "_multi": multi}, "p": prob,
			"VWState": object{"m": "N/A"}})
		jsonLine(&plain, object{"_label_cost": cost, "_label_probability": prob[0], "_label_Action": a[0],
			"_labelIndex": a[0] - 1, "Timestamp": at, "Version": "1", "EventId": p.id, "a": a,
			"c": object{"User": object{"device": p.device, "age": p.age}, "_multi": other}, "p": prob,
			"VWState": object{"m": "v1"}})
		if t%20 == 0 {
			jsonLine(&plain, object{"RewardValue": 1.0, "EnqueuedTimeUtc": at, "EventId": "lost" + p.id})
		}
	}
	files["personalizer.json"], files["decisions.dsjson"] = azure.Bytes(), plain.Bytes()

	// 3. Slots that share their actions. 4. Slates.
	var ccb, slates bytes.Buffer
	for _, p := range pages {
		var multi, bySlot []object
		for i, x := range p.items {
			multi = append(multi, object{"_tag": x.id, "product": object{"price": x.price, "rating": x.rating,
				"brand": x.brand}})
			bySlot = append(bySlot, object{"_slot_id": i / 3, "product": object{"price": x.price}})
		}
		var outcomes, chosen []object
		for k, i := range p.shown {
			cost := 0
			if p.taken == k {
				cost = -1
			}
			a, q := []int{i}, []float64{0.5}
			for j := range 6 {
				if at := p.place(j); j != i && (at < 0 || at > k) {
					a, q = append(a, j), append(q, 0.5/float64(5-k))
				}
			}
			outcomes = append(outcomes, object{"_label_cost": cost, "_id": fmt.Sprintf("%s-%d", p.id, k), "_a": a,
				"_p": q})
		}
		for range 2 {
			chosen = append(chosen, object{"_a": rng.IntN(3), "_p": 0.333})
		}
		at := p.time.Format(time.RFC3339)
		jsonLine(&ccb, object{"Timestamp": at, "Version": "1", "EventId": p.id,
			"c":         object{"User": object{"device": p.device}, "_multi": multi, "_slots": []object{{}, {}, {}}},
			"_outcomes": outcomes, "VWState": object{"m": "v1"}})
		jsonLine(&slates, object{"Timestamp": at, "EventId": p.id, "_label_cost": -rng.IntN(2),
			"c": object{"_multi": bySlot, "_slots": []object{{"top": 1}, {"top": 0}}}, "_outcomes": chosen})
	}
	files["ccb.dsjson"], files["slates.dsjson"] = ccb.Bytes(), slates.Bytes()

	// 5. Vowpal Wabbit's text with features of actions; costs are losses. 6. The text without. 7. JSON.
	var adf, text, vwjson bytes.Buffer
	for _, p := range pages {
		shown := rng.IntN(6)
		x := p.items[shown]
		cost := 1
		if rng.Float64() < 1/(1+math.Exp(-(0.4-0.25*(x.price-9)+0.9*(x.rating-3.5)))) {
			cost = 0
		}
		fmt.Fprintf(&adf, "shared |User device=%s age:%d\n", p.device, p.age)
		var multi []object
		for i, x := range p.items {
			label := ""
			if i == shown {
				label = fmt.Sprintf("0:%d:%.4f ", cost, 1.0/6)
			}
			fmt.Fprintf(&adf, "%s|Action article=%s price:%v rating:%v\n", label, x.id, x.price, x.rating)
			multi = append(multi, object{"_tag": x.id, "Action": object{"price": x.price, "rating": x.rating,
				"brand": x.brand}})
		}
		adf.WriteByte('\n')
		fmt.Fprintf(&text, "%d:%d:%.4f | device=%s age:%d\n", shown+1, cost-1, 1.0/6, p.device, p.age)
		jsonLine(&vwjson, object{"_label_Action": shown + 1, "_labelIndex": shown, "_label_Cost": cost - 1,
			"_label_Probability": 1.0 / 6, "User": object{"device": p.device}, "_multi": multi})
	}
	files["adf.vw"], files["actions.dat"], files["bandit.json"] = adf.Bytes(), text.Bytes(), vwjson.Bytes()

	//   8. Open Bandit's uniform log, and 9. a learner's, with the items next to them.
	uniform := [][]string{{"", "timestamp", "item_id", "position", "click", "propensity_score", "user_feature_0",
		"user-item_affinity_0", "user-item_affinity_1", "user-item_affinity_2", "user-item_affinity_3"}}
	learner := [][]string{uniform[0]}
	context := [][]string{{"", "item_id", "item_feature_0", "item_feature_1"}}
	quality := []float64{-1, 0, 0.4, 1.2}
	for i, q := range quality {
		context = append(context, []string{strconv.Itoa(i), strconv.Itoa(i), num(q), []string{"a", "b"}[i%2]})
	}
	for t, p := range pages {
		for _, u := range []bool{true, false} {
			i, prob := rng.IntN(4), 0.25
			if !u {
				prob = 0.1
				if rng.Float64() < 0.6 {
					i = 3
				}
				if i == 3 {
					prob = 0.7
				}
			}
			row := []string{strconv.Itoa(t), p.time.Format("2006-01-02 15:04:05.999999-07:00"), strconv.Itoa(i),
				strconv.Itoa(1 + t%3), bit(rng.Float64() < 1/(1+math.Exp(1-quality[i]))), num(prob), p.device, "0",
				num(float64(t%4) / 4), "0", "1"}
			if u {
				uniform = append(uniform, row)
			} else {
				learner = append(learner, row)
			}
		}
	}
	files["random/all.csv"], files["bts/all.csv"], files["alone/all.csv"] = cells(',', uniform), cells(',', learner),
		cells(',', uniform[:20])
	files["random/item_context.csv"], files["bts/item_context.csv"] = cells(',', context), cells(',', context)

	// 10. A table of other names, with the propensity of the page. 11. TSV, compressed, unsorted, several clicks.
	// 12. Semicolons. 13. Searches for hotels. 14. Events. 15. Parquet.
	request := [][]string{{"request_id", "served_at", "sku", "pos", "is_click", "margin", "page_prob", "price_eur",
		"stars", "brand", "device"}}
	clicks := [][]string{{"impressionId", "eventTimeMs", "productId", "rank", "clicked", "price", "rating", "brand",
		"userAge"}}
	german := [][]string{{"Anfrage_Nr", "Zeit", "Artikel", "Klick", "Preis", "Marke"}}
	search := [][]string{{"srch_id", "date_time", "site_id", "visitor_hist_starrating", "prop_id", "prop_starrating",
		"position", "price_usd", "random_bool", "click_bool", "gross_bookings_usd", "booking_bool"}}
	events := [][]string{{"event_date", "event_timestamp", "event_name", "user_pseudo_id", "page_view_id", "item_id",
		"item_list_index", "price"}}
	type parquetRow struct {
		Page   string    `parquet:"page_view"`
		Time   time.Time `parquet:"ts,timestamp(microsecond)"`
		Item   int64     `parquet:"product_id"`
		Shown  bool      `parquet:"displayed"`
		Bought bool      `parquet:"bought"`
		Price  float64   `parquet:"price"`
		Rating float32   `parquet:"rating"`
		Brand  string    `parquet:"brand"`
	}
	var table bytes.Buffer
	parquetWriter := parquet.NewGenericWriter[parquetRow](&table)
	for t, p := range pages {
		for i, x := range p.items {
			at := p.place(i)
			taken := at >= 0 && at == p.taken
			request = append(request, []string{p.id, p.time.Format(time.RFC3339), x.id, strconv.Itoa(at + 1),
				bit(taken), num(x.revenue), propensity, num(x.price), num(x.rating), x.brand, p.device})
			number, _ := strconv.ParseInt(x.id[3:], 10, 64)
			_, _ = parquetWriter.Write([]parquetRow{{p.id, p.time, number, at >= 0, taken, x.price, float32(x.rating),
				x.brand}})
		}
		for k, i := range p.shown {
			x := p.items[i]
			clicks = append(clicks, []string{p.id, strconv.FormatInt(p.time.UnixMilli(), 10), x.id, strconv.Itoa(k + 1),
				bit(k == p.taken || k == p.also), num(x.price), num(x.rating), x.brand, strconv.Itoa(p.age)})
			german = append(german, []string{strconv.Itoa(5000 + t), p.time.Format("2006-01-02 15:04:05"), x.id,
				bit(k == p.taken), num(x.price), x.brand})
			booked, gross := k == p.taken && t%2 == 0, ""
			if booked {
				gross = num(3 * x.price)
			}
			search = append(search, []string{strconv.Itoa(t + 1), p.time.Format("2006-01-02 15:04:05"),
				strconv.Itoa(1 + t%4), num(float64(2 + t%3)), x.id[3:], num(x.rating), strconv.Itoa(k + 1),
				num(10 * x.price), bit(t%3 == 0), bit(k == p.taken), gross, bit(booked)})
			events = append(events, []string{p.time.Format("20060102"), strconv.FormatInt(p.time.UnixMicro(), 10),
				"view_item_list", p.user, p.id, x.id, strconv.Itoa(k), num(x.price)})
		}
		if p.taken >= 0 {
			x := p.items[p.shown[p.taken]]
			events = append(events, []string{p.time.Format("20060102"), strconv.FormatInt(p.time.UnixMicro()+5e6, 10),
				"select_item", p.user, p.id, x.id, strconv.Itoa(p.taken), num(x.price)})
		}
	}
	rng.Shuffle(len(clicks)-1, func(i, j int) { clicks[i+1], clicks[j+1] = clicks[j+1], clicks[i+1] })
	var zipped bytes.Buffer
	z := gzip.NewWriter(&zipped)
	_, _ = z.Write(cells('\t', clicks))
	_ = z.Close()
	_ = parquetWriter.Close()
	files["requests.csv"], files["clicks.tsv.gz"], files["klicks.csv"], files["searches.csv"], files["events.csv"],
		files["bought.parquet"] = cells(',', request), zipped.Bytes(), cells(';', german), cells(',', search),
		cells(',', events), table.Bytes()

	//   16. A line for each page with lists of ids. 17. Objects. 18. Lists in CSV, next to other actions. 19.
	//       Impressions with outcomes. 20. Clicks only. 21. Ads, a row each.
	var ids, objects bytes.Buffer
	steps := [][]string{{"user_id", "session_id", "timestamp", "step", "action_type", "reference", "device",
		"impressions", "prices"}}
	var news strings.Builder
	only := [][]string{{"session_id", "timestamp", "item_id", "category"}}
	ads := [][]string{{"timestamp", "uid", "campaign", "click", "cost", "cat1"}}
	for t, p := range pages {
		var shown, prices, marked []string
		var list []object
		for i, x := range p.items {
			at := p.place(i)
			o := object{"sku": x.id, "price": x.price, "brand": x.brand, "margin": x.revenue, "rank": nil,
				"clicked": at >= 0 && at == p.taken}
			if at >= 0 {
				o["rank"] = at + 1
			}
			list = append(list, o)
		}
		var pool []string
		for _, x := range p.items {
			pool = append(pool, x.id)
		}
		for k, i := range p.shown {
			x := p.items[i]
			shown, prices, marked = append(shown, x.id), append(prices, num(x.price)),
				append(marked, "N"+x.id[3:]+"-"+bit(k == p.taken))
		}
		clicked, line := any(nil), ""
		if p.taken >= 0 {
			clicked, line = shown[p.taken], shown[p.taken]
			only = append(only, []string{p.session, p.time.Format("2006-01-02T15:04:05.000Z"), shown[p.taken],
				strconv.Itoa(1 + t%5)})
			steps = append(steps, []string{p.user, p.session, strconv.FormatInt(p.time.Unix(), 10),
				strconv.Itoa(2*t + 1), "clickout item", line, p.device, strings.Join(shown, "|"),
				strings.Join(prices, "|")})
		}
		steps = append(steps, []string{p.user, p.session, strconv.FormatInt(p.time.Unix()+9, 10), strconv.Itoa(2*t + 2),
			"filter selection", "", p.device, "", ""})
		jsonLine(&ids, object{"page_id": p.id, "ts": p.time.Unix(), "device": p.device, "candidates": pool,
			"shown": shown, "clicked": clicked, "propensity": 0.05})
		jsonLine(&objects, object{"requestId": p.id, "timestamp": p.time.Format(time.RFC3339),
			"user": object{"age": p.age, "device": p.device}, "price": []string{"low", "any"}[t%2], "items": list})
		fmt.Fprintf(&news, "%d\t%s\t%s\tN01 N02\t%s\n", t+1, p.user, p.time.Format("1/2/2006 3:04:05 PM"),
			strings.Join(marked, " "))
		ads = append(ads, []string{strconv.Itoa(t * 37), strconv.Itoa(9000 + t), strconv.Itoa(100 + t%7),
			bit(p.taken >= 0), num(p.items[0].price / 1e4), strconv.Itoa(t % 3)})
	}
	files["pages.jsonl"], files["objects.jsonl"], files["steps.csv"], files["news.tsv"], files["yoo.csv"],
		files["ads.tsv"] = ids.Bytes(), objects.Bytes(), cells(',', steps), []byte(news.String()), cells(',', only),
		cells('\t', ads)
	return files
}

// writeCorpus writes the corpus into a directory.
func writeCorpus(t *testing.T, dir string) {
	t.Helper()
	for name, text := range corpusFiles() {
		path := filepath.Join(dir, name)
		fatal.If(t, os.MkdirAll(filepath.Dir(path), 0o755))
		fatal.If(t, os.WriteFile(path, text, 0o644))
	}
}
