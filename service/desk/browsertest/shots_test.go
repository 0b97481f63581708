package browsertest

import (
	"flag"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
)

var shots = flag.String("screenshots", "", "directory to write pictures of every view to")

// Pictures of every view of a running shop, with harmful names, with long lists and empty, at three widths, light and
// dark, for looking at.
func TestScreenshots(t *testing.T) {
	if *shots == "" {
		t.Skip("without -screenshots")
	}
	for what, c := range map[string]struct {
		serve    func(t *testing.T) *served
		name, id string // of the placement and of the decision that are shown
	}{
		"shop": {func(t *testing.T) *served {
			s := serve(t, withDemo)
			s.season(t)
			return s
		}, "auto", ""},
		"harm": {func(t *testing.T) *served { s := serve(t, nil); s.harmful(t, "harm"); return s }, "harm", "harm-3"},
		"long": {func(t *testing.T) *served {
			s := serve(t, nil)
			s.many(t, longName)
			return s
		}, longName, longDecision},
		"empty": {func(t *testing.T) *served { return serve(t, nil) }, "none", "none"},
	} {
		t.Run(what, func(t *testing.T) {
			s := c.serve(t)
			if c.id == "" {
				c.id, _ = s.chosen(t, c.name, c.name+"-", 1)
			}
			b := open(t, s.base)
			b.careless = what == "empty" // views of a placement that does not exist
			for _, view := range views(t, map[string]string{"name": c.name, "id": c.id, "page": "api"}) {
				if view == "/shop" && what != "shop" {
					continue
				}
				name := strings.NewReplacer("/"+c.name, "", "/", "-").Replace(strings.TrimPrefix(view, "/"))
				for _, width := range []int{390, 1280, 2560} {
					for _, scheme := range []string{"light", "dark"} {
						b.dress(width, scheme)
						b.visit(view)
						b.shoot(filepath.Join(*shots, what, fmt.Sprintf("%s-%d-%s.png", name, width, scheme)))
					}
				}
			}
		})
	}
}

var numShoppers = flag.Int("shoppers", 2600, "how many shoppers come before pictures are taken")

// season lets shoppers come until tastes have changed, and closes the door.
func (s *served) season(t *testing.T) {
	t.Helper()
	b := open(t, s.base)
	b.visit("/shop")
	s.shop(t, b, *numShoppers)
}
