package server

import (
	"net/http"

	"vitrine/service/desk"
)

var files = desk.Files()

// page answers with the desk's page, which draws what its address says.
func page(c *call) error {
	if c.server.options.Demo != nil {
		return c.file(desk.Demo)
	}
	return c.file(desk.Index)
}

// demonstrate answers with what the demonstration does.
func demonstrate(c *call) error {
	c.server.options.Demo.ServeHTTP(&c.w, c.WithContext(c.ctx))
	return nil
}

// asset answers with a file that the page loads.
func asset(c *call) error { return c.file("desk/" + c.PathValue("file")) }

func (c *call) file(name string) error {
	f, ok := files[name]
	if !ok {
		return problemf(http.StatusNotFound, "not-found", "the desk has no file %q", name)
	}
	h := c.w.Header()
	h.Set("Content-Security-Policy", desk.Policy)
	h.Set("Cache-Control", "no-cache") // kept, and asked for again with its tag
	if known, err := c.known(f.Tag); known || err != nil {
		return err
	}
	return c.answer(http.StatusOK, f.Type, f.Body)
}
