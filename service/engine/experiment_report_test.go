package engine_test

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"vitrine/internal/expect"
	"vitrine/internal/fatal"
	"vitrine/service/api"
	"vitrine/service/earnings/abtest"
	"vitrine/service/engine"
	"vitrine/service/eventlog/memlog"
)

// If half of a variant's shoppers are lost before they ask, the report finds a mismatch and stops the experiment. If half
// of the variant's pages are never seen, the shoppers are divided rightly, and it stops for that reason. If memory ends
// what was seen, it stops for that one. Each shopper counts once, by its first decision.
func TestMismatch(t *testing.T) {
	for name, reason := range map[string]string{"lost": "the shoppers are not divided as the shares say", "unseen": "were seen",
		"evicted": "left memory before their outcome: do not trust"} {
		t.Run(name, func(t *testing.T) {
			isLost, isUnseen := name == "lost", name == "unseen"
			store := new(memlog.Store)
			e := opened(t, engine.Options{Store: store, Build: buildFixed})
			put(t, e, "home", onTrial(`{"name":"x","variants":[{"name":"a","show":"policy","share":0.5},{"name":"b","show":"policy","policy":{"name":"1"},"share":0.5}]}`))
			s := newBoutique(t, e, 0, 0)
			began := s.report()
			_, _, table := e.Evidence("home")
			want, seen := map[string]uint64{}, map[string]uint64{}
			for visit := range 2 {
				for i := range 800 {
					s.now += minute
					r := stock("", 2)
					r.ShopperID, r.Defer = fmt.Sprint(i), visit == 0
					isB := table[abtest.Bucket(abtest.Unit("home", r.ShopperID), began.Number)] == 1
					if isB && isLost && i%2 > 0 {
						continue
					}
					a, err := e.Decide(t.Context(), "home", r, s.now)
					isSeen := !(isB && isUnseen && i%2 > 0)
					if err == nil && isSeen {
						err = e.Activate(t.Context(), "home", a.Decision, s.now)
					}
					fatal.If(t, err)
					if name == "evicted" && isB {
						fatal.Or(e.EvictBefore(t.Context(), e.Sequence()+1, s.now+1, s.now))(t)
					}
					s.expire()
					if visit == 0 {
						want[a.Variant]++
						if isSeen {
							seen[a.Variant]++
						}
					}
				}
				s.now += 40 * minute
				s.expire()
				r := s.report()
				restarted := opened(t, engine.Options{Store: store, Build: buildFixed, Snapshot: snapshot(t, e)})
				again := fatal.Or(restarted.Experiments("home"))(t).Experiment
				expect.Equal(t, again.Ratio, r.Ratio, "after a restart")
				if r.Ratio.Mismatch != isLost || r.Verdict.Result != api.Stop ||
					!strings.Contains(r.Verdict.Reason, reason) {
					t.Errorf("visit %d: %+v, %+v, %+v", visit, r.Ratio, r.Verdict, r.Variants)
				}
				left := r.Variants[0].ExpiredEarly + r.Variants[1].ExpiredEarly
				if early := fatal.Or(e.Stats("home"))(t).ExpiredEarly; left != early || (early > 0) != (name == "evicted") {
					t.Errorf("%d decisions left memory, of %d", left, early)
				}
				for _, v := range again.Variants {
					expect.Equal(t, v.Units, want[v.Name], v.Name)
					if visit > 0 { // all count by then
						expect.Equal(t, [2]uint64{v.Deferred, v.Seen}, [2]uint64{want[v.Name], seen[v.Name]}, v.Name)
					}
				}
			}
		})
	}
}

// A deferred page that was never shown may leave memory: the others of the same time count.
func TestEvictedUnseen(t *testing.T) {
	e := opened(t, engine.Options{Store: new(memlog.Store), Build: buildFixed})
	put(t, e, "home", onTrial(`{"name":"x","variants":[{"name":"a","show":"policy","share":0.5},{"name":"b","show":"policy","policy":{"name":"1"},"share":0.5}]}`))
	s := newBoutique(t, e, 0, 0)
	for i := range 200 {
		s.now += minute
		r := stock("", 2)
		r.ShopperID, r.Defer = fmt.Sprint(i), true
		a := fatal.Or(e.Decide(t.Context(), "home", r, s.now))(t)
		if i%2 == 0 {
			fatal.If(t, e.Activate(t.Context(), "home", a.Decision, s.now))
			fatal.If(t, e.Outcome(t.Context(), "home", a.Decision, "", s.now))
		}
		fatal.Or(e.EvictBefore(t.Context(), e.Sequence()+1, s.now-10*minute, s.now))(t)
		s.expire()
	}
	s.now += 40 * minute
	s.expire()
	if r := s.report(); r.Decisions != 100 || r.Variants[0].ExpiredEarly+r.Variants[1].ExpiredEarly != 0 {
		t.Errorf("%d decisions count: %+v of %+v", r.Decisions, r.Verdict, r.Variants)
	}
	if early := fatal.Or(e.Stats("home"))(t).ExpiredEarly; early < 80 {
		t.Errorf("%d pages left memory", early)
	}
}

