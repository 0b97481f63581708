package main

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json"

	"vitrine"
	"vitrine/assortment"
	"vitrine/choice"
	"vitrine/internal/hint"
	"vitrine/internal/table"
	"vitrine/service/api"
)

// request is the input of vitrine optimize: items, and rules in the words of the service.
type request struct {
	Items      []item      `json:"items"`
	MaxSize    *int        `json:"max_size"`
	MinSize    int         `json:"min_size"`
	Include    []string    `json:"include"`
	Exclude    []string    `json:"exclude"`
	Limits     []api.Limit `json:"limits"`
	Capacity   *int        `json:"capacity"`
	MinRevenue *float64    `json:"min_revenue"`

	numbered         bool // whether the ids are the numbers of the rows of a table without any
	utility, revenue []float64
}

// item is an item as it is read.
type item struct {
	ID      string   `json:"id"`
	Utility *float64 `json:"utility"`
	Revenue *float64 `json:"revenue"`
	Groups  []string `json:"groups"`
	Space   *int     `json:"space"`

	at string // the place in a table
}

func refused(format string, args ...any) error {
	return hint.New(fmt.Errorf(format, args...), "vitrine optimize --help says what a request looks like")
}

// decodeJSON reads a request.
func decodeJSON(text []byte) (*request, error) {
	if text = bytes.TrimPrefix(text, []byte("\ufeff")); len(bytes.TrimSpace(text)) == 0 {
		return nil, refused("empty: want a JSON object with items")
	}
	r := &request{}
	if err := json.Unmarshal(text, r, json.RejectUnknownMembers(true)); err != nil {
		return nil, refused("%w", api.JSONError(err))
	}
	if r.Items == nil {
		return nil, refused("items is missing")
	}
	return r, r.check(false)
}

func isTable(name string) bool {
	name = strings.TrimSuffix(strings.TrimSuffix(strings.ToLower(name), ".gz"), ".zst")
	return slices.Contains([]string{".csv", ".parquet", ".jsonl"}, filepath.Ext(name))
}

var itemColumns = []string{"id", "utility", "revenue", "groups", "space"}

// readTable reads a table of items. With a model the utilities are its own: other columns are its variables, and ids
// may be missing.
func readTable(f *os.File, m *choice.Result) (*request, error) {
	options, model := table.Options{Texts: true}, m != nil
	if model {
		options.Delimiter = m.Spec.Data.Delimiter
	}
	t, err := table.Open(f, options)
	if err != nil {
		return nil, refused("%w", err)
	}
	names := t.Header()
	for _, name := range names {
		switch {
		case model && name == "utility":
			return nil, refused("column \"utility\": the model says what utilities are: leave it out")
		case !model && !slices.Contains(itemColumns, name):
			return nil, refused("unknown column %q: must be one of %s", name, strings.Join(itemColumns, ", "))
		}
	}
	if nested := table.NestedColumns(t.Nested()); slices.Contains(nested, "groups") {
		return nil, refused("column \"groups\" is a list: write text with | between the groups of an item, or JSON Lines")
	}
	if !model && !slices.Contains(names, "utility") {
		return nil, refused("%w", table.NoColumn("utility", names, t.Nested()))
	}
	r := &request{Items: []item{}, numbered: model && !slices.Contains(names, "id")}
	err = table.Each(t, func(at string, b *table.Batch, i int) error {
		it := item{at: at}
		if r.numbered {
			it.ID = strconv.Itoa(len(r.Items) + 1)
		}
		for j, name := range names {
			if c := &b.Columns[j]; !c.Missing(i) {
				if err := it.set(name, c.String(i)); err != nil {
					return fmt.Errorf("%s: column %s: %w", at, name, err)
				}
			}
			if name == "revenue" && it.Revenue == nil {
				return fmt.Errorf("%s: column revenue is empty: to count every item as 1, leave the column out", at)
			}
		}
		r.Items = append(r.Items, it)
		return nil
	})
	if err != nil {
		return nil, refused("%w", err)
	}
	return r, r.check(model)
}

// set stores the text of a column, unless it is a variable of a model.
func (i *item) set(column, text string) (err error) {
	number := func() *float64 {
		var v float64
		if v, err = table.ParseNumber(text); v != v { // missing
			return nil
		}
		return &v
	}
	switch column {
	case "id":
		i.ID = text
	case "groups":
		if json.Unmarshal([]byte(text), &i.Groups) == nil { // a list of JSON Lines
			return nil
		}
		for name := range strings.SplitSeq(text, "|") {
			i.Groups = append(i.Groups, strings.TrimSpace(name))
		}
	case "utility":
		i.Utility = number()
	case "revenue":
		i.Revenue = number()
	case "space":
		v, wrong := strconv.Atoi(text)
		if i.Space = &v; wrong != nil {
			return fmt.Errorf("%.40q is not a whole number", text)
		}
	default:
		return nil
	}
	if err == nil && !utf8.ValidString(text) {
		err = fmt.Errorf("%q is not UTF-8: convert the file", text)
	}
	return err
}

