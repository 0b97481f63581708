package load

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
)

// Print writes the result of a run with the given options as text.
func (r *Result) Print(w io.Writer, o *Options) {
	form := "JSON"
	if o.Catalogue {
		form = fmt.Sprintf("JSON, %d numbers of the shopper, catalogue", o.User)
	}
	arrivals := "constant"
	if o.Poisson {
		arrivals = "poisson"
	}
	loop := fmt.Sprintf("open loop, %v a second wanted, %s arrivals", r.Target, arrivals)
	if r.Target == 0 {
		loop = "closed loop, as fast as possible: each caller waits for its answer before the next request"
	}
	fmt.Fprintf(w, "%s, %d items × %d features, %d connections, %s\n", form, o.Items, o.Features, o.Connections, loop)
	fmt.Fprintf(w, "%.1f decisions a second in %.1f s\n\n", r.Achieved, r.Seconds)
	fmt.Fprintf(w, "%-10s %9s %9s %9s %9s %9s %9s  milliseconds\n", "", "count", "p50", "p90", "p99", "p99.9", "max")
	for _, l := range []struct {
		name string
		of   Latency
	}{{"decisions", r.Decisions}, {"outcomes", r.Outcomes}} {
		fmt.Fprintf(w, "%-10s %9d", l.name, l.of.Count)
		for _, v := range []float64{l.of.P50, l.of.P90, l.of.P99, l.of.P999, l.of.Max} {
			fmt.Fprintf(w, " %9s", Milliseconds(v))
		}
		fmt.Fprintln(w)
	}
	fmt.Fprintln(w)
	if r.Outcomes.Count > 0 {
		fmt.Fprintf(w, "purchases: %.1f%% of outcomes\n", 100*float64(r.Purchases)/float64(r.Outcomes.Count))
	}
	if r.ServerCPU > 0 {
		fmt.Fprintf(w, "server: %.0f µs of processor time a decision, with its outcomes and learning\n", r.ServerCPU)
	}
	fmt.Fprintf(w, "generator: %.0f µs a decision; delay of sending p99 %s ms, at most %s ms\n", r.GeneratorCPU,
		Milliseconds(r.Late.P99), Milliseconds(r.Late.Max))
	for _, n := range []struct {
		count int
		what  string
	}{
		{r.Retries, "requests were retried"}, {r.Repeated, "decisions were made by an earlier attempt whose " +
			"answer was lost"},
		{r.Unreported, "outcomes were not reported before the end"},
		{r.Unsent, "decisions that were due were not sent before the end"}, {r.Unanswered, "requests were " +
			"unanswered when the run was interrupted"},
	} {
		if n.count > 0 {
			fmt.Fprintf(w, "%d %s\n", n.count, n.what)
		}
	}
	for _, kind := range slices.Sorted(maps.Keys(r.Errors)) {
		fmt.Fprintf(w, "failed: %d × %s\n", r.Errors[kind], kind)
	}
}

// Milliseconds prints three digits.
func Milliseconds(v float64) string {
	switch {
	case v >= 100:
		return strconv.FormatFloat(v, 'f', 0, 64)
	case v >= 10:
		return strconv.FormatFloat(v, 'f', 1, 64)
	}
	return strconv.FormatFloat(v, 'f', 2, 64)
}

// Warnings lists differences between the figures and the options.
func (r *Result) Warnings() (list []string) {
	if r.Interrupted {
		list = append(list, "interrupted: the figures are those until then")
	}
	failed := 0
	for _, n := range r.Errors {
		failed += n
	}
	if failed > 0 {
		list = append(list, fmt.Sprintf("%d requests failed: latencies do not include them", failed))
	}
	if float64(r.Unsent) > 0.01*float64(r.Decisions.Count) {
		list = append(list, fmt.Sprintf("%d decisions that were due were not sent, because all connections were "+
			"busy: the service did not keep up, and in a longer run latencies would grow", r.Unsent))
	}
	if r.Late.P99 > 1 {
		list = append(list, fmt.Sprintf("the generator itself fell behind: 1%% of the requests were sent at "+
			"least %s ms late, and latencies include this: give it more processor time, or lower --rate",
			Milliseconds(r.Late.P99)))
	}
	return list
}
