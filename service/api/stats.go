package api

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// Stats are the counters of a placement. The counters of decisions are part of the state: a replay of
// the log gives the same values.
type Stats struct {
	Placement string `json:"placement"`
	Mode      string `json:"mode"`

	Decisions uint64 `json:"decisions"`
	Outcomes  uint64 `json:"outcomes" doc:"outcomes reported in time"`
	Expired   uint64 `json:"expired" doc:"decisions without an outcome in time, which count as the outside option"`
	Withdrawn uint64 `json:"withdrawn" doc:"deferred decisions that were not activated in time"`
	Late      uint64 `json:"late" doc:"outcomes reported too late to be learned: after the attribution window, or after the decision had left memory. Their revenue counts"`
	Corrected uint64 `json:"corrected" doc:"corrections of outcomes, such as returns"`
	Pending   int    `json:"open" doc:"decisions that wait for an outcome"`
	Memory    int    `json:"memory_bytes" doc:"bytes of remembered decisions"`
	Charged   int64  `json:"reserved_bytes" doc:"bytes that the service reserves for the placement and its learner"`

	RememberedSince *time.Time `json:"remembered_since,omitempty" doc:"when the oldest decision was made that has ended and is still in memory and in the log. Late outcomes and corrections of forgotten decisions get 404; more memory and a longer retention remember longer. Left out while no decision is forgotten"`

	Shoppers *ShopperStats `json:"shoppers,omitempty" doc:"what the placement remembers of its shoppers; left out without shopper_history"`

	Items          int    `json:"items,omitzero" doc:"items of the catalogue that the placement uses"`
	CatalogueEntry uint64 `json:"catalogue_entry,omitzero" doc:"the last entry of the log that changed the catalogue"`

	Held *Held `json:"clock_moved,omitempty" doc:"while decisions wait longer than their attribution window, because the clock moved"`

	Empty      uint64  `json:"empty" doc:"decisions whose page the policy left empty: no item was allowed, by the rules or by what the shopper bought, or all revenues were 0"`
	EmptyShare float64 `json:"empty_share" doc:"the share of empty pages, an exponential average over about the last 256 decisions"`

	ExpiredEarly  uint64  `json:"expired_early" doc:"decisions that left memory before the end of their attribution window; the policy learns nothing from them"`
	MemorySeconds float64 `json:"memory_seconds,omitzero" doc:"how long an open decision stays in memory at the rate of the minute before the last decision; it should be longer than the attribution window. Left out while the rate is not known"`

	Guard *Guard `json:"guard" doc:"what the placement earns, against what it should"`

	Categories []Category `json:"categories,omitempty" doc:"categories without values"`

	Clipped  uint64    `json:"clipped" doc:"values of features beyond their bounds, in requests and in items put, since the service started"`
	Outliers *Outliers `json:"outliers,omitempty" doc:"feature values that the learner ignored as outliers; left out if there are none, and for learners that take any value"`
	Unsound  bool      `json:"unsound" doc:"whether the policy predicted NaN or an infinity, or was certain of something that did not happen"`

	PolicyEntry uint64   `json:"policy_entry" doc:"the last entry of the log that the policy has learned from"`
	Lag         uint64   `json:"lag_rounds" doc:"outcomes that the learner has not processed yet"`
	Learned     uint64   `json:"learned" doc:"rounds that the learner has learned from; a sale waits until it is known which pages of the same time sold nothing"`
	Skipped     uint64   `json:"skipped" doc:"rounds that the learner refused, on which it panicked, that came after it broke, or for which no sale was reported during an alarm about missing sales"`
	Forgotten   uint64   `json:"forgotten" doc:"rounds that were lost because the learner's saved state could not be read"`
	Unlearned   uint64   `json:"unlearned" doc:"outcomes and expiries that the learner did not learn from, because its queue was full"`
	Stale       uint64   `json:"stale" doc:"rounds decided by an earlier learner of the placement"`
	Broken      bool     `json:"broken" doc:"whether the learner has failed; its last good policy decides"`
	Problem     string   `json:"problem,omitzero" doc:"the last problem of the learner"`
	Versions    []uint64 `json:"versions" doc:"kept versions, to roll back to"`

	ExpiredEarlyShare float64 `json:"-"` // of about the last 2,000 decisions that ended

	SinceExpiredEarly, SinceUnlearned, SinceSkipped uint64 `json:"-"` // rounds after the last one of ExpiredEarly, …

	ExplorationShare float64 `json:"exploration_share" doc:"share of the decisions whose set was drawn uniformly"`
	ByPolicy         Totals  `json:"by_policy" doc:"decisions whose set the policy chose"`
	ByChance         Totals  `json:"by_chance" doc:"decisions whose set was drawn uniformly"`
	ByBaseline       Totals  `json:"by_baseline" doc:"decisions whose set was the caller's"`
	Gains            []Gain  `json:"gains" doc:"what the placement earns more than what it is compared with; empty without a comparison. The gains over chance and baseline are left out once a fiftieth of the decisions left memory before an outcome"`

	Calibration Calibration `json:"calibration"`
	Shadow      Comparison  `json:"shadow"`
	Fell        *Interval   `json:"fell,omitempty" doc:"what the policy earned a decision in the last four whole weeks without open decisions, late outcomes and corrections left out, as a multiple of what it earned in the twelve weeks before, or in fewer if it is younger: only while that is certainly below 0.9"`
	Drift       *Drift      `json:"drift,omitempty" doc:"once there are decisions before the recent ones"`

	Relearning *Relearning `json:"relearning,omitempty" doc:"while a second learner learns from the log"`
}

