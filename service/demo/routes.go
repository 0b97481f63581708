package demo

import (
	"fmt"
	"math"
	"net/http"
	"slices"
	"strings"

	"vitrine/service/api"
)

// Routes returns the routes for the shop's page.
func (d *Demo) Routes() []api.Route {
	return []api.Route{
		{Pattern: "GET /demo/shop", Handle: d.shop},
		{Pattern: "GET /demo/state", Handle: d.state},
		{Pattern: "GET /demo/pictures/{file}", Handle: d.drawing},
		{Pattern: "PUT /demo/speed", Handle: d.speed},
		{Pattern: "POST /demo/visits", Handle: d.visitor},
		{Pattern: "POST /demo/visits/{decision}", Handle: d.choice},
	}
}

// shop returns the constant part: the products and the kinds of shoppers.
func (d *Demo) shop(api.Call) (any, error) {
	return struct {
		Products []product `json:"products"`
		Kinds    []string  `json:"kinds"`
		MaxSpeed float64   `json:"max_speed"`
	}{d.world.products, kinds, maxSpeed}, nil
}

// state returns the changing part.
func (d *Demo) state(api.Call) (any, error) {
	speed, served := d.pace.get()
	d.mu.Lock()
	defer d.mu.Unlock()
	return struct {
		Open   bool     `json:"open"`
		Speed  float64  `json:"speed"`
		Real   float64  `json:"real"`             // the speed at which shoppers were served lately
		Half   int      `json:"half"`             // the number of shoppers after which tastes change
		Last   *visited `json:"last"`             // null before the first shopper
		Totals []total  `json:"totals,omitempty"` // since the demonstration was started
		Curves curves   `json:"curves"`
	}{d.service.Load() != nil, speed, math.Round(10*served) / 10, d.world.half, d.last, slices.Clone(d.record.totals),
		d.record.curves()}, nil
}

// drawing is the picture of a product.
func (d *Demo) drawing(c api.Call) (any, error) {
	id, _ := strings.CutSuffix(c.PathValue("file"), ".svg")
	i, ok := d.at[id]
	if !ok {
		return nil, api.NewProblem(http.StatusNotFound, "not-found", fmt.Sprintf("there is no product %q", id))
	}
	return api.SVG(d.world.products[i].picture()), nil
}

func (d *Demo) speed(c api.Call) (any, error) {
	var body struct {
		Speed *float64 `json:"speed"`
	}
	if err := c.Decode(&body); err != nil {
		return nil, err
	}
	if body.Speed == nil || *body.Speed < 0 || *body.Speed > maxSpeed {
		return nil, api.Fieldf("/speed", "the speed must be from 0 to %d shoppers a second", maxSpeed)
	}
	d.pace.set(*body.Speed)
	return nil, nil
}

func (d *Demo) visitor(c api.Call) (any, error) {
	var body struct {
		Kind string `json:"kind"`
	}
	if err := c.Decode(&body); err != nil {
		return nil, err
	}
	kind, err := kindNamed(body.Kind)
	if err != nil {
		return nil, err
	}
	at, err := d.enterable()
	if err != nil {
		return nil, err
	}
	return at.enter(c.Context(), kind)
}

func (d *Demo) choice(c api.Call) (any, error) {
	var body struct {
		Taken string `json:"taken"` // "" if the visitor takes no product
	}
	if err := c.Decode(&body); err != nil {
		return nil, err
	}
	at, err := d.enterable()
	if err != nil {
		return nil, err
	}
	return at.take(c.Context(), c.PathValue("decision"), body.Taken)
}

// enterable returns the shop for a visitor, if it is open.
func (d *Demo) enterable() (visitor, error) {
	service := d.service.Load()
	if service == nil {
		return visitor{}, api.NewProblem(http.StatusServiceUnavailable, "closed", "the shop is not open yet: try "+
			"again in a second")
	}
	return visitor{service}, nil
}
