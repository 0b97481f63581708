// Package option reads struct tags that describe options, so that an option's description and its legal range stand
// next to its field:
//
//	Lambda float64 `toml:"lambda" doc:"precision λ of the penalty" range:"[1e-9, inf)"`
//
// The tags are
//
//	toml   the key in files; "key,omitempty" leaves the zero value out of settings
//	doc    one line in plain English
//	range  the legal numbers as an interval, "[0, 1)" or "(0, inf)", or the legal words, "adam|map";
//	       in a list it applies to every element
//	zero   the meaning of the number 0 or of "", which is then legal regardless of the range
//	when   "schedule=theory": the range applies only if the option schedule is theory
//
// The fields of an embedded struct are options, too. The tags zero, range and doc of an embedded struct refine one of
// its options, as in "lambda: the paper's value".
package option

import (
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"vitrine/internal/hint"
)

// Option is an option and its default.
type Option struct {
	Key      string
	Type     string // "integer", "number", "string", "true or false", "list of integers" or "table"
	Default  any    // nil for a table
	Required bool   // whether files must set it
	Omitted  bool   // whether settings omit the zero value
	Doc      string

	Words []string  // legal words; nil for any word, and for numbers
	Legal *Interval // nil for any number

	zero  string
	when  [2]string // key and value; "" for always
	value reflect.Value
}

// List returns the options of a struct, in the order of its fields. The struct's values are the defaults. List panics
// if a tag is malformed or if files cannot represent a field.
func List(defaults any) []Option {
	if defaults == nil {
		return nil
	}
	return list(reflect.ValueOf(defaults))
}

func list(v reflect.Value) []Option {
	var all []Option
	for i := range v.NumField() {
		f := v.Type().Field(i)
		if f.Anonymous {
			embedded := list(v.Field(i))
			for _, tag := range []string{"zero", "range", "doc"} {
				key, text, ok := strings.Cut(f.Tag.Get(tag), ": ")
				if !ok {
					continue
				}
				at := slices.IndexFunc(embedded, func(o Option) bool { return o.Key == key })
				if at < 0 {
					panic(fmt.Sprintf("option: %v: %s has no option %q", v.Type(), f.Name, key))
				}
				switch o := &embedded[at]; tag {
				case "zero":
					o.zero = text
				case "range":
					o.limit(text)
				case "doc":
					o.Doc = text
				}
			}
			all = append(all, embedded...)
			continue
		}
		if key, _, _ := strings.Cut(f.Tag.Get("toml"), ","); key != "" {
			o := field(f, v.Field(i), key)
			_, tail, _ := strings.Cut(f.Tag.Get("toml"), ",")
			o.Omitted = tail == "omitempty"
			all = append(all, o)
		}
	}
	return all
}

func field(f reflect.StructField, v reflect.Value, key string) Option {
	o := Option{Key: key, Default: v.Interface(), Doc: f.Tag.Get("doc"), zero: f.Tag.Get("zero"), value: v}
	element := f.Type.Kind()
	if element == reflect.Slice {
		element = f.Type.Elem().Kind()
	}
	switch element {
	case reflect.Int, reflect.Int64:
		o.Type = "integer"
	case reflect.Float64:
		o.Type = "number"
	case reflect.String:
		o.Type = "string"
	case reflect.Bool:
		o.Type = "true or false"
	default:
		panic(fmt.Sprintf("option: %s is a %v, which files cannot hold", f.Name, f.Type))
	}
	if f.Type.Kind() == reflect.Slice {
		o.Type = "list of " + o.Type + "s"
	}
	if key, value, ok := strings.Cut(f.Tag.Get("when"), "="); ok {
		o.when = [2]string{key, value}
	}
	if legal := f.Tag.Get("range"); legal != "" {
		o.limit(legal)
	}
	return o
}

// limit parses a tag's range.
func (o *Option) limit(legal string) {
	t := o.value.Type()
	if t.Kind() == reflect.Slice {
		t = t.Elem()
	}
	if t.Kind() == reflect.String {
		o.Words = strings.Split(legal, "|")
	} else {
		o.Legal = parseInterval(legal, t.Kind() == reflect.Float64)
	}
}

// Check reports the first option of a struct outside its range, as "key = value: must be …". It panics as [List] does.
func Check(options any) error {
	all := List(options)
	for _, o := range all {
		if !o.demanded(all) {
			continue
		}
		if err := o.check(); err != nil {
			return err
		}
	}
	return nil
}

