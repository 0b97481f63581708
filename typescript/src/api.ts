// The types and routes of the service: go test ./service/server -run TestPackages -rewrite.
//
// A type that the service answers with may contain more members in a later version.

export interface Action {
  /** Any features of the action. */
  features: readonly Record<string, unknown>[];
  id: string;
}

export interface Alarm {
  /** How unlikely it is: a placement that sells and earns as it should shows as bad a stretch with at most about this probability. Of no-sale, the probability of as many decisions in a row without a sale at the usual rate. */
  chance: number;
  check: "no-sale" | "sales" | "chance" | "baseline" | "first-week" | "predictions";
  detail: string;
  /** Of the log, at which the check failed. */
  entry: number;
  /** What is shown until the alarm is cleared; the policy's sets if left out. */
  fallback?: "baseline" | "version" | undefined;
  /** Of no-sale and sales: the entry of the first decision in doubt. */
  since_entry?: number | undefined;
  time: string;
  /** Of the fallback version; the present one if left out, because none was kept. */
  version?: number | undefined;
}

export interface Answer {
  /** In display order. */
  assortment: readonly Shown[];
  /** The last entry of the log that had changed the catalogue; left out if no candidate was from it. */
  catalogue_entry?: number | undefined;
  decision_id: string;
  /** R(S), from shoppers who take at most one unit. With baskets a page earns it times the mean number of units of those who take any. null if the policy has no estimate, and with a public key. */
  expected_revenue: number | null;
  /** The number of unknown and unavailable candidates. */
  missing?: number | undefined;
  /** P(0|S), that nothing is taken; null if the policy has no estimate, and with a public key. */
  outside_probability: number | null;
  /** The last entry of the log that the policy had learned from. */
  policy_entry: number;
  /** Π(S), the probability with which the set was chosen; null if it has no closed form. */
  propensity: number | null;
  /** Candidates that may not be shown now, the first 100. */
  unavailable?: readonly string[] | undefined;
  /** Candidates that the catalogue does not have, the first 100. */
  unknown?: readonly string[] | undefined;
  /** Rules of the request and lower bounds that the candidates and the other rules could not meet; the page has as many items as they allow. */
  unmet?: readonly Unmet[] | undefined;
  /** The variant of the experiment that the shopper is shown; holdout for a shopper who is held out. */
  variant?: string | undefined;
}

export interface Bin {
  /** Σ 1 − p(0|S). */
  predicted: number;
  purchases: number;
  rounds: number;
}

export interface Calibrated {
  high: number;
  low: number;
  /** The share of purchases. */
  observed: number;
  /** The mean predicted probability of a purchase. */
  predicted: number;
  rounds: number;
  /** Of the share, if the predictions are right. */
  standard_error: number;
}

export interface Calibration {
  /** Bin b has the decisions whose predicted probability of a purchase was in [b/10, (b+1)/10). */
  bins: readonly Bin[];
  /** Σ R(S). */
  predicted: number;
  /** Revenue earned; a page with several units taken counts as an average one of them, because Σ R(S) is for one shopper. */
  revenue: number;
}

export interface CatalogueItem {
  /** Numbers, strings and booleans by name, for filters and limits; the policy does not see them. */
  attributes?: Record<string, unknown> | undefined;
  /** Whether it may be shown; true by default. */
  available?: boolean | undefined;
  /** Numbers, strings and objects by the features' names. */
  features?: Record<string, unknown> | undefined;
  /** Names of groups, for filters and limits. */
  groups?: readonly string[] | undefined;
  /** At most 200 bytes of UTF-8, and not . or .., which no URL can hold. */
  id: string;
  /** Any JSON, such as a title and a picture, which answers can carry. */
  payload?: unknown | undefined;
  /** The revenue if it is taken; 1 by default. */
  revenue?: number | undefined;
  /** The space that it takes of a capacity, and for filters: a number with at most 6 decimals; 1 by default. */
  space?: number | undefined;
  /** It may be shown from this time on; null, in a patch, removes it. */
  valid_from?: string | null | undefined;
  /** It may be shown before this time; null, in a patch, removes it. */
  valid_until?: string | null | undefined;
}

export interface Category {
  /** Values in requests that shared a column with another value, since the service started or the placement was put. */
  collisions: number;
  feature: string;
  /** Values that have a column of their own. */
  learned: number;
  /** How many values may have one. */
  own_columns: number;
  /** Columns that all other values share. */
  shared_columns: number;
}

export interface ChangedField {
  /** Left out if it is no longer set. */
  after?: unknown | undefined;
  /** Left out if it was not set. */
  before?: unknown | undefined;
  field: string;
}

export interface Choice {
  /** The id of an item that was shown. */
  item: string;
  /** The units that were taken; 1 if left out. The policy learns from the first 20 units of a page. */
  quantity?: number | undefined;
  /** What all units earned together; the item's revenue times the quantity if left out. */
  value?: number | undefined;
}

export interface Comparison {
  /** Rounds in which the sets were the same. */
  agreements: number;
  /** Σ R(S) of the baselines, over the same rounds. */
  baseline: number;
  /** Rounds with estimates. */
  estimated: number;
  /** Σ R(S) of the policy's own sets, over the rounds with estimates. */
  policy: number;
  rounds: number;
}

export interface Contribution {
  /** Its name; left empty, all features that are not listed. */
  feature: string;
  utility: number;
  /** A number or a category; left out of other kinds. */
  value?: unknown | undefined;
}

export interface Correction {
  /** The caller's id for the correction, of letters, digits, '.', '_', '-' and ':'. A correction that is sent again under its id changes nothing. */
  id: string;
  /** The id of an item that was shown. */
  item: string;
  /** What is added to the revenue, negative for a return, positive for a subscription's next month. If the item was not taken before, it counts as taken from now on, for a value of at least 0. If left out, the sale is withdrawn: the item counts as not taken, and has earned nothing. */
  value?: number | undefined;
}

export interface DecideRequest {
  /** The ids that the caller shows by itself, in display order, [] if it shows nothing: used in the mode shadow, by experiments with a baseline or a holdout, and by the fallback baseline. It is shown as sent: only the placement's max_size, the number of slots and the candidates bind it. The request gets 422 if an id is not a candidate, even where the baseline is not used. */
  baseline?: readonly string[] | undefined;
  /** Ids of candidates in the placement's catalogue. Without candidates, a filter and items, all items of the catalogue are candidates. */
  candidates?: readonly string[] | undefined;
  /** The spaces of the items shown sum to at most this, in addition to the placement's capacity: a number with at most 6 decimals. */
  capacity?: number | undefined;
  /** The caller's id for the decision, of letters, digits, '.', '_', '-' and ':'; the same id and request have the same answer. Whoever knows an id may report its outcome, so draw it by chance, such as a UUID. If left out, the service draws one. */
  decision_id?: string | undefined;
  /** Whether the decision waits for its outcome only after it is activated. */
  defer?: boolean | undefined;
  /** Ids of items that must not be shown. */
  exclude?: readonly string[] | undefined;
  /** A condition on the candidates of the catalogue, not on the request's own items, such as price <= 20 and not (brand in ["acme"]). In a placement with shopper_history, seen and bought are how often the shopper has seen and bought the item, and the page is empty if such a filter leaves nothing: see the documentation of catalogues. */
  filter?: string | undefined;
  /** Ids of items that must be shown: 422 if one is not a candidate, such as an item that is not available now. */
  include?: readonly string[] | undefined;
  /** Candidates with their features. An empty list is an error without candidates or a filter. */
  items?: readonly Item[] | undefined;
  /** Limits in addition to the placement's. */
  limits?: readonly Limit[] | undefined;
  /** The max number of items to show; the placement's max_size if left out. */
  max_size?: number | undefined;
  /** The min number of items to show, in addition to the placement's min_size. */
  min_size?: number | undefined;
  /** Whether the answer has the stored payloads of the items shown. */
  payload?: boolean | undefined;
  /** Features of the shopper, by name. */
  shopper?: Record<string, unknown> | undefined;
  /** At most 200 bytes of UTF-8: who is shown the same variant of an experiment each time, such as a shopper's id. Required in the mode experiment; a placement with shopper_history also remembers by it what the shopper has seen and bought, and others ignore it. With shopper_history the log keeps a hash of it under a key that an erasure deletes, and a repeated decision_id with another shopper gets 409; without it an experiment or a hold-out logs an unkeyed hash, and a repeated decision_id gets the first answer whoever the shopper is. */
  shopper_id?: string | undefined;
  /** Places on a page, all of which are filled: the k-th item shown is in the k-th slot. They cannot be combined with min_size, max_size, include, limits and capacity. */
  slots?: readonly Slot[] | undefined;
  /** Whether an unknown or unavailable candidate, an included item that the placement excludes, or a min that no page can meet, is an error; otherwise the answer names it. */
  strict?: boolean | undefined;
}

export interface Decision {
  /** In display order. */
  assortment: readonly Shown[];
  /** The last entry of the log that had changed the catalogue; left out if no candidate was from it. */
  catalogue_entry?: number | undefined;
  /** The item that was taken, or the first one on the page of several, as reported; null for none. */
  choice: string | null;
  /** All items that were taken, with their quantities and values as reported; left out for one unit of one item at its revenue. */
  choices?: readonly Choice[] | undefined;
  /** Corrections in the order in which they came; items of them that the outcome lacks were bought later. */
  corrections?: readonly Correction[] | undefined;
  decision_id: string;
  /** The revenue of what was taken, with its corrections. */
  earned: number;
  /** R(S), from shoppers who take at most one unit. With baskets a page earns it times the mean number of units of those who take any. null if the policy has no estimate, and with a public key. */
  expected_revenue: number | null;
  /** The number of unknown and unavailable candidates. */
  missing?: number | undefined;
  /** P(0|S), that nothing is taken; null if the policy has no estimate, and with a public key. */
  outside_probability: number | null;
  placement: string;
  /** The last entry of the log that the policy had learned from. */
  policy_entry: number;
  /** Π(S), the probability with which the set was chosen; null if it has no closed form. */
  propensity: number | null;
  /** How the set was found. */
  source: "policy" | "chance" | "baseline" | "import";
  /** Late: the outcome came after the decision had expired, or had been withdrawn or evicted. It counts, and the policy does not learn from it. */
  status: "open" | "chosen" | "expired" | "deferred" | "withdrawn" | "evicted" | "late";
  time: string;
  /** Candidates that may not be shown now, the first 100. */
  unavailable?: readonly string[] | undefined;
  /** Candidates that the catalogue does not have, the first 100. */
  unknown?: readonly string[] | undefined;
  /** Rules of the request and lower bounds that the candidates and the other rules could not meet; the page has as many items as they allow. */
  unmet?: readonly Unmet[] | undefined;
  /** The variant of the experiment that the shopper is shown; holdout for a shopper who is held out. */
  variant?: string | undefined;
}

