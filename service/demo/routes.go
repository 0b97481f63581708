package demo

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"vitrine/service/api"
)

// path begins the paths of all routes of the demonstration.
const path = "/demo/"

// maxBody bounds the body of a request, in bytes.
const maxBody = 4096

// Handler answers what the page of the shop asks for.
func (d *Demo) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /demo/shop", d.shop)
	mux.HandleFunc("GET /demo/state", d.state)
	mux.HandleFunc("GET /demo/pictures/{file}", d.drawing)
	mux.HandleFunc("PUT /demo/speed", answering(d.speed))
	mux.HandleFunc("POST /demo/visits", answering(d.visitor))
	mux.HandleFunc("POST /demo/visits/{decision}", answering(d.choice))
	mux.HandleFunc(path, func(w http.ResponseWriter, r *http.Request) {
		refuse(w, http.StatusNotFound, "not-found", "the demonstration has nothing at this path and method")
	})
	return mux
}

// shop has what stays: the products and the kinds of shoppers.
func (d *Demo) shop(w http.ResponseWriter, r *http.Request) {
	type product struct {
		ID    string  `json:"id"`
		Title string  `json:"title"`
		Price float64 `json:"price"`
	}
	answer := struct {
		Products []product `json:"products"`
		Kinds    []string  `json:"kinds"`
		MaxSpeed float64   `json:"max_speed"`
	}{Kinds: kinds, MaxSpeed: maxSpeed}
	for _, p := range d.world.products {
		answer.Products = append(answer.Products, product{p.ID, p.Title, p.Price})
	}
	reply(w, answer)
}

// state has what moves.
func (d *Demo) state(w http.ResponseWriter, r *http.Request) {
	speed, _ := d.pace.get()
	d.mu.Lock()
	answer := struct {
		Open   bool     `json:"open"`
		Speed  float64  `json:"speed"`
		Real   float64  `json:"real"`             // the speed of the last two seconds
		Half   int      `json:"half"`             // the number of shoppers after which tastes change
		Last   *visited `json:"last"`             // null before the first shopper
		Totals []total  `json:"totals,omitempty"` // since the demonstration was started
		Curves curves   `json:"curves"`
	}{d.service.Load() != nil, speed, d.pace.real(), d.world.half, d.last, append([]total(nil), d.record.totals...), d.record.curves()}
	d.mu.Unlock()
	reply(w, answer)
}

// drawing is the picture of a product.
func (d *Demo) drawing(w http.ResponseWriter, r *http.Request) {
	id, _ := strings.CutSuffix(r.PathValue("file"), ".svg")
	i, ok := d.at[id]
	if !ok {
		refuse(w, http.StatusNotFound, "not-found", fmt.Sprintf("there is no product %q", id))
		return
	}
	h := w.Header()
	h.Set("Content-Type", "image/svg+xml")
	h.Set("Content-Security-Policy", "default-src 'none'")
	h.Set("Cache-Control", "max-age=3600")
	_, _ = w.Write(d.world.products[i].picture())
}

// answering returns the handler of a function that answers a body of JSON.
func answering[T any](answer func(r *http.Request, body T) (any, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		body, err := read[T](w, r)
		var v any
		if err == nil {
			v, err = answer(r, body)
		}
		switch {
		case err != nil:
			fail(w, err)
		case v == nil:
			w.WriteHeader(http.StatusNoContent)
		default:
			reply(w, v)
		}
	}
}

type speed struct {
	Speed *float64 `json:"speed"`
}

func (d *Demo) speed(_ *http.Request, body speed) (any, error) {
	if body.Speed == nil || *body.Speed < 0 || *body.Speed > maxSpeed {
		return nil, api.Fieldf("/speed", "the speed must be from 0 to %d shoppers a second", maxSpeed)
	}
	d.pace.set(*body.Speed)
	return nil, nil
}

type arrival struct {
	Kind string `json:"kind"`
}

func (d *Demo) visitor(r *http.Request, body arrival) (any, error) {
	kind, err := kindNamed(body.Kind)
	if err != nil {
		return nil, err
	}
	at, err := d.enterable()
	if err != nil {
		return nil, err
	}
	return at.enter(r.Context(), kind)
}

type choice struct {
	Taken string `json:"taken"` // "" for nothing
}

func (d *Demo) choice(r *http.Request, body choice) (any, error) {
	at, err := d.enterable()
	if err != nil {
		return nil, err
	}
	return at.take(r.Context(), r.PathValue("decision"), body.Taken)
}

var errClosed = &api.Problem{Type: api.ProblemType + "closed", Title: http.StatusText(http.StatusServiceUnavailable), Status: http.StatusServiceUnavailable, Detail: "the shop is not open yet: try again in a second"}

// enterable returns the shop for a visitor, if it is open.
func (d *Demo) enterable() (visitor, error) {
	service := d.service.Load()
	if service == nil {
		return visitor{}, errClosed
	}
	return visitor{service}, nil
}

// read reads a body of JSON.
func read[T any](w http.ResponseWriter, r *http.Request) (body T, err error) {
	in := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxBody))
	in.DisallowUnknownFields()
	if err := in.Decode(&body); err != nil {
		return body, api.Fieldf("", "the body is not what is expected here: %v", err)
	}
	return body, nil
}

func reply(w http.ResponseWriter, v any) {
	w.Header().Set("Cache-Control", "no-store")
	write(w, http.StatusOK, "application/json", v)
}

func write(w http.ResponseWriter, status int, kind string, v any) {
	text, err := json.Marshal(v)
	if err != nil {
		panic("vitrine/service/demo: " + err.Error())
	}
	w.Header().Set("Content-Type", kind)
	w.WriteHeader(status)
	_, _ = w.Write(text)
}

// fail answers with an error: that of the service as it is.
func fail(w http.ResponseWriter, err error) {
	if p := new(api.Problem); errors.As(err, &p) {
		refuse(w, p.Status, p.Kind(), p.Detail)
		return
	}
	if f := new(api.FieldError); errors.As(err, &f) {
		refuse(w, http.StatusUnprocessableEntity, "invalid", f.Error())
		return
	}
	refuse(w, http.StatusBadGateway, "service", err.Error())
}

func refuse(w http.ResponseWriter, status int, kind, detail string) {
	write(w, status, "application/problem+json", api.Problem{Type: api.ProblemType + kind, Title: http.StatusText(status), Status: status, Detail: detail})
}
