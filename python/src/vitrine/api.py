"""The types and routes of the service: go test ./service/server -run TestPackages -rewrite.

A type that the service answers with may contain more members in a later version.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypedDict
from urllib.parse import quote

if TYPE_CHECKING:
    from typing_extensions import NotRequired, Unpack

Parameter = str | int | bool | None


def _part(value: str) -> str:
    """A part of a path: "." and ".." would make it another path."""
    if not isinstance(value, str) or value in (".", ".."):
        raise ValueError(f"{value!r}: is no name in a URL")
    return quote(value, "")


class Action(TypedDict):
    features: list[dict[str, Any]]
    """Any features of the action."""
    id: str


class Alarm(TypedDict):
    chance: float
    """How unlikely it is: a placement that sells and earns as it should shows as bad a stretch with at most about this probability. Of no-sale, the probability of as many decisions in a row without a sale at the usual rate."""
    check: Literal["no-sale", "sales", "chance", "baseline", "first-week", "predictions"]
    detail: str
    entry: int
    """Of the log, at which the check failed."""
    fallback: NotRequired[Literal["baseline", "version"]]
    """What is shown until the alarm is cleared; the policy's sets if left out."""
    since_entry: NotRequired[int]
    """Of no-sale and sales: the entry of the first decision in doubt."""
    time: str
    version: NotRequired[int]
    """Of the fallback version; the present one if left out, because none was kept."""


class Answer(TypedDict):
    assortment: list[Shown]
    """In display order."""
    catalogue_entry: NotRequired[int]
    """The last entry of the log that had changed the catalogue; left out if no candidate was from it."""
    decision_id: str
    expected_revenue: float | None
    """R(S), from shoppers who take at most one unit. With baskets a page earns it times the mean number of units of those who take any. null if the policy has no estimate, and with a public key."""
    missing: NotRequired[int]
    """The number of unknown and unavailable candidates."""
    outside_probability: float | None
    """P(0|S), that nothing is taken; null if the policy has no estimate, and with a public key."""
    policy_entry: int
    """The last entry of the log that the policy had learned from."""
    propensity: float | None
    """Π(S), the probability with which the set was chosen; null if it has no closed form."""
    unavailable: NotRequired[list[str]]
    """Candidates that may not be shown now, the first 100."""
    unknown: NotRequired[list[str]]
    """Candidates that the catalogue does not have, the first 100."""
    unmet: NotRequired[list[Unmet]]
    """Rules of the request and lower bounds that the candidates and the other rules could not meet; the page has as many items as they allow."""
    variant: NotRequired[str]
    """The variant of the experiment that the shopper is shown; holdout for a shopper who is held out."""


class Bin(TypedDict):
    predicted: float
    """Σ 1 − p(0|S)."""
    purchases: int
    rounds: int


class Calibrated(TypedDict):
    high: float
    low: float
    observed: float
    """The share of purchases."""
    predicted: float
    """The mean predicted probability of a purchase."""
    rounds: int
    standard_error: float
    """Of the share, if the predictions are right."""


class Calibration(TypedDict):
    bins: list[Bin]
    """Bin b has the decisions whose predicted probability of a purchase was in [b/10, (b+1)/10)."""
    predicted: float
    """Σ R(S)."""
    revenue: float
    """Revenue earned; a page with several units taken counts as an average one of them, because Σ R(S) is for one shopper."""


class CatalogueItem(TypedDict):
    attributes: NotRequired[dict[str, Any]]
    """Numbers, strings and booleans by name, for filters and limits; the policy does not see them."""
    available: NotRequired[bool]
    """Whether it may be shown; true by default."""
    features: NotRequired[dict[str, Any]]
    """Numbers, strings and objects by the features' names."""
    groups: NotRequired[list[str]]
    """Names of groups, for filters and limits."""
    id: str
    """At most 200 bytes of UTF-8, and not . or .., which no URL can hold."""
    payload: NotRequired[Any]
    """Any JSON, such as a title and a picture, which answers can carry."""
    revenue: NotRequired[float]
    """The revenue if it is taken; 1 by default."""
    space: NotRequired[float]
    """The space that it takes of a capacity, and for filters: a number with at most 6 decimals; 1 by default."""
    valid_from: NotRequired[str | None]
    """It may be shown from this time on; null, in a patch, removes it."""
    valid_until: NotRequired[str | None]
    """It may be shown before this time; null, in a patch, removes it."""


class Category(TypedDict):
    collisions: int
    """Values in requests that shared a column with another value, since the service started or the placement was put."""
    feature: str
    learned: int
    """Values that have a column of their own."""
    own_columns: int
    """How many values may have one."""
    shared_columns: int
    """Columns that all other values share."""


class ChangedField(TypedDict):
    after: NotRequired[Any]
    """Left out if it is no longer set."""
    before: NotRequired[Any]
    """Left out if it was not set."""
    field: str


class Choice(TypedDict):
    item: str
    """The id of an item that was shown."""
    quantity: NotRequired[int]
    """The units that were taken; 1 if left out. The policy learns from the first 20 units of a page."""
    value: NotRequired[float]
    """What all units earned together; the item's revenue times the quantity if left out."""


class Comparison(TypedDict):
    agreements: int
    """Rounds in which the sets were the same."""
    baseline: float
    """Σ R(S) of the baselines, over the same rounds."""
    estimated: int
    """Rounds with estimates."""
    policy: float
    """Σ R(S) of the policy's own sets, over the rounds with estimates."""
    rounds: int


class Contribution(TypedDict):
    feature: str
    """Its name; left empty, all features that are not listed."""
    utility: float
    value: NotRequired[Any]
    """A number or a category; left out of other kinds."""


class Correction(TypedDict):
    id: str
    """The caller's id for the correction, of letters, digits, '.', '_', '-' and ':'. A correction that is sent again under its id changes nothing."""
    item: str
    """The id of an item that was shown."""
    value: NotRequired[float]
    """What is added to the revenue, negative for a return, positive for a subscription's next month. If the item was not taken before, it counts as taken from now on, for a value of at least 0. If left out, the sale is withdrawn: the item counts as not taken, and has earned nothing."""


class DecideRequest(TypedDict):
    baseline: NotRequired[list[str]]
    """The ids that the caller shows by itself, in display order, [] if it shows nothing: used in the mode shadow, by experiments with a baseline or a holdout, and by the fallback baseline. It is shown as sent: only the placement's max_size, the number of slots and the candidates bind it. The request gets 422 if an id is not a candidate, even where the baseline is not used."""
    candidates: NotRequired[list[str]]
    """Ids of candidates in the placement's catalogue. Without candidates, a filter and items, all items of the catalogue are candidates."""
    capacity: NotRequired[float]
    """The spaces of the items shown sum to at most this, in addition to the placement's capacity: a number with at most 6 decimals."""
    decision_id: NotRequired[str]
    """The caller's id for the decision, of letters, digits, '.', '_', '-' and ':'; the same id and request have the same answer. Whoever knows an id may report its outcome, so draw it by chance, such as a UUID. If left out, the service draws one."""
    defer: NotRequired[bool]
    """Whether the decision waits for its outcome only after it is activated."""
    exclude: NotRequired[list[str]]
    """Ids of items that must not be shown."""
    filter: NotRequired[str]
    """A condition on the candidates of the catalogue, not on the request's own items, such as price <= 20 and not (brand in ["acme"]). In a placement with shopper_history, seen and bought are how often the shopper has seen and bought the item, and the page is empty if such a filter leaves nothing: see the documentation of catalogues."""
    include: NotRequired[list[str]]
    """Ids of items that must be shown: 422 if one is not a candidate, such as an item that is not available now."""
    items: NotRequired[list[Item]]
    """Candidates with their features. An empty list is an error without candidates or a filter."""
    limits: NotRequired[list[Limit]]
    """Limits in addition to the placement's."""
    max_size: NotRequired[int]
    """The max number of items to show; the placement's max_size if left out."""
    min_size: NotRequired[int]
    """The min number of items to show, in addition to the placement's min_size."""
    payload: NotRequired[bool]
    """Whether the answer has the stored payloads of the items shown."""
    shopper: NotRequired[dict[str, Any]]
    """Features of the shopper, by name."""
    shopper_id: NotRequired[str]
    """At most 200 bytes of UTF-8: who is shown the same variant of an experiment each time, such as a shopper's id. Required in the mode experiment; a placement with shopper_history also remembers by it what the shopper has seen and bought, and others ignore it. With shopper_history the log keeps a hash of it under a key that an erasure deletes, and a repeated decision_id with another shopper gets 409; without it an experiment or a hold-out logs an unkeyed hash, and a repeated decision_id gets the first answer whoever the shopper is."""
    slots: NotRequired[list[Slot]]
    """Places on a page, all of which are filled: the k-th item shown is in the k-th slot. They cannot be combined with min_size, max_size, include, limits and capacity."""
    strict: NotRequired[bool]
    """Whether an unknown or unavailable candidate, an included item that the placement excludes, or a min that no page can meet, is an error; otherwise the answer names it."""


class Decision(TypedDict):
    assortment: list[Shown]
    """In display order."""
    catalogue_entry: NotRequired[int]
    """The last entry of the log that had changed the catalogue; left out if no candidate was from it."""
    choice: str | None
    """The item that was taken, or the first one on the page of several, as reported; null for none."""
    choices: NotRequired[list[Choice]]
    """All items that were taken, with their quantities and values as reported; left out for one unit of one item at its revenue."""
    corrections: NotRequired[list[Correction]]
    """Corrections in the order in which they came; items of them that the outcome lacks were bought later."""
    decision_id: str
    earned: float
    """The revenue of what was taken, with its corrections."""
    expected_revenue: float | None
    """R(S), from shoppers who take at most one unit. With baskets a page earns it times the mean number of units of those who take any. null if the policy has no estimate, and with a public key."""
    missing: NotRequired[int]
    """The number of unknown and unavailable candidates."""
    outside_probability: float | None
    """P(0|S), that nothing is taken; null if the policy has no estimate, and with a public key."""
    placement: str
    policy_entry: int
    """The last entry of the log that the policy had learned from."""
    propensity: float | None
    """Π(S), the probability with which the set was chosen; null if it has no closed form."""
    source: Literal["policy", "chance", "baseline", "import"]
    """How the set was found."""
    status: Literal["open", "chosen", "expired", "deferred", "withdrawn", "evicted", "late"]
    """Late: the outcome came after the decision had expired, or had been withdrawn or evicted. It counts, and the policy does not learn from it."""
    time: str
    unavailable: NotRequired[list[str]]
    """Candidates that may not be shown now, the first 100."""
    unknown: NotRequired[list[str]]
    """Candidates that the catalogue does not have, the first 100."""
    unmet: NotRequired[list[Unmet]]
    """Rules of the request and lower bounds that the candidates and the other rules could not meet; the page has as many items as they allow."""
    variant: NotRequired[str]
    """The variant of the experiment that the shopper is shown; holdout for a shopper who is held out."""


class Drift(TypedDict):
    before: Span
    recent: Span


class Effect(TypedDict):
    by: NotRequired[str]
    """The category whose values change the effect most, of shoppers if possible; left out if none does."""
    feature: str
    kind: Literal["number", "category"]
    points: list[EffectPoint]
    segments: NotRequired[list[EffectSegment]]
    """The effect by the values of that category; at most 8."""


class EffectPoint(TypedDict):
    buy_share: float
    """The share of shoppers who would buy such an item if it were the only one on the page: the mean of 1/(1+exp(−u))."""
    buy_share_high: NotRequired[float]
    """That share with every utility a standard deviation higher."""
    buy_share_low: NotRequired[float]
    """That share with every utility a standard deviation lower; left out if the policy has none."""
    sd: float | None
    """The mean of the standard deviations of these utilities, which bounds that of their mean; null if the policy has none."""
    utility: float
    value: Any
    """A number or a category."""


class EffectSegment(TypedDict):
    points: list[EffectPoint]
    value: str


class Erasure(TypedDict):
    shopper_id: str
    """Of the shopper's requests."""


class Error(TypedDict):
    error: PersonalizerError


class Event(TypedDict):
    by: NotRequired[str]
    """The name of the API key that asked for a change."""
    candidates: NotRequired[int]
    """Items of the request."""
    config: NotRequired[Placement]
    """The placement's new configuration; of relearning-begun, the second learner's."""
    correction: NotRequired[str]
    """The caller's id of a correction."""
    decision_id: NotRequired[str]
    feature: NotRequired[str]
    """A category."""
    items: NotRequired[int]
    """Items of the catalogue that were put or deleted."""
    note: NotRequired[str]
    """Why a version was kept, or a relearning given up."""
    placement: str
    policy_entry: NotRequired[int]
    position: NotRequired[int]
    """Of the item that was taken, or the first one of several; 0 for none."""
    positions: NotRequired[list[int]]
    """Of items that were reported not to have been taken."""
    seconds: NotRequired[float]
    """Seconds by which the attribution windows of the open decisions move, because the clock moved; absent where the service stopped after a quiet time."""
    shown: NotRequired[list[str]]
    """Ids in display order."""
    source: NotRequired[Literal["policy", "chance", "baseline"]]
    taken: NotRequired[list[Taken]]
    """All that was taken; left out for nothing, and for one unit of one item at its revenue."""
    time: str
    value: NotRequired[float]
    """What a late outcome or a correction adds to the revenue."""
    values: NotRequired[list[str]]
    """That have columns of their own from now on."""
    version: NotRequired[int]
    """The learner's version that was saved or rolled back to."""


