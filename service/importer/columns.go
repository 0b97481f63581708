package importer

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"unicode"

	"vitrine/service/api"
	"vitrine/service/importer/cell"
)

// words splits a name into lower-case words: "prop_id", "propId" and "Prop ID" are prop, id.
func words(name string) (list []string) {
	var word []rune
	end := func() {
		if len(word) > 0 {
			list = append(list, strings.ToLower(string(word)))
			word = word[:0]
		}
	}
	lower := false
	for _, c := range name {
		if !unicode.IsLetter(c) && !unicode.IsDigit(c) || unicode.IsUpper(c) && lower {
			end()
		}
		if lower = unicode.IsLower(c); unicode.IsLetter(c) || unicode.IsDigit(c) {
			word = append(word, c)
		}
	}
	end()
	return list
}

// Words in the names of columns, by their role, the best first.
var (
	decisionWords = []string{"decision", "request", "req", "impression", "imp", "search", "srch", "query", "qid",
		"pageview", "page", "slate", "display", "serve", "auction", "round", "event", "visit", "session", "basket",
		"choice", "case", "obs", "anfrage", "recherche"}
	itemWords = []string{"item", "items", "sku", "product", "products", "prod", "prop", "hotel", "article",
		"artikel", "produkt", "produit", "news", "content", "doc", "document", "ad", "banner", "creative", "campaign",
		"offer", "video", "movie", "song", "track", "listing", "asin", "ean", "gtin", "restaurant", "recipe",
		"alternative", "alt", "arm", "action", "variant", "candidate", "candidates", "impressions", "results",
		"slate", "shown", "reference"}
	chosenWords = []string{"chosen", "click", "clicked", "clicks", "clickout", "klick", "clic", "purchase",
		"purchased", "bought", "buy", "order", "ordered", "booking", "booked", "conversion", "converted", "selected",
		"taken", "picked", "choice", "label", "target", "response", "reward", "y"}
	positionWords = []string{"position", "pos", "rank", "slot", "place", "shown", "displayed", "impressed", "visible",
		"viewed", "seen", "index", "idx"}
	timeWords       = []string{"time", "timestamp", "ts", "datetime", "date", "at", "zeit", "created", "when", "dt"}
	propensityWords = []string{"propensity", "pscore", "probability", "prob", "p"}
	revenueWords    = []string{"revenue", "margin", "profit", "gain", "contribution", "marge", "commission"}
	fillers         = []string{"id", "ids", "key", "uuid", "guid", "no", "nr", "number", "num", "code", "bool", "is",
		"flag", "was", "score", "event", "local", "utc", "ms", "sec", "list", "item", "user", "value"}
)

// called returns the columns named by one of the words, the best first. Names that consist of such words come before
// names that merely contain one.
func called(names []string, of []string) []string {
	rank := map[string]int{}
	var list []string
	for _, name := range names {
		best := -1
		w := words(lastOf(name))
		if len(w) == 1 && slices.Contains(fillers, w[0]) { // items.id
			w = append(words(parent(name)), w...)
		}
		for _, word := range w {
			at := slices.Index(of, word)
			if at < 0 {
				continue
			}
			for _, other := range w {
				if other != word && !slices.Contains(fillers, other) {
					at += 1000
				}
			}
			if best < 0 || at < best {
				best = at
			}
		}
		if best >= 0 {
			rank[name] = best
			list = append(list, name)
		}
	}
	slices.SortStableFunc(list, func(a, b string) int { return cmp.Compare(rank[a], rank[b]) })
	return list
}

// first returns the first name that is accepted, or "".
func first(names []string, accept func(name string) bool) string {
	for _, name := range names {
		if accept(name) {
			return name
		}
	}
	return ""
}

// pages is a sample of decisions.
type pages []*pageRows

// group makes pages of the rows that share the value of a column.
func group(rows []row, key string) (p pages) {
	byID := map[string]*pageRows{}
	for _, r := range rows {
		id := cell.Text(r.fields[key])
		if byID[id] == nil {
			byID[id] = newPage(id, r.place)
			p = append(p, byID[id])
		}
		byID[id].addRow(r)
	}
	return p
}

