package catalogue

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/expr-lang/expr/ast"
	"github.com/expr-lang/expr/parser"

	"vitrine/service/api"
	"vitrine/service/feature"
)

// A filter is a condition on the attributes, features and other fields of an item, in the syntax of expr-lang:
//
//	brand == "acme" and price <= 20 and not (season in ["winter", "autumn"] or "sale" in groups)
//
// It compares a name with a number, a string, true or false (==, !=, <, <=, >, >=), or looks it up in a list. If an
// item lacks the attribute, only != holds; for a feature that it lacks, the filter uses the default. The names seen and
// bought count how often the request's shopper saw and bought the item. The library expr-lang parses the syntax. We
// compile it here, because items are records rather than maps.

type FilterError struct{ Message string }

func (e *FilterError) Error() string { return e.Message }

func wrongf(format string, args ...any) error {
	return &FilterError{api.Abbreviate(fmt.Sprintf(format, args...), 400)}
}

const maxFilter = 4000 // bytes

type condition func(f *fields) bool

// compiler compiles filters for one catalogue, which must be locked for reading.
type compiler struct {
	*Catalogue
	names       []string // names that the filter reads
	find        []func(f *fields) api.Value
	comparisons int
	depth       depth
	asksPast    bool
	private     string
}

// compile returns a filter that has not looked at any items yet.
func (c *Catalogue) compile(text string) (*Filter, error) {
	if len(text) > maxFilter {
		return nil, wrongf("has %d bytes, at most %d", len(text), maxFilter)
	}
	tree, err := parser.Parse(text)
	if err != nil {
		line, _, _ := strings.Cut(err.Error(), "\n")
		line, _, _ = strings.Cut(line, ": strconv.") // a number that is too large
		return nil, wrongf(`%s: want a condition such as brand == "acme" and price <= 20`, line)
	}
	c.RLock()
	defer c.RUnlock()
	k := compiler{Catalogue: c}
	holds, err := k.condition(tree.Node)
	if err != nil {
		return nil, err
	}
	return &Filter{holds: holds, fields: fields{names: k.names}, find: k.find, depth: k.depth, asksPast: k.asksPast,
		private: k.private, comparisons: k.comparisons}, nil
}

func (c *compiler) condition(node ast.Node) (condition, error) {
	switch n := node.(type) {
	case *ast.BoolNode:
		return func(*fields) bool { return n.Value }, nil
	case *ast.IdentifierNode: // an attribute compared with true
		return c.comparison(n, "==", api.Value{Kind: isTrue})
	case *ast.UnaryNode:
		if n.Operator != "not" && n.Operator != "!" {
			break
		}
		of, err := c.condition(n.Node)
		if err != nil {
			return nil, err
		}
		return func(f *fields) bool { return !of(f) }, nil
	case *ast.BinaryNode:
		switch n.Operator {
		case "and", "&&", "or", "||":
			return c.joined(n)
		case "in":
			return c.in(n)
		case "==", "!=", "<", "<=", ">", ">=":
			name, operator, v, err := sides(n)
			if err != nil {
				return nil, err
			}
			if not, ok := name.(*ast.UnaryNode); ok && (not.Operator == "not" || not.Operator == "!") {
				n.Left = not.Node
				return nil, wrongf("%s compares the result of not: write not (%s)", name, n)
			}
			return c.comparison(name, operator, v)
		}
	}
	return nil, wrongf("%s: is not a comparison, in, and, or, or not", node)
}

// sides splits a comparison, turned around if necessary so that the name is on the left.
func sides(n *ast.BinaryNode) (name ast.Node, operator string, v api.Value, err error) {
	if v, ok := literal(n.Right); ok {
		return n.Left, n.Operator, v, nil
	}
	if v, ok := literal(n.Left); ok {
		return n.Right, mirrored[n.Operator], v, nil
	}
	return nil, "", v, wrongf("%s: one side of %s must be a number, a string, true or false", n, n.Operator)
}