class EventReward(TypedDict):
    value: float


class Experiment(TypedDict):
    control: NotRequired[str]
    """The variant that the others are compared with; if left out, the first baseline, or else the first variant."""
    ends: NotRequired[str]
    """When it ends; with another configuration of the placement if left out. Its variants keep what they have learned until then."""
    learn_from: NotRequired[Literal["own", "all"]]
    """What the learner of a variant learns from: own, the outcomes of its variant, so that no variant profits from another; all, those of the whole placement. own if left out."""
    metrics: NotRequired[list[Metric]]
    """What else to compare the variants by, as the caller reports it: the margin, the time that a page takes."""
    min_gain: NotRequired[float]
    """The least gain in revenue a decision that is worth a change; 0 if left out. The experiment should stop if no variant can gain as much."""
    name: str
    """Of the experiment: another name begins another one."""
    outside: NotRequired[Literal["policy", "baseline"]]
    """What all shoppers are shown before it starts and after it ends: policy, by the placement's own policy, or baseline, which every request must then contain; policy if left out. These decisions do not count, and need no shopper_id."""
    segment_by: NotRequired[str]
    """A feature of shoppers, a category, by which results are reported too."""
    starts: NotRequired[str]
    """When it starts; at once if left out."""
    variants: list[Variant]
    """What is compared. Their shares sum to 1."""


class ExperimentPlan(TypedDict):
    conversion: float
    """Share of decisions that sold."""
    decisions: int
    """Decisions that the plan is based on; the other numbers are 0 if they earned nothing."""
    decisions_per_day: float
    gains: list[PlannedGain]
    mean_revenue: float
    """Revenue per decision."""
    observed_seconds: float
    """The time that decisions_per_day is from: since the first decision of the last four weeks."""
    power: float
    """Probability with which an experiment of the planned length shows the gain; less if shoppers come back, and no hold-out or running experiment has shown how often."""
    standard_deviation: float
    """Standard deviation of the revenue per decision."""


class ExperimentReport(TypedDict):
    begun: str
    control: str
    counts_from: NotRequired[str]
    """Latest time at which the next decisions will count; left out if no outcome is awaited: decisions that do not count yet then count with the next decision."""
    decisions: int
    """Decisions that count so far."""
    ended: NotRequired[str]
    """Left out while it runs."""
    ends: NotRequired[str]
    """When it ends, if the configuration says so."""
    entry: int
    """The entry of the log that began it."""
    learn_from: Literal["own", "all"]
    metrics: list[MetricReport]
    """What else the variants change; conversion and items come first."""
    min_gain: float
    name: str
    pairs: list[Pair]
    """Differences between variants other than the control; a pair is left out until both variants have decisions."""
    phases: list[Phase]
    """Times with the same shares, the oldest first."""
    points: list[ReportPoint]
    """The results over time, at most 256."""
    remaining: NotRequired[Left]
    """What the experiment probably still needs; left out unless it continues, and if it would need more than 20 times as many decisions as it has."""
    sample_ratio: Ratio
    segment_by: NotRequired[str]
    """The feature of shoppers that has the segments."""
    segments: NotRequired[list[SegmentReport]]
    """Results by value of that feature, the first ones seen, at most 8; the last one of 8 has all other values."""
    starts: NotRequired[str]
    """When it starts, if the configuration says so."""
    variants: list[VariantReport]
    """In the order of the configuration."""
    verdict: Verdict


class Experiments(TypedDict):
    experiment: NotRequired[ExperimentReport]
    """The one that runs."""
    holdout: NotRequired[ExperimentReport]
    """What all other decisions, of the variant vitrine, earn over the shoppers who are held out, of the variant holdout: in the form of an experiment that begins with the hold-out and never ends; left out without a hold-out."""
    past: list[ExperimentReport]
    """Those that have ended, the oldest first: the last 10, as they were when they ended."""
    placement: str


class Explained(TypedDict):
    base: NotRequired[float]
    """The utility before the contributions."""
    choice_probability: float | None
    """P(i|S) as it was answered; null if the policy has no estimate."""
    contributions: NotRequired[list[Contribution]]
    """They and the base sum to the utility; those largest in size first."""
    family: NotRequired[str]
    """Of a policy that draws a utility family for each slot: the family of the slot that took the item."""
    id: str
    index: float | None
    """The utility by which the policy chose, with its bonus or as drawn; of a policy that draws for each slot, that of the slot that took the item. null if it is not known."""
    position: int
    revenue: float
    sd: float | None
    """The standard deviation of the utility under what the policy believes. It can be too small where no family of the policy fits. null if it has none."""
    slot: NotRequired[str]
    utility: float | None
    """The mean; null if the policy has none."""


class Explanation(TypedDict):
    attribution: Literal["linear", "shapley", "none"]
    """How contributions are found. They compare with base, the utility of the mean known candidate for the mean shopper. linear: weight times difference; shapley: the mean change of the utility when the feature takes its value, over 16 fixed random orders of the features and their reverses."""
    candidates: int
    """Among which was decided."""
    cause: NotRequired[Literal["bonus", "estimate", "draw", "slots", "weights", "chance"]]
    """How the policy chooses: the best set under utilities with a bonus, as estimated or as drawn; for each slot the best item left under utilities drawn for it; a set drawn from a distribution that prefers good ones; or a set drawn by chance."""
    compared_by: Literal["index", "utility", "none"]
    """By which utilities sets are compared in revenue, next and rules: those with the bonus or as drawn, if the policy maximised them, or else the means."""
    decision_id: NotRequired[str]
    """Left out for a decision that was only tried."""
    explained_by_entry: int
    """The version of the policy that explains."""
    families: NotRequired[list[FamilyShare]]
    """Of a policy that averages utility families: their weights."""
    items: list[Explained]
    """What is shown, in display order; at most the first 50."""
    known_candidates: int
    """Of these, candidates whose features are known: the log keeps those of the items shown only, unless the placement has log_items: all."""
    next_best: NotRequired[OtherSet]
    """The best other set that the rules allow; left out with position effects."""
    placement: str
    policy: str
    """The name of the policy."""
    policy_entry: int
    """The version of the policy that decided."""
    revenue: NotRequired[float]
    """R(S) of the set shown, by these utilities."""
    rules: NotRequired[list[RuleCost]]
    """What each rule cost; at most the first 32; left out with position effects and slots."""
    same_policy: bool
    """Whether these are the same; otherwise the utilities are those of the present policy."""
    shopper: NotRequired[list[FeatureValue]]
    """Who came: the features of the shopper, as far as the log has them."""
    source: Literal["policy", "chance", "baseline", "import"]
    """How the set was found."""
    typical_shopper: bool
    """Whether contributions compare with the mean shopper lately; otherwise they compare with this one, and features of shoppers add nothing."""
    unknown: NotRequired[list[str]]
    """What is not known, and why."""
    unmet: NotRequired[list[Unmet]]
    """Rules of the request and lower bounds that no page could meet, as in the answer."""


class FamilyHistory(TypedDict):
    family: str
    points: list[FamilyPoint]
    """At most 128, the oldest first."""


class FamilyPoint(TypedDict):
    learned: int
    """Rounds that the learner had learned."""
    weight: float


class FamilyShare(TypedDict):
    family: str
    weight: float


Feature = TypedDict(
    "Feature",
    {
        "allow_other": "NotRequired[bool]",
        "center": "NotRequired[float]",
        "columns": "NotRequired[int]",
        "default": "NotRequired[Any]",
        "from": "NotRequired[Literal[\"item\", \"shopper\"]]",
        "history": "NotRequired[Literal[\"seen\", \"bought\"]]",
        "kind": "Literal[\"number\", \"category\", \"text\", \"object\", \"cross\"]",
        "max": "NotRequired[float]",
        "min": "NotRequired[float]",
        "name": "str",
        "of": "NotRequired[list[str]]",
        "own_columns": "NotRequired[int]",
        "scale": "NotRequired[float]",
        "values": "NotRequired[list[str]]",
    },
)


class FeatureValue(TypedDict):
    feature: str
    value: Any
    """A number or a category; null of other kinds, and of a category that shares its column with others."""


class FilledSlot(TypedDict):
    id: str
    rewardActionId: str


class Gain(TypedDict):
    decisions: int
    """Decisions that count."""
    late_revenue: NotRequired[float]
    """Revenue that came too late to count, such as refunds: the change of the total if it counted; left out if 0."""
    over: str
    """What it is compared with: chance, for sets drawn uniformly; holdout, for the caller's own sets, shown to the shoppers who are held out; baseline, for the caller's own sets at other times; in an experiment the name of the control."""
    per_decision: Interval
    """Revenue a decision above what it is compared with."""
    randomized: bool
    """Whether each decision was assigned by chance to one of both. Otherwise, over the baseline, the two were shown at different times, and the difference of these times counts too."""
    since: NotRequired[str]
    """Since when the experiment shows its variants, or when the hold-out began."""
    total: Interval
    """The same in all decisions that count."""
    variant: NotRequired[str]
    """Variant of the running experiment that earns it; left out if it is the placement's policy."""


class Guard(TypedDict):
    alarm: NotRequired[Alarm]
    """A check that failed. An alarm of no-sale or sales ends once sales are back; other alarms stay until they are cleared, or the learner begins again or is rolled back."""
    checks: list[GuardCheck]
    decisions: int
    """Of the policy in this period, without the last ones, whose outcomes are still awaited."""
    far_off: NotRequired[Calibrated]
    """The bin of predictions that is certainly wrong in this period, by more than a fifth of the shoppers who buy, or of the shoppers who do not, whichever are fewer. If several bins are wrong, the bin with the most decisions."""
    outcomes_held: NotRequired[int]
    """Outcomes that the learner has not been given because of an alarm about sales."""
    overdue_seconds: NotRequired[float]
    """Age at which a decision without an outcome counts as one without a sale: at least four fifths of the latest sales are reported within half of it, unless the attribution window is shorter. Left out until enough sales show the delay."""
    period: int
    """The tests begin again with each period, of a day and 5000 decisions at least; 0 are the first 500 decisions, which are not tested."""
    without_sale: int
    """Decisions in a row without a sale, up to the last decision with a known or overdue outcome."""


GuardCheck = TypedDict(
    "GuardCheck",
    {
        "decisions": "int",
        "detectable_fall": "NotRequired[float]",
        "from": "NotRequired[str]",
        "high": "NotRequired[float]",
        "low": "NotRequired[float]",
        "max_silence": "NotRequired[int]",
        "name": "Literal[\"no-sale\", \"sales\", \"chance\", \"baseline\", \"first-week\", \"predictions\"]",
        "needs_decisions": "NotRequired[int]",
    },
)


class Health(TypedDict):
    level: Literal["bad", "warning", "waiting", "note"]
    since: NotRequired[str]
    """Of an alarm: when it was raised."""
    text: str
    """What happened, what the service has done about it, and what to do."""
    title: NotRequired[str]
    """Of an alarm of the guard: what happened, in a sentence with which the text begins."""


class Held(TypedDict):
    decisions: int
    """Decisions that still wait for an outcome."""
    seconds: float
    """Seconds by which the clock moved; negative if it moved back."""
    time: str
    """Time to which the clock moved."""


class History(TypedDict):
    alarms: list[PastAlarm]
    """The last 50."""
    changes: list[PastEvent]
    """From the log: the last 100, without those whose entries were removed from the log, and without changes of items."""
    placement: str


class InnerError(TypedDict):
    code: str
    """The kind of the problem in the service's own words."""


class Insight(TypedDict):
    background_rows: NotRequired[int]
    """Over how many rows, of items that were shown, the effects are averaged."""
    calibration: list[Calibrated]
    """By the predicted probability of a purchase; without bins that have no decisions."""
    drift: NotRequired[Drift]
    """Once there are decisions before the recent ones."""
    effects: NotRequired[list[Effect]]
    """Of numbers and categories on the utility; at most 30 features."""
    exploration_share: float
    """Share of the decisions whose set was drawn uniformly."""
    families: NotRequired[list[FamilyHistory]]
    """Of a policy that averages utility families: their weights, since the service started."""
    gains: list[Gain]
    """Those of the statistics."""
    items: list[ItemInsight]
    """Those that were shown most, first; at most 1000."""
    lag_rounds: int
    """Outcomes that the learner has not processed yet."""
    latency: NotRequired[Latency]
    """Of decisions of the placement since the service started."""
    mode: str
    others: NotRequired[ItemInsight]
    """The items that are not counted any more, because there were too many, together."""
    others_count: NotRequired[int]
    """Their number."""
    placement: str
    policy: str
    """Its name."""
    policy_entry: int
    positions: list[Position]
    """Places of the display, from the first one on; at most 50."""
    time: str
    """When it was computed: it may be some seconds old."""
    waiting_requests: int
    """Requests to the whole service that wait for the log."""


class Interval(TypedDict):
    estimate: float
    high: float
    low: float


class Item(TypedDict):
    features: NotRequired[dict[str, Any]]
    """Numbers, strings and objects by the features' names."""
    id: str
    """At most 1024 bytes of UTF-8."""
    revenue: NotRequired[float]
    """The revenue if it is taken; 1 if left out."""
    space: NotRequired[float]
    """The space that it takes of a capacity: a number with at most 6 decimals; 1 if left out."""