// names returns the names of fields with one value and of lists, sorted.
func (p pages) names() (scalars, lists []string) {
	one, several := map[string]bool{}, map[string]bool{}
	for _, l := range p {
		for name := range l.fields {
			one[name] = true
		}
		for name := range l.lists {
			several[name] = true
		}
	}
	return slices.Sorted(maps.Keys(one)), slices.Sorted(maps.Keys(several))
}

func (p pages) every(test func(l *pageRows) bool) bool {
	return !slices.ContainsFunc(p, func(l *pageRows) bool { return !test(l) })
}

// accept reports whether a column holds values and all pass a test.
func (p pages) accept(name string, test func(v api.Value) bool) bool {
	passed, failed, _ := p.pass(name, test)
	return passed > 0 && failed == 0
}

// pass counts the values of a column that pass a test and those that fail. The error names the first that fails.
func (p pages) pass(name string, test func(v api.Value) bool) (passed, failed int, odd error) {
	for _, l := range p {
		for i, v := range l.get(name) {
			if isMissing(v) {
			} else if test(v) {
				passed++
			} else if failed++; odd == nil {
				odd = l.at(i, fmt.Errorf("%.40q", cell.Text(v)))
			}
		}
	}
	return passed, failed, odd
}

// role returns the first column whose values all pass a test. If there is none, it is the column of the usual name,
// provided that nine in ten of its values pass: the reader then names the line of another. Notes name the columns that
// other values keep from the role.
func (k *recognizer) role(p pages, names []string, usual, as string, test func(v api.Value) bool) string {
	kept, before := "", k.Notes
	name := first(names, func(name string) bool {
		passed, failed, odd := p.pass(name, test)
		if failed > 0 && (passed > 0 || name == usual) {
			k.note("%s is not taken for the %s (%v).", name, as, odd)
		}
		if name == usual && passed > 0 && passed >= 9*failed {
			kept = name
		}
		return passed > 0 && failed == 0
	})
	if name == "" && kept != "" {
		k.Notes = before
	}
	return cmp.Or(name, kept)
}

func isMissing(v api.Value) bool { return v.Kind == api.Missing }

func allOf(list []api.Value, test func(v api.Value) bool) bool {
	return !slices.ContainsFunc(list, func(v api.Value) bool { return !test(v) })
}

func texts(list []api.Value) map[string]bool {
	set := make(map[string]bool, len(list))
	for _, v := range list {
		set[cell.Text(v)] = true
	}
	return set
}

// isFull reports whether a column holds a value for each page and item.
func (p pages) isFull(name string) bool {
	return p.every(func(l *pageRows) bool {
		list := l.get(name)
		return len(list) > 0 && !slices.ContainsFunc(list, isMissing)
	})
}

// areIDs reports whether a list holds distinct ids in each page, and several in one.
func (p pages) areIDs(name string) bool {
	several := false
	return p.every(func(l *pageRows) bool {
		list := l.lists[name]
		several = several || len(list) > 1
		return len(texts(list)) == len(list) && allOf(list, func(v api.Value) bool {
			return v.Kind != api.Missing && !(v.Kind == api.IsNumber && v.Number != math.Trunc(v.Number))
		})
	}) && several
}

// inside reports whether the inner column holds only values of the outer one.
func (p pages) inside(outer, inner string) bool {
	values := 0
	return p.every(func(l *pageRows) bool {
		list := texts(l.get(outer))
		return len(list) == 0 || allOf(l.get(inner), func(v api.Value) bool {
			text := cell.Text(v)
			if text != "" {
				values++
			}
			return text == "" || list[text]
		})
	}) && values > 0
}

// longer reports whether one list is longer than the other in some page.
func (p pages) longer(a, b string) bool {
	return !p.every(func(l *pageRows) bool { return len(l.get(a)) <= len(l.get(b)) })
}

