package choice

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Layout describes how a table holds choices. A long table uses a row per alternative, with a choice's rows next to
// each other. A wide table uses a row per choice.
//
// Conditions and values are expressions over the columns, in the language of github.com/expr-lang/expr with the
// functions exp, log, sqrt and pow; a bool counts as 1 or 0. A missing number is NaN: != holds, and other comparisons
// fail. A name that matches a column refers to that column,
// whatever characters it contains. In a wide table, the variables from Names are columns too, with the values for the
// row's alternative. Columns derived from the table's own columns take part in Names, and the filter applies before
// labels are checked. Expressions may also use alternative, the label of the row's alternative, and position, its place
// among the choice's rows counted from 1, unless the table has columns with these names.
type Layout struct {
	Form string `toml:"form" json:"form"` // "long" or "wide"
	// long: columns that together identify a choice
	Choice []string `toml:"choice" json:"choice,omitempty"`
	// long: column of labels; "" numbers a choice's rows from 1
	Alternative string `toml:"alternative" json:"alternative,omitempty"`
	// long: an expression, true or 1 in the chosen row; wide: the column with the chosen label, or an expression that
	// gives a label or its code; "" if choices are unknown
	Chosen string `toml:"chosen" json:"chosen,omitempty"`
	// wide: pattern of column names, such as "{variable}.{alternative}"
	Names string `toml:"names" json:"names,omitempty"`
	// labels; required for wide tables, sets the order for long ones
	Alternatives []string `toml:"alternatives" json:"alternatives,omitempty"`
	// maps texts in the table to labels
	Labels map[string]string `toml:"labels" json:"labels,omitempty"`
	// alternatives to leave out, along with the choices that took them or have no others
	Exclude []string `toml:"exclude" json:"exclude,omitempty"`
	// condition; "" means that every row is available
	Available string `toml:"available" json:"available,omitempty"`
	// "absent" (""), "implicit": chosen if no row is, or "explicit"
	Outside string `toml:"outside" json:"outside,omitempty"`
	// alternative that is the outside option, if explicit
	OutsideLabel string `toml:"outside_alternative" json:"outside_alternative,omitempty"`
	// condition for keeping a row
	Filter string `toml:"filter" json:"filter,omitempty"`
	// additional columns, "name = expression", which may use earlier ones
	Derive []string `toml:"derive" json:"derive,omitempty"`
	// expression that is the same in all of a choice's rows
	Weight string `toml:"weight" json:"weight,omitempty"`
	// column that identifies the decision maker
	Panel string `toml:"panel" json:"panel,omitempty"`
	// column that identifies the cluster
	Cluster string `toml:"cluster" json:"cluster,omitempty"`
	// for CSV; "" is a comma
	Delimiter string `toml:"delimiter" json:"delimiter,omitempty"`

	each     bool // whether each row is a separate choice, see LoadItems
	labelled bool // with each: whether rows need a label
}

// check returns an error that names the first invalid field.
func (l *Layout) check() error {
	switch l.Form {
	case "long":
		if len(l.Choice) == 0 && !l.each {
			return errors.New(`data.choice is missing: a long table needs the columns that identify a choice, choice = ["case"]`)
		}
		if l.Names != "" {
			return errors.New("data.names is for wide tables")
		}
	case "wide":
		if len(l.Alternatives) == 0 {
			return errors.New(`data.alternatives is missing: a wide table needs the labels of the alternatives`)
		}
		if strings.Count(l.Names, "{variable}") != 1 || strings.Count(l.Names, "{alternative}") != 1 {
			return fmt.Errorf(`data.names is %q: want the pattern of the columns, such as "{variable}.{alternative}"`,
				l.Names)
		}
		if len(l.Choice) > 0 || l.Alternative != "" {
			return errors.New("data.choice and data.alternative are for long tables: a row of a wide table is a choice")
		}
	default:
		return fmt.Errorf("data.form is %q: want long (a row for each alternative) or wide (a row for each choice)",
			l.Form)
	}
	switch l.Outside {
	case "", "absent", "implicit":
		if l.OutsideLabel != "" {
			return errors.New(`data.outside_alternative needs outside = "explicit"`)
		}
	case "explicit":
		if l.OutsideLabel == "" {
			return errors.New(`outside = "explicit" needs data.outside_alternative, the label of the outside option`)
		}
	default:
		return fmt.Errorf("data.outside is %q: want absent, implicit or explicit", l.Outside)
	}
	if len([]rune(l.Delimiter)) > 1 {
		return fmt.Errorf("data.delimiter is %q: want one character", l.Delimiter)
	}
	for i, a := range l.Alternatives {
		if slices.Contains(l.Alternatives[:i], a) {
			return fmt.Errorf("data.alternatives has %q twice", a)
		}
	}
	return nil
}

func (l *Layout) hasOutside() bool { return l.Outside == "implicit" || l.Outside == "explicit" }

// label returns the label for a text in the table.
func (l *Layout) label(text string) string {
	if label, ok := l.Labels[text]; ok {
		return label
	}
	return text
}

// derived splits an entry of Derive.
func derived(entry string) (name, expression string, err error) {
	name, expression, ok := strings.Cut(entry, "=")
	name, expression = strings.TrimSpace(name), strings.TrimSpace(expression)
	if !ok || !identifier(name) || expression == "" || strings.HasPrefix(expression, "=") {
		return "", "", fmt.Errorf(`data.derive has %q: want "name = expression"`, entry)
	}
	return name, expression, nil
}

// identifier reports whether expressions can use the name.
func identifier(name string) bool {
	for i, r := range name {
		if !(r == '_' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || i > 0 && r >= '0' && r <= '9') {
			return false
		}
	}
	return name != ""
}