class ItemIDs(TypedDict):
    ids: list[str]


class ItemInsight(TypedDict):
    id: NotRequired[str]
    revenue: float
    """Earned."""
    sd: float | None
    """The standard deviation of the utility under what the policy believes."""
    shown: int
    solo_revenue: float | None
    """The expected revenue of showing only this item."""
    taken: int
    utility: float | None
    """The mean, with the features with which it was shown last; null if the policy has none, of an item beyond the first 100, and if the log no longer has them."""


class ItemList(TypedDict):
    items: list[CatalogueItem]
    """Items; the media type application/x-ndjson has one a line instead."""


class ItemPage(TypedDict):
    catalogue_entry: int
    """If it differs between pages, items may be missing from them or be on two of them."""
    count: int
    """The number of items in the catalogue."""
    items: list[CatalogueItem]
    next_from: NotRequired[int]
    """From, of the next page; left out on the last one."""


class ItemsChanged(TypedDict):
    catalogue_entry: int
    """The last entry of the log that changed the catalogue."""
    changed: int
    """The number of items that this request put, patched or deleted."""
    clipped: NotRequired[int]
    """The number of values beyond their features' bounds, among the items changed: see whether their unit is right."""
    items: int
    """The number of items in the catalogue."""
    unknown: NotRequired[list[str]]
    """Ids that the catalogue does not have: of a patch or a deletion, the first 100."""


class Kept(TypedDict):
    version: int


class KeyEntry(TypedDict):
    name: str
    placements: NotRequired[list[str]]
    """That it is limited to; left out for all."""
    public: NotRequired[bool]
    """Whether everybody may read it, for example in a web page, so that it must not send money."""
    scopes: list[str]
    sessions: int
    """Pages of the desk that are signed in with it."""


class KeyList(TypedDict):
    keys: list[KeyEntry]
    required: bool
    """Whether the service asks for keys."""


class LateOutcome(TypedDict):
    detail: str
    learned: bool
    """False: the policy has learned already that nothing was taken, or learns nothing from the decision."""
    status: Literal["late"]
    """The decision's status from now on."""


class Latency(TypedDict):
    decisions: int
    p50_seconds: float
    """Seconds, as the next ones: an upper bound that is at most a fifth too large."""
    p95_seconds: float
    p99_seconds: float


class LearnerReport(TypedDict):
    broken: NotRequired[bool]
    """Left out if false."""
    lag_rounds: NotRequired[int]
    """Rounds that it has not processed yet; left out if 0."""
    learned: NotRequired[int]
    """Rounds; left out of past experiments."""
    own: bool
    """Whether it is the variant's own; otherwise it is the placement's."""
    policy: dict[str, Any]
    problem: NotRequired[str]
    skipped: NotRequired[int]
    """Rounds that it refused, or on which it panicked; left out if 0."""


class LearnerState(TypedDict):
    config: Placement
    """The configuration of a learner that reads the state."""
    learned: int
    """Rounds that it has learned."""
    placement: str
    policy_entry: int
    """The last entry of the log that it has learned from."""
    state: str
    """What the learner's MarshalBinary returns, in Base 64 (RFC 4648)."""


class Left(TypedDict):
    decisions: int
    seconds: float


class Limit(TypedDict):
    attribute: NotRequired[str]
    """An attribute of the catalogue's items: each of its values is a group. Items without it are not limited."""
    feature: NotRequired[str]
    """A category of items: each of its values is a group."""
    group: NotRequired[str]
    """A name in the groups of the catalogue's items."""
    items: NotRequired[list[str]]
    """Ids, in a request only."""
    max: NotRequired[int]
    """The max number of the group's items to show. A limit needs a min, a max or both."""
    min: NotRequired[int]
    """The min number of the group's items to show, of items or a group only. If the candidates and the rules leave too few, the page shows as many as it can."""


class Loss(TypedDict):
    log_from_entry: NotRequired[int]
    """Relearn=log would learn only rounds since this entry, because the log no longer holds the earlier ones."""
    rounds: int
    """Rounds that the learner has learned."""
    versions: int
    """Versions that it has, to roll back to."""


class Measurements(TypedDict):
    metrics: dict[str, Any]
    """Finite values by name; names that the running experiment does not compare are ignored."""


class Metric(TypedDict):
    better: NotRequired[Literal["higher", "lower"]]
    """Which values are better; higher if left out."""
    max: float
    """The largest value; larger ones count as this one, and negative ones as its negative at least. Intervals are wider if it is larger than needed."""
    name: str
    """Of letters, digits, '.', '_', '-' and ':'; not conversion or items."""


class MetricReport(TypedDict):
    better: Literal["higher", "lower"]
    name: str
    """Conversion is the share of decisions that sold, items the units taken per decision, of which at most 10 count."""
    reported: int
    """Decisions with a value; the others count as 0."""
    variants: list[VariantMetric]
    """In the order of the configuration."""


class Model(TypedDict):
    creationTime: NotRequired[str]
    """When the placement got its configuration; left out if the log no longer has it."""
    lastModifiedTime: NotRequired[str]
    """When the last outcome came that it has learned from."""


class Note(TypedDict):
    note: str
    """Of the version."""


class OtherSet(TypedDict):
    items: list[str]
    missed_by: float
    """How much less that is than what the set shown earns; negative if it is more, because the set shown was drawn."""
    revenue: float
    """Its expected revenue."""


class Outcome(TypedDict):
    choice: NotRequired[str | None]
    """The id of the item that was taken, one unit at its revenue; null for none, or if choices lists them. One of the two is required."""
    choices: NotRequired[list[Choice] | None]
    """In place of choice: the items that were taken, each once; [] or null for none. Null next to a choice is ignored."""


class Outliers(TypedDict):
    feature: str
    """Feature of the last outlier."""
    rounds: int
    """Rounds in which most items had an outlier, less the rounds since in which most items had none."""
    rounds_since: int
    """Rounds learned since the last outlier."""
    values: int
    """Values beyond 50 standard deviations and 4 times the largest distance from the mean so far."""


class Overview(TypedDict):
    health: NotRequired[list[Health]]
    """Health of the answering process, shown to keys for all placements: whether alerts reach their receiver."""
    now: str
    placements: list[OverviewEntry]
    total: int
    """Placements that were asked for; the answer has some of them."""


class OverviewEntry(TypedDict):
    by_policy: Totals
    """Decisions of the policy over the time that was asked for, up to the first that waits for its outcome: of the later ones those that sold end first."""
    currency: NotRequired[str]
    """What revenues are in: of its configuration."""
    decisions: int
    decisions_per_second: float
    """Decisions a second, over the last ten."""
    experiment: NotRequired[OverviewExperiment]
    """The running experiment, with the numbers of its report."""
    explore: NotRequired[str]
    """In the mode explore, what is drawn: sets, also if left out, or swaps, as under a capacity of the placement."""
    explore_share: NotRequired[float]
    """In the mode explore, the share of requests that see random pages or items."""
    gains: list[Gain]
    """What the placement earns more, over the time that was asked for; of an experiment or a hold-out, since it began."""
    health: list[Health]
    """The worst first; empty if all is well."""
    holdout_share: NotRequired[float]
    """The share of shoppers who always see the caller's own page."""
    latency: NotRequired[Latency]
    """Of decisions since the service started."""
    mean_revenue: float | None
    """A decision of the policy, over the time that was asked for; null if there is none, as the next one."""
    mode: str
    name: str
    policy: str
    series: Series
    standard_error: float | None
    unwatched_decisions: NotRequired[int]
    """The least number of further decisions before a check of the guard can fail."""


class OverviewExperiment(TypedDict):
    control: str
    ends: NotRequired[str]
    """When it ends, if the configuration says so."""
    name: str
    starts: NotRequired[str]
    """When it starts, if the configuration says so."""
    verdict: Verdict


class PageSlot(TypedDict):
    baselineAction: str
    excludedActions: NotRequired[list[str] | None]
    features: NotRequired[list[dict[str, Any]]]
    """Accepted, and not used."""
    id: str


class Pair(TypedDict):
    difference: Interval
    """Revenue a decision that the first variant earns above the other."""
    over: str
    """The other variant."""
    variant: str
    """The variant with the larger estimate."""


class PastAlarm(TypedDict):
    began: str
    chance: float
    """How unlikely it was: see Alarm."""
    check: Literal["no-sale", "sales", "chance", "baseline", "first-week", "predictions"]
    detail: str
    ended: NotRequired[str]
    """Left out while it lasts."""


class PastEvent(TypedDict):
    by: NotRequired[str]
    """The name of the API key that asked for it; left out without keys, and if nobody asked."""
    entry: int
    """Of the log."""
    fields: NotRequired[list[ChangedField]]
    """Settings that differ from those before, or will once relearning-begun has ended with swapped; left out of the first configuration, and if the log no longer has the one before."""
    kind: Literal["created", "changed", "version-saved", "rolled-back", "reset", "relearning-begun", "relearning-ended", "swapped", "adopted", "alarm-cleared"]
    """What was done: the learner began again after reset, and learns the log after relearning-begun, which ends with swapped or relearning-ended; adopted ended an experiment with the learner of a variant."""
    note: NotRequired[str]
    time: str
    version: NotRequired[int]


class PersonalizerError(TypedDict):
    code: str
    """One of the codes of that service, or the status where its gateway answered."""
    details: NotRequired[list[PersonalizerError]]
    innerError: NotRequired[InnerError]
    message: str
    target: NotRequired[str]
    """A JSON pointer in the body."""


class Phase(TypedDict):
    entry: int
    """Of the log, which began it."""
    moved_share: float
    """Share of the units in the experiment that got another variant; the least that is possible."""
    shares: list[float]
    """Of the variants, in their order."""
    time: str


class Placement(TypedDict):
    attribution_window: NotRequired[str]
    """How long a decision waits for its outcome; 30m if left out."""
    capacity: NotRequired[float]
    """The spaces of the items shown sum to at most this: a number with at most 6 decimals. It does not go together with slots. If it is below the space of every item, nothing is shown."""
    catalogue_of: NotRequired[str]
    """Another placement, with the same features, whose catalogue this one uses; its own if left out."""
    currency: NotRequired[str]
    """What revenues are in, as the desk and reports write them: three letters of ISO 4217, such as EUR; numbers without a currency if left out."""
    exclude: NotRequired[list[str]]
    """Ids of items that no page shows, whatever a request includes; at most 1000."""
    experiment: NotRequired[Experiment]
    """Of the mode experiment: what is compared."""
    explore: NotRequired[Literal["sets", "swaps"]]
    """In the mode explore, what is drawn: sets, a whole set drawn uniformly, or one item as by swaps under a capacity or limits whose groups cross; swaps, one item of the policy's set is replaced by another, which costs less and says as much about policies that show similar sets; sets if left out."""
    explore_share: NotRequired[float]
    """In the mode explore, the share of requests that explore; 0.05 if left out."""
    fallback: NotRequired[Literal["baseline", "version"]]
    """What is shown while the guard has an alarm, except for earning more than predicted: baseline, the caller's sets, which every request then has to have; version, the last good version's; if left out, the policy continues."""
    features: list[Feature]
    """What is known about items and shoppers."""
    holdout_share: NotRequired[float]
    """The share of shoppers who always see the caller's baseline, whatever the mode and the experiment, so that there is always something to compare with; in steps of 0.0001. Every request then has a shopper_id and a baseline; not in the mode shadow."""
    horizon: NotRequired[int]
    """T, the horizon in decisions, for policies that have one; 100000 if left out."""
    include: NotRequired[list[str]]
    """Pinned items: ids that every page shows while they are candidates, in this order of importance. A request that excludes one, or that has slots, is not bound by it, and a pin is left out if it breaks another rule, a lower bound or an earlier pin, or if hide_bought hides it; at most max_size."""
    learn_in_alarm: NotRequired[bool]
    """Whether the policy goes on learning while the guard has an alarm about sales, no-sale or sales; if left out, it pauses, and reads from the log what it has missed once the alarm ends."""
    limits: NotRequired[list[Limit]]
    """Bounds on how many items of each value of a category or an attribute, or of a named group, are shown."""
    log_items: NotRequired[Literal["shown", "all"]]
    """Which items' features the log keeps and the learner sees: shown is the items shown, all is every item that the request brings, too; of the catalogue's items that were not shown the log keeps the ids, from which exports compute the features; if left out, all in the mode explore and shown in the others."""
    max_request_items: NotRequired[int]
    """The max number of items that a request may bring, and of ids in its lists; 1000 if left out. It does not limit the catalogue."""
    max_size: int
    """K, the max number of items that are shown."""
    max_versions: NotRequired[int]
    """How many versions are kept to roll back to; 8 if left out."""
    memory_bytes: NotRequired[int]
    """The max number of bytes of remembered decisions; 67108864 if left out."""
    min_size: NotRequired[int]
    """The min number of items to show, even if fewer would earn more; with max_size as min_size every page is full. A page with too few candidates shows as many as the rules allow. It cannot be combined with a capacity."""
    mode: NotRequired[Literal["learn", "shadow", "explore", "experiment"]]
    """Learn, the default: the policy decides; shadow: the caller's baseline is shown, and the policy learns from it; explore: the policy decides but for a share of requests, in which a set or an item is drawn; experiment: each shopper gets one of several variants, which are compared."""
    notes: NotRequired[list[str]]
    """What follows from the settings; ignored in a request."""
    policy: NotRequired[dict[str, Any]]
    """Name, and its settings: see vitrine list policies. In an answer, all of them; if left out, the default policy."""
    seed: NotRequired[int]
    """The seed of all random draws."""
    shopper_history: NotRequired[ShopperHistory]
    """Remember what shoppers have seen and bought, by the shopper_id of requests; if left out, nothing is remembered."""
    warnings: NotRequired[list[str]]
    """Why these settings may do harm; ignored in a request."""