// The stop rule, for differences that are certain, are not, and are too small.
func TestStopRule(t *testing.T) {
	for name, c := range map[string]struct {
		sells []float64 // of items 0, the policy's, and 1, the baseline
		worth float64
		rule  string
	}{
		"gains":             {[]float64{0.8, 0.1}, 0, api.Ship},
		"loses":             {[]float64{0.1, 0.8}, 0, api.Stop},
		"equal":             {[]float64{0.5, 0.5}, 0, api.Continue},
		"not worth its way": {[]float64{0.5, 0.5}, 1.5, api.Stop},
	} {
		t.Run(name, func(t *testing.T) {
			e := opened(t, engine.Options{Store: new(memlog.Store), Build: buildFixed})
			put(t, e, "home", onTrial(fmt.Sprintf(
				`{"name":"x","min_gain":%v,"variants":[{"name":"own","show":"policy","share":0.5},{"name":"shop","show":"baseline","share":0.5}]}`, c.worth)))
			s := newBoutique(t, e, c.sells...)
			if r := s.report(); r.Verdict.Result != api.Continue || r.Counts != nil {
				t.Errorf("before the first decision the verdict is %+v, counted from %v on", r.Verdict, r.Counts)
			}
			s.serve(500, 500)
			if r := s.report(); r.Verdict.Result != c.rule || r.Control != "shop" ||
				(r.Verdict.Variant == "own") != (c.rule == api.Ship) {
				t.Errorf("the verdict is %+v", r.Verdict)
			}
		})
	}
}

// The report says when the next decisions will count: when the last decision that may join their cohort has expired. At
// that time they count. If no outcome is awaited, they wait for the next decision.
func TestFirstDecisionsCount(t *testing.T) {
	e := opened(t, engine.Options{Store: new(memlog.Store), Build: buildFixed})
	put(t, e, "home", onTrial(`{"name":"x","variants":[{"name":"own","show":"policy","share":0.5},{"name":"shop","show":"baseline","share":0.5}]}`))
	s := newBoutique(t, e, 1, 1)
	s.serve(1, 2)
	if r := s.report(); r.Decisions != 0 || r.Counts != nil {
		t.Errorf("%d decisions count, the first from %v on, without a later one", r.Decisions, r.Counts)
	}
	s.sells = []float64{0, 0}
	s.serve(1, 2)
	r := s.report()
	length := int64(30*minute) / 16
	want := (1e18+minute)/length*length + length + 30*minute // the first decision is made after a minute
	if r.Decisions != 0 || r.Counts == nil || r.Counts.UnixNano() != want {
		t.Fatalf("%d decisions count, the first at %v, want %v", r.Decisions, r.Counts, time.Unix(0, want).UTC())
	}
	s.now = want
	s.expire()
	if r := s.report(); r.Decisions == 0 || r.Counts != nil {
		t.Errorf("when the first decisions count, %d do, and the first do at %v", r.Decisions, r.Counts)
	}
	put(t, e, "home", `{"max_size":1,"features":[{"name":"x","kind":"number"}],"policy":{"name":"0"},"attribution_window":"30m"}`)
	if all, err := e.Experiments("home"); err != nil || all.Past[0].Counts != nil {
		t.Errorf("an experiment that has ended counts decisions from %v on, %v", all.Past[0].Counts, err)
	}
}

