package server

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"time"

	"vitrine/internal/hint"
	"vitrine/service/alert"
	"vitrine/service/api"
	"vitrine/service/engine"
	"vitrine/service/health"
)

// observe logs problems when they begin, and tells the sender of alerts about open ones. Only the writing process reports
// placements' problems.
func (s *Server) observe() {
	problems := s.problems()
	names := map[string]bool{}
	for _, p := range problems {
		names[p.Placement] = true
	}
	s.inTrouble.Store(&names)
	problems = oneClock(problems)
	own := s.ownProblems()
	s.troubles.Log(slices.Concat(problems, own), s.clock(), s.log)
	a := s.options.Alerts
	if a == nil {
		return
	}
	for i := range own {
		own[i].Text = a.Here() + own[i].Text
	}
	a.Observe(a.Source("process"), own)
	placements := "placements of log " + s.engine.Log().String() // another service may use the same placement names
	if s.engine.Role() == engine.Follower {
		a.Follow(placements, problems)
		return
	}
	a.Observe(placements, problems)
}

// problems returns what is wrong with the placements.
func (s *Server) problems() (all []alert.Problem) {
	for _, name := range s.engine.Placements() {
		found, err := s.health(name)
		if err != nil {
			continue // deleted meanwhile
		}
		for _, h := range found {
			if h.Level == "bad" || h.Level == "warning" {
				all = append(all, alert.Problem{Placement: name, Level: h.Level, Key: h.Key, Text: h.Text})
			}
		}
	}
	return all
}

// oneClock replaces the findings that the clock moved, which many placements may share, by one that counts them.
func oneClock(problems []alert.Problem) []alert.Problem {
	isClock := func(p alert.Problem) bool { return p.Key == health.Clock }
	first := slices.IndexFunc(problems, isClock)
	if first < 0 {
		return problems
	}
	clock := problems[first]
	others := slices.DeleteFunc(problems, isClock)
	clock.Placement = ""
	clock.Text += fmt.Sprintf(" This concerns %s.", hint.Count(len(problems)-len(others), "placement"))
	return append(others, clock)
}

// ownProblems returns the problems of the process, and of the files that it reads while it runs.
func (s *Server) ownProblems() (all []alert.Problem) {
	if s.options.Problems != nil {
		all = s.options.Problems()
	}
	for _, f := range []struct{ key, cause string }{{"keys", s.keys.Problem()}, {"certificate", s.certificate.Problem()}} {
		if f.cause != "" {
			all = append(all, alert.Problem{Level: "bad", Key: f.key, Logged: true, Text: "A changed file cannot be read, and " +
				"its former content remains in force: " + f.cause + "."})
		}
	}
	if text := s.certificate.Expiry(); text != "" {
		all = append(all, alert.Problem{Level: "bad", Key: "expiry", Text: text})
	}
	return all
}

// health describes a placement's state for an operator.
func (s *Server) health(name string) ([]api.Health, error) {
	config, err := s.engine.Config(name)
	if err != nil {
		return nil, err
	}
	stats, err := s.engine.Stats(name)
	if err != nil {
		return nil, err
	}
	return health.Of(&stats, config.Answer().Warnings), nil
}

// serviceHealth describes the service's own state for an operator.
func (s *Server) serviceHealth() (all []api.Health) {
	for _, p := range s.ownProblems() {
		all = append(all, api.Health{Level: p.Level, Text: p.Text})
	}
	if s.options.Alerts == nil {
		return all
	}
	of := s.options.Alerts.Stats()
	if of.Failure != "" {
		all = append(all, api.Health{Level: "bad", Text: fmt.Sprintf("Alerts have not been delivered since %s, "+
			"and %d are waiting: %s.", of.Since.UTC().Format(time.DateTime), of.Waiting, of.Failure)})
	}
	if of.Dropped > 0 && s.clock().Sub(of.LastDrop) < time.Hour {
		all = append(all, api.Health{Level: "warning", Text: fmt.Sprintf("No alerts were sent for %d problems, "+
			"because too many stood at once.", of.Dropped)})
	}
	return all
}

// testAlert sends a test message and answers with the result.
func (s *Server) testAlert(c *call) error {
	begin := time.Now()
	ctx, cancel := context.WithTimeout(c.ctx, s.limits.Answer)
	defer cancel()
	if err := s.options.Alerts.Try(ctx); err != nil {
		p := problemf(http.StatusBadGateway, "alert", "the test was not delivered: %v", err)
		p.cause = err.Error()
		return p
	}
	return c.answerJSON(http.StatusOK, api.AlertTest{Seconds: time.Since(begin).Seconds()})
}