class PlacementEntry(TypedDict):
    config: Placement
    name: str


class PlacementList(TypedDict):
    placements: list[PlacementEntry]


class PlannedGain(TypedDict):
    decisions: float | None
    """Decisions of the placement; null if it takes more than 10^12."""
    gain: float
    """The gain in revenue per decision."""
    relative: float
    """The gain as a share of the mean revenue."""
    seconds: float | None
    """Time at the present rate of decisions, with the attribution window of the last one; null if that is not known."""


class PolicyEntry(TypedDict):
    choose_when: NotRequired[str]
    """When to choose it."""
    default: NotRequired[bool]
    """Whether placements have it that name none."""
    doc: str
    name: str
    """Of a family of utilities, its kind."""
    offer_cost: NotRequired[str]
    """What an offer costs: O of it."""
    options: list[PolicyOption]
    round_cost: NotRequired[str]
    """What an observed round costs: O of it."""


class PolicyList(TypedDict):
    policies: list[PolicyEntry]
    utilities: list[PolicyEntry]
    """Families of utilities, for the setting utility of some policies."""


class PolicyOption(TypedDict):
    default: NotRequired[Any]
    """In a placement; left out if it follows from the placement, or if there is none."""
    doc: str
    key: str
    range: NotRequired[str]
    """The legal values."""
    type: str
    """Integer, number, string, true or false, list of integers, table."""


class Position(TypedDict):
    effect: float | None
    """What the policy has learned that the place adds to the utility; null without position_effects."""
    position: int
    shown: int
    taken: int


class Preview(TypedDict):
    can_relearn: bool
    """Whether relearn=log can learn it again from the log."""
    change: Literal["none", "create", "keep", "restart", "end", "adopt"]
    """None: the placement has this configuration; create: there is no such placement; keep: the learner continues; restart: another learner begins, with reset=true or relearn=log if something is lost; end: an experiment ends, with reset=true, and what the learners of its variants have learned is lost; adopt: an experiment ends, and the learner of one of its variants decides."""
    fields: NotRequired[list[str]]
    """Of restart: what changes that the learner depends on."""
    lost: NotRequired[Loss]
    """Of restart: what the learner has learned, which is kept as a version; left out if it has learned nothing. Of end: what is lost."""
    max_size: NotRequired[int]
    """Relearn=log would skip decisions that showed more items: see the warnings."""
    placement: Placement
    """The configuration with its defaults, notes and warnings."""


class Problem(TypedDict):
    detail: str
    """What is wrong, and what to do."""
    errors: NotRequired[list[ProblemField]]
    """The fields that are wrong."""
    lost: NotRequired[Loss]
    """Of the problem loss: what the change would lose."""
    request_id: str
    """The id of the request in the service's output."""
    status: int
    title: str
    """The status in words."""
    type: str
    """The kind of the problem."""


class ProblemField(TypedDict):
    detail: str
    pointer: str
    """A JSON pointer in the body, as a fragment of a URI."""


class Rank(TypedDict):
    actions: list[Action]
    contextFeatures: NotRequired[list[dict[str, Any]] | None]
    """Any features of the context."""
    deferActivation: NotRequired[bool | None]
    eventId: NotRequired[str | None]
    """One is made where it is left out."""
    excludedActions: NotRequired[list[str] | None]


class Ranked(TypedDict):
    eventId: str
    ranking: list[RankedAction]
    rewardActionId: str


class RankedAction(TypedDict):
    id: str
    probability: NotRequired[float]
    """That it is the one of rewardActionId; left out where it is not known."""


class Ratio(TypedDict):
    mismatch: bool
    """Whether it was below 0.001: do not trust the differences before the cause is known."""
    p_value: float
    """An anytime-valid p-value: that it is ever below x has a probability of at most x if the units are divided rightly."""
    shoppers: int


class Relearning(TypedDict):
    entry: int
    """The last entry that it has learned from; 0 before the first."""
    from_entry: int
    """The first entry of the log that it learns from."""
    learned: int
    """Rounds that it has learned."""
    max_size: NotRequired[int]
    """Of that configuration, if it is smaller than the present one: decisions that showed more items are skipped, so it may take over only with relearn=accept."""
    policy: dict[str, Any]
    """Of the configuration that the placement will have."""
    problem: NotRequired[str]
    """Its last problem."""
    ready: bool
    """Whether it may take over with relearn=accept: it has read the log, and no alarm holds rounds back."""
    since: str
    skipped: int
    """Rounds that it refused, or on which it panicked."""
    to_entry: int
    """The last entry that it has to learn from, for now."""


class ReportPoint(TypedDict):
    decisions: int
    differences: list[Interval]
    """Above the control, in the order of the variants; that of the control is 0."""
    means: list[Interval]
    """Of the variants, in their order."""
    time: str


class Reward(TypedDict):
    item: str
    """Its id."""
    value: float


class Rewards(TypedDict):
    rewards: list[Reward]
    """Of items shown, all of them or some; the first reward of an item counts."""


class Rollback(TypedDict):
    version: int
    """One of the versions of the placement's statistics."""


class RuleCost(TypedDict):
    cost: float
    """The expected revenue of the best set without this rule, minus that of the best set with it. With position effects, the best sets under lower bounds, pins, a capacity or crossing limits are found only approximately."""
    item: NotRequired[str]
    """The id that it names."""
    on: NotRequired[str]
    """The feature, the size, the capacity, or the number of the limit or of the slot."""
    rule: Literal["max_size", "min_size", "include", "exclude", "pinned", "excluded", "limit", "capacity", "slot"]
    """Of the request or of the placement; pinned and excluded are the placement's include and exclude."""


class SegmentReport(TypedDict):
    value: str
    """Of the feature; empty for all other values."""
    variants: list[SegmentVariant]
    """In the order of the configuration."""


class SegmentVariant(TypedDict):
    difference: NotRequired[Interval]
    """Revenue per decision above the control's in the segment; left out of the control, before there are decisions of both, and of segments with fewer than about 8 shoppers."""
    totals: Totals
    """The decisions that count."""
    variant: str


class Series(TypedDict):
    attribution_window_seconds: float
    """The attribution window in seconds."""
    baseline: NotRequired[SeriesMeans]
    """Decisions whose set was the caller's."""
    chance: NotRequired[SeriesMeans]
    """Decisions whose set was drawn uniformly."""
    decisions: list[int]
    length_seconds: list[int]
    """How long the points are."""
    now: str
    open: list[int]
    """Decisions whose outcomes are awaited."""
    over_baseline: NotRequired[SeriesSums]
    """The same over the caller's sets. These were shown at another time, whose difference counts too."""
    over_chance: NotRequired[SeriesSums]
    """How much more the policy has earned in all decisions until then than chance would have: the total of the gain over chance, by the time when decisions were made. Left out while an experiment runs, whose report compares its variants."""
    placement: str
    policy: NotRequired[SeriesMeans]
    """Decisions whose set the policy chose; left out if there are none, as the next ones."""
    start_unix_seconds: list[int]
    """When the points begin, in seconds since 1970."""


class SeriesMeans(TypedDict):
    mean: list[float | None]
    """Revenue a decision; null without rounds."""
    rounds: list[int]
    """Decisions that have an outcome or have expired."""
    standard_error: list[float | None]
    """Null for fewer than two rounds."""


class SeriesSums(TypedDict):
    estimate: list[float | None]
    high: list[float | None]
    low: list[float | None]
    """Null, like the estimate, while too many decisions left memory before an outcome."""


class Service(TypedDict):
    defaultReward: float
    """0, the reward of the outside option."""
    explorationPercentage: float
    """The share of requests that explore."""
    isAutoOptimizationEnabled: bool
    """False."""
    learningMode: Literal["Online", "Apprentice"]
    """Apprentice is the mode shadow."""
    logMirrorEnabled: bool
    """False."""
    logRetentionDays: int
    """-1: the service's [retention] bounds the log."""
    modelExportFrequency: str
    """PT1S: what was learned decides at once."""
    modelRetrainDays: int
    """0: the learner forgets nothing."""
    rewardAggregation: Literal["earliest"]
    rewardWaitTime: str
    """The attribution window, a duration of ISO 8601."""


class ServiceChange(TypedDict):
    defaultReward: NotRequired[float]
    explorationPercentage: NotRequired[float]
    learningMode: NotRequired[Literal["Online", "Apprentice"]]
    rewardAggregation: NotRequired[Literal["earliest"]]
    rewardWaitTime: NotRequired[str]
    """A duration of ISO 8601, such as PT10M."""


class Session(TypedDict):
    expires: NotRequired[str]
    """When the session ends."""
    key: NotRequired[str]
    """The name of the key; left out while nobody is signed in."""
    placements: NotRequired[list[str]]
    """The placements that the key is limited to; left out for all."""
    required: bool
    """Whether the service asks for keys."""
    scopes: list[str]
    """What the page may do."""


class Shelf(TypedDict):
    complete: bool
    """Whether every item that was shown has counts of its own; otherwise items without counts may have been shown, but rarely, and counts that were dropped began again."""
    count: int
    """Items that were asked for; the page has some of them."""
    items: list[ShelfItem]


class ShelfItem(TypedDict):
    item: CatalogueItem
    """Of an item that the catalogue does not have, only the id, of up to 1024 bytes."""
    pinned: bool
    revenue: float
    """Earned by it."""
    revenue_per_page: NotRequired[float]
    """What it earned on a page that showed it."""
    shown: int
    """Decisions that showed it and have closed; unless complete, only since its counts last began."""
    state: Literal["available", "excluded", "unavailable", "not-yet", "over", "unfit", "gone"]
    """Whether it may be shown now. excluded: by the placement; not-yet and over: its time has not come, or is over; unfit: it lacks features; gone: the catalogue does not have it, so requests bring it or it was deleted."""
    taken: int
    taken_share: NotRequired[float]
    """Taken by shown; left out of an item without counts, as the next one."""


class ShopperHistory(TypedDict):
    hide_bought: NotRequired[bool]
    """Whether pages leave out what the shopper has bought, but for what a request includes."""
    keep: str
    """How long it is remembered, such as 720h; at most 366 days."""
    memory_bytes: NotRequired[int]
    """Max bytes; 16777216 if left out, about 9000 shoppers with 20 items each. If it is full, the shoppers who came longest ago are forgotten."""


class ShopperStats(TypedDict):
    bytes: int
    forgotten: int
    """Shoppers who were forgotten before their time, because the memory was full."""
    remembered: int
    """Shoppers."""


class Shown(TypedDict):
    choice_probability: float | None
    """P(i|S), that it is taken; null if the policy has no estimate, and with a public key."""
    id: str
    payload: NotRequired[Any]
    """The payload that the catalogue stores, if the request asks for it."""
    position: int
    slot: NotRequired[str]
    """The id of its slot."""


class SignIn(TypedDict):
    key: str
    """An API key."""


class Slot(TypedDict):
    exclude: NotRequired[list[str]]
    """Ids of items that must not be shown in it."""
    id: NotRequired[str]
    """Names the slot in the answer; either all slots of a request have one, or none has."""


class SlotReward(TypedDict):
    slotId: str
    value: float


class SlotRewards(TypedDict):
    reward: list[SlotReward]


class SlotsRank(TypedDict):
    actions: list[Action]
    contextFeatures: NotRequired[list[dict[str, Any]] | None]
    deferActivation: NotRequired[bool | None]
    eventId: NotRequired[str | None]
    slots: list[PageSlot]


class SlotsRanked(TypedDict):
    eventId: str
    slots: list[FilledSlot]


class Span(TypedDict):
    by_baseline: Totals
    by_chance: Totals
    by_policy: Totals
    decisions: int
    earned: float
    """By these."""
    estimated: int
    """Of these, decisions with a prediction."""
    predicted: float
    """For these, Σ R(S)."""