// Held reports decisions with attribution windows that moved with the clock: between the log's last entry and the
// service's next one outcomes could not be reported, or a clock is or was wrong.
type Held struct {
	Decisions int       `json:"decisions" doc:"decisions that still wait for an outcome"`
	Time      time.Time `json:"time" doc:"time to which the clock moved"`
	Seconds   float64   `json:"seconds" doc:"seconds by which the clock moved; negative if it moved back"`
}

// ShopperStats say how much a placement remembers of its shoppers.
type ShopperStats struct {
	Remembered int    `json:"remembered" doc:"shoppers"`
	Bytes      int    `json:"bytes"`
	Forgotten  uint64 `json:"forgotten" doc:"shoppers who were forgotten before their time, because the memory was full"`
}

// Outliers are feature values that a learner left out because they were far beyond all that it knows: it takes the
// feature's mean instead. If outliers last for as many rounds as the learner keeps, and at least 1,000, it begins
// again.
type Outliers struct {
	Values  uint64 `json:"values" doc:"values beyond 50 standard deviations and 4 times the largest distance from the mean so far"`
	Feature string `json:"feature" doc:"feature of the last outlier"`
	Since   uint64 `json:"rounds_since" doc:"rounds learned since the last outlier"`
	Rounds  uint64 `json:"rounds" doc:"rounds in which most items had an outlier, less the rounds since in which most items had none"`
}

// Relearning is how far a second learner of a placement is, which learns from the log while the first one decides.
type Relearning struct {
	Since   time.Time      `json:"since"`
	From    uint64         `json:"from_entry" doc:"the first entry of the log that it learns from"`
	Entry   uint64         `json:"entry" doc:"the last entry that it has learned from; 0 before the first"`
	To      uint64         `json:"to_entry" doc:"the last entry that it has to learn from, for now"`
	Learned uint64         `json:"learned" doc:"rounds that it has learned"`
	Skipped uint64         `json:"skipped" doc:"rounds that it refused, or on which it panicked"`
	Ready   bool           `json:"ready" doc:"whether it may take over with relearn=accept: it has read the log, and no alarm holds rounds back"`
	Problem string         `json:"problem,omitzero" doc:"its last problem"`
	Policy  map[string]any `json:"policy" doc:"of the configuration that the placement will have"`
	MaxSize int            `json:"max_size,omitzero" doc:"of that configuration, if it is smaller than the present one: decisions that showed more items are skipped, so it may take over only with relearn=accept"`
}

// SkipsLarger completes a sentence about a second learner with a smaller max_size.
func SkipsLarger(size int) string {
	return fmt.Sprintf("skips decisions that showed more than %d items: unless your requests ask for at most %[1]d, it may "+
		"never learn half as many rounds, and then takes over only when you accept it", size)
}

// LearnedLess reports whether the second learner learned fewer than half of the rounds that the present one learned. It
// then decides only with relearn=accept.
func (r *Relearning) LearnedLess(learned uint64) bool { return 2*r.Learned < learned }