func (o Option) demanded(all []Option) bool {
	return o.when[0] == "" || slices.ContainsFunc(all, func(p Option) bool {
		return p.Key == o.when[0] && fmt.Sprint(p.Default) == o.when[1]
	})
}

func (o Option) check() error {
	if o.value.Kind() != reflect.Slice {
		return o.checkOne(o.value)
	}
	for i := range o.value.Len() {
		if err := o.checkOne(o.value.Index(i)); err != nil {
			return err
		}
	}
	return nil
}

func (o Option) checkOne(v reflect.Value) error {
	switch {
	case o.Words != nil:
		if !slices.Contains(o.Words, v.String()) && !(v.String() == "" && o.zero != "") {
			return fmt.Errorf("%s = %q: unknown%s", o.Key, v.String(), hint.Legal(v.String(), o.Words))
		}
	case o.Legal != nil:
		number := 0.0
		if v.CanInt() {
			number = float64(v.Int())
		} else {
			number = v.Float()
		}
		if !o.Legal.contains(number) && !(number == 0 && o.zero != "") {
			return fmt.Errorf("%s = %v: must be %s", o.Key, o.Default, o.Legal.demand(number)+o.orZero())
		}
	}
	return nil
}

func (o Option) orZero() string {
	if o.zero == "" {
		return ""
	}
	if o.Words != nil {
		return `, or "" for ` + o.zero
	}
	return ", or 0 for " + o.zero
}

// Range describes the legal values in words: "at least 0", "positive", "adam, map". It returns "" if any value of the
// type is legal.
func (o Option) Range() string {
	if o.Legal != nil {
		return o.Legal.String() + o.orZero()
	}
	return strings.Join(o.Words, ", ") + o.orZero()
}

// When returns the option, and its value, under which the range applies. The key is "" if the range always applies.
func (o Option) When() (key, value string) { return o.when[0], o.when[1] }

// Interval is a range of numbers. Float means that they need not be whole; all are within ±1e100.
type Interval struct {
	Low, High         float64
	OpenLow, OpenHigh bool
	Float             bool
}

func parseInterval(text string, float bool) *Interval {
	r := &Interval{Float: float}
	low, high, ok := strings.Cut(strings.Trim(text, "[]()"), ", ")
	var errLow, errHigh error
	r.Low, errLow = strconv.ParseFloat(low, 64)
	r.High, errHigh = strconv.ParseFloat(high, 64)
	if !ok || errLow != nil || errHigh != nil || !(r.Low < r.High) {
		panic(fmt.Sprintf("option: range %q: want an interval such as [0, 1) or (0, inf)", text))
	}
	r.OpenLow, r.OpenHigh = text[0] == '(', text[len(text)-1] == ')'
	return r
}

// largest bounds every number in size, so that products of a few options and their squares stay finite.
const largest = 1e100

func (r *Interval) contains(v float64) bool {
	return math.Abs(v) <= largest && (v > r.Low || v == r.Low && !r.OpenLow) && (v < r.High || v == r.High && !r.OpenHigh)
}

// demand returns an error's description of the legal numbers for one that is not.
func (r *Interval) demand(v float64) string {
	switch {
	case math.Abs(v) > largest && !math.IsInf(v, 0) && math.IsInf(r.High, 1):
		return fmt.Sprintf("at most %v", float64(largest))
	case r.Float && math.IsInf(r.High, 1):
		return "finite and " + r.String()
	}
	return r.String()
}

// String returns the range in words.
func (r *Interval) String() string {
	switch {
	case math.IsInf(r.High, 1) && r.OpenLow && r.Low == 0:
		return "positive"
	case math.IsInf(r.High, 1) && r.OpenLow:
		return fmt.Sprintf("above %v", r.Low)
	case math.IsInf(r.High, 1):
		return fmt.Sprintf("at least %v", r.Low)
	case r.OpenLow && r.OpenHigh:
		return fmt.Sprintf("between %v and %v", r.Low, r.High)
	case r.OpenLow:
		return fmt.Sprintf("above %v and at most %v", r.Low, r.High)
	case r.OpenHigh:
		return fmt.Sprintf("at least %v and below %v", r.Low, r.High)
	default:
		return fmt.Sprintf("from %s to %s", whole(r.Low), whole(r.High))
	}
}

// whole formats a number, without an exponent if it is whole and of everyday size.
func whole(v float64) string {
	if v == math.Trunc(v) && math.Abs(v) < 1e9 {
		return strconv.FormatFloat(v, 'f', -1, 64)
	}
	return strconv.FormatFloat(v, 'g', -1, 64)
}