class Stats(TypedDict):
    broken: bool
    """Whether the learner has failed; its last good policy decides."""
    by_baseline: Totals
    """Decisions whose set was the caller's."""
    by_chance: Totals
    """Decisions whose set was drawn uniformly."""
    by_policy: Totals
    """Decisions whose set the policy chose."""
    calibration: Calibration
    catalogue_entry: NotRequired[int]
    """The last entry of the log that changed the catalogue."""
    categories: NotRequired[list[Category]]
    """Categories without values."""
    clipped: int
    """Values of features beyond their bounds, in requests and in items put, since the service started."""
    clock_moved: NotRequired[Held]
    """While decisions wait longer than their attribution window, because the clock moved."""
    corrected: int
    """Corrections of outcomes, such as returns."""
    decisions: int
    drift: NotRequired[Drift]
    """Once there are decisions before the recent ones."""
    empty: int
    """Decisions whose page the policy left empty: no item was allowed, by the rules or by what the shopper bought, or all revenues were 0."""
    empty_share: float
    """The share of empty pages, an exponential average over about the last 256 decisions."""
    expired: int
    """Decisions without an outcome in time, which count as the outside option."""
    expired_early: int
    """Decisions that left memory before the end of their attribution window; the policy learns nothing from them."""
    exploration_share: float
    """Share of the decisions whose set was drawn uniformly."""
    fell: NotRequired[Interval]
    """What the policy earned a decision in the last four whole weeks without open decisions, late outcomes and corrections left out, as a multiple of what it earned in the twelve weeks before, or in fewer if it is younger: only while that is certainly below 0.9."""
    forgotten: int
    """Rounds that were lost because the learner's saved state could not be read."""
    gains: list[Gain]
    """What the placement earns more than what it is compared with; empty without a comparison. The gains over chance and baseline are left out once a fiftieth of the decisions left memory before an outcome."""
    guard: Guard
    """What the placement earns, against what it should."""
    items: NotRequired[int]
    """Items of the catalogue that the placement uses."""
    lag_rounds: int
    """Outcomes that the learner has not processed yet."""
    late: int
    """Outcomes reported too late to be learned: after the attribution window, or after the decision had left memory. Their revenue counts."""
    learned: int
    """Rounds that the learner has learned from; a sale waits until it is known which pages of the same time sold nothing."""
    memory_bytes: int
    """Bytes of remembered decisions."""
    memory_seconds: NotRequired[float]
    """How long an open decision stays in memory at the rate of the minute before the last decision; it should be longer than the attribution window. Left out while the rate is not known."""
    mode: str
    open: int
    """Decisions that wait for an outcome."""
    outcomes: int
    """Outcomes reported in time."""
    outliers: NotRequired[Outliers]
    """Feature values that the learner ignored as outliers; left out if there are none, and for learners that take any value."""
    placement: str
    policy_entry: int
    """The last entry of the log that the policy has learned from."""
    problem: NotRequired[str]
    """The last problem of the learner."""
    relearning: NotRequired[Relearning]
    """While a second learner learns from the log."""
    remembered_since: NotRequired[str]
    """When the oldest decision was made that has ended and is still in memory and in the log. Late outcomes and corrections of forgotten decisions get 404; more memory and a longer retention remember longer. Left out while no decision is forgotten."""
    reserved_bytes: int
    """Bytes that the service reserves for the placement and its learner."""
    shadow: Comparison
    shoppers: NotRequired[ShopperStats]
    """What the placement remembers of its shoppers; left out without shopper_history."""
    skipped: int
    """Rounds that the learner refused, on which it panicked, that came after it broke, or for which no sale was reported during an alarm about missing sales."""
    stale: int
    """Rounds decided by an earlier learner of the placement."""
    unlearned: int
    """Outcomes and expiries that the learner did not learn from, because its queue was full."""
    unsound: bool
    """Whether the policy predicted NaN or an infinity, or was certain of something that did not happen."""
    versions: list[int]
    """Kept versions, to roll back to."""
    withdrawn: int
    """Deferred decisions that were not activated in time."""


class Taken(TypedDict):
    position: int
    """On the page, from 1 on."""
    quantity: int
    """Units that were taken."""
    value: float
    """What all units earned together."""


class Totals(TypedDict):
    purchases: int
    """Rounds in which something was taken."""
    revenue: float
    revenue_squares: float
    """Σ revenue²."""
    rounds: int


class Trial(TypedDict):
    answer: Answer
    """Its decision_id is that of the request, or empty."""
    explanation: Explanation


class Unmet(TypedDict):
    min: int
    """The bound."""
    on: NotRequired[str]
    """Of a limit, the group, or the number of the request's limit; of an include, the item that the placement excludes."""
    reached: int
    """The most items that a page could show."""
    rule: Literal["include", "limit", "min_size"]


class Variant(TypedDict):
    name: str
    """Of letters, digits, '.', '_', '-' and ':'; not holdout."""
    policy: NotRequired[dict[str, Any]]
    """Of a learner of its own, with its settings; if left out, the placement's policy and learner."""
    share: float
    """Of the units in the experiment, in steps of 0.0001."""
    show: Literal["policy", "baseline", "uniform"]
    """Policy: what a policy chooses; baseline: what the caller shows by itself; uniform: a set drawn uniformly, or, under a capacity or limits whose groups cross, the set of most random gains, which has no known propensity."""


class VariantMetric(TypedDict):
    difference: NotRequired[Interval]
    """Above the control's, per decision; left out of the control, and before there are decisions of both."""
    mean: Interval
    """Per decision; each interval by itself holds at all times with 95%."""
    variant: str
    worse: bool
    """Whether it is surely worse than the control's."""


class VariantReport(TypedDict):
    decisions_made: int
    """Decisions, with those that wait for an outcome."""
    deferred: NotRequired[int]
    """Shoppers whose first decision was deferred, and counts; left out if 0."""
    difference: NotRequired[Interval]
    """Revenue a decision above the control's. These intervals and those of pairs all hold together, at all times, with 95%, if no visit earns more than its page's most expensive item or than earlier visits. Left out of the control, and before there are decisions of both."""
    expired_early: NotRequired[int]
    """Decisions that left memory before the end of their attribution window, which do not count; left out if 0."""
    fallback_decisions: NotRequired[int]
    """Decisions that showed the caller's baseline in place of the placement's policy, during an alarm."""
    late_revenue: float
    """Revenue of late outcomes, and of corrections of decisions that counted already, since the experiment began; also what earlier corrections take below 0, or above the outcome and the most expensive item. No other number of the report includes it, but the verdict considers it."""
    latency: NotRequired[Latency]
    """How long the answering process took for the variant's decisions since it started; left out of past experiments."""
    learner: NotRequired[LearnerReport]
    """Of the policy."""
    mean: Interval
    """Revenue a decision; each interval by itself holds at all times with 95%."""
    name: str
    seen: NotRequired[int]
    """Shoppers whose deferred first decision was seen: it was activated or got an outcome in time."""
    seen_less_than: NotRequired[str]
    """The variant that is surely seen more often, by an estimated fiftieth of its share of seen decisions or more: do not trust the differences. If there are several, the one with the largest difference."""
    share: float
    """Of the units in the experiment."""
    shoppers: int
    """Units that these decisions were made for, estimated from hashes: to 1% up to five million."""
    show: Literal["policy", "baseline", "uniform"]
    silence: NotRequired[int]
    """Decisions in the longest row without a sale, while other variants sold, if it is longer than usual sales allow: the sales were probably not reported. A row that has ended is left out below a fiftieth of the decisions that count."""
    totals: Totals
    """The decisions that count; revenue and squares are net of corrections until then; purchases are as reported."""
    without_sale: int
    """Latest decisions in a row without a sale, while other variants sold."""
    worth: NotRequired[float]
    """Value of a sale divided by the declared revenue of what was taken, the geometric mean; left out before there are 32, or more if the values vary much."""


class Verdict(TypedDict):
    gain: NotRequired[float]
    """Estimated gain of the variant to ship over the control, in revenue a decision."""
    reason: str
    result: Literal["ship", "weigh", "tie", "stop", "continue"]
    tied: NotRequired[list[str]]
    """In a tie: the variants that surely gain and cannot be told apart, the largest estimate first."""
    untrusted: NotRequired[bool]
    """Whether it is stop because the differences may compare the wrong decisions: find the cause that the reason names. Left out if false."""
    variant: NotRequired[str]
    """The variant to ship or to weigh. In a tie: the one that shows the placement's own policy, which wins a tie; left out if no tied variant does."""


class Version(TypedDict):
    automatic: bool
    """Whether the clock kept it; such versions are dropped before others."""
    config: NotRequired[Placement]
    """The configuration that a roll back brings back; left out if the present one stays."""
    learned: NotRequired[int]
    """Rounds that the learner had learned; left out while it is behind."""
    mean_revenue_since: NotRequired[float]
    """What they have earned, per decision."""
    note: NotRequired[str]
    """Why it was kept."""
    other_learner: bool
    """Whether it is of a learner that decided before, whose configuration a roll back brings back."""
    policy: dict[str, Any]
    """Of its configuration."""
    rounds_since: int
    """Decisions of the placement that have ended since."""
    time: str
    """When it was kept."""
    version: int
    """The last entry of the log that the learner was given."""
    warnings: NotRequired[list[str]]
    """What a roll back to this version would change for your callers or end now: fields that requests must then have, the comparison of a hold-out, and a comparison that memory is too small for."""


class VersionList(TypedDict):
    versions: list[Version]


class Message(NamedTuple):
    """An entry of the log, as events sends it."""

    entry: int
    kind: str
    data: Event