export interface Drift {
  before: Span;
  recent: Span;
}

export interface Effect {
  /** The category whose values change the effect most, of shoppers if possible; left out if none does. */
  by?: string | undefined;
  feature: string;
  kind: "number" | "category";
  points: readonly EffectPoint[];
  /** The effect by the values of that category; at most 8. */
  segments?: readonly EffectSegment[] | undefined;
}

export interface EffectPoint {
  /** The share of shoppers who would buy such an item if it were the only one on the page: the mean of 1/(1+exp(−u)). */
  buy_share: number;
  /** That share with every utility a standard deviation higher. */
  buy_share_high?: number | undefined;
  /** That share with every utility a standard deviation lower; left out if the policy has none. */
  buy_share_low?: number | undefined;
  /** The mean of the standard deviations of these utilities, which bounds that of their mean; null if the policy has none. */
  sd: number | null;
  utility: number;
  /** A number or a category. */
  value: unknown;
}

export interface EffectSegment {
  points: readonly EffectPoint[];
  value: string;
}

export interface Erasure {
  /** Of the shopper's requests. */
  shopper_id: string;
}

export interface Error {
  error: PersonalizerError;
}

export interface Event {
  /** The name of the API key that asked for a change. */
  by?: string | undefined;
  /** Items of the request. */
  candidates?: number | undefined;
  /** The placement's new configuration; of relearning-begun, the second learner's. */
  config?: Placement | undefined;
  /** The caller's id of a correction. */
  correction?: string | undefined;
  decision_id?: string | undefined;
  /** A category. */
  feature?: string | undefined;
  /** Items of the catalogue that were put or deleted. */
  items?: number | undefined;
  /** Why a version was kept, or a relearning given up. */
  note?: string | undefined;
  placement: string;
  policy_entry?: number | undefined;
  /** Of the item that was taken, or the first one of several; 0 for none. */
  position?: number | undefined;
  /** Of items that were reported not to have been taken. */
  positions?: readonly number[] | undefined;
  /** Seconds by which the attribution windows of the open decisions move, because the clock moved; absent where the service stopped after a quiet time. */
  seconds?: number | undefined;
  /** Ids in display order. */
  shown?: readonly string[] | undefined;
  source?: "policy" | "chance" | "baseline" | undefined;
  /** All that was taken; left out for nothing, and for one unit of one item at its revenue. */
  taken?: readonly Taken[] | undefined;
  time: string;
  /** What a late outcome or a correction adds to the revenue. */
  value?: number | undefined;
  /** That have columns of their own from now on. */
  values?: readonly string[] | undefined;
  /** The learner's version that was saved or rolled back to. */
  version?: number | undefined;
}

export interface EventReward {
  value: number;
}

export interface Experiment {
  /** The variant that the others are compared with; if left out, the first baseline, or else the first variant. */
  control?: string | undefined;
  /** When it ends; with another configuration of the placement if left out. Its variants keep what they have learned until then. */
  ends?: string | undefined;
  /** What the learner of a variant learns from: own, the outcomes of its variant, so that no variant profits from another; all, those of the whole placement. own if left out. */
  learn_from?: "own" | "all" | undefined;
  /** What else to compare the variants by, as the caller reports it: the margin, the time that a page takes. */
  metrics?: readonly Metric[] | undefined;
  /** The least gain in revenue a decision that is worth a change; 0 if left out. The experiment should stop if no variant can gain as much. */
  min_gain?: number | undefined;
  /** Of the experiment: another name begins another one. */
  name: string;
  /** What all shoppers are shown before it starts and after it ends: policy, by the placement's own policy, or baseline, which every request must then contain; policy if left out. These decisions do not count, and need no shopper_id. */
  outside?: "policy" | "baseline" | undefined;
  /** A feature of shoppers, a category, by which results are reported too. */
  segment_by?: string | undefined;
  /** When it starts; at once if left out. */
  starts?: string | undefined;
  /** What is compared. Their shares sum to 1. */
  variants: readonly Variant[];
}

export interface ExperimentPlan {
  /** Share of decisions that sold. */
  conversion: number;
  /** Decisions that the plan is based on; the other numbers are 0 if they earned nothing. */
  decisions: number;
  decisions_per_day: number;
  gains: readonly PlannedGain[];
  /** Revenue per decision. */
  mean_revenue: number;
  /** The time that decisions_per_day is from: since the first decision of the last four weeks. */
  observed_seconds: number;
  /** Probability with which an experiment of the planned length shows the gain; less if shoppers come back, and no hold-out or running experiment has shown how often. */
  power: number;
  /** Standard deviation of the revenue per decision. */
  standard_deviation: number;
}

export interface ExperimentReport {
  begun: string;
  control: string;
  /** Latest time at which the next decisions will count; left out if no outcome is awaited: decisions that do not count yet then count with the next decision. */
  counts_from?: string | undefined;
  /** Decisions that count so far. */
  decisions: number;
  /** Left out while it runs. */
  ended?: string | undefined;
  /** When it ends, if the configuration says so. */
  ends?: string | undefined;
  /** The entry of the log that began it. */
  entry: number;
  learn_from: "own" | "all";
  /** What else the variants change; conversion and items come first. */
  metrics: readonly MetricReport[];
  min_gain: number;
  name: string;
  /** Differences between variants other than the control; a pair is left out until both variants have decisions. */
  pairs: readonly Pair[];
  /** Times with the same shares, the oldest first. */
  phases: readonly Phase[];
  /** The results over time, at most 256. */
  points: readonly ReportPoint[];
  /** What the experiment probably still needs; left out unless it continues, and if it would need more than 20 times as many decisions as it has. */
  remaining?: Left | undefined;
  sample_ratio: Ratio;
  /** The feature of shoppers that has the segments. */
  segment_by?: string | undefined;
  /** Results by value of that feature, the first ones seen, at most 8; the last one of 8 has all other values. */
  segments?: readonly SegmentReport[] | undefined;
  /** When it starts, if the configuration says so. */
  starts?: string | undefined;
  /** In the order of the configuration. */
  variants: readonly VariantReport[];
  verdict: Verdict;
}

export interface Experiments {
  /** The one that runs. */
  experiment?: ExperimentReport | undefined;
  /** What all other decisions, of the variant vitrine, earn over the shoppers who are held out, of the variant holdout: in the form of an experiment that begins with the hold-out and never ends; left out without a hold-out. */
  holdout?: ExperimentReport | undefined;
  /** Those that have ended, the oldest first: the last 10, as they were when they ended. */
  past: readonly ExperimentReport[];
  placement: string;
}

export interface Explained {
  /** The utility before the contributions. */
  base?: number | undefined;
  /** P(i|S) as it was answered; null if the policy has no estimate. */
  choice_probability: number | null;
  /** They and the base sum to the utility; those largest in size first. */
  contributions?: readonly Contribution[] | undefined;
  /** Of a policy that draws a utility family for each slot: the family of the slot that took the item. */
  family?: string | undefined;
  id: string;
  /** The utility by which the policy chose, with its bonus or as drawn; of a policy that draws for each slot, that of the slot that took the item. null if it is not known. */
  index: number | null;
  position: number;
  revenue: number;
  /** The standard deviation of the utility under what the policy believes. It can be too small where no family of the policy fits. null if it has none. */
  sd: number | null;
  slot?: string | undefined;
  /** The mean; null if the policy has none. */
  utility: number | null;
}

export interface Explanation {
  /** How contributions are found. They compare with base, the utility of the mean known candidate for the mean shopper. linear: weight times difference; shapley: the mean change of the utility when the feature takes its value, over 16 fixed random orders of the features and their reverses. */
  attribution: "linear" | "shapley" | "none";
  /** Among which was decided. */
  candidates: number;
  /** How the policy chooses: the best set under utilities with a bonus, as estimated or as drawn; for each slot the best item left under utilities drawn for it; a set drawn from a distribution that prefers good ones; or a set drawn by chance. */
  cause?: "bonus" | "estimate" | "draw" | "slots" | "weights" | "chance" | undefined;
  /** By which utilities sets are compared in revenue, next and rules: those with the bonus or as drawn, if the policy maximised them, or else the means. */
  compared_by: "index" | "utility" | "none";
  /** Left out for a decision that was only tried. */
  decision_id?: string | undefined;
  /** The version of the policy that explains. */
  explained_by_entry: number;
  /** Of a policy that averages utility families: their weights. */
  families?: readonly FamilyShare[] | undefined;
  /** What is shown, in display order; at most the first 50. */
  items: readonly Explained[];
  /** Of these, candidates whose features are known: the log keeps those of the items shown only, unless the placement has log_items: all. */
  known_candidates: number;
  /** The best other set that the rules allow; left out with position effects. */
  next_best?: OtherSet | undefined;
  placement: string;
  /** The name of the policy. */
  policy: string;
  /** The version of the policy that decided. */
  policy_entry: number;
  /** R(S) of the set shown, by these utilities. */
  revenue?: number | undefined;
  /** What each rule cost; at most the first 32; left out with position effects and slots. */
  rules?: readonly RuleCost[] | undefined;
  /** Whether these are the same; otherwise the utilities are those of the present policy. */
  same_policy: boolean;
  /** Who came: the features of the shopper, as far as the log has them. */
  shopper?: readonly FeatureValue[] | undefined;
  /** How the set was found. */
  source: "policy" | "chance" | "baseline" | "import";
  /** Whether contributions compare with the mean shopper lately; otherwise they compare with this one, and features of shoppers add nothing. */
  typical_shopper: boolean;
  /** What is not known, and why. */
  unknown?: readonly string[] | undefined;
  /** Rules of the request and lower bounds that no page could meet, as in the answer. */
  unmet?: readonly Unmet[] | undefined;
}

export interface FamilyHistory {
  family: string;
  /** At most 128, the oldest first. */
  points: readonly FamilyPoint[];
}

export interface FamilyPoint {
  /** Rounds that the learner had learned. */
  learned: number;
  weight: number;
}

export interface FamilyShare {
  family: string;
  weight: number;
}