const (
	maxUtility         = 700
	minPositiveRevenue = 1e-100 // the smallest that is not 0
)

// checkUtility returns an error that says which utilities are legal, unless v is.
func checkUtility(v float64) error {
	if !(math.Abs(v) <= maxUtility) {
		return fmt.Errorf("must be from -%d to %d", maxUtility, maxUtility)
	}
	return nil
}

// check checks the items, and stores their utilities and revenues.
func (r *request) check(model bool) error {
	r.utility, r.revenue = make([]float64, len(r.Items)), make([]float64, len(r.Items))
	for k := range r.Items {
		i, wrong := &r.Items[k], error(nil)
		r.revenue[k] = 1
		switch {
		case i.ID == "":
			wrong = errors.New("id is missing")
		case i.Utility == nil && !model:
			wrong = errors.New("utility is missing")
		case i.Utility != nil && checkUtility(*i.Utility) != nil:
			wrong = fmt.Errorf("utility = %v: %w", *i.Utility, checkUtility(*i.Utility))
		case i.Revenue != nil && *i.Revenue != 0 && !(*i.Revenue >= minPositiveRevenue && *i.Revenue <= vitrine.MaxRevenue):
			wrong = fmt.Errorf("revenue = %v: must be 0 or from %v to %v", *i.Revenue, minPositiveRevenue, vitrine.MaxRevenue)
		case i.Space != nil && *i.Space < 0:
			wrong = fmt.Errorf("space = %d: must not be negative", *i.Space)
		}
		if i.Utility != nil {
			r.utility[k] = *i.Utility
		}
		if i.Revenue != nil {
			r.revenue[k] = *i.Revenue
		}
		switch {
		case wrong != nil && i.at != "":
			return refused("%s: %s: %w", i.at, r.itemName(k), wrong)
		case wrong != nil:
			return refused("%s: %w", r.itemName(k), wrong)
		}
	}
	return nil
}

func (r *request) itemName(i int) string {
	if id := r.Items[i].ID; id != "" {
		return fmt.Sprintf("item %q", id)
	}
	return fmt.Sprintf("item %d", i+1)
}

// hasRules reports whether a rule keeps a set of items from being shown.
func (r *request) hasRules() bool {
	return r.MinSize > 0 || r.MaxSize != nil && *r.MaxSize < len(r.Items) ||
		len(r.Limits)+len(r.Include)+len(r.Exclude) > 0 || r.Capacity != nil || r.MinRevenue != nil
}

// family returns the assortments that obey the rules.
func (r *request) family(warn func(string)) (vitrine.Constraint, error) {
	index := make(map[string]int, len(r.Items))
	for i := range r.Items {
		if first, ok := index[r.Items[i].ID]; ok {
			return nil, refused("items %d and %d both have the id %q: every item needs its own", first+1, i+1,
				r.Items[i].ID)
		}
		index[r.Items[i].ID] = i
	}
	rules := assortment.Rules{Items: len(r.Items), Min: r.MinSize, Max: assortment.NoLimit, Name: r.itemName}
	if r.MaxSize != nil {
		rules.Max = *r.MaxSize
	}
	for _, id := range r.Include {
		i, ok := index[id]
		if !ok {
			return nil, refused("include: there is no item %q", id)
		}
		rules.Include = append(rules.Include, i)
	}
	var unknown []string
	for _, id := range r.Exclude {
		if i, ok := index[id]; ok {
			rules.Exclude = append(rules.Exclude, i)
		} else {
			unknown = append(unknown, id)
		}
	}
	switch n := len(unknown); {
	case n == 1:
		warn(fmt.Sprintf("exclude: there is no item %q", unknown[0]))
	case n > 1:
		warn(fmt.Sprintf("exclude: %d of its ids are unknown, the first is %q", n, unknown[0]))
	}
	var err error
	if rules.Groups, err = r.groups(index, warn); err != nil {
		return nil, err
	}
	family, err := r.build(rules)
	if err != nil {
		return nil, refused("%w", err)
	}
	included := vitrine.Assortment(slices.Compact(slices.Sorted(slices.Values(rules.Include))))
	if !family.Contains(included) {
		return family, r.checkSpread(assortment.Hidden(family))
	}
	return family, nil
}