class Routes:
    """A method for each route. Keyword arguments are the members of the body and, if it is listed, a parameter."""

    def _call(self, method: str, path: str, query: dict[str, Any], headers: dict[str, Any], body: Any = None, wanted: str = "application/json") -> Any:
        raise NotImplementedError

    def _events(self, path: str, query: dict[str, Any], headers: dict[str, Any]) -> Iterator[Message]:
        raise NotImplementedError

    def _lines(self, path: str, query: dict[str, Any], headers: dict[str, Any]) -> Iterator[Any]:
        raise NotImplementedError

    def activate(self, name: str, id: str, /) -> None:
        """Report that what a deferred decision offered was shown. From then on its outcome is waited for. Its outcome activates it too."""
        self._call("POST", f"/v1/placements/{_part(name)}/decisions/{_part(id)}/activate", {}, {})

    def clear_alarm(self, name: str, /, *, learn: Parameter = None) -> None:
        """Clear the alarm of a placement's guard: the policy decides again, and the guard begins again. A policy that has paused learns from the log what it has missed."""
        self._call("DELETE", f"/v1/placements/{_part(name)}/alarm", {"learn": learn}, {})

    def correct(self, name: str, id: str, /, **body: Unpack[Correction]) -> None:
        """Correct what a decision has earned after its outcome was reported: add a value to what an item has earned, negative for a return, or withdraw its sale. An item of the page that was bought later counts as taken from then on. Sending a correction again under its id changes nothing. The policy does not learn from corrections. 403 with a public key."""
        self._call("POST", f"/v1/placements/{_part(name)}/decisions/{_part(id)}/corrections", {}, {}, body)

    def decide(self, name: str, /, **body: Unpack[DecideRequest]) -> Answer:
        """Decide which items to show. Repeating a request with the same decision_id returns the same answer, with the status 200. With a public key a request must not set revenues, its filter must not read revenue, seen or bought, and the answer leaves out estimates: choice_probability, outside_probability and expected_revenue are null."""
        answer: Answer = self._call("POST", f"/v1/placements/{_part(name)}/decisions", {}, {}, body)
        return answer

    def delete_item(self, name: str, item: str, /) -> None:
        """Delete an item from the placement's catalogue."""
        self._call("DELETE", f"/v1/placements/{_part(name)}/items/{_part(item)}", {}, {})

    def delete_items(self, name: str, /, **body: Unpack[ItemIDs]) -> ItemsChanged:
        """Delete items from the placement's catalogue. Items that it does not have are named in the answer."""
        answer: ItemsChanged = self._call("DELETE", f"/v1/placements/{_part(name)}/items", {}, {}, body)
        return answer

    def delete_placement(self, name: str, /, *, if_match: Parameter = None, if_none_match: Parameter = None) -> None:
        """Delete a placement and its decisions. 422 if others use its catalogue."""
        self._call("DELETE", f"/v1/placements/{_part(name)}", {}, {"If-Match": if_match, "If-None-Match": if_none_match})

    def erase_shopper(self, **body: Unpack[Erasure]) -> None:
        """Erase a shopper for good in all placements: the key is deleted that leads from the id to what was remembered, so that nobody can say whose the entries of the log, the snapshots and the backups are. A later visit is a new shopper's. Unknown shoppers get 204, too."""
        self._call("POST", "/v1/erasures", {}, {}, body)

    def events(self, *, placement: Parameter = None, last_event_id: Parameter = None) -> Iterator[Message]:
        """Events as server-sent events; their data has the schema Event, and their names are activated, alarm-cleared, category-values-added, chosen, clock-moved, corrected, evicted, expired, items-changed, items-declined, late-outcome, learner-adopted, learner-reset, learner-swapped, measured, offered, placement-deleted, placement-put, relearning-begun, relearning-ended, rolled-back, version-saved. The id of an event is its entry in the log; ids are missing that belong to other placements. With Last-Event-ID the events after it come first, from the log: 410 if they were removed. Otherwise they begin now."""
        return self._events("/v1/events", {"placement": placement}, {"Last-Event-ID": last_event_id})

    def experiment(self, name: str, /, *, entry: Parameter = None) -> Experiments:
        """The experiment of a placement, if one runs, and the last ones that have ended: what the variants earned, the differences with intervals that may be looked at any time, whether the units are divided rightly, and what the stop rule says. It begins, changes and ends with the configuration of the placement, by its mode experiment."""
        answer: Experiments = self._call("GET", f"/v1/placements/{_part(name)}/experiment", {"entry": entry}, {})
        return answer

    def experiment_report(self, name: str, experiment: str, /, *, entry: Parameter = None) -> str:
        """The page about an experiment that runs, or one of the last that ended, by the entry that began it: one file that prints well, for people without a desk."""
        answer: str = self._call("GET", f"/v1/placements/{_part(name)}/experiment/{_part(experiment)}/report", {"entry": entry}, {}, wanted="text/html")
        return answer

    def explain(self, name: str, id: str, /, *, search: Parameter = None, entry: Parameter = None) -> Explanation:
        """Why a decision that is remembered shows what it shows: utilities by feature, the best other set, what rules cost."""
        answer: Explanation = self._call("GET", f"/v1/placements/{_part(name)}/decisions/{_part(id)}/explanation", {"search": search, "entry": entry}, {})
        return answer

    def export(self, name: str, /) -> Iterator[Any]:
        """The decisions of a placement that are in the log, with their outcomes, a line of JSON each, as vitrine export writes them. A deleted placement of the same name does not count. Four exports run at a time, two of them with the same key; one more gets 503. An export ends if its reader stops reading for ten seconds."""
        return self._lines(f"/v1/placements/{_part(name)}/export", {}, {})

    def get_decision(self, name: str, id: str, /, *, search: Parameter = None, entry: Parameter = None) -> Decision:
        """A decision that is remembered, and its outcome."""
        answer: Decision = self._call("GET", f"/v1/placements/{_part(name)}/decisions/{_part(id)}", {"search": search, "entry": entry}, {})
        return answer

    def get_item(self, name: str, item: str, /, *, entry: Parameter = None) -> CatalogueItem:
        """An item of the catalogue that the placement uses."""
        answer: CatalogueItem = self._call("GET", f"/v1/placements/{_part(name)}/items/{_part(item)}", {"entry": entry}, {})
        return answer

    def get_placement(self, name: str, /, *, entry: Parameter = None, if_none_match: Parameter = None) -> Placement:
        """The configuration of a placement, with its defaults filled in, and its ETag."""
        answer: Placement = self._call("GET", f"/v1/placements/{_part(name)}", {"entry": entry}, {"If-None-Match": if_none_match})
        return answer

    def get_session(self) -> Session:
        """Who a page of the desk is signed in as: its key's name, scopes and placements. Nobody is no error."""
        answer: Session = self._call("GET", "/v1/session", {}, {})
        return answer

    def history(self, name: str, /, *, entry: Parameter = None) -> History:
        """Who changed what of a placement and when, from the log, and the alarms of its guard."""
        answer: History = self._call("GET", f"/v1/placements/{_part(name)}/history", {"entry": entry}, {})
        return answer

    def insight(self, name: str, /, *, entry: Parameter = None) -> Insight:
        """What a placement has sold, by item and by place, and what its policy has learned: utilities, effects of features, calibration. It is computed at most once in three seconds."""
        answer: Insight = self._call("GET", f"/v1/placements/{_part(name)}/insight", {"entry": entry}, {})
        return answer

    def keep_version(self, name: str, /, **body: Unpack[Note]) -> Kept:
        """Keep what the placement has learned as a version to roll back to. The answer has its number. If that state is a version already, the answer has its number: a version of the timer gets the note and stays, a version with a note keeps its own."""
        answer: Kept = self._call("POST", f"/v1/placements/{_part(name)}/versions", {}, {}, body)
        return answer

    def list_items(self, name: str, /, *, from_: Parameter = None, limit: Parameter = None, entry: Parameter = None) -> ItemPage:
        """A page of the catalogue that the placement uses."""
        answer: ItemPage = self._call("GET", f"/v1/placements/{_part(name)}/items", {"from": from_, "limit": limit, "entry": entry}, {})
        return answer

    def list_keys(self) -> KeyList:
        """The names, scopes and placements of the keys. Their tokens are stored nowhere."""
        answer: KeyList = self._call("GET", "/v1/keys", {}, {})
        return answer

    def list_placements(self, *, entry: Parameter = None) -> PlacementList:
        """The placements that the key is for, by name."""
        answer: PlacementList = self._call("GET", "/v1/placements", {"entry": entry}, {})
        return answer

    def list_policies(self, *, if_none_match: Parameter = None) -> PolicyList:
        """The policies that a placement may have, and the families of utilities, with their parameters."""
        answer: PolicyList = self._call("GET", "/v1/policies", {}, {"If-None-Match": if_none_match})
        return answer

    def list_versions(self, name: str, /, *, entry: Parameter = None) -> VersionList:
        """The versions of a placement to roll back to, the oldest first, with the warnings of a roll back."""
        answer: VersionList = self._call("GET", f"/v1/placements/{_part(name)}/versions", {"entry": entry}, {})
        return answer

    def measure(self, name: str, id: str, /, **body: Unpack[Measurements]) -> None:
        """Report what an experiment compares besides revenue, by the names of its metrics, before the outcome of the decision: 409 after it. Other names are ignored, so a caller may report them whether or not an experiment runs. 403 with a public key."""
        self._call("POST", f"/v1/placements/{_part(name)}/decisions/{_part(id)}/metrics", {}, {}, body)

    def model(self, name: str, /, *, entry: Parameter = None) -> LearnerState:
        """What the learner has learned, as it saves itself, with the configuration of a learner that reads it."""
        answer: LearnerState = self._call("GET", f"/v1/placements/{_part(name)}/model", {"entry": entry}, {})
        return answer

    def outcome(self, name: str, id: str, /, **body: Unpack[Outcome]) -> LateOutcome | None:
        """Report what became of a decision. The choice is the id of the item that was taken, or null for none. If several items were taken, or several units of one, choices take its place. Reporting the same again changes nothing. An outcome that comes after the decision has ended gets 200: it is recorded and its revenue counts, but the policy does not learn from it. That works for as long as the placement remembers the decision, which depends on the placement's memory; later it is 404. With a public key choices must not set values, nor quantities above 20."""
        answer: LateOutcome | None = self._call("POST", f"/v1/placements/{_part(name)}/decisions/{_part(id)}/outcome", {}, {}, body)
        return answer

    def overview(self, *, contains: Parameter = None, name: Parameter = None, from_: Parameter = None, limit: Parameter = None, seconds: Parameter = None, points: Parameter = None, entry: Parameter = None) -> Overview:
        """A page of the placements that the key is for, those in trouble first and then by name: how they are, what they earn and did over time."""
        answer: Overview = self._call("GET", "/v1/overview", {"contains": contains, "name": name, "from": from_, "limit": limit, "seconds": seconds, "points": points, "entry": entry}, {})
        return answer

    def patch_items(self, name: str, /, **body: Unpack[ItemList]) -> ItemsChanged:
        """Change some fields of items, such as prices. Features, attributes and the members of a payload are merged by name, and null removes one. Null gives groups, available, valid_from, valid_until and a whole payload their defaults: valid_until no end, for example. To return revenue or space to the default, send 1. Items that the catalogue does not have are named in the answer."""
        answer: ItemsChanged = self._call("PATCH", f"/v1/placements/{_part(name)}/items", {}, {}, body)
        return answer

    def personalizer_activate(self, version: str, event: str, /) -> None:
        """Azure Personalizer's Activate."""
        self._call("POST", f"/personalizer/{_part(version)}/events/{_part(event)}/activate", {}, {})

    def personalizer_activate_slots(self, version: str, event: str, /) -> None:
        """Azure Personalizer's multi-slot Activate."""
        self._call("POST", f"/personalizer/{_part(version)}/multislot/events/{_part(event)}/activate", {}, {})

    def personalizer_get_service(self, version: str, /) -> Service:
        """Azure Personalizer's service configuration."""
        answer: Service = self._call("GET", f"/personalizer/{_part(version)}/configurations/service", {}, {})
        return answer

    def personalizer_model_properties(self, version: str, /) -> Model:
        """Azure Personalizer's properties of the model."""
        answer: Model = self._call("GET", f"/personalizer/{_part(version)}/model/properties", {}, {})
        return answer

    def personalizer_put_service(self, version: str, /, **body: Unpack[ServiceChange]) -> Service:
        """Azure Personalizer's change of the service configuration."""
        answer: Service = self._call("PUT", f"/personalizer/{_part(version)}/configurations/service", {}, {}, body)
        return answer

    def personalizer_rank(self, version: str, /, **body: Unpack[Rank]) -> Ranked:
        """Azure Personalizer's Rank."""
        answer: Ranked = self._call("POST", f"/personalizer/{_part(version)}/rank", {}, {}, body)
        return answer

    def personalizer_rank_slots(self, version: str, /, **body: Unpack[SlotsRank]) -> SlotsRanked:
        """Azure Personalizer's multi-slot Rank."""
        answer: SlotsRanked = self._call("POST", f"/personalizer/{_part(version)}/multislot/rank", {}, {}, body)
        return answer

    def personalizer_reset_model(self, version: str, /) -> None:
        """Azure Personalizer's reset of the model."""
        self._call("DELETE", f"/personalizer/{_part(version)}/model", {}, {})

    def personalizer_reward(self, version: str, event: str, /, **body: Unpack[EventReward]) -> None:
        """Azure Personalizer's Reward."""
        self._call("POST", f"/personalizer/{_part(version)}/events/{_part(event)}/reward", {}, {}, body)

    def personalizer_reward_slots(self, version: str, event: str, /, **body: Unpack[SlotRewards]) -> None:
        """Azure Personalizer's multi-slot Reward."""
        self._call("POST", f"/personalizer/{_part(version)}/multislot/events/{_part(event)}/reward", {}, {}, body)

    def placement_personalizer_activate(self, name: str, version: str, event: str, /) -> None:
        """Azure Personalizer's Activate, for a placement."""
        self._call("POST", f"/v1/placements/{_part(name)}/personalizer/{_part(version)}/events/{_part(event)}/activate", {}, {})

    def placement_personalizer_activate_slots(self, name: str, version: str, event: str, /) -> None:
        """Azure Personalizer's multi-slot Activate, for a placement."""
        self._call("POST", f"/v1/placements/{_part(name)}/personalizer/{_part(version)}/multislot/events/{_part(event)}/activate", {}, {})

    def placement_personalizer_get_service(self, name: str, version: str, /) -> Service:
        """Azure Personalizer's service configuration, for a placement."""
        answer: Service = self._call("GET", f"/v1/placements/{_part(name)}/personalizer/{_part(version)}/configurations/service", {}, {})
        return answer

    def placement_personalizer_model_properties(self, name: str, version: str, /) -> Model:
        """Azure Personalizer's properties of the model, for a placement."""
        answer: Model = self._call("GET", f"/v1/placements/{_part(name)}/personalizer/{_part(version)}/model/properties", {}, {})
        return answer

    def placement_personalizer_put_service(self, name: str, version: str, /, **body: Unpack[ServiceChange]) -> Service:
        """Azure Personalizer's change of the service configuration, for a placement."""
        answer: Service = self._call("PUT", f"/v1/placements/{_part(name)}/personalizer/{_part(version)}/configurations/service", {}, {}, body)
        return answer

    def placement_personalizer_rank(self, name: str, version: str, /, **body: Unpack[Rank]) -> Ranked:
        """Azure Personalizer's Rank, for a placement."""
        answer: Ranked = self._call("POST", f"/v1/placements/{_part(name)}/personalizer/{_part(version)}/rank", {}, {}, body)
        return answer

    def placement_personalizer_rank_slots(self, name: str, version: str, /, **body: Unpack[SlotsRank]) -> SlotsRanked:
        """Azure Personalizer's multi-slot Rank, for a placement."""
        answer: SlotsRanked = self._call("POST", f"/v1/placements/{_part(name)}/personalizer/{_part(version)}/multislot/rank", {}, {}, body)
        return answer

    def placement_personalizer_reset_model(self, name: str, version: str, /) -> None:
        """Azure Personalizer's reset of the model, for a placement."""
        self._call("DELETE", f"/v1/placements/{_part(name)}/personalizer/{_part(version)}/model", {}, {})

    def placement_personalizer_reward(self, name: str, version: str, event: str, /, **body: Unpack[EventReward]) -> None:
        """Azure Personalizer's Reward, for a placement."""
        self._call("POST", f"/v1/placements/{_part(name)}/personalizer/{_part(version)}/events/{_part(event)}/reward", {}, {}, body)

    def placement_personalizer_reward_slots(self, name: str, version: str, event: str, /, **body: Unpack[SlotRewards]) -> None:
        """Azure Personalizer's multi-slot Reward, for a placement."""
        self._call("POST", f"/v1/placements/{_part(name)}/personalizer/{_part(version)}/multislot/events/{_part(event)}/reward", {}, {}, body)

    def plan_experiment(self, name: str, /, *, shares: Parameter = None, gains: Parameter = None, entry: Parameter = None) -> ExperimentPlan:
        """How long an experiment would take to show a gain, by the revenue that the placement had in the last four weeks. An experiment that runs longer shows smaller gains: for half the gain it takes four times as long."""
        answer: ExperimentPlan = self._call("GET", f"/v1/placements/{_part(name)}/experiment/plan", {"shares": shares, "gains": gains, "entry": entry}, {})
        return answer

    def preview_placement(self, name: str, /, *, if_match: Parameter = None, if_none_match: Parameter = None, **body: Unpack[Placement]) -> Preview:
        """What a PUT of this configuration would do: its defaults, and what becomes of the learner. Nothing changes."""
        answer: Preview = self._call("POST", f"/v1/placements/{_part(name)}/preview", {}, {"If-Match": if_match, "If-None-Match": if_none_match}, body)
        return answer

    def put_items(self, name: str, /, **body: Unpack[ItemList]) -> ItemsChanged:
        """Put items into the placement's catalogue. Items with an id that it has are replaced, the others stay. A body of up to 256 KiB becomes durable as a whole; a larger one in parts, in its order."""
        answer: ItemsChanged = self._call("PUT", f"/v1/placements/{_part(name)}/items", {}, {}, body)
        return answer

    def put_placement(self, name: str, /, *, reset: Parameter = None, relearn: Parameter = None, if_match: Parameter = None, if_none_match: Parameter = None, **body: Unpack[Placement]) -> Placement:
        """Create or change a placement. A change of its features, size, policy, horizon or seed would begin its learner again: 409 with the problem loss, which says what would be lost, unless the query has reset=true or relearn=log. The learner before is then kept as a version. The ETag of the answer is for If-Match. A configuration that the placement has already is no change and gets 200, even if If-Match or If-None-Match does not hold, so that a PUT may be repeated."""
        answer: Placement = self._call("PUT", f"/v1/placements/{_part(name)}", {"reset": reset, "relearn": relearn}, {"If-Match": if_match, "If-None-Match": if_none_match}, body)
        return answer

    def rewards(self, name: str, id: str, /, **body: Unpack[Rewards]) -> None:
        """Report what became of a decision by numbers: what items shown have earned, as shares of a choice. They become a choice of at most one item by chance, which is the rewards in expectation. If they sum to more than 1, they are divided by the sum: report several sales as an outcome with choices. The decision stays open for items without a reward. The first reward of an item counts; later ones, and rewards after the attribution window, get 204 and change nothing."""
        self._call("POST", f"/v1/placements/{_part(name)}/decisions/{_part(id)}/rewards", {}, {}, body)

    def roll_back(self, name: str, /, *, if_match: Parameter = None, if_none_match: Parameter = None, **body: Unpack[Rollback]) -> None:
        """Return a placement to one of its versions: it forgets what it has learned since, and gets the configuration of the version's learner if that is another one. The state before is kept as a version. The ETag changes only if the configuration does: If-Match doesn't notice another roll back."""
        self._call("POST", f"/v1/placements/{_part(name)}/rollback", {}, {"If-Match": if_match, "If-None-Match": if_none_match}, body)

    def series(self, name: str, /, *, seconds: Parameter = None, points: Parameter = None, entry: Parameter = None) -> Series:
        """What a placement did over time: decisions, revenue a decision, and how much more the policy has earned than chance or the baseline. The service sums seconds, which become longer as they age: at most a thirty-second of their age."""
        answer: Series = self._call("GET", f"/v1/placements/{_part(name)}/series", {"seconds": seconds, "points": points, "entry": entry}, {})
        return answer

    def shelf(self, name: str, /, *, contains: Parameter = None, only: Parameter = None, sort: Parameter = None, id: Sequence[str] | None = None, from_: Parameter = None, limit: Parameter = None, entry: Parameter = None) -> Shelf:
        """A page of the items that the placement may show, with what they have sold and why they are not shown: those of its catalogue, and then others that were shown."""
        answer: Shelf = self._call("GET", f"/v1/placements/{_part(name)}/shelf", {"contains": contains, "only": only, "sort": sort, "id": id, "from": from_, "limit": limit, "entry": entry}, {})
        return answer

    def sign_in(self, **body: Unpack[SignIn]) -> Session:
        """Begin a session of the desk: the cookie of the answer stands for the key, in requests of the service's own pages, for twelve hours or until the key is removed. Other callers send the key with each request."""
        answer: Session = self._call("POST", "/v1/session", {}, {}, body)
        return answer

    def sign_out(self) -> None:
        """End the session of the request's cookie."""
        self._call("DELETE", "/v1/session", {}, {})

    def stats(self, name: str, /, *, entry: Parameter = None) -> Stats:
        """The counters of a placement: decisions, outcomes, learning, calibration, revenue."""
        answer: Stats = self._call("GET", f"/v1/placements/{_part(name)}/stats", {"entry": entry}, {})
        return answer

    def try_request(self, name: str, /, *, entry: Parameter = None, **body: Unpack[DecideRequest]) -> Trial:
        """The answer that a request would get now, and why. Nothing is recorded and nothing is learned. In the mode shadow a request without a baseline gets the policy's set."""
        answer: Trial = self._call("POST", f"/v1/placements/{_part(name)}/try", {"entry": entry}, {}, body)
        return answer