export interface Feature {
  /** Of a category with values: whether other values are accepted. */
  allow_other?: boolean | undefined;
  /** Of a number: what is subtracted from it; 0 if left out. */
  center?: number | undefined;
  /** Of a hashed category, a text or an object: its number of columns; if left out, 16 for a category and 64 for the others. */
  columns?: number | undefined;
  /** Of a number, a category or a text: the value if none is given; without it a missing value is an error. */
  default?: unknown | undefined;
  /** Whose feature it is, except of a cross; item if left out. */
  from?: "item" | "shopper" | undefined;
  /** Of a number of items, in a placement with shopper_history: the service fills in how often the request's shopper has seen or bought the item, and 0 for an unknown shopper. Values in requests and in the catalogue count where that is 0. */
  history?: "seen" | "bought" | undefined;
  kind: "number" | "category" | "text" | "object" | "cross";
  /** Of a number: larger values count as this one; if left out, center + 10 scale if a center or a scale is given, and no bound otherwise. */
  max?: number | undefined;
  /** Of a number: smaller values count as this one; if left out, center − 10 scale if a center or a scale is given, and no bound otherwise. */
  min?: number | undefined;
  name: string;
  /** Of a cross: the names of two earlier features. */
  of?: readonly string[] | undefined;
  /** Of a category without values: how many of its columns belong to one value each, the first ones that requests have; other values are hashed into the remaining columns. Three quarters of the columns if left out; 0 hashes all. */
  own_columns?: number | undefined;
  /** Of a number: what it is divided by after that; 1 if left out. */
  scale?: number | undefined;
  /** Of a category: its values; without them it learns the first ones and hashes the others. */
  values?: readonly string[] | undefined;
}

export interface FeatureValue {
  feature: string;
  /** A number or a category; null of other kinds, and of a category that shares its column with others. */
  value: unknown;
}

export interface FilledSlot {
  id: string;
  rewardActionId: string;
}

export interface Gain {
  /** Decisions that count. */
  decisions: number;
  /** Revenue that came too late to count, such as refunds: the change of the total if it counted; left out if 0. */
  late_revenue?: number | undefined;
  /** What it is compared with: chance, for sets drawn uniformly; holdout, for the caller's own sets, shown to the shoppers who are held out; baseline, for the caller's own sets at other times; in an experiment the name of the control. */
  over: string;
  /** Revenue a decision above what it is compared with. */
  per_decision: Interval;
  /** Whether each decision was assigned by chance to one of both. Otherwise, over the baseline, the two were shown at different times, and the difference of these times counts too. */
  randomized: boolean;
  /** Since when the experiment shows its variants, or when the hold-out began. */
  since?: string | undefined;
  /** The same in all decisions that count. */
  total: Interval;
  /** Variant of the running experiment that earns it; left out if it is the placement's policy. */
  variant?: string | undefined;
}

export interface Guard {
  /** A check that failed. An alarm of no-sale or sales ends once sales are back; other alarms stay until they are cleared, or the learner begins again or is rolled back. */
  alarm?: Alarm | undefined;
  checks: readonly GuardCheck[];
  /** Of the policy in this period, without the last ones, whose outcomes are still awaited. */
  decisions: number;
  /** The bin of predictions that is certainly wrong in this period, by more than a fifth of the shoppers who buy, or of the shoppers who do not, whichever are fewer. If several bins are wrong, the bin with the most decisions. */
  far_off?: Calibrated | undefined;
  /** Outcomes that the learner has not been given because of an alarm about sales. */
  outcomes_held?: number | undefined;
  /** Age at which a decision without an outcome counts as one without a sale: at least four fifths of the latest sales are reported within half of it, unless the attribution window is shorter. Left out until enough sales show the delay. */
  overdue_seconds?: number | undefined;
  /** The tests begin again with each period, of a day and 5000 decisions at least; 0 are the first 500 decisions, which are not tested. */
  period: number;
  /** Decisions in a row without a sale, up to the last decision with a known or overdue outcome. */
  without_sale: number;
}

export interface GuardCheck {
  /** Decisions that the check has seen so far. */
  decisions: number;
  /** The smallest fall that the check would notice by now, as a share of sales or earnings: 0.3 is a fall by 30%. Left out while it would notice none. */
  detectable_fall?: number | undefined;
  /** When the check begins; left out if it does not wait for a time. */
  from?: string | undefined;
  /** The policy earns at most this much more a decision than chance; of other checks, at most this multiple. Chance fails below 0. The others fail below 0.5, and predictions also above 2. */
  high?: number | undefined;
  /** The policy earns at least this much more a decision than chance; of other checks, at least this multiple. Left out before there are enough decisions. */
  low?: number | undefined;
  /** Number of decisions in a row without a sale that raises the alarm; check no-sale only. */
  max_silence?: number | undefined;
  /** No-sale: whether anything sells; sales: whether the last 50 to 5,000 decisions sell at least half of what was predicted and sold before; the others compare what the policy earns with sets drawn by chance, what the caller showed in the mode shadow, its first week, its own predictions. */
  name: "no-sale" | "sales" | "chance" | "baseline" | "first-week" | "predictions";
  /** The least number of further decisions before the check can fail. */
  needs_decisions?: number | undefined;
}

export interface Health {
  level: "bad" | "warning" | "waiting" | "note";
  /** Of an alarm: when it was raised. */
  since?: string | undefined;
  /** What happened, what the service has done about it, and what to do. */
  text: string;
  /** Of an alarm of the guard: what happened, in a sentence with which the text begins. */
  title?: string | undefined;
}

export interface Held {
  /** Decisions that still wait for an outcome. */
  decisions: number;
  /** Seconds by which the clock moved; negative if it moved back. */
  seconds: number;
  /** Time to which the clock moved. */
  time: string;
}

export interface History {
  /** The last 50. */
  alarms: readonly PastAlarm[];
  /** From the log: the last 100, without those whose entries were removed from the log, and without changes of items. */
  changes: readonly PastEvent[];
  placement: string;
}

export interface InnerError {
  /** The kind of the problem in the service's own words. */
  code: string;
}

export interface Insight {
  /** Over how many rows, of items that were shown, the effects are averaged. */
  background_rows?: number | undefined;
  /** By the predicted probability of a purchase; without bins that have no decisions. */
  calibration: readonly Calibrated[];
  /** Once there are decisions before the recent ones. */
  drift?: Drift | undefined;
  /** Of numbers and categories on the utility; at most 30 features. */
  effects?: readonly Effect[] | undefined;
  /** Share of the decisions whose set was drawn uniformly. */
  exploration_share: number;
  /** Of a policy that averages utility families: their weights, since the service started. */
  families?: readonly FamilyHistory[] | undefined;
  /** Those of the statistics. */
  gains: readonly Gain[];
  /** Those that were shown most, first; at most 1000. */
  items: readonly ItemInsight[];
  /** Outcomes that the learner has not processed yet. */
  lag_rounds: number;
  /** Of decisions of the placement since the service started. */
  latency?: Latency | undefined;
  mode: string;
  /** The items that are not counted any more, because there were too many, together. */
  others?: ItemInsight | undefined;
  /** Their number. */
  others_count?: number | undefined;
  placement: string;
  /** Its name. */
  policy: string;
  policy_entry: number;
  /** Places of the display, from the first one on; at most 50. */
  positions: readonly Position[];
  /** When it was computed: it may be some seconds old. */
  time: string;
  /** Requests to the whole service that wait for the log. */
  waiting_requests: number;
}

export interface Interval {
  estimate: number;
  high: number;
  low: number;
}

export interface Item {
  /** Numbers, strings and objects by the features' names. */
  features?: Record<string, unknown> | undefined;
  /** At most 1024 bytes of UTF-8. */
  id: string;
  /** The revenue if it is taken; 1 if left out. */
  revenue?: number | undefined;
  /** The space that it takes of a capacity: a number with at most 6 decimals; 1 if left out. */
  space?: number | undefined;
}

export interface ItemIDs {
  ids: readonly string[];
}

export interface ItemInsight {
  id?: string | undefined;
  /** Earned. */
  revenue: number;
  /** The standard deviation of the utility under what the policy believes. */
  sd: number | null;
  shown: number;
  /** The expected revenue of showing only this item. */
  solo_revenue: number | null;
  taken: number;
  /** The mean, with the features with which it was shown last; null if the policy has none, of an item beyond the first 100, and if the log no longer has them. */
  utility: number | null;
}

export interface ItemList {
  /** Items; the media type application/x-ndjson has one a line instead. */
  items: readonly CatalogueItem[];
}

export interface ItemPage {
  /** If it differs between pages, items may be missing from them or be on two of them. */
  catalogue_entry: number;
  /** The number of items in the catalogue. */
  count: number;
  items: readonly CatalogueItem[];
  /** From, of the next page; left out on the last one. */
  next_from?: number | undefined;
}

export interface ItemsChanged {
  /** The last entry of the log that changed the catalogue. */
  catalogue_entry: number;
  /** The number of items that this request put, patched or deleted. */
  changed: number;
  /** The number of values beyond their features' bounds, among the items changed: see whether their unit is right. */
  clipped?: number | undefined;
  /** The number of items in the catalogue. */
  items: number;
  /** Ids that the catalogue does not have: of a patch or a deletion, the first 100. */
  unknown?: readonly string[] | undefined;
}

export interface Kept {
  version: number;
}

export interface KeyEntry {
  name: string;
  /** That it is limited to; left out for all. */
  placements?: readonly string[] | undefined;
  /** Whether everybody may read it, for example in a web page, so that it must not send money. */
  public?: boolean | undefined;
  scopes: readonly string[];
  /** Pages of the desk that are signed in with it. */
  sessions: number;
}

export interface KeyList {
  keys: readonly KeyEntry[];
  /** Whether the service asks for keys. */
  required: boolean;
}

export interface LateOutcome {
  detail: string;
  /** False: the policy has learned already that nothing was taken, or learns nothing from the decision. */
  learned: boolean;
  /** The decision's status from now on. */
  status: "late";
}

export interface Latency {
  decisions: number;
  /** Seconds, as the next ones: an upper bound that is at most a fifth too large. */
  p50_seconds: number;
  p95_seconds: number;
  p99_seconds: number;
}

export interface LearnerReport {
  /** Left out if false. */
  broken?: boolean | undefined;
  /** Rounds that it has not processed yet; left out if 0. */
  lag_rounds?: number | undefined;
  /** Rounds; left out of past experiments. */
  learned?: number | undefined;
  /** Whether it is the variant's own; otherwise it is the placement's. */
  own: boolean;
  policy: Record<string, unknown>;
  problem?: string | undefined;
  /** Rounds that it refused, or on which it panicked; left out if 0. */
  skipped?: number | undefined;
}

export interface LearnerState {
  /** The configuration of a learner that reads the state. */
  config: Placement;
  /** Rounds that it has learned. */
  learned: number;
  placement: string;
  /** The last entry of the log that it has learned from. */
  policy_entry: number;
  /** What the learner's MarshalBinary returns, in Base 64 (RFC 4648). */
  state: string;
}

export interface Left {
  decisions: number;
  seconds: number;
}

