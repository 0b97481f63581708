package records

import (
	"cmp"
	"maps"
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

// pages are lines with lists.
type pages []*session

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

// every reports whether all pages pass a test.
func (p pages) every(test func(l *session) bool) bool {
	return !slices.ContainsFunc(p, func(l *session) bool { return !test(l) })
}

// accept reports whether all values of a list pass a test.
func (p pages) accept(name string, test func(v api.Value) bool) bool {
	return p.every(func(l *session) bool { return all(l.lists[name], test) })
}

func all(list []api.Value, test func(v api.Value) bool) bool {
	return !slices.ContainsFunc(list, func(v api.Value) bool { return !test(v) })
}

func contains(list []api.Value, text string) bool {
	return slices.ContainsFunc(list, func(v api.Value) bool { return textOf(v) == text })
}

// areIDs reports whether a list holds distinct ids in each page, and several in one.
func (p pages) areIDs(name string) bool {
	several := false
	return p.every(func(l *session) bool {
		list := l.lists[name]
		several = several || len(list) > 1
		for i, v := range list {
			if v.Kind == api.Missing || v.Kind == api.IsNumber && v.Number != float64(int(v.Number)) || contains(list[:i], textOf(v)) {
				return false
			}
		}
		return true
	}) && several
}

// inside reports whether the values of one column are among those of the other.
func (p pages) inside(outer, inner string) bool {
	values := 0
	return p.every(func(l *session) bool {
		list := l.get(outer)
		return len(list) == 0 || all(l.get(inner), func(v api.Value) bool {
			text := textOf(v)
			if text != "" {
				values++
			}
			return text == "" || contains(list, text)
		})
	}) && values > 0
}

// longer reports whether one list is longer than the other in some page.
func (p pages) longer(a, b string) bool {
	return !p.every(func(l *session) bool { return len(l.get(a)) <= len(l.get(b)) })
}

// sessions recognizes what lines with lists hold.
func (k *recognizer) sessions(p pages) {
	c := &k.Mapping.Columns
	scalars, lists := p.names()
	c.Item = first(append(called(lists, itemWords), lists...), p.areIDs)
	switch {
	case c.Item != "":
	case len(lists) == 0:
		k.need("the items of each page: lines have no lists. A line needs the items that were shown, and which of them was taken")
		return
	default:
		k.need("the list of the items' ids, named as item in [columns]. The lists are %s", strings.Join(lists, ", "))
		return
	}
	if p.accept(c.Item, func(v api.Value) bool { return endsWithFlags(textOf(v), " ") }) {
		c.Chosen = c.Item
	} else {
		k.shownLists(p, lists)
		k.chosenList(p, scalars, lists)
	}
	if c.Chosen == "" {
		k.need("what was taken: a field with the id of the item, a list of ids, or a list of 0 and 1 for the items of %s, named as chosen in [columns]", c.Item)
		return
	}
	if parent(c.Shown) != "" && slices.ContainsFunc(p, k.takenAtZero) {
		k.note("%s counts from 0: every item counts as shown, in the order of the list.", c.Shown)
		c.Shown = ""
	} else if c.Shown == "" && c.Chosen != c.Item {
		k.note("Every item of %s counts as shown, in this order.", c.Item)
	}
	k.scalars(p, scalars)
	c.Revenue = first(called(lists, revenueWords), func(name string) bool {
		return p.accept(name, isRevenue) && p.every(func(l *session) bool { return len(l.lists[name]) == len(l.lists[c.Item]) })
	})
	k.severalTaken(p)
}

// shownLists finds the lists of candidates and of the items shown: a list that contains the other is that of the candidates.
func (k *recognizer) shownLists(p pages, lists []string) {
	c := &k.Mapping.Columns
	if of := parent(c.Item); of != "" {
		c.Shown = first(called(lists, positionWords), func(name string) bool { return parent(name) == of && p.accept(name, isPosition) })
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

// chosenList finds what was taken: ids of items, or a condition of each item.
func (k *recognizer) chosenList(p pages, scalars, lists []string) {
	c := &k.Mapping.Columns
	names := slices.Concat(scalars, lists)
	c.Chosen = first(append(called(names, chosenWords), names...), func(name string) bool {
		flags := func(l *session) bool { return len(l.lists[name]) == len(l.lists[c.Item]) && all(l.lists[name], isFlag) }
		return name != c.Item && name != c.Shown && (p.every(flags) || p.inside(c.Item, name))
	})
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

// scalars finds the time, the id and the propensity of a page.
func (k *recognizer) scalars(p pages, names []string) {
	c := &k.Mapping.Columns
	rows := make([]fields, len(p))
	for i, l := range p {
		rows[i] = l.fields
	}
	accept := func(test func(v api.Value) bool) func(name string) bool {
		return func(name string) bool { _, ok := each(rows, name, test); return ok }
	}
	c.Time = first(called(names, timeWords), accept(func(v api.Value) bool {
		n, isNumber := number(v)
		return isMoment(v) && (!isNumber || n >= 6e8) // seconds and the like since 1990
	}))
	unique := func(name string) bool {
		seen := map[string]bool{}
		return name != c.Time && name != c.Chosen && p.every(func(l *session) bool {
			id := textOf(l.fields[name])
			again := id == "" || seen[id]
			seen[id] = true
			return !again || len(l.get(c.Item)) == 0
		})
	}
	ids := called(names, decisionWords)
	if k.Mapping.Header != nil { // names say nothing
		ids = names
		c.Time = cmp.Or(c.Time, first(names, accept(func(v api.Value) bool { _, isNumber := number(v); return isMoment(v) && !isNumber })))
	}
	if c.Decision = first(ids, unique); c.Decision == "" {
		k.note("No field identifies a page: its line does.")
	}
	c.Propensity = first(called(names, propensityWords), func(name string) bool {
		return name != c.Chosen && accept(func(v api.Value) bool { n, ok := number(v); return ok && n > 0 && n <= 1 })(name)
	})
}

// severalTaken says what to do about pages with several items taken.
func (k *recognizer) severalTaken(p pages) {
	c := k.Mapping.Columns
	several, all := 0, 0
	for _, l := range p {
		ids := l.get(c.Item)
		var flags []api.Value
		if c.Chosen == c.Item {
			for _, v := range ids {
				text := textOf(v)
				flags = append(flags, api.Text("", text[max(0, len(text)-1):]))
			}
		}
		if len(ids) > 0 {
			all++
		}
		if taken, err := k.source.taken(l, ids, flags); err == nil && len(ids) > 0 && len(taken) > 1 {
			several++
		}
	}
	k.manyTaken(several, all)
}