// taken returns the ids of the items of a page, and of the items taken, as far as the columns found so far tell.
func (k *recognizer) taken(l *pageRows) (ids, taken []string) {
	c := k.Mapping.Columns
	ids, flags, err := l.items(c)
	if err == nil {
		taken, _ = l.takenOf(c.Chosen, ids, flags)
	}
	return ids, taken
}

// long recognises the columns of a table with a row for each item.
func (k *recognizer) long(header []string, rows []row) {
	c := &k.Mapping.Columns
	if slices.Contains(header, "sampling_law") {
		header = slices.DeleteFunc(slices.Clone(header), func(name string) bool { return exportedOnly[name] })
	}
	every := group(rows, "") // all rows as one page
	flags := called(header, chosenWords)
	c.Chosen = k.role(every, flags, "chosen", "outcome", cell.IsFlag)
	if others := slices.DeleteFunc(flags, func(name string) bool {
		return name == c.Chosen || !every.accept(name, cell.IsFlag)
	}); len(others) > 0 {
		k.note("%s says what was taken. The log also contains %s: name another column as chosen if that is the outcome.",
			c.Chosen, strings.Join(others, ", "))
	}
	views := rows
	if k.events(header, rows) {
		views = slices.DeleteFunc(slices.Clone(rows), func(r row) bool {
			return cell.Text(r.fields[k.Mapping.Events.Column]) != k.Mapping.Events.Shown
		})
		every = group(views, "")
	}
	k.time(every, header)
	items := slices.DeleteFunc(called(header, itemWords), func(name string) bool {
		return name == c.Chosen || name == "shown" || every.accept(name, cell.IsFlag)
	})
	c.Item = cmp.Or(first(items, every.isFull), first(items, func(name string) bool { return name == "item" }))
	if c.Chosen == "" && k.Mapping.Events == nil {
		k.need("what was taken: a column of 0 and 1 in a row for each item shown, named as chosen in [columns]. "+
			"The columns are %s. If rows are clicks only, the items that were shown and not taken are missing, "+
			"and without them no other page can be judged", strings.Join(header, ", "))
	}
	if c.Item == "" {
		k.need("the item of each row, named as item in [columns]: no column looks like the id of an item. The "+
			"columns are %s", strings.Join(header, ", "))
	}
	if k.pageID(header, views, every); k.Needs != nil {
		return
	}
	p := group(rows, c.Decision)
	if e := k.Mapping.Events; e != nil {
		for i := range p {
			p[i] = p[i].views(e, *c)
		}
	}
	if k.positions(p, header); c.Shown == "" {
		k.note("No column says the position: every row counts as shown, in the order of the file.")
	}
	k.fromZero(p)
	k.several(p)
	k.propensities(p, header)
	k.revenue(p, header)
	for usual, name := range map[string]*string{"time": &c.Time, "shown": &c.Shown, "revenue": &c.Revenue} {
		if *name == "" && slices.Contains(header, usual) {
			*name = noColumn // the column means something else
		}
	}
	k.units(p, header)
	if c.Revenue == noColumn && k.tells(p, "revenue") {
		k.note("revenue is not used: it is missing or 0 for every item that was not taken. It should say what each item " +
			"would earn.")
	}
}

// sessions recognises the columns of lines with lists.
func (k *recognizer) sessions(p pages) {
	c := &k.Mapping.Columns
	scalars, lists := p.names()
	c.Item = first(append(called(lists, itemWords), lists...), p.areIDs)
	if c.Item == "" {
		k.need("the list of the items' ids on each page, named as item in [columns]. The lists of the lines are: %s",
			cmp.Or(strings.Join(lists, ", "), "none"))
		return
	}
	if p.accept(c.Item, func(v api.Value) bool { return endsWithFlags(cell.Text(v), " ") }) {
		c.Chosen = c.Item
	} else {
		k.shownLists(p, lists)
		k.chosenList(p, scalars, lists)
	}
	if c.Chosen == "" {
		k.need("what was taken: a field with the id of the item, a list of ids, or a list of 0 and 1 for the "+
			"items of %s, named as chosen in [columns]", c.Item)
		return
	}
	if !k.fromZero(p) && c.Shown == "" && c.Chosen != c.Item {
		k.note("Every item of %s counts as shown, in this order.", c.Item)
	}
	k.time(p, scalars)
	k.lineID(p, scalars)
	k.propensities(p, append(scalars, lists...))
	k.revenue(p, lists)
	k.several(p)
}

