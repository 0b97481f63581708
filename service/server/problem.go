package server

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"

	"vitrine/internal/hint"
	"vitrine/service/api"
	"vitrine/service/budget"
	"vitrine/service/catalogue"
	"vitrine/service/engine"
	"vitrine/service/page"
	"vitrine/service/personalizer"
)

// problem is an error answer, plus facts for the service's output only.
type problem struct {
	api.Problem

	cause string // for the output
	retry string // Retry-After; "" sends "1" with a 503, and otherwise no header
}

func problemf(status int, kind, format string, args ...any) *problem {
	return &problem{Problem: *api.NewProblem(status, kind, fmt.Sprintf(format, args...))}
}

var errPanic = errors.New("panic")

// statusGone is logged for requests whose callers hung up, as in nginx.
const statusGone = 499

// known maps errors of the engine and of Personalizer's contract to answers.
var known = []struct {
	err    error
	status int
	kind   string
}{
	{engine.ErrNotFound, http.StatusNotFound, "not-found"},
	{engine.ErrConflict, http.StatusConflict, "conflict"},
	{engine.ErrWithdrawn, http.StatusConflict, "late"},
	{engine.ErrEvicted, http.StatusConflict, "evicted"},
	{engine.ErrNotShown, http.StatusUnprocessableEntity, "not-shown"},
	{engine.ErrRelearning, http.StatusConflict, "relearning"},
	{engine.ErrNotReady, http.StatusConflict, "not-ready"},
	{engine.ErrExperiment, http.StatusConflict, "experiment"},
	{engine.ErrMemory, http.StatusConflict, "memory"},
	{engine.ErrNoLeader, http.StatusServiceUnavailable, "no-leader"},
	{engine.ErrFollower, http.StatusServiceUnavailable, "follower"},
	{engine.ErrUnread, http.StatusServiceUnavailable, "unread"},
	{budget.ErrBusy, http.StatusServiceUnavailable, "busy"},
	{personalizer.ErrVersion, http.StatusNotFound, "no-route"},
}

// problemOf converts an error to a problem. The cause of an internal error goes only to the log.
func problemOf(err error) *problem {
	var p *problem
	if errors.As(err, &p) {
		return p
	}
	if given, ok := errors.AsType[*api.Problem](err); ok { // of the service that a demonstration asks
		return &problem{Problem: *given}
	}
	if field, ok := errors.AsType[*api.FieldError](err); ok {
		p := problemf(http.StatusUnprocessableEntity, "invalid", "%s", field.Error())
		if field.IsSyntax {
			p = problemf(http.StatusBadRequest, "malformed", "%s", field.Error())
		}
		at := url.URL{Fragment: strings.ToValidUTF8(field.Field, "\uFFFD")}
		p.Errors = []api.ProblemField{{Pointer: "#" + at.EscapedFragment(), Detail: field.Message}}
		return p
	}
	if loss, ok := errors.AsType[*engine.LossError](err); ok {
		return lossProblem(loss)
	}
	if busy, ok := errors.AsType[*catalogue.BusyError](err); ok {
		p := problemf(http.StatusTooManyRequests, "filters", "%s", busy)
		p.retry = strconv.Itoa(seconds(busy.After.Seconds()))
		return p
	}
	for _, k := range known {
		if errors.Is(err, k.err) {
			return problemf(k.status, k.kind, "%s", err)
		}
	}
	switch {
	case errors.Is(err, budget.ErrNever):
		return problemf(http.StatusRequestEntityTooLarge, "memory", "the request may need %s: send fewer items or "+
			"a shorter body, lower the columns or the memory_bytes of placements, or give the service more, in "+
			"[limits] memory", err)
	case errors.Is(err, page.ErrPolicy):
		p = problemf(http.StatusInternalServerError, "policy", "the policy of the placement failed on this request")
	case errors.Is(err, engine.ErrStopped):
		p = problemf(http.StatusServiceUnavailable, "stopped", "the service is stopping, or cannot write its log: "+
			"send the request again")
	case errors.Is(err, engine.ErrUnanswered): // callers and proxies repeat a 503
		p = problemf(http.StatusInternalServerError, "unanswered", "%v", engine.ErrUnanswered)
	case errors.Is(err, engine.ErrKeys):
		p = problemf(http.StatusServiceUnavailable, "shopper-keys", "%v: the service's output says why; send the request "+
			"again later", engine.ErrKeys)
	case errors.Is(err, context.Canceled): // only the service's output names this answer
		p = problemf(statusGone, "gone", "the caller went away")
		p.Title = "Client Closed Request"
	case errors.Is(err, context.DeadlineExceeded):
		p = problemf(http.StatusServiceUnavailable, "slow", "the answer took too long: send the request "+
			"again, with the same decision_id if it has one")
		if unfinished, ok := errors.AsType[*engine.UnfinishedError](err); ok {
			p.Detail = "the answer took too long: " + unfinished.What
		}
	default:
		p = problemf(http.StatusInternalServerError, "internal", "the service failed on this request")
	}
	p.cause = err.Error()
	return p
}