// Guard watches a placement's sales and earnings. Its tests are valid at any time: the probability that a sound
// placement ever raises an alarm is at most 1%.
type Guard struct {
	Period    uint64       `json:"period" doc:"the tests begin again with each period, of a day and 5000 decisions at least; 0 are the first 500 decisions, which are not tested"`
	Decisions uint64       `json:"decisions" doc:"of the policy in this period, without the last ones, whose outcomes are still awaited"`
	Checks    []GuardCheck `json:"checks"`
	Alarm     *Alarm       `json:"alarm,omitempty" doc:"a check that failed. An alarm of no-sale or sales ends once sales are back; other alarms stay until they are cleared, or the learner begins again or is rolled back"`

	WithoutSale uint64      `json:"without_sale" doc:"decisions in a row without a sale, up to the last decision with a known or overdue outcome"`
	Overdue     float64     `json:"overdue_seconds,omitzero" doc:"age at which a decision without an outcome counts as one without a sale: at least four fifths of the latest sales are reported within half of it, unless the attribution window is shorter. Left out until enough sales show the delay"`
	FarOff      *Calibrated `json:"far_off,omitempty" doc:"the bin of predictions that is certainly wrong in this period, by more than a fifth of the shoppers who buy, or of the shoppers who do not, whichever are fewer. If several bins are wrong, the bin with the most decisions"`
	Held        uint64      `json:"outcomes_held,omitzero" doc:"outcomes that the learner has not been given because of an alarm about sales"`
}

// GuardCheck is a test of a placement's sales or earnings. The last four are confidence sequences, with intervals that
// hold at all times at once.
type GuardCheck struct {
	Name      string     `json:"name" enum:"no-sale,sales,chance,baseline,first-week,predictions" doc:"no-sale: whether anything sells; sales: whether the last 50 to 5,000 decisions sell at least half of what was predicted and sold before; the others compare what the policy earns with sets drawn by chance, what the caller showed in the mode shadow, its first week, its own predictions"`
	Decisions uint64     `json:"decisions" doc:"decisions that the check has seen so far"`
	Needs     uint64     `json:"needs_decisions,omitzero" doc:"the least number of further decisions before the check can fail"`
	From      *time.Time `json:"from,omitempty" doc:"when the check begins; left out if it does not wait for a time"`
	Silence   uint64     `json:"max_silence,omitzero" doc:"number of decisions in a row without a sale that raises the alarm; check no-sale only"`
	Sees      *float64   `json:"detectable_fall,omitempty" doc:"the smallest fall that the check would notice by now, as a share of sales or earnings: 0.3 is a fall by 30%. Left out while it would notice none"`
	Low       *float64   `json:"low,omitempty" doc:"the policy earns at least this much more a decision than chance; of other checks, at least this multiple. Left out before there are enough decisions"`
	High      *float64   `json:"high,omitempty" doc:"the policy earns at most this much more a decision than chance; of other checks, at most this multiple. Chance fails below 0. The others fail below 0.5, and predictions also above 2"`
}

// Alarm is a check that failed.
type Alarm struct {
	Check    string    `json:"check" enum:"no-sale,sales,chance,baseline,first-week,predictions"`
	Detail   string    `json:"detail"`
	Chance   float64   `json:"chance" doc:"how unlikely it is: a placement that sells and earns as it should shows as bad a stretch with at most about this probability. Of no-sale, the probability of as many decisions in a row without a sale at the usual rate"`
	Time     time.Time `json:"time"`
	Entry    uint64    `json:"entry" doc:"of the log, at which the check failed"`
	Since    uint64    `json:"since_entry,omitzero" doc:"of no-sale and sales: the entry of the first decision in doubt"`
	Fallback string    `json:"fallback,omitzero" enum:"baseline,version" doc:"what is shown until the alarm is cleared; the policy's sets if left out"`
	Version  uint64    `json:"version,omitzero" doc:"of the fallback version; the present one if left out, because none was kept"`
}

// Category describes a category without declared values, as the placement learned it.
type Category struct {
	Feature       string `json:"feature"`
	Learned       int    `json:"learned" doc:"values that have a column of their own"`
	OwnColumns    int    `json:"own_columns" doc:"how many values may have one"`
	SharedColumns int    `json:"shared_columns" doc:"columns that all other values share"`
	Collisions    uint64 `json:"collisions" doc:"values in requests that shared a column with another value, since the service started or the placement was put"`
}

// Totals sums closed decisions with sets found in the same way.
type Totals struct {
	Rounds    uint64  `json:"rounds"`
	Purchases uint64  `json:"purchases" doc:"rounds in which something was taken"`
	Revenue   float64 `json:"revenue"`
	Squares   float64 `json:"revenue_squares" doc:"Σ revenue²"`
}

