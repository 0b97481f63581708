package engine

import (
	"cmp"
	"context"
	"fmt"

	"vitrine/service/api"
	"vitrine/service/catalogue"
	"vitrine/service/setup"
)

// limitWarnings names the limits of a new configuration that no item of the present catalogue is in, and those that
// leave pages fewer items than they may show.
func (e *Engine) limitWarnings(ctx context.Context, name string, c *setup.Config) (list []string, err error) {
	v, err := e.View(cmp.Or(c.CatalogueOf, name))
	if err != nil || v.Page.Catalogue == nil || v.Page.Catalogue.Head().Items == 0 {
		return nil, nil // no items yet
	}
	for _, l := range c.Limits {
		if l.Feature != "" && !v.Config().Schema().IsCategory(l.Feature) {
			continue // known only with the new features
		}
		inGroup, free, err := members(ctx, v.Page.Catalogue, setup.GroupsBy(l))
		if err != nil {
			return nil, err
		}
		if text := limitWarning(l, inGroup, free, c.MaxSize); text != "" {
			list = append(list, "limits: "+text)
		}
	}
	return list, nil
}

// members counts the items of each group, and those without a group.
func members(ctx context.Context, items *catalogue.Catalogue, by catalogue.GroupsBy) (inGroup []int, free int, err error) {
	for {
		g, err := items.Groups(ctx, by)
		if err != nil {
			return nil, 0, err
		}
		leave, err := items.Enter(ctx)
		if err != nil {
			return nil, 0, err
		}
		items.RLock()
		if !items.CatchUp(nil, g) {
			items.RUnlock()
			leave()
			continue
		}
		defer func() { items.RUnlock(); leave() }()
		inGroup = make([]int, g.Len())
		for _, number := range g.Of {
			if number < 0 {
				free++
			} else {
				inGroup[number]++
			}
		}
		return inGroup, free, nil
	}
}

// limitWarning names the fault of a limit, or is "". Pages show at most size items.
func limitWarning(l api.Limit, inGroup []int, free, size int) string {
	limited, room := 0, free
	for _, n := range inGroup {
		limited += n
		if l.Max != nil {
			room += min(n, *l.Max)
		}
	}
	switch {
	case limited == 0 && l.Group != "":
		return fmt.Sprintf("no item of the catalogue is in the group %q", l.Group)
	case limited == 0:
		return fmt.Sprintf("no item of the catalogue has the attribute or feature %q", l.By())
	case l.Min > limited:
		return fmt.Sprintf("pages cannot show %d items of %q: the catalogue contains only %d", l.Min, l.By(), limited)
	case l.Max != nil && room == 0:
		return fmt.Sprintf("at most 0 items by %q leave every page empty, because all items of the catalogue are "+
			"limited", l.By())
	case l.Max != nil && room < min(size, limited+free):
		return fmt.Sprintf("pages can show only %d items of the present catalogue: at most %d for each value of %q", room,
			*l.Max, l.By())
	}
	return ""
}