// The points stay few, and are in order.
func TestPointsStayFew(t *testing.T) {
	e := opened(t, engine.Options{Store: new(memlog.Store), Build: buildFixed})
	put(t, e, "home", strings.Replace(onTrial(
		`{"name":"x","variants":[{"name":"own","show":"policy","share":0.5},{"name":"shop","show":"baseline","share":0.5}]}`), "30m", "1m", 1))
	s := newBoutique(t, e, 0.3, 0.3)
	s.serve(700, 50)
	r := s.report()
	if n := len(r.Points); n < 100 || n > 256 {
		t.Fatalf("%d points", n)
	}
	gap := func(at int) time.Duration { return r.Points[at+1].Time.Sub(r.Points[at].Time) }
	for _, at := range []int{20, 60, len(r.Points) - 10} {
		if gap(at) != gap(10) || gap(at) < 2*time.Minute {
			t.Errorf("point %d is %v before the next one, and point 10 %v", at, gap(at), gap(10))
		}
	}
	for i := range r.Points[1:] {
		if !r.Points[i].Time.Before(r.Points[i+1].Time) || r.Points[i].Decisions > r.Points[i+1].Decisions {
			t.Fatalf("point %d is at %v, and the one before at %v", i+1, r.Points[i+1].Time, r.Points[i].Time)
		}
	}
	if last := r.Points[len(r.Points)-1]; last.Means[0].High <= last.Means[0].Low || last.Differences[0].High <= 0 ||
		last.Differences[1] != (api.Interval{}) {
		t.Errorf("the last point is %+v", last)
	}
}

// census is a boutique that keeps all decisions.
type census struct {
	*boutique
	all []asked
}

type asked struct {
	id, unit, variant string
	bucket, phase     int
	waits             bool // at the change
}

func (c *census) serve(n, phase int, units string) {
	for range n {
		c.n++
		c.now += minute
		r := stock(fmt.Sprint("d", c.n), 3)
		r.ShopperID, r.Baseline = fmt.Sprint(units, c.rng.IntN(150)), []string{"sku2"}
		a := decide(c.t, c.e, "home", r, c.now)
		if c.rng.IntN(2) == 0 {
			fatal.If(c.t, c.e.Outcome(c.t.Context(), "home", a.Decision, a.IDs()[0], c.now))
		}
		c.all = append(c.all, asked{id: a.Decision, unit: r.ShopperID, variant: a.Variant,
			bucket: abtest.Bucket(abtest.Unit("home", r.ShopperID), 1), phase: phase})
		c.expire()
	}
}

// changed is a census with shares and a holdout that change after 300 decisions, while decisions wait. before is called
// before that.
func changed(t *testing.T, before func(*census)) *census {
	e := opened(t, engine.Options{Store: new(memlog.Store), Build: buildFixed})
	put(t, e, "home", onTrial(fourVariants))
	c := &census{boutique: newBoutique(t, e, 0.3, 0.5, 0.3)}
	c.serve(300, 0, "u")
	before(c)
	for i := range c.all {
		c.all[i].waits = fatal.Or(e.Decision(t.Context(), "home", c.all[i].id))(t).Status == "open"
	}
	config := strings.NewReplacer(`"holdout_share":0.1`, `"holdout_share":0.2`, `"share":0.4`, `"share":0.1`,
		`"share":0.3`, `"share":0.6`).Replace(fourVariants)
	fatal.Or(e.Put(t.Context(), "home", []byte(onTrial(config)), c.now))(t)
	c.serve(200, 1, "u")
	c.serve(200, 1, "new")
	c.now += 40 * minute
	c.expire()
	c.serve(1, 1, "u")           // a unit that was seen
	c.all = c.all[:len(c.all)-1] // it waits
	return c
}

// variantNumbers are the places of fourVariants.
var variantNumbers = map[string]int{"shop": 0, "own": 1, "rival": 2, "chance": 3}

// The evidence about the ratio comes from the units of each phase.
func TestEvidenceAboutTheRatio(t *testing.T) {
	evidence := func(n, p []float64) (log float64) {
		lgamma := func(x float64) float64 { v, _ := math.Lgamma(x); return v }
		total := 0.0
		for i := range n {
			total += n[i]
			log += lgamma(100*p[i]+n[i]) - lgamma(100*p[i]) - n[i]*math.Log(p[i])
		}
		return log + lgamma(100) - lgamma(100+total)
	}
	want := 0.0
	c := changed(t, func(c *census) {
		r, first := c.report(), []float64(nil)
		for _, v := range r.Variants {
			first = append(first, float64(v.Units))
		}
		want = evidence(first, []float64{0.4, 0.3, 0.2, 0.1})
		if log, _, _ := c.e.Evidence("home"); math.Abs(log-want) > 1e-9 {
			t.Errorf("the evidence is %v, want %v", log, want)
		}
	})
	second, seen := make([]float64, 4), map[string]bool{}
	for _, a := range c.all {
		if a.variant == api.Holdout {
			continue
		}
		if !seen[a.unit] && a.phase == 1 {
			second[variantNumbers[a.variant]]++
		}
		seen[a.unit] = true
	}
	want += evidence(second, []float64{0.1, 0.6, 0.2, 0.1})
	if log, _, _ := c.e.Evidence("home"); math.Abs(log-want) > 1e-9 {
		t.Errorf("after the change the evidence is %v, want %v", log, want)
	}
}