// lossProblem lists the losses of a change, and says how to make it all the same.
func lossProblem(loss *engine.LossError) *problem {
	if loss.Experiment != "" {
		p := problemf(http.StatusConflict, "loss", "%v. To ship a variant put its policy as that of the "+
			"placement: its learner continues. With ?reset=true the experiment ends all the same", loss)
		p.Lost = &loss.Loss
		p.Errors = []api.ProblemField{{Pointer: "#/experiment", Detail: "the learners of its variants end with it"}}
		return p
	}
	p := problemf(http.StatusConflict, "loss", "%v. %s. With ?reset=true the learner begins again. Either way, what it has learned is "+
		"kept as a version to roll back to", loss, relearning(loss))
	p.Lost = &loss.Loss
	for _, field := range loss.Fields {
		p.Errors = append(p.Errors, api.ProblemField{Pointer: "#/" + field, Detail: "the learner depends on it"})
	}
	return p
}

// relearning describes how much another learner can learn from the log.
func relearning(loss *engine.LossError) string {
	if loss.OtherRows {
		return "A learner of other features cannot learn from the log"
	}
	can := "?relearn=log trains a second learner on the log. It takes over once it has learned half as many rounds; " +
		"?relearn=accept lets it take over earlier"
	if loss.LogFrom > 0 {
		can += fmt.Sprintf(". The log no longer holds entries before %d", loss.LogFrom)
	}
	if loss.MaxSize > 0 {
		can += ". The second learner " + api.SkipsLarger(loss.MaxSize)
	}
	return can
}

// fail answers with a problem, unless an answer began already.
func (c *call) fail(err error) {
	p := *problemOf(err)
	p.RequestID = c.id
	c.problem = &p
	if c.w.status != 0 {
		return
	}
	if p.retry == "" && p.Status == http.StatusServiceUnavailable {
		p.retry = "1"
	}
	if p.retry != "" {
		c.w.Header().Set("Retry-After", p.retry)
	}
	p.Detail = readable(p.Detail)
	for i := range p.Errors {
		p.Errors[i].Detail = readable(p.Errors[i].Detail)
	}
	status, mediaType, document := p.Status, "application/problem+json", any(p.Problem)
	if c.contract != nil {
		mediaType = asJSON
		status, document = c.contract.Error(&p.Problem)
	}
	body, err := json.Marshal(document)
	if err != nil {
		panic(fmt.Sprintf("server: a problem does not marshal: %v", err))
	}
	_ = c.answer(status, mediaType, body)
}

// readable shortens a text that may quote the caller, and makes it printable.
func readable(text string) string {
	const maxBytes = 1000
	return hint.Message(api.CutMiddle(text, maxBytes))
}