func (r *request) build(rules assortment.Rules) (vitrine.Constraint, error) {
	if r.Capacity != nil {
		space := make([]int, len(r.Items))
		for i := range r.Items {
			if r.Items[i].Space == nil {
				return nil, fmt.Errorf("%s: space is missing, which a request with a capacity needs", r.itemName(i))
			}
			space[i] = *r.Items[i].Space
		}
		rules.Weights = assortment.WeightsOf(space, *r.Capacity)
	}
	family, err := assortment.NewQuota(rules)
	if err != nil {
		return nil, err
	}
	if v := r.MinRevenue; v != nil {
		if !(*v >= 0 && *v <= vitrine.MaxRevenue) {
			return nil, fmt.Errorf("min_revenue = %v: must be from 0 to %v", *v, vitrine.MaxRevenue)
		}
		return assortment.Floor(family, r.revenue, *v)
	}
	return family, nil
}

// groups returns the bounded groups, with the items in them and in the groups within them. A bound on an empty group
// holds, unless it demands items: a shop's rules stand on days without shoes.
func (r *request) groups(index map[string]int, warn func(string)) ([]assortment.Group, error) {
	var list []assortment.Group
	place := map[string]int{} // by name
	bounded := func(field, group string, ids []string) (*assortment.Group, error) {
		k, ok := place[group]
		switch {
		case (group == "") == (ids == nil):
			return nil, refused("%s: must have either a group or items", field)
		case !ok:
			k = len(list)
			list = append(list, assortment.Group{Name: field, Max: assortment.NoLimit})
		}
		if group != "" {
			place[group], list[k].Name = k, fmt.Sprintf("group %q", group)
		}
		for _, id := range ids {
			if i, ok := index[id]; ok {
				list[k].Items = append(list[k].Items, i)
			}
		}
		return &list[k], nil
	}
	for k, l := range r.Limits {
		field := fmt.Sprintf("limits/%d", k)
		if err := l.Check("/" + field); err != nil {
			return nil, refused("%w", err)
		}
		if l.Feature != "" || l.Attribute != "" {
			return nil, refused("%s: items have groups only: a feature or an attribute is of a placement's items",
				field)
		}
		g, err := bounded(field, l.Group, l.Items)
		if err != nil {
			return nil, err
		}
		g.Min = max(g.Min, l.Min)
		if l.Max != nil {
			g.Max = min(g.Max, *l.Max)
		}
	}
	r.fill(list, place)
	for _, g := range list {
		switch {
		case len(g.Items) > 0:
		case g.Min > 0:
			return nil, refused("limits: no item is in the %s%s", g.Name, r.knownGroups())
		case g.Max != assortment.NoLimit:
			warn(fmt.Sprintf("limits: no item is in the %s%s", g.Name, r.knownGroups()))
		}
	}
	return list, nil
}

// fill adds the items to their groups, and to the groups around these. place indexes the groups by name.
func (r *request) fill(list []assortment.Group, place map[string]int) {
	lengths := map[int]bool{} // of the names, so that not every prefix of a long name is looked up
	for name := range place {
		lengths[len(name)] = true
	}
	within := map[string][]int{} // the bounded groups that contain a group
	for i := range r.Items {
		for _, name := range r.Items[i].Groups {
			containing, seen := within[name]
			for end := 0; end <= len(name) && !seen; end++ {
				if lengths[end] && (end == len(name) || name[end] == '/') {
					if k, ok := place[name[:end]]; ok {
						containing = append(containing, k)
					}
				}
			}
			within[name] = containing
			for _, k := range containing {
				if items := list[k].Items; len(items) == 0 ||
					items[len(items)-1] != i { // only once, from several groups within
					list[k].Items = append(items, i)
				}
			}
		}
	}
}

func (r *request) knownGroups() string {
	const maximum = 10
	var names []string
	known := map[string]bool{}
	for i := range r.Items {
		for _, name := range r.Items[i].Groups {
			if !known[name] {
				known[name], names = true, append(names, name)
			}
		}
	}
	switch n := len(names); {
	case n == 0:
		return ": items have no groups"
	case n > maximum:
		return fmt.Sprintf(": there are %s and %d more", strings.Join(names[:maximum], ", "), n-maximum)
	}
	return ": there are " + strings.Join(names, ", ")
}

// checkSpread reports utilities that are too far from each other if more items are demanded than are
// included: see assortment.Maximize.
func (r *request) checkSpread(hidden []bool) error {
	low, high := -1, -1
	for i, u := range r.utility {
		if hidden != nil && hidden[i] {
			continue
		}
		if low < 0 || u < r.utility[low] {
			low = i
		}
		if high < 0 || u > r.utility[high] {
			high = i
		}
	}
	if r.utility[high]-r.utility[low] > assortment.MaxSpan {
		return refused("%s has utility %v and %s %v: if rules demand a number of items, utilities must lie within "+
			"%d of each other", r.itemName(low), r.utility[low], r.itemName(high), r.utility[high], assortment.MaxSpan)
	}
	return nil
}
