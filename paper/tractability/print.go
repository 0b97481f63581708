package tractability

import (
	"fmt"
	"io"
	"text/tabwriter"
)

// Print writes the algorithms' cost at the smallest and largest sizes.
func (s *Survey) Print(out io.Writer) {
	cells := []Cell{
		{Items: s.Setting.Items[0], Size: s.Setting.Size},
		{Items: s.Setting.Items[len(s.Setting.Items)-1], Size: s.Setting.Size},
		{Items: s.Setting.Among, Size: s.Setting.Sizes[len(s.Setting.Sizes)-1]},
	}
	fmt.Fprintf(out, "%s: an offer, and a round observed after %d rounds\n", s.Experiment, s.Setting.Rounds)
	w := tabwriter.NewWriter(out, 0, 0, 3, ' ', 0)
	fmt.Fprint(w, "  policy")
	for _, c := range cells {
		fmt.Fprintf(w, "\tN = %d, K = %d", c.Items, c.Size)
	}
	fmt.Fprintln(w)
	for _, a := range Algorithms() {
		fmt.Fprintf(w, "  %s", a.Policy)
		for _, c := range cells {
			for _, p := range s.Points {
				switch {
				case p.Policy != a.Policy || p.Cell != c:
				case p.Refused != "":
					fmt.Fprintf(w, "\trefused: %s assortments", p.Refused)
				default:
					fmt.Fprintf(w, "\t%s, %s", duration(p.Offer), duration(p.Round))
				}
			}
		}
		fmt.Fprintln(w)
	}
	w.Flush()
}

// duration formats seconds to three digits.
func duration(seconds float64) string {
	for _, unit := range []struct {
		name string
		size float64
	}{{"s", 1}, {"ms", 1e-3}, {"µs", 1e-6}} {
		if seconds >= unit.size {
			return fmt.Sprintf("%.3g %s", seconds/unit.size, unit.name)
		}
	}
	return fmt.Sprintf("%.3g ns", seconds/1e-9)
}
