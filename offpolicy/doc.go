// Package offpolicy estimates from a log of decisions how much another policy would have earned.
//
// A logged [Round] contains the items in a request, the page S_t that was shown, the choice, and the [SamplingLaw] μ
// from which the page was drawn. [Log.Evaluate] takes the pages that another policy would have shown for the same
// requests, and returns a [Report]: first the [Support], which lists the limits of the log, and then an [Estimate] of
// the revenue per page by each of these methods:
//
//	direct    the revenue that a fitted MNL model predicts; right if its family is right
//	dr-pi     doubly robust: direct, corrected by residuals with pseudo-inverse weights
//	pi        pseudo-inverse weights without a model
//	items     independent weights of items, as in Open Bandit Pipeline; biased, for comparison
//	snips     self-normalised weights of whole pages
//	dr-sets   doubly robust with weights of whole pages
//
// The last two give a number only if their effective sample size is at least [MinESS]: the probability of a whole page
// is about 10⁻⁵ for 3 of 30 items. Pseudo-inverse weights only require that items and pairs of items are shown together
// with positive probability. They assume that a page's earnings are the sum of its items' earnings (Swaminathan et al.
// 2017). That is wrong under MNL, where items compete. In dr-pi the assumption affects only the model's residual. We
// found no estimator for MNL pages with an outside option in the literature.
//
// Each estimate comes with intervals for a single look at the log, and with one that holds at any time: for all looks
// at a growing log together.
//
// [Replay] plays a learning policy on a log of uniformly drawn pages.
package offpolicy
