package server

import (
	"bytes"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"

	"vitrine/service/api"
	"vitrine/service/earnings/abtest"
	page "vitrine/service/report"
)

// plan says how long an experiment would take.
func (s *Server) plan(c *call) error {
	shares, err := c.numbers("shares", abtest.MaxVariants, 1)
	switch {
	case err != nil:
		return err
	case shares == nil:
		shares = []float64{0.5, 0.5}
	case len(shares) == 1:
		return api.Fieldf("/shares", "must have at least two numbers, the control's share first")
	}
	total := 0.0
	for _, share := range shares {
		total += share
	}
	if math.Abs(total-1) > 1e-9 {
		return api.Fieldf("/shares", "sum to %.4g: must sum to 1", total)
	}
	gains, err := c.numbers("gains", 20, 100)
	if err != nil {
		return err
	}
	return c.reply(s.engine.Plan(c.placement, shares, gains, c.now))
}

// numbers returns a parameter of the query that lists positive numbers, nil if it is left out.
func (c *call) numbers(name string, length int, most float64) (list []float64, err error) {
	text := c.URL.Query().Get(name)
	if text == "" {
		return nil, nil
	}
	for word := range strings.SplitSeq(text, ",") {
		v, err := strconv.ParseFloat(word, 64)
		if err != nil || !(v >= 0 && v <= most) || len(list) == length {
			return nil, api.Fieldf("/"+name, "%q: must be at most %d numbers from 0 to %v, with commas between",
				api.Abbreviate(text, 100), length, most)
		}
		list = append(list, v)
	}
	return list, nil
}

// experimentPage answers with the page about an experiment, for people without a desk.
func (s *Server) experimentPage(c *call) error {
	all, err := s.engine.Experiments(c.placement)
	if err != nil {
		return err
	}
	entry := c.PathValue("experiment")
	if all.Experiment != nil {
		all.Past = append(all.Past, *all.Experiment)
	}
	for i := range all.Past {
		if strconv.FormatUint(all.Past[i].Number, 10) != entry {
			continue
		}
		config, err := s.engine.Config(c.placement)
		if err != nil {
			return err
		}
		var text bytes.Buffer
		if err := page.Page(&text, c.placement, config.Currency, &all.Past[i], time.Unix(0, c.now)); err != nil {
			return err
		}
		c.w.Header().Set("Content-Security-Policy", page.Policy)
		return c.answer(http.StatusOK, asHTML, text.Bytes())
	}
	return problemf(http.StatusNotFound, "not-found", "placement %q has no experiment that began with the entry "+
		"%q: the last 10 that ended are kept", c.placement, entry)
}

const asHTML = "text/html; charset=utf-8"
