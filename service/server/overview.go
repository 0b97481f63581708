package server

import (
	"net/http"
	"slices"
	"strings"
	"time"

	"vitrine/service/api"
	"vitrine/service/health"
)

// period reads the time span and the number of points from the query.
func (c *call) period() (span time.Duration, points int, err error) {
	seconds, err := c.whole("seconds", 0, 0, 1<<30)
	if err != nil {
		return 0, 0, err
	}
	points, err = c.whole("points", 120, 1, 1000)
	return time.Duration(seconds) * time.Second, points, err
}

func (s *Server) series(c *call) error {
	span, points, err := c.period()
	if err != nil {
		return err
	}
	return c.reply(s.engine.Series(c.placement, c.now, span, points))
}

func (s *Server) overview(c *call) error {
	from, limit, err := c.part(20, maxOverview)
	if err != nil {
		return err
	}
	span, points, err := c.period()
	if err != nil {
		return err
	}
	contains := strings.ToLower(c.URL.Query().Get("contains"))
	page := api.Overview{Now: time.Unix(0, c.now).UTC(), Placements: []api.OverviewEntry{}}
	if c.key.Placements == nil {
		page.Health = s.serviceHealth()
	}
	var all []string
	only := c.URL.Query().Get("name")
	for _, name := range s.engine.Placements() {
		if c.mine(name) && strings.Contains(strings.ToLower(name), contains) && (only == "" || name == only) {
			all = append(all, name)
		}
	}
	page.Total = len(all)
	slices.Sort(all)
	if trouble := s.inTrouble.Load(); trouble != nil {
		rank := func(name string) int {
			if (*trouble)[name] {
				return 0
			}
			return 1
		}
		slices.SortStableFunc(all, func(a, b string) int { return rank(a) - rank(b) })
	}
	for _, name := range all[min(from, len(all)):min(from+limit, len(all))] {
		entry, err := s.overviewOf(name, c.now, span, points)
		if err != nil {
			continue // deleted meanwhile
		}
		page.Placements = append(page.Placements, entry)
	}
	return c.answerJSON(http.StatusOK, page)
}

// maxOverview is the max number of placements of a page of the overview.
const maxOverview = 100

func (s *Server) overviewOf(name string, now int64, span time.Duration, points int) (e api.OverviewEntry, err error) {
	config, err := s.engine.Config(name)
	if err != nil {
		return e, err
	}
	stats, err := s.engine.Stats(name)
	if err != nil {
		return e, err
	}
	e = api.OverviewEntry{Name: name, Mode: stats.Mode, Decisions: stats.Decisions}
	answer := config.Answer()
	e.Policy, _ = answer.Policy["name"].(string)
	if e.Series, err = s.engine.Series(name, now, span, points); err != nil {
		return e, err
	}
	recent, err := s.engine.Recent(name, now, span)
	if err != nil {
		return e, err
	}
	e.Rate, e.Gains, e.ByPolicy, e.Latency = recent.Rate, recent.Gains, recent.Policy, recent.Latency
	e.Currency, e.Holdout, e.Explore = config.Currency, config.Holdout, config.Watch().Explore
	if config.ExploreShare != nil {
		e.Explored = *config.ExploreShare
	}
	mean, standardError := recent.Policy.Mean()
	if recent.Policy.Rounds > 0 {
		e.Revenue = &mean
	}
	if recent.Policy.Rounds > 1 {
		e.StandardError = &standardError
	}
	e.Unwatched = stats.Guard.Checks[0].Needs
	for _, check := range stats.Guard.Checks {
		if check.From == nil {
			e.Unwatched = min(e.Unwatched, check.Needs)
		}
	}
	if stats.Mode == api.Experimenting {
		if e.Experiment, err = s.experiment(name); err != nil {
			return e, err
		}
	}
	e.Health = append(health.OfExperiment(answer.Experiment, time.Unix(0, now)), health.Of(&stats, answer.Warnings)...)
	health.Sort(e.Health)
	return e, nil
}

// experiment summarises the report of a placement's experiment, or returns nil without one.
func (s *Server) experiment(name string) (*api.OverviewExperiment, error) {
	all, err := s.engine.Experiments(name)
	if err != nil || all.Experiment == nil {
		return nil, err
	}
	r := all.Experiment
	return &api.OverviewExperiment{Name: r.Name, Starts: r.Starts, Ends: r.Ends, Control: r.Control, Verdict: r.Verdict}, nil
}