// time finds the time of pages.
func (k *recognizer) time(p pages, names []string) {
	c := &k.Mapping.Columns
	duration := func(v api.Value) bool { n, is := cell.Number(v); return is && n < 6e8 } // seconds before 1990
	isTime := func(v api.Value) bool { return cell.IsTime(v) && !duration(v) }
	c.Time = k.role(p, called(names, timeWords), "time", "time", isTime)
	if c.Time == "" && k.Mapping.Header != nil { // names do not help
		c.Time = first(names, func(name string) bool {
			return p.accept(name, func(v api.Value) bool { _, isNumber := cell.Number(v); return cell.IsTime(v) && !isNumber })
		})
	}
}

// shape returns how many pages a column makes, the first row with an item that the page lists further up, and how many
// rows are taken.
func (k *recognizer) shape(rows []row, name string) (groups float64, again string, taken float64) {
	c := k.Mapping.Columns
	p := group(rows, name)
	for _, l := range p {
		seen := map[string]bool{}
		for _, r := range l.rows {
			id := cell.Text(r.fields[c.Item])
			if again == "" && id != "" && seen[id] {
				again = fmt.Sprintf("%.40q, for example in %s", id, r.place)
			}
			seen[id] = true
			if is, _ := cell.Flag("", r.fields[c.Chosen]); is {
				taken++
			}
		}
	}
	return float64(len(p)), again, taken
}

// pageID finds the column that is the same in all rows of a page.
func (k *recognizer) pageID(header []string, rows []row, every pages) {
	c := &k.Mapping.Columns
	may := func(name string) bool {
		return every.isFull(name) && !slices.Contains([]string{c.Item, c.Chosen, c.Time}, name)
	}
	ids := slices.DeleteFunc(called(header, decisionWords), func(name string) bool { return !may(name) })
	if slices.Contains(header, "decision_id") && !every.isFull("decision_id") {
		ids = append(ids, "decision_id") // the reader names the line of an empty cell
	}
	few := 0.8 * float64(len(rows))
	var repeated, twice, single string
	c.Decision = first(ids, func(name string) bool {
		groups, again, _ := k.shape(rows, name)
		if groups >= few {
			single = name
		} else if c.Item != "" && again != "" {
			repeated, twice = name, again
		}
		return single != name && repeated != name
	})
	if c.Decision == "" && c.Item != "" { // an id of another name
		c.Decision = first(header, func(name string) bool {
			w := words(name)
			if len(w) < 2 || !slices.Contains(fillers[:9], w[len(w)-1]) || slices.Contains(w, "user") || !may(name) {
				return false
			}
			groups, again, taken := k.shape(rows, name)
			return again == "" && groups > 1 && taken <= 1.5*groups && groups < few
		})
	}
	const missing = "an id of each page, the same in all its rows: %s. If each row is a page of one item, the " +
		"items that could have been shown instead are missing"
	switch {
	case c.Decision != "":
	case repeated != "":
		k.need("an id of each page: rows of one %s list an item several times (%s). If rows are in the file twice, remove "+
			"them. Otherwise make an id that is the same in all rows of a page and in no others (such as %[1]s with the "+
			"time of the page), and name it as decision in [columns]", repeated, twice)
	case single != "":
		k.need(missing, single+" differs in nearly every row")
	default:
		k.need(missing, "no column looks like one; if several columns together identify a page, join them into one in the file")
	}
}

