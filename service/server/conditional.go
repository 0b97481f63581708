package server

import (
	"net/http"
	"slices"
	"strconv"
	"strings"

	"vitrine/service/engine"
)

// tagOf returns the entity tag of a placement's configuration (RFC 9110, section 8.8.3).
func tagOf(revision uint64) string { return `"` + strconv.FormatUint(revision, 10) + `"` }

// change returns what the caller's key permits in a change of a placement, and the conditions of If-Match and
// If-None-Match.
func (c *call) change() (how engine.Change, err error) {
	how.Uses = c.mine
	wanted, err := tags(c.Header, "If-Match")
	if err != nil {
		return how, err
	}
	unwanted, err := tags(c.Header, "If-None-Match")
	if err != nil || wanted == nil && unwanted == nil {
		return how, err
	}
	how.Match = func(revision uint64) error {
		has := func(tags []string) bool {
			return revision > 0 && (slices.Contains(tags, tagOf(revision)) || slices.Contains(tags, "*"))
		}
		switch {
		case wanted != nil && !has(wanted) && revision == 0:
			return problemf(http.StatusPreconditionFailed, "precondition", "If-Match: there is no such placement")
		case wanted != nil && !has(wanted) && slices.Contains(wanted, "W/"+tagOf(revision)):
			return problemf(http.StatusPreconditionFailed, "precondition", "If-Match: the weak ETag W/%s, of a "+
				"proxy that compresses answers, never matches: send %[1]s", tagOf(revision))
		case wanted != nil && !has(wanted):
			return problemf(http.StatusPreconditionFailed, "precondition", "If-Match: the placement has changed, "+
				"its ETag is %s: get it again, and change what you then have", tagOf(revision))
		case has(unwanted):
			return problemf(http.StatusPreconditionFailed, "precondition", "If-None-Match: the placement is "+
				"there, its ETag is %s", tagOf(revision))
		}
		return nil
	}
	return how, nil
}

// tags returns a header's entity tags, or nil. Weak tags never match a placement.
func tags(h http.Header, name string) ([]string, error) {
	if len(h.Values(name)) == 0 {
		return nil, nil
	}
	list := []string{}
	for _, tag := range strings.Split(strings.Join(h.Values(name), ","), ",") {
		tag = strings.TrimSpace(tag)
		strong := strings.TrimPrefix(tag, "W/")
		if tag != "*" && (len(strong) < 2 || strong[0] != '"' || strong[len(strong)-1] != '"') {
			return nil, problemf(http.StatusBadRequest, "header", "%s: must be *, or entity tags such as %s, in "+
				"their quotes", name, tagOf(17))
		}
		list = append(list, tag)
	}
	return list, nil
}

// known sets an answer's entity tag. If the caller of GET or HEAD already holds the answer, known answers 304.
func (c *call) known(tag string) (bool, error) {
	have, err := tags(c.Header, "If-None-Match")
	if err != nil {
		return false, err
	}
	c.w.Header()["Etag"] = []string{tag}
	if c.Method != http.MethodGet && c.Method != http.MethodHead ||
		!slices.ContainsFunc(have, func(t string) bool { return t == "*" || strings.TrimPrefix(t, "W/") == tag }) {
		return false, nil
	}
	c.w.Header().Add("Vary", "Accept-Encoding") // as with 200
	c.begin(http.StatusNotModified)
	return true, nil
}