export interface Limit {
  /** An attribute of the catalogue's items: each of its values is a group. Items without it are not limited. */
  attribute?: string | undefined;
  /** A category of items: each of its values is a group. */
  feature?: string | undefined;
  /** A name in the groups of the catalogue's items. */
  group?: string | undefined;
  /** Ids, in a request only. */
  items?: readonly string[] | undefined;
  /** The max number of the group's items to show. A limit needs a min, a max or both. */
  max?: number | undefined;
  /** The min number of the group's items to show, of items or a group only. If the candidates and the rules leave too few, the page shows as many as it can. */
  min?: number | undefined;
}

export interface Loss {
  /** Relearn=log would learn only rounds since this entry, because the log no longer holds the earlier ones. */
  log_from_entry?: number | undefined;
  /** Rounds that the learner has learned. */
  rounds: number;
  /** Versions that it has, to roll back to. */
  versions: number;
}

export interface Measurements {
  /** Finite values by name; names that the running experiment does not compare are ignored. */
  metrics: Record<string, unknown>;
}

export interface Metric {
  /** Which values are better; higher if left out. */
  better?: "higher" | "lower" | undefined;
  /** The largest value; larger ones count as this one, and negative ones as its negative at least. Intervals are wider if it is larger than needed. */
  max: number;
  /** Of letters, digits, '.', '_', '-' and ':'; not conversion or items. */
  name: string;
}

export interface MetricReport {
  better: "higher" | "lower";
  /** Conversion is the share of decisions that sold, items the units taken per decision, of which at most 10 count. */
  name: string;
  /** Decisions with a value; the others count as 0. */
  reported: number;
  /** In the order of the configuration. */
  variants: readonly VariantMetric[];
}

export interface Model {
  /** When the placement got its configuration; left out if the log no longer has it. */
  creationTime?: string | undefined;
  /** When the last outcome came that it has learned from. */
  lastModifiedTime?: string | undefined;
}

export interface Note {
  /** Of the version. */
  note: string;
}

export interface OtherSet {
  items: readonly string[];
  /** How much less that is than what the set shown earns; negative if it is more, because the set shown was drawn. */
  missed_by: number;
  /** Its expected revenue. */
  revenue: number;
}

export interface Outcome {
  /** The id of the item that was taken, one unit at its revenue; null for none, or if choices lists them. One of the two is required. */
  choice?: string | null | undefined;
  /** In place of choice: the items that were taken, each once; [] or null for none. Null next to a choice is ignored. */
  choices?: readonly Choice[] | null | undefined;
}

export interface Outliers {
  /** Feature of the last outlier. */
  feature: string;
  /** Rounds in which most items had an outlier, less the rounds since in which most items had none. */
  rounds: number;
  /** Rounds learned since the last outlier. */
  rounds_since: number;
  /** Values beyond 50 standard deviations and 4 times the largest distance from the mean so far. */
  values: number;
}

export interface Overview {
  /** Health of the answering process, shown to keys for all placements: whether alerts reach their receiver. */
  health?: readonly Health[] | undefined;
  now: string;
  placements: readonly OverviewEntry[];
  /** Placements that were asked for; the answer has some of them. */
  total: number;
}

export interface OverviewEntry {
  /** Decisions of the policy over the time that was asked for, up to the first that waits for its outcome: of the later ones those that sold end first. */
  by_policy: Totals;
  /** What revenues are in: of its configuration. */
  currency?: string | undefined;
  decisions: number;
  /** Decisions a second, over the last ten. */
  decisions_per_second: number;
  /** The running experiment, with the numbers of its report. */
  experiment?: OverviewExperiment | undefined;
  /** In the mode explore, what is drawn: sets, also if left out, or swaps, as under a capacity of the placement. */
  explore?: string | undefined;
  /** In the mode explore, the share of requests that see random pages or items. */
  explore_share?: number | undefined;
  /** What the placement earns more, over the time that was asked for; of an experiment or a hold-out, since it began. */
  gains: readonly Gain[];
  /** The worst first; empty if all is well. */
  health: readonly Health[];
  /** The share of shoppers who always see the caller's own page. */
  holdout_share?: number | undefined;
  /** Of decisions since the service started. */
  latency?: Latency | undefined;
  /** A decision of the policy, over the time that was asked for; null if there is none, as the next one. */
  mean_revenue: number | null;
  mode: string;
  name: string;
  policy: string;
  series: Series;
  standard_error: number | null;
  /** The least number of further decisions before a check of the guard can fail. */
  unwatched_decisions?: number | undefined;
}

export interface OverviewExperiment {
  control: string;
  /** When it ends, if the configuration says so. */
  ends?: string | undefined;
  name: string;
  /** When it starts, if the configuration says so. */
  starts?: string | undefined;
  verdict: Verdict;
}

export interface PageSlot {
  baselineAction: string;
  excludedActions?: readonly string[] | null | undefined;
  /** Accepted, and not used. */
  features?: readonly Record<string, unknown>[] | undefined;
  id: string;
}

export interface Pair {
  /** Revenue a decision that the first variant earns above the other. */
  difference: Interval;
  /** The other variant. */
  over: string;
  /** The variant with the larger estimate. */
  variant: string;
}

export interface PastAlarm {
  began: string;
  /** How unlikely it was: see Alarm. */
  chance: number;
  check: "no-sale" | "sales" | "chance" | "baseline" | "first-week" | "predictions";
  detail: string;
  /** Left out while it lasts. */
  ended?: string | undefined;
}

export interface PastEvent {
  /** The name of the API key that asked for it; left out without keys, and if nobody asked. */
  by?: string | undefined;
  /** Of the log. */
  entry: number;
  /** Settings that differ from those before, or will once relearning-begun has ended with swapped; left out of the first configuration, and if the log no longer has the one before. */
  fields?: readonly ChangedField[] | undefined;
  /** What was done: the learner began again after reset, and learns the log after relearning-begun, which ends with swapped or relearning-ended; adopted ended an experiment with the learner of a variant. */
  kind: "created" | "changed" | "version-saved" | "rolled-back" | "reset" | "relearning-begun" | "relearning-ended" | "swapped" | "adopted" | "alarm-cleared";
  note?: string | undefined;
  time: string;
  version?: number | undefined;
}

export interface PersonalizerError {
  /** One of the codes of that service, or the status where its gateway answered. */
  code: string;
  details?: readonly PersonalizerError[] | undefined;
  innerError?: InnerError | undefined;
  message: string;
  /** A JSON pointer in the body. */
  target?: string | undefined;
}

export interface Phase {
  /** Of the log, which began it. */
  entry: number;
  /** Share of the units in the experiment that got another variant; the least that is possible. */
  moved_share: number;
  /** Of the variants, in their order. */
  shares: readonly number[];
  time: string;
}

export interface Placement {
  /** How long a decision waits for its outcome; 30m if left out. */
  attribution_window?: string | undefined;
  /** The spaces of the items shown sum to at most this: a number with at most 6 decimals. It does not go together with slots. If it is below the space of every item, nothing is shown. */
  capacity?: number | undefined;
  /** Another placement, with the same features, whose catalogue this one uses; its own if left out. */
  catalogue_of?: string | undefined;
  /** What revenues are in, as the desk and reports write them: three letters of ISO 4217, such as EUR; numbers without a currency if left out. */
  currency?: string | undefined;
  /** Ids of items that no page shows, whatever a request includes; at most 1000. */
  exclude?: readonly string[] | undefined;
  /** Of the mode experiment: what is compared. */
  experiment?: Experiment | undefined;
  /** In the mode explore, what is drawn: sets, a whole set drawn uniformly, or one item as by swaps under a capacity or limits whose groups cross; swaps, one item of the policy's set is replaced by another, which costs less and says as much about policies that show similar sets; sets if left out. */
  explore?: "sets" | "swaps" | undefined;
  /** In the mode explore, the share of requests that explore; 0.05 if left out. */
  explore_share?: number | undefined;
  /** What is shown while the guard has an alarm, except for earning more than predicted: baseline, the caller's sets, which every request then has to have; version, the last good version's; if left out, the policy continues. */
  fallback?: "baseline" | "version" | undefined;
  /** What is known about items and shoppers. */
  features: readonly Feature[];
  /** The share of shoppers who always see the caller's baseline, whatever the mode and the experiment, so that there is always something to compare with; in steps of 0.0001. Every request then has a shopper_id and a baseline; not in the mode shadow. */
  holdout_share?: number | undefined;
  /** T, the horizon in decisions, for policies that have one; 100000 if left out. */
  horizon?: number | undefined;
  /** Pinned items: ids that every page shows while they are candidates, in this order of importance. A request that excludes one, or that has slots, is not bound by it, and a pin is left out if it breaks another rule, a lower bound or an earlier pin, or if hide_bought hides it; at most max_size. */
  include?: readonly string[] | undefined;
  /** Whether the policy goes on learning while the guard has an alarm about sales, no-sale or sales; if left out, it pauses, and reads from the log what it has missed once the alarm ends. */
  learn_in_alarm?: boolean | undefined;
  /** Bounds on how many items of each value of a category or an attribute, or of a named group, are shown. */
  limits?: readonly Limit[] | undefined;
  /** Which items' features the log keeps and the learner sees: shown is the items shown, all is every item that the request brings, too; of the catalogue's items that were not shown the log keeps the ids, from which exports compute the features; if left out, all in the mode explore and shown in the others. */
  log_items?: "shown" | "all" | undefined;
  /** The max number of items that a request may bring, and of ids in its lists; 1000 if left out. It does not limit the catalogue. */
  max_request_items?: number | undefined;
  /** K, the max number of items that are shown. */
  max_size: number;
  /** How many versions are kept to roll back to; 8 if left out. */
  max_versions?: number | undefined;
  /** The max number of bytes of remembered decisions; 67108864 if left out. */
  memory_bytes?: number | undefined;
  /** The min number of items to show, even if fewer would earn more; with max_size as min_size every page is full. A page with too few candidates shows as many as the rules allow. It cannot be combined with a capacity. */
  min_size?: number | undefined;
  /** Learn, the default: the policy decides; shadow: the caller's baseline is shown, and the policy learns from it; explore: the policy decides but for a share of requests, in which a set or an item is drawn; experiment: each shopper gets one of several variants, which are compared. */
  mode?: "learn" | "shadow" | "explore" | "experiment" | undefined;
  /** What follows from the settings; ignored in a request. */
  notes?: readonly string[] | undefined;
  /** Name, and its settings: see vitrine list policies. In an answer, all of them; if left out, the default policy. */
  policy?: Record<string, unknown> | undefined;
  /** The seed of all random draws. */
  seed?: number | undefined;
  /** Remember what shoppers have seen and bought, by the shopper_id of requests; if left out, nothing is remembered. */
  shopper_history?: ShopperHistory | undefined;
  /** Why these settings may do harm; ignored in a request. */
  warnings?: readonly string[] | undefined;
}

