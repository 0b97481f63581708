package server

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"sync"

	"github.com/go-json-experiment/json"

	"vitrine/bandit/policy"
	"vitrine/internal/option"
	"vitrine/service/api"
)

// policies is the answer of /v1/policies, and its entity tag.
var policies = sync.OnceValues(func() (text []byte, tag string) {
	var list api.PolicyList
	for _, p := range policy.All {
		if p.Learner.Unfit != "" {
			continue // cannot be the policy of a placement
		}
		list.Policies = append(list.Policies, api.PolicyEntry{
			Name: p.Name, Doc: p.Doc, Choose: p.Choose, Offer: p.Offer, Round: p.Round,
			Default: p.Name == policy.Default,
			Options: optionsOf(p.Learner.Options, p.Serving),
		})
	}
	for _, f := range policy.Families {
		list.Utilities = append(list.Utilities, api.PolicyEntry{Name: f.Name, Doc: f.Doc,
			Options: optionsOf(f.Options, nil)})
	}
	text, err := json.Marshal(list, json.Deterministic(true))
	if err != nil {
		panic(fmt.Sprintf("server: the list of policies does not marshal: %v", err))
	}
	sum := sha256.Sum256(text)
	return text, `"` + hex.EncodeToString(sum[:8]) + `"`
})

// optionsOf describes settings. Their defaults in placements may differ from those in files.
func optionsOf(options []option.Option, serving map[string]any) []api.PolicyOption {
	list := []api.PolicyOption{}
	for _, o := range options {
		described := api.PolicyOption{Key: o.Key, Type: o.Type, Range: o.Range(), Default: o.Default, Doc: o.Doc}
		if v, ok := serving[o.Key]; ok {
			described.Default = v
		}
		list = append(list, described)
	}
	return list
}

func (s *Server) listPolicies(c *call) error {
	policies, tag := policies()
	if known, err := c.known(tag); known || err != nil {
		return err
	}
	return c.answer(http.StatusOK, asJSON, policies)
}