// lineID finds the id of pages that are lines.
func (k *recognizer) lineID(p pages, names []string) {
	c := &k.Mapping.Columns
	ids := called(names, decisionWords)
	if k.Mapping.Header != nil {
		ids = names
	}
	c.Decision = first(ids, func(name string) bool {
		seen := map[string]bool{}
		return name != c.Time && name != c.Chosen && p.every(func(l *pageRows) bool {
			id := cell.Text(l.fields[name])
			again := id == "" || seen[id]
			seen[id] = true
			return !again || len(l.get(c.Item)) == 0
		})
	})
	if c.Decision == "" {
		k.note("No field identifies a page: its line does.")
	}
}

// positions finds the column of positions: a condition, or numbers that differ on each page.
func (k *recognizer) positions(p pages, names []string) {
	c := &k.Mapping.Columns
	c.Shown = k.role(p, slices.DeleteFunc(called(names, positionWords), func(name string) bool {
		return name == c.Item || name == c.Decision || name == c.Chosen ||
			!p.every(func(l *pageRows) bool {
				seen := map[float64]bool{}
				return allOf(l.get(name), func(v api.Value) bool {
					at, _ := cell.Position("", v, 0)
					again := at > 1 && seen[at]
					seen[at] = true
					return !again
				})
			})
	}), "shown", "position", cell.IsPosition)
}

// fromZero drops the column of positions if they count from 0: one item of each page is at 0, and some such item was
// taken.
func (k *recognizer) fromZero(p pages) bool {
	c := &k.Mapping.Columns
	if c.Shown == "" || !p[0].ofItems(c.Shown, c.Item) {
		return false
	}
	single, hidden, clicked, nonempty := 0, 0, 0, 0
	for _, l := range p {
		ids, taken := k.taken(l)
		zeros := 0
		for i, v := range l.get(c.Shown)[:min(len(ids), len(l.get(c.Shown)))] {
			if at, _ := cell.Position("", v, 1); at > 0 {
				continue
			}
			if zeros++; cell.Text(v) == "0" && slices.Contains(taken, ids[i]) {
				clicked++
			}
		}
		if hidden += zeros; zeros == 1 {
			single++
		}
		if len(ids) > 0 {
			nonempty++
		}
	}
	if !(clicked > 0 && single == nonempty) && !(k.Mapping.Events != nil && hidden > 0) {
		return false
	}
	k.note("%s counts from 0: every item counts as shown, in the order of the file.", c.Shown)
	c.Shown = ""
	return true
}

// several tells how many pages have several items taken.
func (k *recognizer) several(p pages) {
	several, nonempty := 0, 0
	for _, l := range p {
		ids, taken := k.taken(l)
		if len(ids) == 0 {
			continue
		}
		if nonempty++; len(taken) > 1 {
			several++
		}
	}
	if several > 0 {
		k.note("In %d of %d pages several items were taken: all of them count, as the choices of independent "+
			"shoppers. Clicks are rarely that: for clicks set several = \"first\".", several, nonempty)
	}
}

// propensities finds the column of propensities, and whether it implies a law.
func (k *recognizer) propensities(p pages, names []string) {
	c := &k.Mapping.Columns
	may := slices.DeleteFunc(called(names, propensityWords), func(name string) bool { return name == c.Chosen })
	name := k.role(p, may, "propensity", "propensity", func(v api.Value) bool {
		n, err := cell.Typed("number", v)
		return err == nil && n.Number >= 0 && n.Number <= 1 // or NA
	})
	if name != "propensity" && slices.Contains(names, "propensity") {
		c.Propensity = noColumn // the column means something else
	}
	if name == "" {
		return
	}
	one, ofPage, full := true, true, true
	for _, l := range p {
		sum, list := 0.0, []float64(nil)
		for _, v := range l.get(name) {
			if n, ok := cell.Number(v); ok {
				sum, list = sum+n, append(list, n)
				ofPage = ofPage && n == list[0]
			}
		}
		full = full && len(list) > 0
		ids, _ := k.taken(l)
		shown, _ := l.arranged(c.Shown, c.Item, ids)
		one = one && math.Abs(sum-1) < 1e-6 && len(shown) == 1 && len(list) == len(ids) && len(l.list(name)) == len(ids)
	}
	switch {
	case one:
		k.Mapping.Law = &Law{Draw: "items", Propensity: name}
		k.note("%s is the probability of each item, and adds up to 1 on every page ([sampling_law]).", name)
	case !ofPage:
		k.note("%s varies inside a page, so it is not the probability of the page, and it is not used. Name it as "+
			"propensity in [sampling_law] with draw = \"items\" if each slot's item was drawn by itself.", name)
		if name == "propensity" {
			c.Propensity = noColumn
		}
	case full:
		c.Propensity = name
	case name != "propensity" || p[0].rows == nil: // a table's reader takes this column as it is
		k.note("%s is missing on some pages, and it is not used.", name)
	}
}