export interface PlacementEntry {
  config: Placement;
  name: string;
}

export interface PlacementList {
  placements: readonly PlacementEntry[];
}

export interface PlannedGain {
  /** Decisions of the placement; null if it takes more than 10^12. */
  decisions: number | null;
  /** The gain in revenue per decision. */
  gain: number;
  /** The gain as a share of the mean revenue. */
  relative: number;
  /** Time at the present rate of decisions, with the attribution window of the last one; null if that is not known. */
  seconds: number | null;
}

export interface PolicyEntry {
  /** When to choose it. */
  choose_when?: string | undefined;
  /** Whether placements have it that name none. */
  default?: boolean | undefined;
  doc: string;
  /** Of a family of utilities, its kind. */
  name: string;
  /** What an offer costs: O of it. */
  offer_cost?: string | undefined;
  options: readonly PolicyOption[];
  /** What an observed round costs: O of it. */
  round_cost?: string | undefined;
}

export interface PolicyList {
  policies: readonly PolicyEntry[];
  /** Families of utilities, for the setting utility of some policies. */
  utilities: readonly PolicyEntry[];
}

export interface PolicyOption {
  /** In a placement; left out if it follows from the placement, or if there is none. */
  default?: unknown | undefined;
  doc: string;
  key: string;
  /** The legal values. */
  range?: string | undefined;
  /** Integer, number, string, true or false, list of integers, table. */
  type: string;
}

export interface Position {
  /** What the policy has learned that the place adds to the utility; null without position_effects. */
  effect: number | null;
  position: number;
  shown: number;
  taken: number;
}

export interface Preview {
  /** Whether relearn=log can learn it again from the log. */
  can_relearn: boolean;
  /** None: the placement has this configuration; create: there is no such placement; keep: the learner continues; restart: another learner begins, with reset=true or relearn=log if something is lost; end: an experiment ends, with reset=true, and what the learners of its variants have learned is lost; adopt: an experiment ends, and the learner of one of its variants decides. */
  change: "none" | "create" | "keep" | "restart" | "end" | "adopt";
  /** Of restart: what changes that the learner depends on. */
  fields?: readonly string[] | undefined;
  /** Of restart: what the learner has learned, which is kept as a version; left out if it has learned nothing. Of end: what is lost. */
  lost?: Loss | undefined;
  /** Relearn=log would skip decisions that showed more items: see the warnings. */
  max_size?: number | undefined;
  /** The configuration with its defaults, notes and warnings. */
  placement: Placement;
}

export interface Problem {
  /** What is wrong, and what to do. */
  detail: string;
  /** The fields that are wrong. */
  errors?: readonly ProblemField[] | undefined;
  /** Of the problem loss: what the change would lose. */
  lost?: Loss | undefined;
  /** The id of the request in the service's output. */
  request_id: string;
  status: number;
  /** The status in words. */
  title: string;
  /** The kind of the problem. */
  type: string;
}

export interface ProblemField {
  detail: string;
  /** A JSON pointer in the body, as a fragment of a URI. */
  pointer: string;
}

export interface Rank {
  actions: readonly Action[];
  /** Any features of the context. */
  contextFeatures?: readonly Record<string, unknown>[] | null | undefined;
  deferActivation?: boolean | null | undefined;
  /** One is made where it is left out. */
  eventId?: string | null | undefined;
  excludedActions?: readonly string[] | null | undefined;
}

export interface Ranked {
  eventId: string;
  ranking: readonly RankedAction[];
  rewardActionId: string;
}

export interface RankedAction {
  id: string;
  /** That it is the one of rewardActionId; left out where it is not known. */
  probability?: number | undefined;
}

export interface Ratio {
  /** Whether it was below 0.001: do not trust the differences before the cause is known. */
  mismatch: boolean;
  /** An anytime-valid p-value: that it is ever below x has a probability of at most x if the units are divided rightly. */
  p_value: number;
  shoppers: number;
}

export interface Relearning {
  /** The last entry that it has learned from; 0 before the first. */
  entry: number;
  /** The first entry of the log that it learns from. */
  from_entry: number;
  /** Rounds that it has learned. */
  learned: number;
  /** Of that configuration, if it is smaller than the present one: decisions that showed more items are skipped, so it may take over only with relearn=accept. */
  max_size?: number | undefined;
  /** Of the configuration that the placement will have. */
  policy: Record<string, unknown>;
  /** Its last problem. */
  problem?: string | undefined;
  /** Whether it may take over with relearn=accept: it has read the log, and no alarm holds rounds back. */
  ready: boolean;
  since: string;
  /** Rounds that it refused, or on which it panicked. */
  skipped: number;
  /** The last entry that it has to learn from, for now. */
  to_entry: number;
}

export interface ReportPoint {
  decisions: number;
  /** Above the control, in the order of the variants; that of the control is 0. */
  differences: readonly Interval[];
  /** Of the variants, in their order. */
  means: readonly Interval[];
  time: string;
}

export interface Reward {
  /** Its id. */
  item: string;
  value: number;
}

export interface Rewards {
  /** Of items shown, all of them or some; the first reward of an item counts. */
  rewards: readonly Reward[];
}

export interface Rollback {
  /** One of the versions of the placement's statistics. */
  version: number;
}

export interface RuleCost {
  /** The expected revenue of the best set without this rule, minus that of the best set with it. With position effects, the best sets under lower bounds, pins, a capacity or crossing limits are found only approximately. */
  cost: number;
  /** The id that it names. */
  item?: string | undefined;
  /** The feature, the size, the capacity, or the number of the limit or of the slot. */
  on?: string | undefined;
  /** Of the request or of the placement; pinned and excluded are the placement's include and exclude. */
  rule: "max_size" | "min_size" | "include" | "exclude" | "pinned" | "excluded" | "limit" | "capacity" | "slot";
}

export interface SegmentReport {
  /** Of the feature; empty for all other values. */
  value: string;
  /** In the order of the configuration. */
  variants: readonly SegmentVariant[];
}

export interface SegmentVariant {
  /** Revenue per decision above the control's in the segment; left out of the control, before there are decisions of both, and of segments with fewer than about 8 shoppers. */
  difference?: Interval | undefined;
  /** The decisions that count. */
  totals: Totals;
  variant: string;
}

export interface Series {
  /** The attribution window in seconds. */
  attribution_window_seconds: number;
  /** Decisions whose set was the caller's. */
  baseline?: SeriesMeans | undefined;
  /** Decisions whose set was drawn uniformly. */
  chance?: SeriesMeans | undefined;
  decisions: readonly number[];
  /** How long the points are. */
  length_seconds: readonly number[];
  now: string;
  /** Decisions whose outcomes are awaited. */
  open: readonly number[];
  /** The same over the caller's sets. These were shown at another time, whose difference counts too. */
  over_baseline?: SeriesSums | undefined;
  /** How much more the policy has earned in all decisions until then than chance would have: the total of the gain over chance, by the time when decisions were made. Left out while an experiment runs, whose report compares its variants. */
  over_chance?: SeriesSums | undefined;
  placement: string;
  /** Decisions whose set the policy chose; left out if there are none, as the next ones. */
  policy?: SeriesMeans | undefined;
  /** When the points begin, in seconds since 1970. */
  start_unix_seconds: readonly number[];
}

export interface SeriesMeans {
  /** Revenue a decision; null without rounds. */
  mean: readonly (number | null)[];
  /** Decisions that have an outcome or have expired. */
  rounds: readonly number[];
  /** Null for fewer than two rounds. */
  standard_error: readonly (number | null)[];
}

export interface SeriesSums {
  estimate: readonly (number | null)[];
  high: readonly (number | null)[];
  /** Null, like the estimate, while too many decisions left memory before an outcome. */
  low: readonly (number | null)[];
}

export interface Service {
  /** 0, the reward of the outside option. */
  defaultReward: number;
  /** The share of requests that explore. */
  explorationPercentage: number;
  /** False. */
  isAutoOptimizationEnabled: boolean;
  /** Apprentice is the mode shadow. */
  learningMode: "Online" | "Apprentice";
  /** False. */
  logMirrorEnabled: boolean;
  /** -1: the service's [retention] bounds the log. */
  logRetentionDays: number;
  /** PT1S: what was learned decides at once. */
  modelExportFrequency: string;
  /** 0: the learner forgets nothing. */
  modelRetrainDays: number;
  rewardAggregation: "earliest";
  /** The attribution window, a duration of ISO 8601. */
  rewardWaitTime: string;
}

export interface ServiceChange {
  defaultReward?: number | undefined;
  explorationPercentage?: number | undefined;
  learningMode?: "Online" | "Apprentice" | undefined;
  rewardAggregation?: "earliest" | undefined;
  /** A duration of ISO 8601, such as PT10M. */
  rewardWaitTime?: string | undefined;
}

export interface Session {
  /** When the session ends. */
  expires?: string | undefined;
  /** The name of the key; left out while nobody is signed in. */
  key?: string | undefined;
  /** The placements that the key is limited to; left out for all. */
  placements?: readonly string[] | undefined;
  /** Whether the service asks for keys. */
  required: boolean;
  /** What the page may do. */
  scopes: readonly string[];
}

export interface Shelf {
  /** Whether every item that was shown has counts of its own; otherwise items without counts may have been shown, but rarely, and counts that were dropped began again. */
  complete: boolean;
  /** Items that were asked for; the page has some of them. */
  count: number;
  items: readonly ShelfItem[];
}

export interface ShelfItem {
  /** Of an item that the catalogue does not have, only the id, of up to 1024 bytes. */
  item: CatalogueItem;
  pinned: boolean;
  /** Earned by it. */
  revenue: number;
  /** What it earned on a page that showed it. */
  revenue_per_page?: number | undefined;
  /** Decisions that showed it and have closed; unless complete, only since its counts last began. */
  shown: number;
  /** Whether it may be shown now. excluded: by the placement; not-yet and over: its time has not come, or is over; unfit: it lacks features; gone: the catalogue does not have it, so requests bring it or it was deleted. */
  state: "available" | "excluded" | "unavailable" | "not-yet" | "over" | "unfit" | "gone";
  taken: number;
  /** Taken by shown; left out of an item without counts, as the next one. */
  taken_share?: number | undefined;
}

export interface ShopperHistory {
  /** Whether pages leave out what the shopper has bought, but for what a request includes. */
  hide_bought?: boolean | undefined;
  /** How long it is remembered, such as 720h; at most 366 days. */
  keep: string;
  /** Max bytes; 16777216 if left out, about 9000 shoppers with 20 items each. If it is full, the shoppers who came longest ago are forgotten. */
  memory_bytes?: number | undefined;
}

