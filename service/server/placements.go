package server

import (
	"fmt"
	"net/http"
	"net/url"

	"github.com/go-json-experiment/json"

	"vitrine/service/api"
)

func (s *Server) putPlacement(c *call) error {
	body, err := c.jsonBody()
	if err != nil {
		return err
	}
	name := c.PathValue("name")
	created, err := s.engine.Put(c.Context(), name, body, c.now)
	if err != nil {
		return malformed(body, err)
	}
	status := http.StatusOK
	if created {
		status = http.StatusCreated
		c.w.Header().Set("Location", placementPath(name))
	}
	return s.answerPlacement(c, status, name)
}

// placementPath returns the path of a placement.
func placementPath(name string) string { return "/v1/placements/" + url.PathEscape(name) }

func (s *Server) getPlacement(c *call) error {
	return s.answerPlacement(c, http.StatusOK, c.PathValue("name"))
}

func (s *Server) answerPlacement(c *call, status int, name string) error {
	config, err := s.engine.Config(name)
	if err != nil {
		return err
	}
	return c.answerJSON(status, config.Answer())
}

func (s *Server) deletePlacement(c *call) error {
	if err := s.engine.Delete(c.Context(), c.PathValue("name"), c.now); err != nil {
		return err
	}
	return c.nothing()
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
	return c.answerJSON(http.StatusOK, list)
}

func (s *Server) stats(c *call) error {
	stats, err := s.engine.Stats(c.PathValue("name"))
	if err != nil {
		return err
	}
	return c.answerJSON(http.StatusOK, stats)
}

func (s *Server) rollBack(c *call) error {
	var r api.Rollback
	if err := c.read(&r); err != nil {
		return err
	}
	if r.Version == 0 {
		return &api.FieldError{Field: "/version", Message: "is missing: which of the versions of the placement's statistics to return to"}
	}
	if err := s.engine.RollBack(c.Context(), c.PathValue("name"), r.Version, c.now); err != nil {
		return err
	}
	return c.nothing()
}

func (c *call) answerJSON(status int, v any) error {
	b := c.scratch()
	if err := json.MarshalWrite(b, v, json.Deterministic(true)); err != nil {
		return fmt.Errorf("an answer does not marshal: %w", err)
	}
	return c.answer(status, asJSON, b.Bytes())
}

func (c *call) nothing() error {
	c.w.WriteHeader(http.StatusNoContent)
	return nil
}
