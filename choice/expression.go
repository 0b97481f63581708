package choice

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/expr-lang/expr"
	"github.com/expr-lang/expr/ast"
	"github.com/expr-lang/expr/parser"
	"github.com/expr-lang/expr/vm"

	"vitrine/internal/table"
)

// frame is a batch of a long table, with the columns that expressions may use.
type frame struct {
	names   []string
	columns []table.Column // by name
	n       int
}

// expression is computed from the columns of a row.
type expression struct {
	source string
	slots  []int // columns it uses
	plain  bool  // whether it is just the column slots[0]

	program *vm.Program // nil until the columns' types are known
	types   []bool      // by slot: whether the column holds text
	blank   []bool      // by slot: whether the column is empty so far, and counts as text
	env     map[string]any
	out     []float64
	text    []string
}

// functions extend the expression language.
var functions = map[string]func(x float64) float64{"exp": math.Exp, "log": math.Log, "sqrt": math.Sqrt}

// parseExpression parses an expression over the names. If a column is unknown, the error names it, and says whether it
// is nested or whether a similar name exists.
func parseExpression(source string, names, nested []string) (*expression, error) {
	if slot := slices.Index(names, source); slot >= 0 {
		return &expression{source: source, slots: []int{slot}, plain: true}, nil
	}
	tree, err := parser.Parse(source)
	if err != nil {
		return nil, fmt.Errorf("%q is neither a column nor an expression: %s", source, firstLine(err))
	}
	e := &expression{source: source, env: map[string]any{}}
	var found identifiers
	ast.Walk(&tree.Node, &found)
	for _, name := range found {
		slot := slices.Index(names, name)
		if slot < 0 {
			err := unknownColumn(name, names, nested)
			if name != source {
				err = fmt.Errorf("%q: %w", source, err)
			}
			return nil, err
		}
		if !slices.Contains(e.slots, slot) {
			e.slots = append(e.slots, slot)
		}
	}
	return e, nil
}

// unknownColumn returns the error for a name that is not a column.
func unknownColumn(name string, names, nested []string) error {
	ours := func(s string) bool { return strings.HasPrefix(s, "\x00") }
	return table.NoColumn(name, slices.DeleteFunc(slices.Clone(names), ours), nested)
}

// identifiers collects the column names in an expression.
type identifiers []string

// Visit implements [ast.Visitor].
func (l *identifiers) Visit(node *ast.Node) {
	switch n := (*node).(type) {
	case *ast.IdentifierNode:
		*l = append(*l, n.Value)
	case *ast.CallNode:
		// A function's name is visited before its call.
		if name, ok := n.Callee.(*ast.IdentifierNode); ok && (functions[name.Value] != nil || name.Value == "pow") {
			*l = slices.DeleteFunc(*l, func(s string) bool { return s == name.Value })
		}
	}
}

// anyOf reports whether two lists share a text.
func anyOf(a, b []string) bool {
	return slices.ContainsFunc(a, func(text string) bool { return slices.Contains(b, text) })
}

// uses reports whether an expression uses any of the columns.
func uses(source string, columns []string) bool {
	return anyOf(append(inputs(source), source), columns)
}

// inputs returns the column names in an expression.
func inputs(source string) []string {
	var found identifiers
	if tree, err := parser.Parse(source); err == nil {
		ast.Walk(&tree.Node, &found)
	}
	return found
}

// condition reports whether an expression uses columns only in conditions.
func condition(source string) bool {
	tree, err := parser.Parse(source)
	if err != nil {
		return false
	}
	var found identifiers
	ast.Walk(&tree.Node, constants{})
	ast.Walk(&tree.Node, &found)
	return len(found) == 0
}

// constants replaces conditions by constants.
type constants struct{}

// Visit implements [ast.Visitor].
func (constants) Visit(node *ast.Node) {
	if isBoolean(*node) {
		*node = &ast.BoolNode{}
	}
}

// compile checks the expression's types on the columns of f, unless they are unchanged since the last call. An empty
// column counts as numbers, or as text if only text fits.
func (e *expression) compile(f *frame) error {
	types, same := make([]bool, len(e.slots)), e.program != nil
	for k, slot := range e.slots {
		types[k] = f.columns[slot].Text != nil
		same = same && types[k] == e.types[k] && (!e.blank[k] || f.columns[slot].Blank())
	}
	if same {
		return nil
	}
	e.types, e.blank = types, make([]bool, len(e.slots))
	program, err := e.compileAs(f, types)
	if err != nil {
		for k, slot := range e.slots {
			e.blank[k] = !types[k] && f.columns[slot].Blank()
		}
		if program, _ = e.compileAs(f, e.blank, types); program == nil {
			e.program = nil
			return fmt.Errorf("%q: %s", e.source, firstLine(err))
		}
	}
	e.program = program
	return nil
}