// revenue finds the revenue of items: a number of each, which does not tell the outcome.
func (k *recognizer) revenue(p pages, names []string) {
	c := &k.Mapping.Columns
	c.Revenue = k.role(p, slices.DeleteFunc(called(names, revenueWords), func(name string) bool {
		return k.tells(p, name) || !p.every(func(l *pageRows) bool { return len(l.list(name)) == len(l.get(c.Item)) })
	}), "revenue", "revenue", cell.IsRevenue)
}

// units ignores a column of units that are not those taken, such as the size of a pack.
func (k *recognizer) units(p pages, header []string) {
	if _, untaken := k.count(p, "units"); untaken == 0 || k.Mapping.Events != nil {
		return
	}
	k.Mapping.Columns.Units = noColumn
	if slices.Contains(header, "units_value") {
		k.Mapping.Columns.Value = noColumn
	}
	k.note("units is not used: it is above 0 for items that were not taken. It should say how many units were taken.")
}

// tells reports whether a column is 0 or empty for all items that were not taken, and gives the outcome away.
func (k *recognizer) tells(p pages, name string) bool {
	with, without := k.count(p, name)
	return with > 0 && without == 0
}

// count counts the items with a number above 0 in a column, among those taken and the others.
func (k *recognizer) count(p pages, name string) (with, without int) {
	for _, l := range p {
		ids, taken := k.taken(l)
		for i, v := range l.get(name)[:min(len(ids), len(l.get(name)))] {
			if n, ok := cell.Number(v); ok && n > 0 && slices.Contains(taken, ids[i]) {
				with++
			} else if ok && n > 0 {
				without++
			}
		}
	}
	return with, without
}

// events recognises a table of events, with impressions and clicks in rows of their own.
func (k *recognizer) events(header []string, rows []row) bool {
	if k.Mapping.Columns.Chosen != "" {
		return false
	}
	for _, name := range header {
		if !hasWord(name, []string{"event", "action", "type", "kind"}) {
			continue
		}
		kinds := map[string]int{}
		for _, r := range rows {
			if kinds[cell.Text(r.fields[name])]++; len(kinds) > 50 {
				break
			}
		}
		most := func(words ...string) (best string) {
			for _, kind := range slices.Sorted(maps.Keys(kinds)) {
				if hasWord(kind, words) && kinds[kind] > kinds[best] {
					best = kind
				}
			}
			return best
		}
		e := &Events{Column: name, Shown: most("view", "impression", "impressions", "shown", "display", "exposure")}
		e.Chosen = most("select", "click", "clicked", "clickout", "purchase", "buy")
		if len(kinds) > 50 || e.Shown == "" || e.Chosen == "" || e.Shown == e.Chosen {
			continue
		}
		k.What = strings.Replace(k.What, "a table", "a table of events", 1)
		k.Mapping.Events = e
		k.note("A row whose %s is %s shows an item, and %s takes it ([events]). Other rows are not read.", name,
			e.Shown, e.Chosen)
		return true
	}
	return false
}