export interface ShopperStats {
  bytes: number;
  /** Shoppers who were forgotten before their time, because the memory was full. */
  forgotten: number;
  /** Shoppers. */
  remembered: number;
}

export interface Shown {
  /** P(i|S), that it is taken; null if the policy has no estimate, and with a public key. */
  choice_probability: number | null;
  id: string;
  /** The payload that the catalogue stores, if the request asks for it. */
  payload?: unknown | undefined;
  position: number;
  /** The id of its slot. */
  slot?: string | undefined;
}

export interface SignIn {
  /** An API key. */
  key: string;
}

export interface Slot {
  /** Ids of items that must not be shown in it. */
  exclude?: readonly string[] | undefined;
  /** Names the slot in the answer; either all slots of a request have one, or none has. */
  id?: string | undefined;
}

export interface SlotReward {
  slotId: string;
  value: number;
}

export interface SlotRewards {
  reward: readonly SlotReward[];
}

export interface SlotsRank {
  actions: readonly Action[];
  contextFeatures?: readonly Record<string, unknown>[] | null | undefined;
  deferActivation?: boolean | null | undefined;
  eventId?: string | null | undefined;
  slots: readonly PageSlot[];
}

export interface SlotsRanked {
  eventId: string;
  slots: readonly FilledSlot[];
}

export interface Span {
  by_baseline: Totals;
  by_chance: Totals;
  by_policy: Totals;
  decisions: number;
  /** By these. */
  earned: number;
  /** Of these, decisions with a prediction. */
  estimated: number;
  /** For these, Σ R(S). */
  predicted: number;
}

export interface Stats {
  /** Whether the learner has failed; its last good policy decides. */
  broken: boolean;
  /** Decisions whose set was the caller's. */
  by_baseline: Totals;
  /** Decisions whose set was drawn uniformly. */
  by_chance: Totals;
  /** Decisions whose set the policy chose. */
  by_policy: Totals;
  calibration: Calibration;
  /** The last entry of the log that changed the catalogue. */
  catalogue_entry?: number | undefined;
  /** Categories without values. */
  categories?: readonly Category[] | undefined;
  /** Values of features beyond their bounds, in requests and in items put, since the service started. */
  clipped: number;
  /** While decisions wait longer than their attribution window, because the clock moved. */
  clock_moved?: Held | undefined;
  /** Corrections of outcomes, such as returns. */
  corrected: number;
  decisions: number;
  /** Once there are decisions before the recent ones. */
  drift?: Drift | undefined;
  /** Decisions whose page the policy left empty: no item was allowed, by the rules or by what the shopper bought, or all revenues were 0. */
  empty: number;
  /** The share of empty pages, an exponential average over about the last 256 decisions. */
  empty_share: number;
  /** Decisions without an outcome in time, which count as the outside option. */
  expired: number;
  /** Decisions that left memory before the end of their attribution window; the policy learns nothing from them. */
  expired_early: number;
  /** Share of the decisions whose set was drawn uniformly. */
  exploration_share: number;
  /** What the policy earned a decision in the last four whole weeks without open decisions, late outcomes and corrections left out, as a multiple of what it earned in the twelve weeks before, or in fewer if it is younger: only while that is certainly below 0.9. */
  fell?: Interval | undefined;
  /** Rounds that were lost because the learner's saved state could not be read. */
  forgotten: number;
  /** What the placement earns more than what it is compared with; empty without a comparison. The gains over chance and baseline are left out once a fiftieth of the decisions left memory before an outcome. */
  gains: readonly Gain[];
  /** What the placement earns, against what it should. */
  guard: Guard;
  /** Items of the catalogue that the placement uses. */
  items?: number | undefined;
  /** Outcomes that the learner has not processed yet. */
  lag_rounds: number;
  /** Outcomes reported too late to be learned: after the attribution window, or after the decision had left memory. Their revenue counts. */
  late: number;
  /** Rounds that the learner has learned from; a sale waits until it is known which pages of the same time sold nothing. */
  learned: number;
  /** Bytes of remembered decisions. */
  memory_bytes: number;
  /** How long an open decision stays in memory at the rate of the minute before the last decision; it should be longer than the attribution window. Left out while the rate is not known. */
  memory_seconds?: number | undefined;
  mode: string;
  /** Decisions that wait for an outcome. */
  open: number;
  /** Outcomes reported in time. */
  outcomes: number;
  /** Feature values that the learner ignored as outliers; left out if there are none, and for learners that take any value. */
  outliers?: Outliers | undefined;
  placement: string;
  /** The last entry of the log that the policy has learned from. */
  policy_entry: number;
  /** The last problem of the learner. */
  problem?: string | undefined;
  /** While a second learner learns from the log. */
  relearning?: Relearning | undefined;
  /** When the oldest decision was made that has ended and is still in memory and in the log. Late outcomes and corrections of forgotten decisions get 404; more memory and a longer retention remember longer. Left out while no decision is forgotten. */
  remembered_since?: string | undefined;
  /** Bytes that the service reserves for the placement and its learner. */
  reserved_bytes: number;
  shadow: Comparison;
  /** What the placement remembers of its shoppers; left out without shopper_history. */
  shoppers?: ShopperStats | undefined;
  /** Rounds that the learner refused, on which it panicked, that came after it broke, or for which no sale was reported during an alarm about missing sales. */
  skipped: number;
  /** Rounds decided by an earlier learner of the placement. */
  stale: number;
  /** Outcomes and expiries that the learner did not learn from, because its queue was full. */
  unlearned: number;
  /** Whether the policy predicted NaN or an infinity, or was certain of something that did not happen. */
  unsound: boolean;
  /** Kept versions, to roll back to. */
  versions: readonly number[];
  /** Deferred decisions that were not activated in time. */
  withdrawn: number;
}

export interface Taken {
  /** On the page, from 1 on. */
  position: number;
  /** Units that were taken. */
  quantity: number;
  /** What all units earned together. */
  value: number;
}

export interface Totals {
  /** Rounds in which something was taken. */
  purchases: number;
  revenue: number;
  /** Σ revenue². */
  revenue_squares: number;
  rounds: number;
}

export interface Trial {
  /** Its decision_id is that of the request, or empty. */
  answer: Answer;
  explanation: Explanation;
}

export interface Unmet {
  /** The bound. */
  min: number;
  /** Of a limit, the group, or the number of the request's limit; of an include, the item that the placement excludes. */
  on?: string | undefined;
  /** The most items that a page could show. */
  reached: number;
  rule: "include" | "limit" | "min_size";
}

export interface Variant {
  /** Of letters, digits, '.', '_', '-' and ':'; not holdout. */
  name: string;
  /** Of a learner of its own, with its settings; if left out, the placement's policy and learner. */
  policy?: Record<string, unknown> | undefined;
  /** Of the units in the experiment, in steps of 0.0001. */
  share: number;
  /** Policy: what a policy chooses; baseline: what the caller shows by itself; uniform: a set drawn uniformly, or, under a capacity or limits whose groups cross, the set of most random gains, which has no known propensity. */
  show: "policy" | "baseline" | "uniform";
}

export interface VariantMetric {
  /** Above the control's, per decision; left out of the control, and before there are decisions of both. */
  difference?: Interval | undefined;
  /** Per decision; each interval by itself holds at all times with 95%. */
  mean: Interval;
  variant: string;
  /** Whether it is surely worse than the control's. */
  worse: boolean;
}

export interface VariantReport {
  /** Decisions, with those that wait for an outcome. */
  decisions_made: number;
  /** Shoppers whose first decision was deferred, and counts; left out if 0. */
  deferred?: number | undefined;
  /** Revenue a decision above the control's. These intervals and those of pairs all hold together, at all times, with 95%, if no visit earns more than its page's most expensive item or than earlier visits. Left out of the control, and before there are decisions of both. */
  difference?: Interval | undefined;
  /** Decisions that left memory before the end of their attribution window, which do not count; left out if 0. */
  expired_early?: number | undefined;
  /** Decisions that showed the caller's baseline in place of the placement's policy, during an alarm. */
  fallback_decisions?: number | undefined;
  /** Revenue of late outcomes, and of corrections of decisions that counted already, since the experiment began; also what earlier corrections take below 0, or above the outcome and the most expensive item. No other number of the report includes it, but the verdict considers it. */
  late_revenue: number;
  /** How long the answering process took for the variant's decisions since it started; left out of past experiments. */
  latency?: Latency | undefined;
  /** Of the policy. */
  learner?: LearnerReport | undefined;
  /** Revenue a decision; each interval by itself holds at all times with 95%. */
  mean: Interval;
  name: string;
  /** Shoppers whose deferred first decision was seen: it was activated or got an outcome in time. */
  seen?: number | undefined;
  /** The variant that is surely seen more often, by an estimated fiftieth of its share of seen decisions or more: do not trust the differences. If there are several, the one with the largest difference. */
  seen_less_than?: string | undefined;
  /** Of the units in the experiment. */
  share: number;
  /** Units that these decisions were made for, estimated from hashes: to 1% up to five million. */
  shoppers: number;
  show: "policy" | "baseline" | "uniform";
  /** Decisions in the longest row without a sale, while other variants sold, if it is longer than usual sales allow: the sales were probably not reported. A row that has ended is left out below a fiftieth of the decisions that count. */
  silence?: number | undefined;
  /** The decisions that count; revenue and squares are net of corrections until then; purchases are as reported. */
  totals: Totals;
  /** Latest decisions in a row without a sale, while other variants sold. */
  without_sale: number;
  /** Value of a sale divided by the declared revenue of what was taken, the geometric mean; left out before there are 32, or more if the values vary much. */
  worth?: number | undefined;
}

export interface Verdict {
  /** Estimated gain of the variant to ship over the control, in revenue a decision. */
  gain?: number | undefined;
  reason: string;
  result: "ship" | "weigh" | "tie" | "stop" | "continue";
  /** In a tie: the variants that surely gain and cannot be told apart, the largest estimate first. */
  tied?: readonly string[] | undefined;
  /** Whether it is stop because the differences may compare the wrong decisions: find the cause that the reason names. Left out if false. */
  untrusted?: boolean | undefined;
  /** The variant to ship or to weigh. In a tie: the one that shows the placement's own policy, which wins a tie; left out if no tied variant does. */
  variant?: string | undefined;
}