// The sums by buckets cover a bucket's decisions while it belongs to a variant, also if shares and holdout change while
// decisions wait.
func TestSumsByBuckets(t *testing.T) {
	c := changed(t, func(*census) {})
	_, sums, table := c.e.Evidence("home")
	type cluster struct{ n, x float64 }
	clusters := map[string]*cluster{}
	for i, a := range c.all {
		key := fmt.Sprint(a.variant, a.bucket)
		if a.waits && int(table[a.bucket]) != variantNumbers[a.variant] {
			key = fmt.Sprint(a.variant, " alone ", i) // it closed after its bucket had moved
		}
		if clusters[key] == nil {
			clusters[key] = new(cluster)
		}
		clusters[key].n++
		if d, _ := c.e.Decision(t.Context(), "home", a.id); d.Choice != "" {
			clusters[key].x++
		}
	}
	for name, v := range variantNumbers {
		var ss, nn float64
		for key, c := range clusters {
			if strings.HasPrefix(key, name) {
				ss, nn = ss+c.x*c.x, nn+c.n*c.n
			}
		}
		if q := sums.Variants[v].Sum; q.SS.Value() != ss || q.NN != nn {
			t.Errorf("%s has the sums of squares %v and %v, want %v and %v", name, q.SS.Value(), q.NN, ss, nn)
		}
	}
}

// The differences of a report hold together: between three variants and the control, and between their pairs.
func TestDifferencesHoldTogether(t *testing.T) {
	c := changed(t, func(*census) {})
	_, sums, _ := c.e.Evidence("home")
	for v, is := range c.report().Variants {
		if is.Difference == nil {
			continue
		}
		lead := sums.Pairs[abtest.PairCount(v)] // above variant 0, the control
		if is.Difference.Low > max(lead.Low(0.05/6/2), -2) || is.Difference.High < min(lead.High(0.05/6/2), 2) {
			t.Errorf("%s has the difference %+v, want one that holds together with five others", is.Name, is.Difference)
		}
	}
}

// A cohort counts once it is over, and not while decisions may still come into it: sales that are reported at once
// would come first.
func TestCohortsCountOnceTheyAreOver(t *testing.T) {
	e := opened(t, engine.Options{Store: new(memlog.Store), Build: buildFixed})
	put(t, e, "home", onTrial(fourVariants))
	for i := range 3 {
		r := stock(fmt.Sprint(i), 3)
		r.ShopperID, r.Baseline = fmt.Sprint(i), []string{"sku2"}
		now := int64(1e18) + int64(i)*int64(time.Minute)
		a, err := e.Decide(t.Context(), "home", r, now)
		if err == nil {
			err = e.Outcome(t.Context(), "home", a.Decision, a.IDs()[0], now)
		}
		fatal.If(t, err)
		all, err := e.Experiments("home")
		want, cohort := uint64(0), int64(30*time.Minute)/16
		for j := range i {
			if (int64(1e18)+int64(j)*int64(time.Minute))/cohort < now/cohort {
				want++
			}
		}
		if err != nil || all.Experiment.Decisions+all.Holdout.Variants[1].Group.Rounds != want {
			t.Errorf("after %d decisions %d count, want %d; %v", i+1, all.Experiment.Decisions, want, err)
		}
	}
}

// Until the result is certain, the verdict names the variant that is ahead, and not the least known one.
func TestVerdictNamesTheVariantAhead(t *testing.T) {
	e := opened(t, engine.Options{Store: new(memlog.Store), Build: buildFixed})
	put(t, e, "home", onTrial(fourVariants))
	s := newBoutique(t, e, 0.6, 0.5, 0.5)
	s.serve(300, 300)
	if r := s.report(); r.Verdict.Result != api.Continue || !strings.HasPrefix(r.Verdict.Reason,
		`no gain is certain yet: "own" earns between -`) {
		t.Errorf("the verdict is %+v of %+v", r.Verdict, r.Variants)
	}
}
