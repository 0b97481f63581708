package server

import (
	"net/http"
	"sync"

	"vitrine/service/api"
	"vitrine/service/desk"
)

// files is made when someone asks, as are the other documents here: an idle service then starts sooner and takes less
// memory.
var files = sync.OnceValue(desk.Files)

// desktop answers with the desk's page, which draws the view that its address names.
func desktop(c *call) error {
	if c.server.options.Demo != nil {
		return c.file(desk.Demo)
	}
	return c.file(desk.Index)
}

func demonstrated(of api.Route) handler {
	return func(c *call) error {
		switch answer, err := of.Handle(c); answer := answer.(type) {
		case nil:
			return c.done(err)
		case api.SVG:
			h := c.w.Header()
			h.Set("Content-Security-Policy", "default-src 'none'")
			h.Set("Cache-Control", "max-age=3600")
			return c.answer(http.StatusOK, "image/svg+xml", answer)
		default:
			return c.reply(answer, err)
		}
	}
}

// asset answers with a file that the page loads.
func asset(c *call) error { return c.file("desk/" + c.PathValue("file")) }

func (c *call) file(name string) error {
	f, ok := files()[name]
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