export interface Version {
  /** Whether the clock kept it; such versions are dropped before others. */
  automatic: boolean;
  /** The configuration that a roll back brings back; left out if the present one stays. */
  config?: Placement | undefined;
  /** Rounds that the learner had learned; left out while it is behind. */
  learned?: number | undefined;
  /** What they have earned, per decision. */
  mean_revenue_since?: number | undefined;
  /** Why it was kept. */
  note?: string | undefined;
  /** Whether it is of a learner that decided before, whose configuration a roll back brings back. */
  other_learner: boolean;
  /** Of its configuration. */
  policy: Record<string, unknown>;
  /** Decisions of the placement that have ended since. */
  rounds_since: number;
  /** When it was kept. */
  time: string;
  /** The last entry of the log that the learner was given. */
  version: number;
  /** What a roll back to this version would change for your callers or end now: fields that requests must then have, the comparison of a hold-out, and a comparison that memory is too small for. */
  warnings?: readonly string[] | undefined;
}

export interface VersionList {
  versions: readonly Version[];
}

/** What a route takes and answers. An answer that is not JSON is a Response. */
export interface Routes {
  /** Report that what a deferred decision offered was shown. From then on its outcome is waited for. Its outcome activates it too. */
  activate: { takes: { path: { name: string; id: string } }; answer: null };
  /** Clear the alarm of a placement's guard: the policy decides again, and the guard begins again. A policy that has paused learns from the log what it has missed. */
  clearAlarm: { takes: { path: { name: string }; query?: { "learn"?: string | number | boolean | undefined } | undefined }; answer: null };
  /** Correct what a decision has earned after its outcome was reported: add a value to what an item has earned, negative for a return, or withdraw its sale. An item of the page that was bought later counts as taken from then on. Sending a correction again under its id changes nothing. The policy does not learn from corrections. 403 with a public key. */
  correct: { takes: { path: { name: string; id: string }; body: Correction }; answer: null };
  /** Decide which items to show. Repeating a request with the same decision_id returns the same answer, with the status 200. With a public key a request must not set revenues, its filter must not read revenue, seen or bought, and the answer leaves out estimates: choice_probability, outside_probability and expected_revenue are null. */
  decide: { takes: { path: { name: string }; body: DecideRequest }; answer: Answer };
  /** Delete an item from the placement's catalogue. */
  deleteItem: { takes: { path: { name: string; item: string } }; answer: null };
  /** Delete items from the placement's catalogue. Items that it does not have are named in the answer. */
  deleteItems: { takes: { path: { name: string }; body: ItemIDs }; answer: ItemsChanged };
  /** Delete a placement and its decisions. 422 if others use its catalogue. */
  deletePlacement: { takes: { path: { name: string }; header?: { "If-Match"?: string | number | boolean | undefined; "If-None-Match"?: string | number | boolean | undefined } | undefined }; answer: null };
  /** Erase a shopper for good in all placements: the key is deleted that leads from the id to what was remembered, so that nobody can say whose the entries of the log, the snapshots and the backups are. A later visit is a new shopper's. Unknown shoppers get 204, too. */
  eraseShopper: { takes: { body: Erasure }; answer: null };
  /** Events as server-sent events; their data has the schema Event, and their names are activated, alarm-cleared, category-values-added, chosen, clock-moved, corrected, evicted, expired, items-changed, items-declined, late-outcome, learner-adopted, learner-reset, learner-swapped, measured, offered, placement-deleted, placement-put, relearning-begun, relearning-ended, rolled-back, version-saved. The id of an event is its entry in the log; ids are missing that belong to other placements. With Last-Event-ID the events after it come first, from the log: 410 if they were removed. Otherwise they begin now. */
  events: { takes: { query?: { "placement"?: string | number | boolean | undefined } | undefined; header?: { "Last-Event-ID"?: string | number | boolean | undefined } | undefined }; answer: Response };
  /** The experiment of a placement, if one runs, and the last ones that have ended: what the variants earned, the differences with intervals that may be looked at any time, whether the units are divided rightly, and what the stop rule says. It begins, changes and ends with the configuration of the placement, by its mode experiment. */
  experiment: { takes: { path: { name: string }; query?: { "entry"?: string | number | boolean | undefined } | undefined }; answer: Experiments };
  /** The page about an experiment that runs, or one of the last that ended, by the entry that began it: one file that prints well, for people without a desk. */
  experimentReport: { takes: { path: { name: string; experiment: string }; query?: { "entry"?: string | number | boolean | undefined } | undefined }; answer: Response };
  /** Why a decision that is remembered shows what it shows: utilities by feature, the best other set, what rules cost. */
  explain: { takes: { path: { name: string; id: string }; query?: { "search"?: string | number | boolean | undefined; "entry"?: string | number | boolean | undefined } | undefined }; answer: Explanation };
  /** The decisions of a placement that are in the log, with their outcomes, a line of JSON each, as vitrine export writes them. A deleted placement of the same name does not count. Four exports run at a time, two of them with the same key; one more gets 503. An export ends if its reader stops reading for ten seconds. */
  export: { takes: { path: { name: string } }; answer: Response };
  /** A decision that is remembered, and its outcome. */
  getDecision: { takes: { path: { name: string; id: string }; query?: { "search"?: string | number | boolean | undefined; "entry"?: string | number | boolean | undefined } | undefined }; answer: Decision };
  /** An item of the catalogue that the placement uses. */
  getItem: { takes: { path: { name: string; item: string }; query?: { "entry"?: string | number | boolean | undefined } | undefined }; answer: CatalogueItem };
  /** The configuration of a placement, with its defaults filled in, and its ETag. */
  getPlacement: { takes: { path: { name: string }; query?: { "entry"?: string | number | boolean | undefined } | undefined }; answer: Placement };
  /** Who a page of the desk is signed in as: its key's name, scopes and placements. Nobody is no error. */
  getSession: { takes: {}; answer: Session };
  /** Who changed what of a placement and when, from the log, and the alarms of its guard. */
  history: { takes: { path: { name: string }; query?: { "entry"?: string | number | boolean | undefined } | undefined }; answer: History };
  /** What a placement has sold, by item and by place, and what its policy has learned: utilities, effects of features, calibration. It is computed at most once in three seconds. */
  insight: { takes: { path: { name: string }; query?: { "entry"?: string | number | boolean | undefined } | undefined }; answer: Insight };
  /** Keep what the placement has learned as a version to roll back to. The answer has its number. If that state is a version already, the answer has its number: a version of the timer gets the note and stays, a version with a note keeps its own. */
  keepVersion: { takes: { path: { name: string }; body: Note }; answer: Kept };
  /** A page of the catalogue that the placement uses. */
  listItems: { takes: { path: { name: string }; query?: { "from"?: string | number | boolean | undefined; "limit"?: string | number | boolean | undefined; "entry"?: string | number | boolean | undefined } | undefined }; answer: ItemPage };
  /** The names, scopes and placements of the keys. Their tokens are stored nowhere. */
  listKeys: { takes: {}; answer: KeyList };
  /** The placements that the key is for, by name. */
  listPlacements: { takes: { query?: { "entry"?: string | number | boolean | undefined } | undefined }; answer: PlacementList };
  /** The policies that a placement may have, and the families of utilities, with their parameters. */
  listPolicies: { takes: {}; answer: PolicyList };
  /** The versions of a placement to roll back to, the oldest first, with the warnings of a roll back. */
  listVersions: { takes: { path: { name: string }; query?: { "entry"?: string | number | boolean | undefined } | undefined }; answer: VersionList };
  /** Report what an experiment compares besides revenue, by the names of its metrics, before the outcome of the decision: 409 after it. Other names are ignored, so a caller may report them whether or not an experiment runs. 403 with a public key. */
  measure: { takes: { path: { name: string; id: string }; body: Measurements }; answer: null };
  /** What the learner has learned, as it saves itself, with the configuration of a learner that reads it. */
  model: { takes: { path: { name: string }; query?: { "entry"?: string | number | boolean | undefined } | undefined }; answer: LearnerState };
  /** Report what became of a decision. The choice is the id of the item that was taken, or null for none. If several items were taken, or several units of one, choices take its place. Reporting the same again changes nothing. An outcome that comes after the decision has ended gets 200: it is recorded and its revenue counts, but the policy does not learn from it. That works for as long as the placement remembers the decision, which depends on the placement's memory; later it is 404. With a public key choices must not set values, nor quantities above 20. */
  outcome: { takes: { path: { name: string; id: string }; body: Outcome }; answer: LateOutcome | null };
  /** A page of the placements that the key is for, those in trouble first and then by name: how they are, what they earn and did over time. */
  overview: { takes: { query?: { "contains"?: string | number | boolean | undefined; "name"?: string | number | boolean | undefined; "from"?: string | number | boolean | undefined; "limit"?: string | number | boolean | undefined; "seconds"?: string | number | boolean | undefined; "points"?: string | number | boolean | undefined; "entry"?: string | number | boolean | undefined } | undefined }; answer: Overview };
  /** Change some fields of items, such as prices. Features, attributes and the members of a payload are merged by name, and null removes one. Null gives groups, available, valid_from, valid_until and a whole payload their defaults: valid_until no end, for example. To return revenue or space to the default, send 1. Items that the catalogue does not have are named in the answer. */
  patchItems: { takes: { path: { name: string }; body: ItemList }; answer: ItemsChanged };
  /** Azure Personalizer's Activate. */
  personalizerActivate: { takes: { path: { version: string; event: string } }; answer: null };
  /** Azure Personalizer's multi-slot Activate. */
  personalizerActivateSlots: { takes: { path: { version: string; event: string } }; answer: null };
  /** Azure Personalizer's service configuration. */
  personalizerGetService: { takes: { path: { version: string } }; answer: Service };
  /** Azure Personalizer's properties of the model. */
  personalizerModelProperties: { takes: { path: { version: string } }; answer: Model };
  /** Azure Personalizer's change of the service configuration. */
  personalizerPutService: { takes: { path: { version: string }; body: ServiceChange }; answer: Service };
  /** Azure Personalizer's Rank. */
  personalizerRank: { takes: { path: { version: string }; body: Rank }; answer: Ranked };
  /** Azure Personalizer's multi-slot Rank. */
  personalizerRankSlots: { takes: { path: { version: string }; body: SlotsRank }; answer: SlotsRanked };
  /** Azure Personalizer's reset of the model. */
  personalizerResetModel: { takes: { path: { version: string } }; answer: null };
  /** Azure Personalizer's Reward. */
  personalizerReward: { takes: { path: { version: string; event: string }; body: EventReward }; answer: null };
  /** Azure Personalizer's multi-slot Reward. */
  personalizerRewardSlots: { takes: { path: { version: string; event: string }; body: SlotRewards }; answer: null };
  /** Azure Personalizer's Activate, for a placement. */
  placementPersonalizerActivate: { takes: { path: { name: string; version: string; event: string } }; answer: null };
  /** Azure Personalizer's multi-slot Activate, for a placement. */
  placementPersonalizerActivateSlots: { takes: { path: { name: string; version: string; event: string } }; answer: null };
  /** Azure Personalizer's service configuration, for a placement. */
  placementPersonalizerGetService: { takes: { path: { name: string; version: string } }; answer: Service };
  /** Azure Personalizer's properties of the model, for a placement. */
  placementPersonalizerModelProperties: { takes: { path: { name: string; version: string } }; answer: Model };
  /** Azure Personalizer's change of the service configuration, for a placement. */
  placementPersonalizerPutService: { takes: { path: { name: string; version: string }; body: ServiceChange }; answer: Service };
  /** Azure Personalizer's Rank, for a placement. */
  placementPersonalizerRank: { takes: { path: { name: string; version: string }; body: Rank }; answer: Ranked };
  /** Azure Personalizer's multi-slot Rank, for a placement. */
  placementPersonalizerRankSlots: { takes: { path: { name: string; version: string }; body: SlotsRank }; answer: SlotsRanked };
  /** Azure Personalizer's reset of the model, for a placement. */
  placementPersonalizerResetModel: { takes: { path: { name: string; version: string } }; answer: null };
  /** Azure Personalizer's Reward, for a placement. */
  placementPersonalizerReward: { takes: { path: { name: string; version: string; event: string }; body: EventReward }; answer: null };
  /** Azure Personalizer's multi-slot Reward, for a placement. */
  placementPersonalizerRewardSlots: { takes: { path: { name: string; version: string; event: string }; body: SlotRewards }; answer: null };
  /** How long an experiment would take to show a gain, by the revenue that the placement had in the last four weeks. An experiment that runs longer shows smaller gains: for half the gain it takes four times as long. */
  planExperiment: { takes: { path: { name: string }; query?: { "shares"?: string | number | boolean | undefined; "gains"?: string | number | boolean | undefined; "entry"?: string | number | boolean | undefined } | undefined }; answer: ExperimentPlan };
  /** What a PUT of this configuration would do: its defaults, and what becomes of the learner. Nothing changes. */
  previewPlacement: { takes: { path: { name: string }; header?: { "If-Match"?: string | number | boolean | undefined; "If-None-Match"?: string | number | boolean | undefined } | undefined; body: Placement }; answer: Preview };
  /** Put items into the placement's catalogue. Items with an id that it has are replaced, the others stay. A body of up to 256 KiB becomes durable as a whole; a larger one in parts, in its order. */
  putItems: { takes: { path: { name: string }; body: ItemList }; answer: ItemsChanged };
  /** Create or change a placement. A change of its features, size, policy, horizon or seed would begin its learner again: 409 with the problem loss, which says what would be lost, unless the query has reset=true or relearn=log. The learner before is then kept as a version. The ETag of the answer is for If-Match. A configuration that the placement has already is no change and gets 200, even if If-Match or If-None-Match does not hold, so that a PUT may be repeated. */
  putPlacement: { takes: { path: { name: string }; query?: { "reset"?: string | number | boolean | undefined; "relearn"?: string | number | boolean | undefined } | undefined; header?: { "If-Match"?: string | number | boolean | undefined; "If-None-Match"?: string | number | boolean | undefined } | undefined; body: Placement }; answer: Placement };
  /** Report what became of a decision by numbers: what items shown have earned, as shares of a choice. They become a choice of at most one item by chance, which is the rewards in expectation. If they sum to more than 1, they are divided by the sum: report several sales as an outcome with choices. The decision stays open for items without a reward. The first reward of an item counts; later ones, and rewards after the attribution window, get 204 and change nothing. */
  rewards: { takes: { path: { name: string; id: string }; body: Rewards }; answer: null };
  /** Return a placement to one of its versions: it forgets what it has learned since, and gets the configuration of the version's learner if that is another one. The state before is kept as a version. The ETag changes only if the configuration does: If-Match doesn't notice another roll back. */
  rollBack: { takes: { path: { name: string }; header?: { "If-Match"?: string | number | boolean | undefined; "If-None-Match"?: string | number | boolean | undefined } | undefined; body: Rollback }; answer: null };
  /** What a placement did over time: decisions, revenue a decision, and how much more the policy has earned than chance or the baseline. The service sums seconds, which become longer as they age: at most a thirty-second of their age. */
  series: { takes: { path: { name: string }; query?: { "seconds"?: string | number | boolean | undefined; "points"?: string | number | boolean | undefined; "entry"?: string | number | boolean | undefined } | undefined }; answer: Series };
  /** A page of the items that the placement may show, with what they have sold and why they are not shown: those of its catalogue, and then others that were shown. */
  shelf: { takes: { path: { name: string }; query?: { "contains"?: string | number | boolean | undefined; "only"?: string | number | boolean | undefined; "sort"?: string | number | boolean | undefined; "id"?: readonly string[] | undefined; "from"?: string | number | boolean | undefined; "limit"?: string | number | boolean | undefined; "entry"?: string | number | boolean | undefined } | undefined }; answer: Shelf };
  /** Begin a session of the desk: the cookie of the answer stands for the key, in requests of the service's own pages, for twelve hours or until the key is removed. Other callers send the key with each request. */
  signIn: { takes: { body: SignIn }; answer: Session };
  /** End the session of the request's cookie. */
  signOut: { takes: {}; answer: null };
  /** The counters of a placement: decisions, outcomes, learning, calibration, revenue. */
  stats: { takes: { path: { name: string }; query?: { "entry"?: string | number | boolean | undefined } | undefined }; answer: Stats };
  /** The answer that a request would get now, and why. Nothing is recorded and nothing is learned. In the mode shadow a request without a baseline gets the policy's set. */
  tryRequest: { takes: { path: { name: string }; query?: { "entry"?: string | number | boolean | undefined } | undefined; body: DecideRequest }; answer: Trial };
}

