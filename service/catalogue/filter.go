package catalogue

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/expr-lang/expr/ast"
	"github.com/expr-lang/expr/parser"

	"vitrine/service/api"
	"vitrine/service/budget"
)

// A filter is a condition on the attributes, the features and the other fields of an item, in the
// syntax of expr-lang:
//
//	brand == "acme" and price <= 20 and not (season in ["winter", "autumn"] or "sale" in groups)
//
// It compares a name with a number, a string, true or false (==, !=, <, <=, >, >=), or looks it up in a list. An
// item without the attribute satisfies no comparison but !=. The syntax is parsed by that library, and
// compiled here, because items have records and not maps.

// FilterError says what is wrong with a filter.
type FilterError struct{ Message string }

func (e *FilterError) Error() string { return e.Message }

func wrongf(format string, args ...any) error {
	return &FilterError{api.Abbreviate(fmt.Sprintf(format, args...), 400)}
}

const maxFilter = 4000 // bytes

// condition reports whether an item satisfies it.
type condition func(f *fields) bool

// compile returns the condition of a text on the items of a catalogue.
func (c *Catalogue) compile(text string) (condition, error) {
	if len(text) > maxFilter {
		return nil, wrongf("has %d bytes, at most %d", len(text), maxFilter)
	}
	tree, err := parser.Parse(text)
	if err != nil {
		line, _, _ := strings.Cut(err.Error(), "\n")
		return nil, wrongf(`%s: want a condition such as brand == "acme" and price <= 20`, line)
	}
	return c.condition(tree.Node)
}

func (c *Catalogue) condition(node ast.Node) (condition, error) {
	switch n := node.(type) {
	case *ast.BoolNode:
		return func(*fields) bool { return n.Value }, nil
	case *ast.IdentifierNode: // an attribute that is true
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
			return c.both(n)
		case "in":
			return c.in(n)
		case "==", "!=", "<", "<=", ">", ">=":
			if v, ok := literal(n.Right); ok {
				return c.comparison(n.Left, n.Operator, v)
			}
			if v, ok := literal(n.Left); ok {
				return c.comparison(n.Right, mirrored[n.Operator], v)
			}
			return nil, wrongf("%s: one side of %s must be a number, a string, true or false", n, n.Operator)
		}
	}
	return nil, wrongf("%s: is not a comparison, in, and, or, or not", node)
}