// mirrored maps an operator to its equivalent after exchanging the sides.
var mirrored = map[string]string{"==": "==", "!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}

// joined compiles two conditions joined by and, or by or.
func (c *compiler) joined(n *ast.BinaryNode) (condition, error) {
	left, err := c.condition(n.Left)
	if err != nil {
		return nil, err
	}
	right, err := c.condition(n.Right)
	if err != nil {
		return nil, err
	}
	if n.Operator == "and" || n.Operator == "&&" {
		return func(f *fields) bool { return left(f) && right(f) }, nil
	}
	return func(f *fields) bool { return left(f) || right(f) }, nil
}

// in compiles a look-up in a list, which costs one comparison, or in an item's groups.
func (c *compiler) in(n *ast.BinaryNode) (condition, error) {
	if groups, ok := n.Right.(*ast.IdentifierNode); !ok || groups.Value != "groups" {
		return c.inList(n)
	}
	v, ok := literal(n.Left)
	if !ok || v.Kind != api.IsText {
		return nil, wrongf("%s: want the name of a group in quotes", n)
	}
	c.comparisons++
	c.depth = untilRest
	return func(f *fields) bool { return slices.Contains(f.groups, v.Text) }, nil
}

func (c *compiler) inList(n *ast.BinaryNode) (condition, error) {
	list, ok := n.Right.(*ast.ArrayNode)
	if !ok {
		return nil, wrongf("%s: want a list such as [1, 2], or groups, after in", n)
	}
	values := map[api.Value]bool{}
	for _, e := range list.Nodes {
		v, ok := literal(e)
		if !ok {
			return nil, wrongf("%s: must be a number, a string, true or false", e)
		}
		values[v] = true
	}
	at, err := c.field(n.Left)
	return func(f *fields) bool { return values[f.named[at]] }, err
}

func (c *compiler) comparison(name ast.Node, operator string, v api.Value) (condition, error) {
	at, err := c.field(name)
	switch {
	case err != nil:
		return nil, err
	case operator == "==":
		return func(f *fields) bool { return f.named[at] == v }, nil
	case operator == "!=":
		return func(f *fields) bool { return f.named[at] != v }, nil
	}
	switch v.Kind {
	case api.IsNumber:
		return ordered(operator,
			v.Number, func(f *fields) (float64, bool) {
				have := &f.named[at]
				return have.Number, have.Kind == api.IsNumber
			}), nil
	case api.IsText:
		return ordered(operator, v.Text,
			func(f *fields) (string, bool) { have := &f.named[at]; return have.Text, have.Kind == api.IsText }), nil
	}
	return nil, wrongf("%s %s: only numbers and strings have an order", name, operator)
}

// ordered returns the condition that an item's value exists and compares with v as the operator says.
func ordered[T cmp.Ordered](operator string, v T, get func(f *fields) (T, bool)) condition {
	switch operator {
	case "<":
		return func(f *fields) bool { have, ok := get(f); return ok && have < v }
	case "<=":
		return func(f *fields) bool { have, ok := get(f); return ok && have <= v }
	case ">":
		return func(f *fields) bool { have, ok := get(f); return ok && have > v }
	}
	return func(f *fields) bool { have, ok := get(f); return ok && have >= v }
}

// field returns the index in fields.named for a name. The value there carries no name, and is Missing if the item lacks
// it.
func (c *compiler) field(node ast.Node) (at int, err error) {
	n, ok := node.(*ast.IdentifierNode)
	if !ok {
		return 0, wrongf("%s: want the name of an attribute or a feature", node)
	}
	c.comparisons++
	name := n.Value
	if at := slices.Index(c.names, name); at >= 0 {
		return at, nil
	}
	var find func(f *fields) api.Value // nil for an attribute
	schema := c.Split().Schema()
	slot, isFeature := schema.Item(name)
	past := schema.History(name)
	if !isFeature && (name == feature.PastSeen || name == feature.PastBought) {
		past = name
	}
	if past != "" {
		c.asksPast, c.private = true, name
		find = func(f *fields) api.Value { return api.Number("", f.past.Count(past)) }
	} else if isFeature {
		c.depth = max(c.depth, untilFeatures)
		byDefault := schema.Default(name)
		find = func(f *fields) api.Value {
			if v := f.values[slot]; v.Kind != api.Missing {
				return v
			}
			return byDefault
		}
	} else {
		switch name {
		case "id":
			find = func(f *fields) api.Value { return api.Text("", f.id) }
		case "revenue":
			c.private = name
			find = func(f *fields) api.Value { return api.Number("", f.revenue) }
		case "space":
			find = func(f *fields) api.Value { return api.Number("", f.space) }
		case "groups":
			return 0, wrongf(`groups: want "name" in groups`)
		default:
			if c.attributes[name] == 0 {
				known := slices.Concat(slices.Sorted(maps.Keys(c.attributes)), schema.ItemNames(), []string{"id",
					"revenue", "space", "groups", feature.PastSeen, feature.PastBought})
				return 0, wrongf("no item has the attribute %q: there are %s", name, strings.Join(known, ", "))
			}
			c.depth = untilRest
		}
	}
	c.names, c.find = append(c.names, name), append(c.find, find)
	return len(c.names) - 1, nil
}

func literal(node ast.Node) (v api.Value, ok bool) {
	switch n := node.(type) {
	case *ast.StringNode:
		return api.Text("", n.Value), true
	case *ast.IntegerNode:
		return api.Number("", float64(n.Value)), true
	case *ast.FloatNode:
		return api.Number("", n.Value), true
	case *ast.BoolNode:
		if n.Value {
			return api.Value{Kind: isTrue}, true
		}
		return api.Value{Kind: isFalse}, true
	case *ast.UnaryNode:
		if v, ok := literal(n.Node); ok && n.Operator == "-" && v.Kind == api.IsNumber {
			return api.Number("", -v.Number), true
		}
	}
	return v, false
}

// Filter is a condition on a catalogue's items together with the set of items that satisfy it. The catalogue keeps it,
// and later requests with the same text only look at items that have changed.
type Filter struct {
	sweep
	holds       condition
	fields      fields
	find        []func(f *fields) api.Value // reads the value of each name; nil for an attribute
	depth       depth                       // how far items are read
	asksPast    bool                        // whether it depends on the shopper's past
	private     string                      // a name that it reads and that not everybody may know; "" for none
	comparisons int
	bits        []uint64 // by slot
}

const maxFilters = 64

// Filter returns the filter for a text after it has looked at all items. It holds the catalogue's lock only for short
// slices, and stops when ctx ends. Errors are *[FilterError], *[BusyError] and ctx's error. The empty text returns a
// nil filter.
func (c *Catalogue) Filter(ctx context.Context, text string) (*Filter, error) {
	if text == "" {
		return nil, nil
	}
	l := &c.lists
	l.mu.Lock()
	p := l.filters[text]
	l.mu.Unlock()
	if p == nil {
		var err error
		if p, err = c.compile(text); err != nil {
			return nil, err
		}
		p = l.remember(text, p)
	}
	return p, c.complete(ctx, p)
}

// remember keeps a filter, unless another request added it meanwhile.
func (l *lists) remember(text string, p *Filter) *Filter {
	l.mu.Lock()
	defer l.mu.Unlock()
	if other := l.filters[text]; other != nil {
		return other
	}
	if l.filters == nil {
		l.filters = map[string]*Filter{}
	}
	for other := range l.filters {
		if len(l.filters) < maxFilters {
			break
		}
		delete(l.filters, other)
	}
	l.filters[text] = p
	return p
}

func (p *Filter) begin(int) {}

func (p *Filter) isWorn(int) bool { return false }

func (p *Filter) fit(n int) {
	if words := (n + 63) / 64; words > len(p.bits) {
		p.bits = append(p.bits, make([]uint64, words-len(p.bits))...)
	}
}

func (p *Filter) cost() int { return 1 + p.comparisons }

// look is for a shopper without a past.
func (p *Filter) look(c *Catalogue, slot int32) {
	if bit := uint64(1) << (slot % 64); p.holdsFor(c, &p.fields, slot) {
		p.bits[slot/64] |= bit
	} else {
		p.bits[slot/64] &^= bit
	}
}

func (p *Filter) holdsFor(c *Catalogue, f *fields, slot int32) bool {
	f.named = append(f.named[:0], make([]api.Value, len(f.names))...)
	c.readTo(f, slot, p.depth)
	for k, find := range p.find {
		if find != nil {
			f.named[k] = find(f)
		}
	}
	return p.holds(f)
}

// AsksPast reports whether the filter depends on the shopper's past.
func (p *Filter) AsksPast() bool { return p != nil && p.asksPast }

// Private returns a name that the filter reads and that not everybody may know: the revenue, or a count of the shopper's
// past. It returns "" if there is none.
func (p *Filter) Private() string {
	if p == nil {
		return ""
	}
	return p.private
}

// personal is a filter's answer for an item that a shopper knows.
type personal struct {
	slot  int32
	holds bool
}

// personal returns the filter's answers for the items of a shopper's past, in the order of the catalogue.
func (c *Catalogue) personal(p *Filter, past []feature.Past) (answers []personal) {
	if !p.AsksPast() {
		return nil
	}
	f := fields{names: p.fields.names}
	for i := range past {
		if slot, ok := c.index.find(past[i].ID); ok {
			f.past = past[i]
			answers = append(answers, personal{slot, p.holdsFor(c, &f, slot)})
		}
	}
	slices.SortFunc(answers, func(a, b personal) int { return cmp.Compare(a.slot, b.slot) })
	return answers
}

// has reports whether an item satisfies the filter. Every item satisfies nil.
func (p *Filter) has(slot int32) bool { return p == nil || p.bits[slot/64]&(1<<(slot%64)) != 0 }