// listColumn finds the column that lists items in its fields, and sets it and the separator.
func (k *recognizer) listColumn(header []string, rows []row) bool {
	rows = rows[:min(len(rows), 2000)]
	named := called(header, itemWords)
	isLong := slices.Contains(header, "item") && slices.Contains(header, "chosen")
	for at, name := range slices.Concat(named, header) {
		if at >= len(named) && (isLong || len(called([]string{name}, timeWords)) > 0 || areNumbers(rows, name)) {
			continue // dates, and numbers with commas, look like lists
		}
		for _, separator := range []string{"", "|", ";", ",", " "} {
			if separator != "" && separator == k.Mapping.Delimiter || !areLists(rows, name, separator) {
				continue
			}
			k.Mapping.List, k.Mapping.Columns.Item = separator, name
			if k.Mapping.Header != nil { // of MIND: the history is a list, too, and the last column holds the outcomes
				whole := group(rows, "")
				for _, later := range slices.Backward(header) {
					if whole.accept(later, func(v api.Value) bool { return endsWithFlags(cell.Text(v), separator) }) {
						k.Mapping.Columns.Item = later
						break
					}
				}
			}
			return true
		}
	}
	return false
}

// areLists reports whether most fields of a column are lists of distinct ids.
func areLists(rows []row, name, separator string) bool {
	lists, values := 0, 0
	for _, r := range rows {
		text := cell.Text(r.fields[name])
		if text == "" {
			continue
		}
		if cell.IsTime(r.fields[name]) {
			return false
		}
		values++
		list, ok := listOf(text, separator)
		if !ok || len(list) < 2 {
			continue
		}
		lists++
		seen := make(map[api.Value]bool, len(list))
		for _, v := range list {
			if seen[v] || !isID(cell.Text(v), separator) {
				return false
			}
			seen[v] = true
		}
	}
	return lists > 0 && lists*10 >= values*6
}

// areNumbers reports whether some fields of a column contain commas, and all of these are numbers.
func areNumbers(rows []row, name string) bool {
	some := false
	for _, r := range rows {
		if text := cell.Text(r.fields[name]); strings.Contains(text, ",") {
			if some = true; !cell.Foreign.MatchString(text) {
				return false
			}
		}
	}
	return some
}

// isID reports whether an element of a list could be the id of an item: between commas and spaces words are texts.
func isID(text, separator string) bool {
	if text == "" || len(text) > 64 || strings.ContainsAny(text, " ") && separator != "" {
		return false
	}
	return separator != " " && separator != "," || strings.ContainsAny(text, "0123456789")
}

// endsWithFlags reports whether each element of a list ends with 0 or 1, as in "N1-0 N2-1".
func endsWithFlags(text, separator string) bool {
	for _, part := range strings.Split(text, separator) {
		if n := len(part); n < 3 || part[n-2] != '-' && part[n-2] != ':' || part[n-1] != '0' && part[n-1] != '1' {
			return false
		}
	}
	return true
}

// shownLists finds the lists of candidates and of the items shown: the candidates contain the items shown.
func (k *recognizer) shownLists(p pages, lists []string) {
	c := &k.Mapping.Columns
	if of := parent(c.Item); of != "" {
		k.positions(p, slices.DeleteFunc(slices.Clone(lists), func(name string) bool { return parent(name) != of }))
		return
	}
	for _, name := range lists {
		switch {
		case name == c.Item || parent(name) != "" || !p.areIDs(name) || len(called([]string{name}, chosenWords)) > 0:
		case p.inside(name, c.Item) && p.longer(name, c.Item):
			c.Item, c.Shown = name, c.Item
		case c.Shown == "" && p.inside(c.Item, name) && p.longer(c.Item, name):
			c.Shown = name
		}
	}
}

// chosenList finds the column of the items taken: ids, or a condition for each item.
func (k *recognizer) chosenList(p pages, scalars, lists []string) {
	c := &k.Mapping.Columns
	names := slices.Concat(scalars, lists)
	c.Chosen = first(append(called(names, chosenWords), names...), func(name string) bool {
		flags := func(l *pageRows) bool {
			return len(l.lists[name]) == len(l.lists[c.Item]) && allOf(l.lists[name], cell.IsFlag)
		}
		return name != c.Item && name != c.Shown && (p.every(flags) || p.inside(c.Item, name))
	})
}