class AsyncRoutes:
    """A method for each route. Keyword arguments are the members of the body and, if it is listed, a parameter."""

    async def _call(self, method: str, path: str, query: dict[str, Any], headers: dict[str, Any], body: Any = None, wanted: str = "application/json") -> Any:
        raise NotImplementedError

    def _events(self, path: str, query: dict[str, Any], headers: dict[str, Any]) -> AsyncIterator[Message]:
        raise NotImplementedError

    def _lines(self, path: str, query: dict[str, Any], headers: dict[str, Any]) -> AsyncIterator[Any]:
        raise NotImplementedError

    async def activate(self, name: str, id: str, /) -> None:
        """Report that what a deferred decision offered was shown. From then on its outcome is waited for. Its outcome activates it too."""
        await self._call("POST", f"/v1/placements/{_part(name)}/decisions/{_part(id)}/activate", {}, {})

    async def clear_alarm(self, name: str, /, *, learn: Parameter = None) -> None:
        """Clear the alarm of a placement's guard: the policy decides again, and the guard begins again. A policy that has paused learns from the log what it has missed."""
        await self._call("DELETE", f"/v1/placements/{_part(name)}/alarm", {"learn": learn}, {})

    async def correct(self, name: str, id: str, /, **body: Unpack[Correction]) -> None:
        """Correct what a decision has earned after its outcome was reported: add a value to what an item has earned, negative for a return, or withdraw its sale. An item of the page that was bought later counts as taken from then on. Sending a correction again under its id changes nothing. The policy does not learn from corrections. 403 with a public key."""
        await self._call("POST", f"/v1/placements/{_part(name)}/decisions/{_part(id)}/corrections", {}, {}, body)

    async def decide(self, name: str, /, **body: Unpack[DecideRequest]) -> Answer:
        """Decide which items to show. Repeating a request with the same decision_id returns the same answer, with the status 200. With a public key a request must not set revenues, its filter must not read revenue, seen or bought, and the answer leaves out estimates: choice_probability, outside_probability and expected_revenue are null."""
        answer: Answer = await self._call("POST", f"/v1/placements/{_part(name)}/decisions", {}, {}, body)
        return answer

    async def delete_item(self, name: str, item: str, /) -> None:
        """Delete an item from the placement's catalogue."""
        await self._call("DELETE", f"/v1/placements/{_part(name)}/items/{_part(item)}", {}, {})

    async def delete_items(self, name: str, /, **body: Unpack[ItemIDs]) -> ItemsChanged:
        """Delete items from the placement's catalogue. Items that it does not have are named in the answer."""
        answer: ItemsChanged = await self._call("DELETE", f"/v1/placements/{_part(name)}/items", {}, {}, body)
        return answer

    async def delete_placement(self, name: str, /, *, if_match: Parameter = None, if_none_match: Parameter = None) -> None:
        """Delete a placement and its decisions. 422 if others use its catalogue."""
        await self._call("DELETE", f"/v1/placements/{_part(name)}", {}, {"If-Match": if_match, "If-None-Match": if_none_match})

    async def erase_shopper(self, **body: Unpack[Erasure]) -> None:
        """Erase a shopper for good in all placements: the key is deleted that leads from the id to what was remembered, so that nobody can say whose the entries of the log, the snapshots and the backups are. A later visit is a new shopper's. Unknown shoppers get 204, too."""
        await self._call("POST", "/v1/erasures", {}, {}, body)

    def events(self, *, placement: Parameter = None, last_event_id: Parameter = None) -> AsyncIterator[Message]:
        """Events as server-sent events; their data has the schema Event, and their names are activated, alarm-cleared, category-values-added, chosen, clock-moved, corrected, evicted, expired, items-changed, items-declined, late-outcome, learner-adopted, learner-reset, learner-swapped, measured, offered, placement-deleted, placement-put, relearning-begun, relearning-ended, rolled-back, version-saved. The id of an event is its entry in the log; ids are missing that belong to other placements. With Last-Event-ID the events after it come first, from the log: 410 if they were removed. Otherwise they begin now."""
        return self._events("/v1/events", {"placement": placement}, {"Last-Event-ID": last_event_id})

    async def experiment(self, name: str, /, *, entry: Parameter = None) -> Experiments:
        """The experiment of a placement, if one runs, and the last ones that have ended: what the variants earned, the differences with intervals that may be looked at any time, whether the units are divided rightly, and what the stop rule says. It begins, changes and ends with the configuration of the placement, by its mode experiment."""
        answer: Experiments = await self._call("GET", f"/v1/placements/{_part(name)}/experiment", {"entry": entry}, {})
        return answer

    async def experiment_report(self, name: str, experiment: str, /, *, entry: Parameter = None) -> str:
        """The page about an experiment that runs, or one of the last that ended, by the entry that began it: one file that prints well, for people without a desk."""
        answer: str = await self._call("GET", f"/v1/placements/{_part(name)}/experiment/{_part(experiment)}/report", {"entry": entry}, {}, wanted="text/html")
        return answer

    async def explain(self, name: str, id: str, /, *, search: Parameter = None, entry: Parameter = None) -> Explanation:
        """Why a decision that is remembered shows what it shows: utilities by feature, the best other set, what rules cost."""
        answer: Explanation = await self._call("GET", f"/v1/placements/{_part(name)}/decisions/{_part(id)}/explanation", {"search": search, "entry": entry}, {})
        return answer

    def export(self, name: str, /) -> AsyncIterator[Any]:
        """The decisions of a placement that are in the log, with their outcomes, a line of JSON each, as vitrine export writes them. A deleted placement of the same name does not count. Four exports run at a time, two of them with the same key; one more gets 503. An export ends if its reader stops reading for ten seconds."""
        return self._lines(f"/v1/placements/{_part(name)}/export", {}, {})

    async def get_decision(self, name: str, id: str, /, *, search: Parameter = None, entry: Parameter = None) -> Decision:
        """A decision that is remembered, and its outcome."""
        answer: Decision = await self._call("GET", f"/v1/placements/{_part(name)}/decisions/{_part(id)}", {"search": search, "entry": entry}, {})
        return answer

    async def get_item(self, name: str, item: str, /, *, entry: Parameter = None) -> CatalogueItem:
        """An item of the catalogue that the placement uses."""
        answer: CatalogueItem = await self._call("GET", f"/v1/placements/{_part(name)}/items/{_part(item)}", {"entry": entry}, {})
        return answer

    async def get_placement(self, name: str, /, *, entry: Parameter = None, if_none_match: Parameter = None) -> Placement:
        """The configuration of a placement, with its defaults filled in, and its ETag."""
        answer: Placement = await self._call("GET", f"/v1/placements/{_part(name)}", {"entry": entry}, {"If-None-Match": if_none_match})
        return answer

    async def get_session(self) -> Session:
        """Who a page of the desk is signed in as: its key's name, scopes and placements. Nobody is no error."""
        answer: Session = await self._call("GET", "/v1/session", {}, {})
        return answer

    async def history(self, name: str, /, *, entry: Parameter = None) -> History:
        """Who changed what of a placement and when, from the log, and the alarms of its guard."""
        answer: History = await self._call("GET", f"/v1/placements/{_part(name)}/history", {"entry": entry}, {})
        return answer

    async def insight(self, name: str, /, *, entry: Parameter = None) -> Insight:
        """What a placement has sold, by item and by place, and what its policy has learned: utilities, effects of features, calibration. It is computed at most once in three seconds."""
        answer: Insight = await self._call("GET", f"/v1/placements/{_part(name)}/insight", {"entry": entry}, {})
        return answer

    async def keep_version(self, name: str, /, **body: Unpack[Note]) -> Kept:
        """Keep what the placement has learned as a version to roll back to. The answer has its number. If that state is a version already, the answer has its number: a version of the timer gets the note and stays, a version with a note keeps its own."""
        answer: Kept = await self._call("POST", f"/v1/placements/{_part(name)}/versions", {}, {}, body)
        return answer

    async def list_items(self, name: str, /, *, from_: Parameter = None, limit: Parameter = None, entry: Parameter = None) -> ItemPage:
        """A page of the catalogue that the placement uses."""
        answer: ItemPage = await self._call("GET", f"/v1/placements/{_part(name)}/items", {"from": from_, "limit": limit, "entry": entry}, {})
        return answer

    async def list_keys(self) -> KeyList:
        """The names, scopes and placements of the keys. Their tokens are stored nowhere."""
        answer: KeyList = await self._call("GET", "/v1/keys", {}, {})
        return answer

    async def list_placements(self, *, entry: Parameter = None) -> PlacementList:
        """The placements that the key is for, by name."""
        answer: PlacementList = await self._call("GET", "/v1/placements", {"entry": entry}, {})
        return answer

    async def list_policies(self, *, if_none_match: Parameter = None) -> PolicyList:
        """The policies that a placement may have, and the families of utilities, with their parameters."""
        answer: PolicyList = await self._call("GET", "/v1/policies", {}, {"If-None-Match": if_none_match})
        return answer

    async def list_versions(self, name: str, /, *, entry: Parameter = None) -> VersionList:
        """The versions of a placement to roll back to, the oldest first, with the warnings of a roll back."""
        answer: VersionList = await self._call("GET", f"/v1/placements/{_part(name)}/versions", {"entry": entry}, {})
        return answer

    async def measure(self, name: str, id: str, /, **body: Unpack[Measurements]) -> None:
        """Report what an experiment compares besides revenue, by the names of its metrics, before the outcome of the decision: 409 after it. Other names are ignored, so a caller may report them whether or not an experiment runs. 403 with a public key."""
        await self._call("POST", f"/v1/placements/{_part(name)}/decisions/{_part(id)}/metrics", {}, {}, body)

    async def model(self, name: str, /, *, entry: Parameter = None) -> LearnerState:
        """What the learner has learned, as it saves itself, with the configuration of a learner that reads it."""
        answer: LearnerState = await self._call("GET", f"/v1/placements/{_part(name)}/model", {"entry": entry}, {})
        return answer

    async def outcome(self, name: str, id: str, /, **body: Unpack[Outcome]) -> LateOutcome | None:
        """Report what became of a decision. The choice is the id of the item that was taken, or null for none. If several items were taken, or several units of one, choices take its place. Reporting the same again changes nothing. An outcome that comes after the decision has ended gets 200: it is recorded and its revenue counts, but the policy does not learn from it. That works for as long as the placement remembers the decision, which depends on the placement's memory; later it is 404. With a public key choices must not set values, nor quantities above 20."""
        answer: LateOutcome | None = await self._call("POST", f"/v1/placements/{_part(name)}/decisions/{_part(id)}/outcome", {}, {}, body)
        return answer

    async def overview(self, *, contains: Parameter = None, name: Parameter = None, from_: Parameter = None, limit: Parameter = None, seconds: Parameter = None, points: Parameter = None, entry: Parameter = None) -> Overview:
        """A page of the placements that the key is for, those in trouble first and then by name: how they are, what they earn and did over time."""
        answer: Overview = await self._call("GET", "/v1/overview", {"contains": contains, "name": name, "from": from_, "limit": limit, "seconds": seconds, "points": points, "entry": entry}, {})
        return answer

    async def patch_items(self, name: str, /, **body: Unpack[ItemList]) -> ItemsChanged:
        """Change some fields of items, such as prices. Features, attributes and the members of a payload are merged by name, and null removes one. Null gives groups, available, valid_from, valid_until and a whole payload their defaults: valid_until no end, for example. To return revenue or space to the default, send 1. Items that the catalogue does not have are named in the answer."""
        answer: ItemsChanged = await self._call("PATCH", f"/v1/placements/{_part(name)}/items", {}, {}, body)
        return answer

    async def personalizer_activate(self, version: str, event: str, /) -> None:
        """Azure Personalizer's Activate."""
        await self._call("POST", f"/personalizer/{_part(version)}/events/{_part(event)}/activate", {}, {})

    async def personalizer_activate_slots(self, version: str, event: str, /) -> None:
        """Azure Personalizer's multi-slot Activate."""
        await self._call("POST", f"/personalizer/{_part(version)}/multislot/events/{_part(event)}/activate", {}, {})

    async def personalizer_get_service(self, version: str, /) -> Service:
        """Azure Personalizer's service configuration."""
        answer: Service = await self._call("GET", f"/personalizer/{_part(version)}/configurations/service", {}, {})
        return answer

    async def personalizer_model_properties(self, version: str, /) -> Model:
        """Azure Personalizer's properties of the model."""
        answer: Model = await self._call("GET", f"/personalizer/{_part(version)}/model/properties", {}, {})
        return answer

    async def personalizer_put_service(self, version: str, /, **body: Unpack[ServiceChange]) -> Service:
        """Azure Personalizer's change of the service configuration."""
        answer: Service = await self._call("PUT", f"/personalizer/{_part(version)}/configurations/service", {}, {}, body)
        return answer

    async def personalizer_rank(self, version: str, /, **body: Unpack[Rank]) -> Ranked:
        """Azure Personalizer's Rank."""
        answer: Ranked = await self._call("POST", f"/personalizer/{_part(version)}/rank", {}, {}, body)
        return answer

    async def personalizer_rank_slots(self, version: str, /, **body: Unpack[SlotsRank]) -> SlotsRanked:
        """Azure Personalizer's multi-slot Rank."""
        answer: SlotsRanked = await self._call("POST", f"/personalizer/{_part(version)}/multislot/rank", {}, {}, body)
        return answer

    async def personalizer_reset_model(self, version: str, /) -> None:
        """Azure Personalizer's reset of the model."""
        await self._call("DELETE", f"/personalizer/{_part(version)}/model", {}, {})

    async def personalizer_reward(self, version: str, event: str, /, **body: Unpack[EventReward]) -> None:
        """Azure Personalizer's Reward."""
        await self._call("POST", f"/personalizer/{_part(version)}/events/{_part(event)}/reward", {}, {}, body)

    async def personalizer_reward_slots(self, version: str, event: str, /, **body: Unpack[SlotRewards]) -> None:
        """Azure Personalizer's multi-slot Reward."""
        await self._call("POST", f"/personalizer/{_part(version)}/multislot/events/{_part(event)}/reward", {}, {}, body)

    async def placement_personalizer_activate(self, name: str, version: str, event: str, /) -> None:
        """Azure Personalizer's Activate, for a placement."""
        await self._call("POST", f"/v1/placements/{_part(name)}/personalizer/{_part(version)}/events/{_part(event)}/activate", {}, {})

    async def placement_personalizer_activate_slots(self, name: str, version: str, event: str, /) -> None:
        """Azure Personalizer's multi-slot Activate, for a placement."""
        await self._call("POST", f"/v1/placements/{_part(name)}/personalizer/{_part(version)}/multislot/events/{_part(event)}/activate", {}, {})

    async def placement_personalizer_get_service(self, name: str, version: str, /) -> Service:
        """Azure Personalizer's service configuration, for a placement."""
        answer: Service = await self._call("GET", f"/v1/placements/{_part(name)}/personalizer/{_part(version)}/configurations/service", {}, {})
        return answer

    async def placement_personalizer_model_properties(self, name: str, version: str, /) -> Model:
        """Azure Personalizer's properties of the model, for a placement."""
        answer: Model = await self._call("GET", f"/v1/placements/{_part(name)}/personalizer/{_part(version)}/model/properties", {}, {})
        return answer

    async def placement_personalizer_put_service(self, name: str, version: str, /, **body: Unpack[ServiceChange]) -> Service:
        """Azure Personalizer's change of the service configuration, for a placement."""
        answer: Service = await self._call("PUT", f"/v1/placements/{_part(name)}/personalizer/{_part(version)}/configurations/service", {}, {}, body)
        return answer

    async def placement_personalizer_rank(self, name: str, version: str, /, **body: Unpack[Rank]) -> Ranked:
        """Azure Personalizer's Rank, for a placement."""
        answer: Ranked = await self._call("POST", f"/v1/placements/{_part(name)}/personalizer/{_part(version)}/rank", {}, {}, body)
        return answer

    async def placement_personalizer_rank_slots(self, name: str, version: str, /, **body: Unpack[SlotsRank]) -> SlotsRanked:
        """Azure Personalizer's multi-slot Rank, for a placement."""
        answer: SlotsRanked = await self._call("POST", f"/v1/placements/{_part(name)}/personalizer/{_part(version)}/multislot/rank", {}, {}, body)
        return answer

    async def placement_personalizer_reset_model(self, name: str, version: str, /) -> None:
        """Azure Personalizer's reset of the model, for a placement."""
        await self._call("DELETE", f"/v1/placements/{_part(name)}/personalizer/{_part(version)}/model", {}, {})

    async def placement_personalizer_reward(self, name: str, version: str, event: str, /, **body: Unpack[EventReward]) -> None:
        """Azure Personalizer's Reward, for a placement."""
        await self._call("POST", f"/v1/placements/{_part(name)}/personalizer/{_part(version)}/events/{_part(event)}/reward", {}, {}, body)

    async def placement_personalizer_reward_slots(self, name: str, version: str, event: str, /, **body: Unpack[SlotRewards]) -> None:
        """Azure Personalizer's multi-slot Reward, for a placement."""
        await self._call("POST", f"/v1/placements/{_part(name)}/personalizer/{_part(version)}/multislot/events/{_part(event)}/reward", {}, {}, body)

    async def plan_experiment(self, name: str, /, *, shares: Parameter = None, gains: Parameter = None, entry: Parameter = None) -> ExperimentPlan:
        """How long an experiment would take to show a gain, by the revenue that the placement had in the last four weeks. An experiment that runs longer shows smaller gains: for half the gain it takes four times as long."""
        answer: ExperimentPlan = await self._call("GET", f"/v1/placements/{_part(name)}/experiment/plan", {"shares": shares, "gains": gains, "entry": entry}, {})
        return answer

    async def preview_placement(self, name: str, /, *, if_match: Parameter = None, if_none_match: Parameter = None, **body: Unpack[Placement]) -> Preview:
        """What a PUT of this configuration would do: its defaults, and what becomes of the learner. Nothing changes."""
        answer: Preview = await self._call("POST", f"/v1/placements/{_part(name)}/preview", {}, {"If-Match": if_match, "If-None-Match": if_none_match}, body)
        return answer

    async def put_items(self, name: str, /, **body: Unpack[ItemList]) -> ItemsChanged:
        """Put items into the placement's catalogue. Items with an id that it has are replaced, the others stay. A body of up to 256 KiB becomes durable as a whole; a larger one in parts, in its order."""
        answer: ItemsChanged = await self._call("PUT", f"/v1/placements/{_part(name)}/items", {}, {}, body)
        return answer

    async def put_placement(self, name: str, /, *, reset: Parameter = None, relearn: Parameter = None, if_match: Parameter = None, if_none_match: Parameter = None, **body: Unpack[Placement]) -> Placement:
        """Create or change a placement. A change of its features, size, policy, horizon or seed would begin its learner again: 409 with the problem loss, which says what would be lost, unless the query has reset=true or relearn=log. The learner before is then kept as a version. The ETag of the answer is for If-Match. A configuration that the placement has already is no change and gets 200, even if If-Match or If-None-Match does not hold, so that a PUT may be repeated."""
        answer: Placement = await self._call("PUT", f"/v1/placements/{_part(name)}", {"reset": reset, "relearn": relearn}, {"If-Match": if_match, "If-None-Match": if_none_match}, body)
        return answer

    async def rewards(self, name: str, id: str, /, **body: Unpack[Rewards]) -> None:
        """Report what became of a decision by numbers: what items shown have earned, as shares of a choice. They become a choice of at most one item by chance, which is the rewards in expectation. If they sum to more than 1, they are divided by the sum: report several sales as an outcome with choices. The decision stays open for items without a reward. The first reward of an item counts; later ones, and rewards after the attribution window, get 204 and change nothing."""
        await self._call("POST", f"/v1/placements/{_part(name)}/decisions/{_part(id)}/rewards", {}, {}, body)

    async def roll_back(self, name: str, /, *, if_match: Parameter = None, if_none_match: Parameter = None, **body: Unpack[Rollback]) -> None:
        """Return a placement to one of its versions: it forgets what it has learned since, and gets the configuration of the version's learner if that is another one. The state before is kept as a version. The ETag changes only if the configuration does: If-Match doesn't notice another roll back."""
        await self._call("POST", f"/v1/placements/{_part(name)}/rollback", {}, {"If-Match": if_match, "If-None-Match": if_none_match}, body)

    async def series(self, name: str, /, *, seconds: Parameter = None, points: Parameter = None, entry: Parameter = None) -> Series:
        """What a placement did over time: decisions, revenue a decision, and how much more the policy has earned than chance or the baseline. The service sums seconds, which become longer as they age: at most a thirty-second of their age."""
        answer: Series = await self._call("GET", f"/v1/placements/{_part(name)}/series", {"seconds": seconds, "points": points, "entry": entry}, {})
        return answer

    async def shelf(self, name: str, /, *, contains: Parameter = None, only: Parameter = None, sort: Parameter = None, id: Sequence[str] | None = None, from_: Parameter = None, limit: Parameter = None, entry: Parameter = None) -> Shelf:
        """A page of the items that the placement may show, with what they have sold and why they are not shown: those of its catalogue, and then others that were shown."""
        answer: Shelf = await self._call("GET", f"/v1/placements/{_part(name)}/shelf", {"contains": contains, "only": only, "sort": sort, "id": id, "from": from_, "limit": limit, "entry": entry}, {})
        return answer

    async def sign_in(self, **body: Unpack[SignIn]) -> Session:
        """Begin a session of the desk: the cookie of the answer stands for the key, in requests of the service's own pages, for twelve hours or until the key is removed. Other callers send the key with each request."""
        answer: Session = await self._call("POST", "/v1/session", {}, {}, body)
        return answer

    async def sign_out(self) -> None:
        """End the session of the request's cookie."""
        await self._call("DELETE", "/v1/session", {}, {})

    async def stats(self, name: str, /, *, entry: Parameter = None) -> Stats:
        """The counters of a placement: decisions, outcomes, learning, calibration, revenue."""
        answer: Stats = await self._call("GET", f"/v1/placements/{_part(name)}/stats", {"entry": entry}, {})
        return answer

    async def try_request(self, name: str, /, *, entry: Parameter = None, **body: Unpack[DecideRequest]) -> Trial:
        """The answer that a request would get now, and why. Nothing is recorded and nothing is learned. In the mode shadow a request without a baseline gets the policy's set."""
        answer: Trial = await self._call("POST", f"/v1/placements/{_part(name)}/try", {"entry": entry}, {}, body)
        return answer
