package server

import (
	"errors"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"vitrine/service/api"
	"vitrine/service/decision"
)

type outcomeDocument struct {
	Choice jsontext.Value `json:"choice"`
}

func (s *Server) decide(c *call) error {
	mediaType, err := c.mediaType(asJSON, asBinary)
	if err != nil {
		return err
	}
	name := c.PathValue("name")
	if _, err := s.engine.Config(name); err != nil { // before a body that is of no use
		return err
	}
	body, err := c.body()
	if err != nil {
		return err
	}
	a, err := s.decideBody(c, name, mediaType, body)
	for errors.Is(err, decision.ErrSchema) {
		a, err = s.decideBody(c, name, mediaType, body)
	}
	if err != nil {
		return err
	}
	status := http.StatusCreated
	if a.Repeated {
		status = http.StatusOK
	}
	b := c.scratch().AvailableBuffer()
	if mediaType == asBinary {
		return c.answer(status, asBinary, appendBinary(b, a))
	}
	return c.answer(status, asJSON, append(appendAnswer(append(b, '{'), a), '}'))
}

// decideBody reads a request by the schema that the placement has now, and decides it.
func (s *Server) decideBody(c *call, name, mediaType string, body []byte) (*decision.Answer, error) {
	config, err := s.engine.Config(name)
	if err != nil {
		return nil, err
	}
	var r *decision.Request
	var release func()
	if mediaType == asBinary {
		memory := binaryRequests.Get().(*binaryRequest)
		r, err = memory.parse(body, config)
		release = memory.release
	} else {
		parser := parsers.Get().(*decision.RequestParser)
		if r, err = parser.Parse(body, config); err != nil {
			err = malformed(body, err)
		}
		release = func() { parsers.Put(parser) }
	}
	if err != nil {
		return nil, err
	}
	a, err := s.engine.Decide(c.Context(), name, r, c.now)
	if err == nil {
		release()
	}
	return a, err
}

var parsers = sync.Pool{New: func() any { return new(decision.RequestParser) }}

// appendAnswer appends the members of an answer as JSON. What the policy has no
// estimate of, and a propensity without a closed form, is null.
func appendAnswer(b []byte, a *decision.Answer) []byte {
	b = append(b, `"decision_id":`...)
	b = appendText(b, a.Decision)
	b = append(b, `,"assortment":[`...)
	for k, id := range a.Shown {
		if k > 0 {
			b = append(b, ',')
		}
		b = append(b, `{"id":`...)
		b = appendText(b, id)
		b = append(b, `,"position":`...)
		b = strconv.AppendInt(b, int64(k+1), 10)
		b = append(b, `,"choice_probability":`...)
		if a.Probability == nil {
			b = append(b, "null"...)
		} else {
			b = appendNumber(b, a.Probability[k])
		}
		b = append(b, '}')
	}
	b = append(b, `],"outside_probability":`...)
	if a.Probability == nil {
		b = append(b, `null,"expected_revenue":null`...)
	} else {
		b = appendNumber(b, a.Outside)
		b = append(b, `,"expected_revenue":`...)
		b = appendNumber(b, a.Revenue)
	}
	b = append(b, `,"propensity":`...)
	if a.Propensity == 0 {
		b = append(b, "null"...)
	} else {
		b = appendNumber(b, a.Propensity)
	}
	b = append(b, `,"policy_version":`...)
	return strconv.AppendUint(b, a.PolicyVersion, 10)
}

func appendNumber(b []byte, v float64) []byte { return strconv.AppendFloat(b, v, 'g', -1, 64) }

func appendText(b []byte, s string) []byte {
	b, err := jsontext.AppendQuote(b, s)
	if err != nil {
		panic("server: " + err.Error()) // the engine takes valid UTF-8 alone
	}
	return b
}

func (s *Server) outcome(c *call) error {
	var o outcomeDocument
	if err := c.read(&o); err != nil {
		return err
	}
	item := ""
	switch o.Choice.Kind() {
	case 'n':
	case '"':
		text, err := jsontext.AppendUnquote(nil, o.Choice)
		if err != nil || len(text) == 0 {
			return choiceError
		}
		item = string(text)
	default:
		return choiceError
	}
	id := c.PathValue("id")
	placement, err := c.placementOf(id)
	if err != nil {
		return err
	}
	if err := s.engine.Outcome(c.Context(), placement, id, item, c.now); err != nil {
		return err
	}
	return c.nothing()
}

func (s *Server) activate(c *call) error {
	id := c.PathValue("id")
	placement, err := c.placementOf(id)
	if err != nil {
		return err
	}
	if err := s.engine.Activate(c.Context(), placement, id, c.now); err != nil {
		return err
	}
	return c.nothing()
}

var choiceError = &api.FieldError{Field: "/choice", Message: "must be the id of an item that was shown, or null for none"}

// by names how an assortment was found.
var by = map[uint8]string{decision.ByPolicy: "policy", decision.ByChance: "chance", decision.ByBaseline: "baseline"}

func (s *Server) getDecision(c *call) error {
	id := c.PathValue("id")
	placement, err := c.placementOf(id)
	if err != nil {
		return err
	}
	d, err := s.engine.Decision(c.Context(), placement, id)
	if err != nil {
		return err
	}
	b := append(c.scratch().AvailableBuffer(), '{')
	b = appendAnswer(b, d.Answer)
	b = append(b, `,"placement":`...)
	b = appendText(b, d.Answer.Placement)
	b = append(b, `,"by":`...)
	b = appendText(b, by[d.Answer.By])
	b = append(b, `,"time":`...)
	b = appendText(b, time.Unix(0, d.Time).UTC().Format(time.RFC3339Nano))
	b = append(b, `,"status":`...)
	b = appendText(b, d.Status)
	b = append(b, `,"choice":`...)
	if d.Choice == "" {
		b = append(b, "null"...)
	} else {
		b = appendText(b, d.Choice)
	}
	return c.answer(http.StatusOK, asJSON, append(b, '}'))
}
