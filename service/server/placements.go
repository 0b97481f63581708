package server

import (
	"net/http"
	"slices"
	"strings"

	"vitrine/service/api"
	"vitrine/service/engine"
)

func (s *Server) putPlacement(c *call) error {
	body, err := c.jsonBody()
	if err != nil {
		return err
	}
	how, err := c.putOptions()
	if err != nil {
		return err
	}
	created, err := s.engine.Change(c.ctx, c.placement, body, how, c.now)
	if err != nil {
		return api.InText(body, err)
	}
	if next, ok := s.engine.Relearning(c.placement); how.Relearn && ok {
		return c.answerJSON(http.StatusAccepted, next)
	}
	status := http.StatusOK
	if created {
		status = http.StatusCreated
		c.w.Header().Set("Location", api.PlacementPath(c.placement))
	}
	return s.answerPlacement(c, status)
}

// previewPlacement previews a PUT.
func (s *Server) previewPlacement(c *call) error {
	body, err := c.jsonBody()
	if err != nil {
		return err
	}
	how, err := c.change()
	if err != nil {
		return err
	}
	leave, err := c.turn() // not before the body is there
	if err != nil {
		return err
	}
	defer leave()
	preview, err := s.engine.Preview(c.ctx, c.placement, body, how, c.now)
	if err != nil {
		return api.InText(body, err)
	}
	return c.answerJSON(http.StatusOK, preview)
}

// putOptions reads the query and the headers of a PUT.
func (c *call) putOptions() (how engine.Change, err error) {
	if how, err = c.change(); err != nil {
		return how, err
	}
	query := c.URL.Query()
	switch given := query.Get("reset"); given {
	case "", "false":
	case "true":
		how.Reset = true
	default:
		return how, api.Fieldf("/reset", "%q: must be true or false", given)
	}
	switch given := query.Get("relearn"); {
	case given == "":
	case given != "log" && given != "accept":
		return how, api.Fieldf("/relearn", "%q: must be log or accept", given)
	case how.Reset:
		return how, api.Fieldf("/relearn", "%s: excludes reset=true, which forgets what relearn=log learns", given)
	default:
		how.Relearn, how.Accept = given == "log", given == "accept"
	}
	return how, nil
}

func (s *Server) getPlacement(c *call) error {
	return s.answerPlacement(c, http.StatusOK)
}

func (s *Server) answerPlacement(c *call, status int) error {
	config, revision, err := s.engine.Revision(c.placement)
	if err != nil {
		return err
	}
	if known, err := c.known(tagOf(revision)); known || err != nil {
		return err
	}
	return c.answerJSON(status, config.Answer())
}

func (s *Server) deletePlacement(c *call) error {
	how, err := c.change()
	if err != nil {
		return err
	}
	return c.done(s.engine.Delete(c.ctx, c.placement, &how, c.now))
}

func (s *Server) listPlacements(c *call) error {
	list := api.PlacementList{Placements: []api.PlacementEntry{}}
	for _, name := range s.engine.Placements() {
		config, err := s.engine.Config(name)
		if err != nil || !c.mine(name) {
			continue // deleted meanwhile, or another's
		}
		list.Placements = append(list.Placements, api.PlacementEntry{Name: name, Config: config.Answer()})
	}
	slices.SortFunc(list.Placements, func(a, b api.PlacementEntry) int { return strings.Compare(a.Name, b.Name) })
	return c.answerJSON(http.StatusOK, list)
}

func (s *Server) clearAlarm(c *call) error {
	learn := c.URL.Query().Get("learn")
	if learn != "" && learn != "all" {
		return api.Fieldf("/learn", `%q: must be "all", or left out`, learn)
	}
	return c.done(s.engine.ClearAlarm(c.ctx, c.placement, learn == "all", c.now))
}

func (s *Server) rollBack(c *call) error {
	var r api.Rollback
	if err := c.read(&r); err != nil {
		return err
	}
	if r.Version == 0 {
		return &api.FieldError{Field: "/version", Message: "is missing: which of the versions of the placement's " +
			"statistics to return to"}
	}
	how, err := c.change()
	if err != nil {
		return err
	}
	return c.done(s.engine.RollBack(c.ctx, c.placement, r.Version, &how, c.now))
}

func (s *Server) listVersions(c *call) error {
	list, err := s.engine.Versions(c.placement, c.now)
	return c.reply(api.VersionList{Versions: list}, err)
}

func (s *Server) keepVersion(c *call) error {
	var note api.Note
	if err := c.read(&note); err != nil {
		return err
	}
	if note.Note == "" {
		return &api.FieldError{Field: "/note", Message: "is missing: why the version is kept"}
	}
	number, err := s.engine.Keep(c.ctx, c.placement, note.Note, c.now)
	return c.reply(api.Kept{Version: number}, err)
}