// Add adds the decisions of another group.
func (g *Totals) Add(o *Totals) {
	g.Rounds += o.Rounds
	g.Purchases += o.Purchases
	g.Revenue += o.Revenue
	g.Squares += o.Squares
}

// Mean returns the mean revenue per decision and its standard error. The mean of no decision and the
// standard error of fewer than two are NaN.
func (g Totals) Mean() (mean, standardError float64) {
	n := float64(g.Rounds)
	mean = g.Revenue / n
	variance := max(g.Squares-float64(n*mean*mean), 0) / (n - 1)
	return mean, math.Sqrt(variance / n)
}

// Gain compares a placement's earnings with an alternative: the answer to whether it earns, the same wherever it is
// shown. A decision counts once all decisions of its time have closed, at most an attribution window and a sixteenth of
// one later. The intervals hold at all times at once with 95%, so they may be read as often as one likes.
type Gain struct {
	Variant     string    `json:"variant,omitzero" doc:"variant of the running experiment that earns it; left out if it is the placement's policy"`
	Over        string    `json:"over" doc:"what it is compared with: chance, for sets drawn uniformly; holdout, for the caller's own sets, shown to the shoppers who are held out; baseline, for the caller's own sets at other times; in an experiment the name of the control"`
	Randomized  bool      `json:"randomized" doc:"whether each decision was assigned by chance to one of both. Otherwise, over the baseline, the two were shown at different times, and the difference of these times counts too"`
	Since       time.Time `json:"since,omitzero" format:"date-time" doc:"since when the experiment shows its variants, or when the hold-out began"`
	Decisions   uint64    `json:"decisions" doc:"decisions that count"`
	PerDecision Interval  `json:"per_decision" doc:"revenue a decision above what it is compared with"`
	Total       Interval  `json:"total" doc:"the same in all decisions that count"`
	Late        float64   `json:"late_revenue,omitzero" doc:"revenue that came too late to count, such as refunds: the change of the total if it counted; left out if 0"`
}

// Values of [Gain.Over] without an experiment, besides [Holdout].
const (
	OverChance   = "chance"
	OverBaseline = "baseline"
)

// NewGain returns the gain of the policy over chance or the baseline.
func NewGain(over string, decisions uint64, perDecision Interval) Gain {
	return Gain{Over: over, Randomized: over == OverChance, Decisions: decisions, PerDecision: perDecision,
		Total: perDecision.Times(decisions)}
}

// Amount writes a revenue with three significant digits, and its currency unless that is "".
func Amount(v float64, currency string) string {
	text := strconv.FormatFloat(v, 'g', 3, 64)
	switch size := math.Abs(v); {
	case size >= 1000:
		text = strconv.FormatFloat(v, 'f', 0, 64)
	case currency != "" && size >= 0.1 && size < 100: // as the desk writes money
		text = strconv.FormatFloat(v, 'f', 2, 64)
	}
	return strings.TrimSpace(text + " " + currency)
}

// Calibration compares predictions with outcomes, over the decisions with both. A well calibrated policy sells as much
// as it predicted, in every bin.
type Calibration struct {
	Revenue   float64 `json:"revenue" doc:"revenue earned; a page with several units taken counts as an average one of them, because Σ R(S) is for one shopper"`
	Predicted float64 `json:"predicted" doc:"Σ R(S)"`
	Bins      [10]Bin `json:"bins" doc:"bin b has the decisions whose predicted probability of a purchase was in [b/10, (b+1)/10)"`
}

// Bin sums decisions with a similar predicted probability of a purchase, 1 − p(0|S).
type Bin struct {
	Rounds    uint64  `json:"rounds"`
	Purchases uint64  `json:"purchases"`
	Predicted float64 `json:"predicted" doc:"Σ 1 − p(0|S)"`
}

// Comparison compares the policy's sets with the baselines that were shown in the mode shadow. It uses
// the policy's own estimates, so it is only as good as their [Calibration].
type Comparison struct {
	Rounds     uint64  `json:"rounds"`
	Agreements uint64  `json:"agreements" doc:"rounds in which the sets were the same"`
	Estimated  uint64  `json:"estimated" doc:"rounds with estimates"`
	Policy     float64 `json:"policy" doc:"Σ R(S) of the policy's own sets, over the rounds with estimates"`
	Baseline   float64 `json:"baseline" doc:"Σ R(S) of the baselines, over the same rounds"`
}
