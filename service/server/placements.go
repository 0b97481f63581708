package server

import (
	"fmt"
	"net/http"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"vitrine/service/api"
)

type placementList struct {
	Placements []placementEntry `json:"placements"`
}

type placementEntry struct {
	Name   string         `json:"name"`
	Config jsontext.Value `json:"config"`
}

type rollbackDocument struct {
	Version *uint64 `json:"version" doc:"one of the versions of the placement's statistics"`
}

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
	}
	return s.answerPlacement(c, status, name)
}

func (s *Server) getPlacement(c *call) error {
	return s.answerPlacement(c, http.StatusOK, c.PathValue("name"))
}

func (s *Server) answerPlacement(c *call, status int, name string) error {
	config, err := s.engine.Config(name)
	if err != nil {
		return err
	}
	return c.answer(status, asJSON, config.Canonical())
}

func (s *Server) deletePlacement(c *call) error {
	if err := s.engine.Delete(c.Context(), c.PathValue("name"), c.now); err != nil {
		return err
	}
	return c.nothing()
}

func (s *Server) listPlacements(c *call) error {
	list := placementList{Placements: []placementEntry{}}
	for _, name := range s.engine.Placements() {
		config, err := s.engine.Config(name)
		if err != nil || !c.mine(name) {
			continue // deleted meanwhile, or another's
		}
		list.Placements = append(list.Placements, placementEntry{name, config.Canonical()})
	}
	return c.answerJSON(list)
}

func (s *Server) stats(c *call) error {
	stats, err := s.engine.Stats(c.PathValue("name"))
	if err != nil {
		return err
	}
	return c.answerJSON(stats)
}

func (s *Server) rollBack(c *call) error {
	var r rollbackDocument
	if err := c.read(&r); err != nil {
		return err
	}
	if r.Version == nil {
		return &api.FieldError{Field: "/version", Message: "is missing: which of the versions of the placement's statistics to return to"}
	}
	if err := s.engine.RollBack(c.Context(), c.PathValue("name"), *r.Version, c.now); err != nil {
		return err
	}
	return c.nothing()
}

func (c *call) answerJSON(v any) error {
	body, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("an answer does not marshal: %w", err)
	}
	return c.answer(http.StatusOK, asJSON, body)
}

func (c *call) nothing() error {
	c.w.WriteHeader(http.StatusNoContent)
	return nil
}
