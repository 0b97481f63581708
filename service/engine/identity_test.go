package engine_test

import (
	"errors"
	"reflect"
	"testing"

	"vitrine/service/api"
	"vitrine/service/engine"
	"vitrine/service/eventlog/memlog"
	"vitrine/service/setup"
)

// A decision id belongs to one request: a request that differs from it in any field but the shopper's id gets a conflict.
// The test walks over the fields of api.Request, so that it fails for a new field that the identity of a request leaves out.
func TestEveryFieldIsPartOfTheRequest(t *testing.T) {
	e := opened(t, engine.Options{Store: new(memlog.Store), Build: setup.NewLearner})
	put(t, e, "home", clothes)
	items := func() (list []api.Item) {
		for _, id := range []string{"a", "b", "c"} {
			list = append(list, api.Item{ID: id, Features: api.Values{api.Number("price", 1), api.Text("brand", "a")},
				Revenue: new(2.0), Space: new(1.0)})
		}
		return list
	}
	limited := &api.Request{
		Items: items(), User: api.Values{api.Number("age", 30)}, MaxSize: 1, Include: []string{"a"},
		Exclude: []string{"b"}, Capacity: new(5.0),
		Limits: []api.Limit{{Items: []string{"a", "c"}, Max: new(1)}}, Baseline: []string{"c"}, ShopperID: "ann",
	}
	slotted := &api.Request{Items: items(), Slots: []api.Slot{{ID: "left", Exclude: []string{"b"}}, {ID: "right"}}}
	conflicts := map[string]bool{} // paths of fields
	for id, r := range map[string]*api.Request{"limited": limited, "slotted": slotted} {
		r.Decision = id
		decide(t, e, "home", r, 0)
		eachChange(reflect.ValueOf(r).Elem(), "", func(path string) {
			if path == ".Decision" || path == ".Public" { // of the caller's key, which the server judges
				return
			}
			a, err := e.Decide(t.Context(), "home", r, 0)
			if path == ".ShopperID" { // the log would reveal it
				if err != nil || !a.Decoded {
					t.Errorf("%s with another%s: %+v, %v, want the first answer", id, path, a, err)
				}
				return
			}
			switch {
			case errors.Is(err, engine.ErrConflict):
				conflicts[path] = true
			case !errors.Is(err, api.ErrInvalid): // such as a list of slots, one of them without an id
				t.Errorf("%s with another%s: %v, want a conflict", id, path, err)
			}
		})
		if a, err := e.Decide(t.Context(), "home", r, 0); err != nil || !a.Decoded {
			t.Errorf("%s again: %+v, %v", id, a, err)
		}
	}
	for _, path := range fieldsOf(reflect.TypeFor[api.Request](), "") {
		if path != ".Decision" && path != ".Public" && path != ".ShopperID" && !conflicts[path] {
			t.Errorf("no request differs in%s: give one of the requests of this test a value there", path)
		}
	}
}

// fieldsOf returns the paths of the fields of a type that are no structs.
func fieldsOf(t reflect.Type, path string) (paths []string) {
	switch {
	case t.Kind() == reflect.Slice && t != reflect.TypeFor[api.Values]() && t.Elem().Kind() == reflect.Struct:
		return append(fieldsOf(t.Elem(), path), path)
	case t.Kind() != reflect.Struct:
		return []string{path}
	}
	for f := range t.Fields() {
		paths = append(paths, fieldsOf(f.Type, path+"."+f.Name)...)
	}
	return paths
}

// eachChange calls visit with each field of v changed, one at a time.
func eachChange(v reflect.Value, path string, visit func(path string)) {
	try := func(other reflect.Value) {
		before := reflect.New(v.Type()).Elem()
		before.Set(v)
		v.Set(other)
		visit(path)
		v.Set(before)
	}
	switch x := v.Interface().(type) {
	case string:
		try(reflect.ValueOf(x + "x"))
		return
	case int:
		try(reflect.ValueOf(x + 1))
		return
	case bool:
		try(reflect.ValueOf(!x))
		return
	case *float64:
		try(reflect.ValueOf(new(3.5)))
		if x != nil {
			try(reflect.Zero(v.Type()))
		}
		return
	case *int:
		try(reflect.ValueOf(new(4)))
		if x != nil {
			try(reflect.Zero(v.Type()))
		}
		return
	case api.Values:
		if len(x) > 0 {
			other := append(api.Values{}, x...)
			other[0].Number++
			try(reflect.ValueOf(other))
		}
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			eachChange(v.Field(i), path+"."+v.Type().Field(i).Name, visit)
		}
	case reflect.Slice:
		if v.Len() == 0 {
			try(reflect.MakeSlice(v.Type(), 0, 0)) // a list that is left out is not an empty one
		}
		try(reflect.Append(v, reflect.Zero(v.Type().Elem())))
		if v.Type().Elem().Kind() == reflect.Struct {
			for i := range v.Len() {
				eachChange(v.Index(i), path, visit)
			}
		}
	default:
		panic("a field of a kind that this test does not change: " + path)
	}
}
