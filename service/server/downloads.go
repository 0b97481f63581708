package server

import (
	"fmt"
	"io"
	"net/http"
	"time"

	"vitrine/service/api"
)

const downloadWrite = 30 * time.Second // for a caller to read a part of a download

// downloadRoutes are what the desk offers to take away.
func (s *Server) downloadRoutes() []route {
	list := []route{{
		method: "GET", path: "/v1/placements/{name}/model", scope: ScopeRead, handle: s.model,
		id: "model", summary: "What the learner has learned, as it saves itself, with the configuration of a learner that reads it.",
		answers: map[int][]content{200: {jsonOf[api.LearnerState]("")}}, errors: []int{404},
	}}
	if s.options.Export != nil || s.several() {
		list = append(list, route{
			method: "GET", path: "/v1/placements/{name}/export", scope: ScopeRead, handle: s.export, stream: true,
			id: "export", summary: "The decisions of a placement that are in the log, with their outcomes, a line of JSON each, as vitrine export writes them. The service makes one export at a time: 503 during another one.",
			answers: map[int][]content{200: {{mediaType: asLines}}}, errors: []int{404},
		})
	}
	return list
}

func (s *Server) model(c *call) error {
	name := c.PathValue("name")
	m, err := c.shard.Engine.Model(c.Context(), name)
	if err != nil {
		return err
	}
	c.attach(name + ".model.json")
	return c.answerJSON(http.StatusOK, m)
}

// attach names the file in which a browser stores the answer.
func (c *call) attach(file string) {
	c.w.Header().Set("Content-Disposition", fmt.Sprintf("attachment; filename=%q", file)) // of a placement's name, which needs no escape
}

func (s *Server) export(c *call) error {
	name := c.PathValue("name")
	if c.shard.Export == nil {
		return noRoute
	}
	if _, err := c.shard.Engine.Config(name); err != nil {
		return err
	}
	if !s.exporting.TryLock() {
		return problemf(http.StatusServiceUnavailable, "busy", "another export is under way")
	}
	defer s.exporting.Unlock()
	c.attach(name + ".jsonl")
	h := c.w.Header()
	h.Set("Content-Type", asLines)
	h["Cache-Control"] = noStore
	if err := c.shard.Export(c.Context(), &download{&c.w, http.NewResponseController(&c.w)}, name); err != nil {
		if c.w.status == 0 {
			h.Del("Content-Disposition")
			return err
		}
		s.log.Warn("an export has broken off", "request_id", c.id, "cause", err.Error())
		panic(http.ErrAbortHandler) // so that the caller sees that the end is missing
	}
	if c.w.status == 0 {
		c.w.WriteHeader(http.StatusOK)
	}
	return nil
}

// download gives the caller time for each part of a long answer.
type download struct {
	w       io.Writer
	control *http.ResponseController
}

func (d *download) Write(b []byte) (int, error) {
	// An error means that deadlines are not supported, as in tests without a connection.
	_ = d.control.SetWriteDeadline(time.Now().Add(downloadWrite))
	return d.w.Write(b)
}