// mirrored has the operator with the sides exchanged.
var mirrored = map[string]string{"==": "==", "!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}

func (c *Catalogue) both(n *ast.BinaryNode) (condition, error) {
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

// in compiles "x in [1, 2]", and "x" in groups.
func (c *Catalogue) in(n *ast.BinaryNode) (condition, error) {
	if groups, ok := n.Right.(*ast.IdentifierNode); ok && groups.Value == "groups" {
		v, ok := literal(n.Left)
		if !ok || v.Kind != api.IsText {
			return nil, wrongf("%s: want the name of a group in quotes", n)
		}
		return func(f *fields) bool { return slices.Contains(f.groups, v.Text) }, nil
	}
	list, ok := n.Right.(*ast.ArrayNode)
	if !ok {
		return nil, wrongf("%s: want a list such as [1, 2], or groups, after in", n)
	}
	get, err := c.field(n.Left)
	if err != nil {
		return nil, err
	}
	values := map[api.Value]bool{}
	for _, e := range list.Nodes {
		v, ok := literal(e)
		if !ok {
			return nil, wrongf("%s: must be a number, a string, true or false", e)
		}
		values[v] = true
	}
	return func(f *fields) bool { return values[get(f)] }, nil
}

// comparison compiles a comparison of a name with a value.
func (c *Catalogue) comparison(name ast.Node, operator string, v api.Value) (condition, error) {
	get, err := c.field(name)
	if err != nil {
		return nil, err
	}
	switch operator {
	case "==":
		return func(f *fields) bool { return get(f) == v }, nil
	case "!=":
		return func(f *fields) bool { return get(f) != v }, nil
	}
	if v.Kind != api.IsNumber && v.Kind != api.IsText {
		return nil, wrongf("%s %s: only numbers and strings have an order", name, operator)
	}
	isOrdered := map[string]func(sign int) bool{
		"<": func(s int) bool { return s < 0 }, "<=": func(s int) bool { return s <= 0 },
		">": func(s int) bool { return s > 0 }, ">=": func(s int) bool { return s >= 0 },
	}[operator]
	return func(f *fields) bool {
		have := get(f)
		switch {
		case have.Kind != v.Kind:
			return false
		case v.Kind == api.IsText:
			return isOrdered(strings.Compare(have.Text, v.Text))
		case have.Number < v.Number:
			return isOrdered(-1)
		case have.Number > v.Number:
			return isOrdered(1)
		}
		return isOrdered(0)
	}, nil
}

// field returns how the value of a name is found, without its name. It is Missing if an item has none.
func (c *Catalogue) field(node ast.Node) (func(f *fields) api.Value, error) {
	n, ok := node.(*ast.IdentifierNode)
	if !ok {
		return nil, wrongf("%s: want the name of an attribute or a feature", node)
	}
	name := n.Value
	if slot, ok := c.Split().Schema().Item(name); ok {
		return func(f *fields) api.Value {
			v := f.values[slot]
			v.Name = ""
			return v
		}, nil
	}
	switch name {
	case "id":
		return func(f *fields) api.Value { return api.Text("", f.id) }, nil
	case "revenue":
		return func(f *fields) api.Value { return api.Number("", f.revenue) }, nil
	case "space":
		return func(f *fields) api.Value { return api.Number("", f.space) }, nil
	}
	if c.attributes[name] == 0 {
		known := append(slices.Sorted(maps.Keys(c.attributes)), c.Split().Schema().ItemNames(), "id", "revenue", "space", "groups")
		return nil, wrongf("no item has the attribute %q: there are %s", name, strings.Join(known, ", "))
	}
	return func(f *fields) api.Value {
		for i := range f.attributes {
			if f.attributes[i].Name == name {
				v := f.attributes[i]
				v.Name = ""
				return v
			}
		}
		return api.Value{}
	}, nil
}

// literal returns the value of a constant.
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

// filters are those of the last requests, with the items that satisfy each, and the groups that they limit.
type filters struct {
	mu      sync.Mutex
	of      map[string]*filtered
	groups  map[GroupsBy]*Groups
	touched []int32 // slots that have changed, in order
	budget  *budget.Budget
}

const (
	maxFilters = 64
	maxTouched = 1 << 17
)

// filtered is a filter and the items that satisfy it.
type filtered struct {
	mu    sync.Mutex
	holds condition
	bits  []uint64 // by slot
	seen  int      // of filters.touched
}

// touch notes that a slot has changed. The catalogue's writer calls it.
func (c *Catalogue) touch(slot int32) {
	switch l := &c.filters; {
	case len(l.of)+len(l.groups) == 0:
	case len(l.touched) < maxTouched:
		l.touched = append(l.touched, slot)
	default: // they are cheaper to compute again
		l.mu.Lock()
		l.dropLists()
		l.mu.Unlock()
		l.of, l.touched = nil, nil
	}
}

// filter returns a filter that is up to date and locked.
func (c *Catalogue) filter(text string) (*filtered, error) {
	l := &c.filters
	l.mu.Lock()
	p := l.of[text]
	l.mu.Unlock()
	if p == nil {
		holds, err := c.compile(text)
		if err != nil {
			return nil, err
		}
		p = &filtered{holds: holds, seen: -1}
		l.mu.Lock()
		if l.of == nil {
			l.of = map[string]*filtered{}
		}
		for other := range l.of {
			if len(l.of) < maxFilters {
				break
			}
			delete(l.of, other)
		}
		l.of[text] = p
		l.mu.Unlock()
	}
	p.mu.Lock()
	words := (c.Len() + 63) / 64
	p.bits = append(p.bits, make([]uint64, max(words-len(p.bits), 0))...)
	var f fields
	if p.seen < 0 {
		for slot := range int32(c.Len()) {
			c.test(p, slot, &f)
		}
	} else {
		for _, slot := range l.touched[p.seen:] {
			if int(slot) < c.Len() {
				c.test(p, slot, &f)
			}
		}
	}
	p.seen = len(l.touched)
	return p, nil
}

// test notes whether an item satisfies a filter.
func (c *Catalogue) test(p *filtered, slot int32, f *fields) {
	c.read(f, slot)
	if bit := uint64(1) << (slot % 64); p.holds(f) {
		p.bits[slot/64] |= bit
	} else {
		p.bits[slot/64] &^= bit
	}
}

// has reports whether an item satisfies the filter. nil is satisfied by all.
func (p *filtered) has(slot int32) bool { return p == nil || p.bits[slot/64]&(1<<(slot%64)) != 0 }
