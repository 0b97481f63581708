package records

import (
	"slices"
	"strings"

	"vitrine/service/api"
)

// listColumn finds the column of a table whose fields list items, and sets the separator of lists. It returns "" if there is
// none.
func (k *recognizer) listColumn(header []string, rows []fields) string {
	for _, name := range append(called(header, itemWords), header...) {
		for _, separator := range []string{"", "|", ";", ",", " "} {
			if separator == k.Mapping.Delimiter && separator != "" {
				continue
			}
			lists, values := 0, 0
			distinct := true
			for _, f := range rows[:min(len(rows), 2000)] {
				text := textOf(f[name])
				if text == "" {
					continue
				}
				if isMoment(f[name]) {
					distinct = false
					break
				}
				values++
				list, ok := listOf(text, separator)
				if !ok || len(list) < 2 {
					continue
				}
				lists++
				for i, v := range list {
					distinct = distinct && !slices.Contains(list[:i], v) && isID(v.Text, separator)
				}
			}
			if lists > 0 && lists*10 >= values*6 && distinct {
				k.Mapping.List = separator
				if k.Mapping.Header != nil { // of MIND: the history is a list, too, and the last column has the outcomes
					for _, later := range slices.Backward(header) {
						if _, ok := each(rows, later, func(v api.Value) bool { return endsWithFlags(textOf(v), separator) }); ok {
							return later
						}
					}
				}
				return name
			}
		}
	}
	return ""
}

// isID reports whether an element of a list could be the id of an item: between commas and spaces words are texts.
func isID(text, separator string) bool {
	if text == "" || len(text) > 64 || strings.ContainsAny(text, " ") && separator != "" {
		return false
	}
	return separator != " " && separator != "," || strings.ContainsAny(text, "0123456789")
}

// endsWithFlags reports whether each element of a list ends with what became of it, as in "N1-0 N2-1".
func endsWithFlags(text, separator string) bool {
	for _, part := range strings.Split(text, separator) {
		if n := len(part); n < 3 || part[n-2] != '-' && part[n-2] != ':' || part[n-1] != '0' && part[n-1] != '1' {
			return false
		}
	}
	return true
}

// takenAtZero reports whether an item was taken at position 0.
func (k *recognizer) takenAtZero(l *session) bool {
	c := k.Mapping.Columns
	ids, at := l.get(c.Item), l.get(c.Shown)
	taken, err := k.source.taken(l, ids, nil)
	for i, id := range ids {
		if err == nil && len(at) == len(ids) && textOf(at[i]) == "0" && slices.Contains(taken, textOf(id)) {
			return true
		}
	}
	return false
}