export const routes: { readonly [K in keyof Routes]: readonly [method: string, path: string, mediaType?: string] } = {
  activate: ["POST", "/v1/placements/{name}/decisions/{id}/activate"],
  clearAlarm: ["DELETE", "/v1/placements/{name}/alarm"],
  correct: ["POST", "/v1/placements/{name}/decisions/{id}/corrections"],
  decide: ["POST", "/v1/placements/{name}/decisions"],
  deleteItem: ["DELETE", "/v1/placements/{name}/items/{item}"],
  deleteItems: ["DELETE", "/v1/placements/{name}/items"],
  deletePlacement: ["DELETE", "/v1/placements/{name}"],
  eraseShopper: ["POST", "/v1/erasures"],
  events: ["GET", "/v1/events", "text/event-stream"],
  experiment: ["GET", "/v1/placements/{name}/experiment"],
  experimentReport: ["GET", "/v1/placements/{name}/experiment/{experiment}/report", "text/html"],
  explain: ["GET", "/v1/placements/{name}/decisions/{id}/explanation"],
  export: ["GET", "/v1/placements/{name}/export", "application/x-ndjson"],
  getDecision: ["GET", "/v1/placements/{name}/decisions/{id}"],
  getItem: ["GET", "/v1/placements/{name}/items/{item}"],
  getPlacement: ["GET", "/v1/placements/{name}"],
  getSession: ["GET", "/v1/session"],
  history: ["GET", "/v1/placements/{name}/history"],
  insight: ["GET", "/v1/placements/{name}/insight"],
  keepVersion: ["POST", "/v1/placements/{name}/versions"],
  listItems: ["GET", "/v1/placements/{name}/items"],
  listKeys: ["GET", "/v1/keys"],
  listPlacements: ["GET", "/v1/placements"],
  listPolicies: ["GET", "/v1/policies"],
  listVersions: ["GET", "/v1/placements/{name}/versions"],
  measure: ["POST", "/v1/placements/{name}/decisions/{id}/metrics"],
  model: ["GET", "/v1/placements/{name}/model"],
  outcome: ["POST", "/v1/placements/{name}/decisions/{id}/outcome"],
  overview: ["GET", "/v1/overview"],
  patchItems: ["PATCH", "/v1/placements/{name}/items"],
  personalizerActivate: ["POST", "/personalizer/{version}/events/{event}/activate"],
  personalizerActivateSlots: ["POST", "/personalizer/{version}/multislot/events/{event}/activate"],
  personalizerGetService: ["GET", "/personalizer/{version}/configurations/service"],
  personalizerModelProperties: ["GET", "/personalizer/{version}/model/properties"],
  personalizerPutService: ["PUT", "/personalizer/{version}/configurations/service"],
  personalizerRank: ["POST", "/personalizer/{version}/rank"],
  personalizerRankSlots: ["POST", "/personalizer/{version}/multislot/rank"],
  personalizerResetModel: ["DELETE", "/personalizer/{version}/model"],
  personalizerReward: ["POST", "/personalizer/{version}/events/{event}/reward"],
  personalizerRewardSlots: ["POST", "/personalizer/{version}/multislot/events/{event}/reward"],
  placementPersonalizerActivate: ["POST", "/v1/placements/{name}/personalizer/{version}/events/{event}/activate"],
  placementPersonalizerActivateSlots: ["POST", "/v1/placements/{name}/personalizer/{version}/multislot/events/{event}/activate"],
  placementPersonalizerGetService: ["GET", "/v1/placements/{name}/personalizer/{version}/configurations/service"],
  placementPersonalizerModelProperties: ["GET", "/v1/placements/{name}/personalizer/{version}/model/properties"],
  placementPersonalizerPutService: ["PUT", "/v1/placements/{name}/personalizer/{version}/configurations/service"],
  placementPersonalizerRank: ["POST", "/v1/placements/{name}/personalizer/{version}/rank"],
  placementPersonalizerRankSlots: ["POST", "/v1/placements/{name}/personalizer/{version}/multislot/rank"],
  placementPersonalizerResetModel: ["DELETE", "/v1/placements/{name}/personalizer/{version}/model"],
  placementPersonalizerReward: ["POST", "/v1/placements/{name}/personalizer/{version}/events/{event}/reward"],
  placementPersonalizerRewardSlots: ["POST", "/v1/placements/{name}/personalizer/{version}/multislot/events/{event}/reward"],
  planExperiment: ["GET", "/v1/placements/{name}/experiment/plan"],
  previewPlacement: ["POST", "/v1/placements/{name}/preview"],
  putItems: ["PUT", "/v1/placements/{name}/items"],
  putPlacement: ["PUT", "/v1/placements/{name}"],
  rewards: ["POST", "/v1/placements/{name}/decisions/{id}/rewards"],
  rollBack: ["POST", "/v1/placements/{name}/rollback"],
  series: ["GET", "/v1/placements/{name}/series"],
  shelf: ["GET", "/v1/placements/{name}/shelf"],
  signIn: ["POST", "/v1/session"],
  signOut: ["DELETE", "/v1/session"],
  stats: ["GET", "/v1/placements/{name}/stats"],
  tryRequest: ["POST", "/v1/placements/{name}/try"],
};
