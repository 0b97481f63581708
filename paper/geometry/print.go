package geometry

import (
	"fmt"
	"io"
	"text/tabwriter"
)

// Print writes the constants as text.
func (c Constants) Print(out io.Writer) {
	fmt.Fprintf(out, "%s: f_w(x) = %s, x ~ U[%v, %v]\n", c.Experiment, c.Utility, c.Setting.Contexts[0],
		c.Setting.Contexts[1])
	w := tabwriter.NewWriter(out, 0, 0, 3, ' ', 0)
	fmt.Fprintf(w, "  μ\t%v\tlocal strong convexity, %v of the curvature at W*\n", c.Condition.Mu, c.Setting.Share)
	fmt.Fprintf(w, "  τ\t%v\tgrowth, tight at %s\n", c.Condition.Tau, point(c.Tight))
	fmt.Fprintf(w, "  γ\t%v\n", c.Condition.Gamma)
	fmt.Fprintf(w, "  E|S|\t%.4f\tN = %d, K = %d\n", c.ExpectedSize, c.Setting.Items, c.Setting.Size)
	for _, g := range c.Global {
		fmt.Fprintf(w, "  W*\t%s\n", point(g))
	}
	fmt.Fprintf(w, "  spurious minima\t%d\n", len(c.Spurious))
	w.Flush()
}

func point(w Params) string { return fmt.Sprintf("(%.3f, %.3f)", w[0], w[1]) }