// sessions recognizes what lines with lists hold.
func (k *recognizer) sessions(sample []*session) {
	c := &k.Mapping.Columns
	var scalars, lists []string
	for _, l := range sample {
		for name := range l.fields {
			if !slices.Contains(scalars, name) {
				scalars = append(scalars, name)
			}
		}
		for name := range l.lists {
			if !slices.Contains(lists, name) {
				lists = append(lists, name)
			}
		}
	}
	slices.Sort(scalars)
	slices.Sort(lists)
	ids := func(name string) bool { // lists of distinct ids
		lines := 0
		for _, l := range sample {
			list := l.lists[name]
			for i, v := range list {
				if v.Kind == api.Missing || v.Kind == api.IsNumber && v.Number != float64(int(v.Number)) || slices.ContainsFunc(list[:i], func(o api.Value) bool { return textOf(o) == textOf(v) }) {
					return false
				}
			}
			if len(list) > 1 {
				lines++
			}
		}
		return lines > 0
	}
	c.Item = first(append(called(lists, itemWords), lists...), ids)
	if c.Item == "" {
		if len(lists) == 0 {
			k.need("the items of each page: lines have no lists. A line needs the items that were shown, and which of them was taken")
		} else {
			k.need("the list of the items' ids, named as item in [columns]. The lists are %s", strings.Join(lists, ", "))
		}
		return
	}
	inside := func(outer, inner string) bool { // whether the values of one are among those of the other
		values := 0
		for _, l := range sample {
			list := l.get(outer)
			for _, v := range l.get(inner) {
				if textOf(v) == "" {
					continue
				}
				if len(list) == 0 {
					continue
				}
				if values++; !slices.ContainsFunc(list, func(o api.Value) bool { return textOf(o) == textOf(v) }) {
					return false
				}
			}
		}
		return values > 0
	}
	longer := func(a, b string) bool {
		for _, l := range sample {
			if len(l.get(a)) > len(l.get(b)) {
				return true
			}
		}
		return false
	}
	c.Chosen = c.Item
	for _, l := range sample {
		for _, v := range l.lists[c.Item] {
			if !endsWithFlags(textOf(v), " ") {
				c.Chosen = ""
			}
		}
	}
	if c.Chosen == "" {
		// A list that the items are in is that of the candidates, and one that is in the items that of the page.
		for _, name := range lists {
			if name != c.Item && parent(name) == "" && parent(c.Item) == "" && ids(name) && len(called([]string{name}, chosenWords)) == 0 {
				switch {
				case inside(name, c.Item) && longer(name, c.Item):
					c.Item, c.Shown = name, c.Item
				case inside(c.Item, name) && longer(c.Item, name) && c.Shown == "":
					c.Shown = name
				}
			}
		}
		if p := parent(c.Item); p != "" {
			c.Shown = first(called(lists, positionWords), func(name string) bool {
				for _, l := range sample {
					for _, v := range l.lists[name] {
						if _, err := position("", v, 1); err != nil {
							return false
						}
					}
				}
				return parent(name) == p
			})
		}
		all := append(slices.Clone(scalars), lists...)
		isChosen := func(name string) bool {
			if name == c.Item || name == c.Shown {
				return false
			}
			flags := len(lists) > 0
			for _, l := range sample {
				list := l.lists[name]
				flags = flags && len(list) == len(l.lists[c.Item]) && !slices.ContainsFunc(list, func(v api.Value) bool { return !isFlag(v) })
			}
			return flags || inside(c.Item, name)
		}
		c.Chosen = first(append(called(all, chosenWords), all...), isChosen)
	}
	if c.Chosen == "" {
		k.need("what was taken: a field with the id of the item, a list of ids, or a list of 0 and 1 for the items of %s, named as chosen in [columns]", c.Item)
		return
	}
	if parent(c.Shown) != "" && slices.ContainsFunc(sample, func(l *session) bool { return k.takenAtZero(l) }) {
		k.note("%s counts from 0: every item counts as shown, in the order of the list.", c.Shown)
		c.Shown = ""
	} else if c.Shown == "" && c.Chosen != c.Item {
		k.note("Every item of %s counts as shown, in this order.", c.Item)
	}
	c.Time = first(called(scalars, timeWords), func(name string) bool {
		n := 0
		for _, l := range sample {
			if v := l.fields[name]; v.Kind != api.Missing {
				if n++; !isMoment(v) {
					return false
				}
				if v, ok := number(v); ok && v < 6e8 {
					return false
				}
			}
		}
		return n > 0
	})
	if k.Mapping.Header != nil && c.Time == "" {
		c.Time = first(scalars, func(name string) bool {
			return !slices.ContainsFunc(sample, func(l *session) bool {
				_, isNumber := number(l.fields[name])
				return isNumber || !isMoment(l.fields[name])
			})
		})
	}
	unique := func(name string) bool {
		seen := map[string]bool{}
		for _, l := range sample {
			id := textOf(l.fields[name])
			if len(l.get(c.Item)) > 0 && (id == "" || seen[id]) {
				return false
			}
			seen[id] = true
		}
		return name != c.Time && name != c.Chosen
	}
	c.Decision = first(called(scalars, decisionWords), unique)
	if c.Decision == "" && k.Mapping.Header != nil {
		c.Decision = first(scalars, unique)
	}
	if c.Decision == "" {
		k.note("No field identifies a page: its line does.")
	}
	c.Revenue = first(called(lists, revenueWords), func(name string) bool {
		return !slices.ContainsFunc(sample, func(l *session) bool {
			return len(l.lists[name]) != len(l.lists[c.Item]) || slices.ContainsFunc(l.lists[name], func(v api.Value) bool { n, ok := number(v); return !ok || n < 0 })
		})
	})
	c.Propensity = first(called(scalars, propensityWords), func(name string) bool {
		n := 0
		for _, l := range sample {
			if v := l.fields[name]; v.Kind != api.Missing {
				if p, ok := number(v); !ok || !(p > 0 && p <= 1) {
					return false
				}
				n++
			}
		}
		return n > 0 && name != c.Chosen
	})
	several, pages := 0, 0
	for _, l := range sample {
		if ids := l.get(c.Item); len(ids) > 0 {
			pages++
			if flags := c.Chosen == c.Item; flags {
				taken := 0
				for _, v := range ids {
					if strings.HasSuffix(textOf(v), "1") {
						taken++
					}
				}
				if taken > 1 {
					several++
				}
			} else if taken, err := k.source.taken(l, ids, nil); err == nil && len(taken) > 1 {
				several++
			}
		}
	}
	k.manyTaken(several, pages)
}