// compileAs compiles the expression with text in the slots marked by any of the lists.
func (e *expression) compileAs(f *frame, texts ...[]bool) (*vm.Program, error) {
	env := map[string]any{}
	for k, slot := range e.slots {
		env[f.names[slot]] = 0.0
		if slices.ContainsFunc(texts, func(marked []bool) bool { return marked[k] }) {
			env[f.names[slot]] = ""
		}
	}
	options := []expr.Option{expr.Env(env), expr.Patch(indicators{})}
	for name, f := range functions {
		options = append(options, expr.Function(name, func(x ...any) (any, error) { return f(float(x[0])), nil },
			new(func(float64) float64), new(func(int) float64)))
	}
	options = append(options, expr.Function("pow",
		func(x ...any) (any, error) { return math.Pow(float(x[0]), float(x[1])), nil },
		new(func(float64, float64) float64), new(func(float64, int) float64), new(func(int, float64) float64),
		new(func(int, int) float64)))
	return expr.Compile(e.source, options...)
}

// indicators turns conditions in sums and products into numbers: price * (season == 0) is the price or 0.
type indicators struct{}

// Visit implements [ast.Visitor].
func (indicators) Visit(node *ast.Node) {
	n, ok := (*node).(*ast.BinaryNode)
	if !ok || !slices.Contains([]string{"+", "-", "*", "/", "**", "^", "%"}, n.Operator) {
		return
	}
	for _, side := range []*ast.Node{&n.Left, &n.Right} {
		if isBoolean(*side) {
			ast.Patch(side, &ast.ConditionalNode{Cond: *side, Exp1: &ast.FloatNode{Value: 1},
				Exp2: &ast.FloatNode{Value: 0}})
		}
	}
}

// isBoolean reports whether a node is syntactically a condition.
func isBoolean(node ast.Node) bool {
	switch n := node.(type) {
	case *ast.BoolNode:
		return true
	case *ast.UnaryNode:
		return n.Operator == "not" || n.Operator == "!"
	case *ast.BinaryNode:
		return slices.Contains([]string{"==", "!=", "<", "<=", ">", ">=", "and", "&&", "or", "||", "in", "not in",
			"contains", "startsWith", "endsWith", "matches"}, n.Operator)
	}
	return false
}

// firstLine returns an error's message without the picture below it.
func firstLine(err error) string {
	line, _, _ := strings.Cut(err.Error(), "\n")
	return line
}

// float converts a function's argument to a number.
func float(v any) float64 {
	if i, ok := v.(int); ok {
		return float64(i)
	}
	return v.(float64)
}

func indicator(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// numbers evaluates the expression in the rows of f. The slice is valid until the next call. row is the place of an
// error.
func (e *expression) numbers(f *frame) (values []float64, row int, err error) {
	c, i, err := e.values(f)
	if err != nil || c.Text == nil {
		return c.Number, i, err
	}
	e.out = e.out[:0]
	for i, text := range c.Text {
		v, err := table.ParseNumber(text)
		switch {
		case text == "true" || text == "True" || text == "TRUE":
			v = 1
		case text == "false" || text == "False" || text == "FALSE":
			v = 0
		case err != nil:
			if !e.plain {
				err = fmt.Errorf("%q is %v: want a number or a condition", e.source, text)
			}
			return nil, i, err
		}
		e.out = append(e.out, v)
	}
	return e.out, 0, nil
}

// values evaluates the expression in the rows of f, to numbers or text. They are valid until the next call. row is the
// place of an error.
func (e *expression) values(f *frame) (c table.Column, row int, err error) {
	if e.plain {
		return f.columns[e.slots[0]], 0, nil
	}
	if err := e.compile(f); err != nil {
		return c, 0, err
	}
	e.out, e.text = e.out[:0], e.text[:0]
	var machine vm.VM
	for i := range f.n {
		for k, slot := range e.slots {
			switch c := &f.columns[slot]; {
			case e.blank[k]:
				e.env[f.names[slot]] = ""
			case c.Text != nil:
				e.env[f.names[slot]] = c.Text[i]
			default:
				e.env[f.names[slot]] = c.Number[i]
			}
		}
		v, err := machine.Run(e.program, e.env)
		if err != nil {
			return c, i, fmt.Errorf("%q: %s", e.source, firstLine(err))
		}
		switch v := v.(type) {
		case float64:
			e.out = append(e.out, v)
		case int:
			e.out = append(e.out, float64(v))
		case bool:
			e.out = append(e.out, indicator(v))
		case string:
			e.text = append(e.text, v)
		default:
			return c, i, fmt.Errorf("%q is %v: want a number or a condition", e.source, v)
		}
		if len(e.out) > 0 && len(e.text) > 0 {
			return c, i, fmt.Errorf("%q is a number in some rows and text in others", e.source)
		}
	}
	if len(e.text) > 0 {
		return table.Column{Text: e.text}, 0, nil
	}
	return table.Column{Number: e.out}, 0, nil
}
