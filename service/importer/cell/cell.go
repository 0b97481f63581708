// Package cell reads the cells of a table: times, numbers, conditions and positions in the forms that programs write.
// Errors name the column.
package cell

import (
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"

	"vitrine/internal/table"
	"vitrine/service/api"
)

// Text returns a field as text.
func Text(v api.Value) string {
	if v.Kind == api.IsNumber {
		return table.FormatNumber(v.Number)
	}
	return v.Text
}

// Time returns the time in a field, 0 if it is empty. A time before 1970 is an error, and so is a number below 10⁸: it
// counts days, or from another beginning.
func Time(column string, v api.Value) (at int64, err error) {
	text := Text(v)
	if text == "" {
		return 0, nil
	}
	_, isNumber := Number(api.Text("", text))
	if at, err = Moment(text); err == nil && (at < 0 || isNumber && at > 0 && at < 1e8*int64(time.Second)) {
		err = fmt.Errorf("%.40q would be %s: write times as 2026-01-02T15:04:05Z or in seconds since 1970 (day d of "+
			"a spreadsheet is (d - 25569) * 86400), or ignore the column", text, time.Unix(0, at).UTC().Format(time.RFC3339))
	}
	if err != nil {
		return 0, fmt.Errorf("column %s: %w", column, err)
	}
	return at, nil
}

// Amount returns the number in a cell, nil if the cell or the column's name is empty.
func Amount(column string, v api.Value) (*float64, error) {
	if column == "" || v.Kind == api.Missing {
		return nil, nil
	}
	n, err := Typed("number", v)
	if err != nil {
		return nil, fmt.Errorf("column %s: %w", column, err)
	}
	if n.Kind == api.Missing {
		return nil, nil
	}
	return &n.Number, nil
}

// Flag parses a condition.
func Flag(column string, v api.Value) (bool, error) {
	switch strings.ToLower(Text(v)) {
	case "1", "true", "yes", "1.0":
		return true, nil
	case "", "0", "false", "no", "0.0":
		return false, nil
	}
	return false, fmt.Errorf("column %s: %.40q is neither 0 nor 1", column, Text(v))
}

// Position parses the position of an item on a page: 0 if it is not there, and last for "true".
func Position(column string, v api.Value, last float64) (float64, error) {
	switch text := strings.ToLower(Text(v)); text {
	case "", "false", "0":
		return 0, nil
	case "true":
		return last, nil
	default:
		n, err := strconv.ParseFloat(text, 64)
		if err != nil || !(n >= 0) {
			return 0, fmt.Errorf("column %s: %.40q is no position", column, text)
		}
		return n, nil
	}
}

// Typed returns a value as a feature of a kind takes it. A text that stands for no number, such as NA, is missing.
func Typed(kind string, v api.Value) (api.Value, error) {
	switch {
	case kind == "number" && v.Kind == api.IsText:
		n, err := table.ParseNumber(v.Text)
		if err != nil || math.IsInf(n, 0) {
			return v, fmt.Errorf("%.40q is not a finite number: write numbers as 1234.5", v.Text)
		}
		if math.IsNaN(n) {
			return api.Value{}, nil
		}
		return api.Number("", n), nil
	case kind == "number" && v.Kind == api.IsNumber && (math.IsNaN(v.Number) || math.IsInf(v.Number, 0)):
		return v, fmt.Errorf("%v is not a finite number", v.Number)
	case (kind == "category" || kind == "text") && v.Kind == api.IsNumber:
		return api.Text("", Text(v)), nil
	case (kind == "category" || kind == "text") && v.Kind == api.IsObject:
		return v, fmt.Errorf("%.40s is not a text: the values of hashed categories and of texts are not in an export",
			v.Text)
	case kind == "object" && v.Kind == api.IsText:
		return api.Object("", v.Text), nil
	}
	return v, nil
}

// IsColumns reports whether a value is the list of n columns that an export writes in place of a hashed value.
func IsColumns(v api.Value, n int) bool {
	var columns []float64
	return (v.Kind == api.IsText || v.Kind == api.IsObject) && strings.HasPrefix(v.Text, "[") &&
		json.Unmarshal([]byte(v.Text), &columns) == nil && len(columns) == n
}

// Probability parses a propensity, which must be in (0, 1].
func Probability(column string, v api.Value) (float64, error) {
	n, err := Typed("number", v)
	switch {
	case err == nil && n.Kind == api.Missing:
		return 0, fmt.Errorf("column %s: the propensity is missing", column)
	case err != nil:
		return 0, fmt.Errorf("column %s: the propensity %w", column, err)
	case !(n.Number > 0 && n.Number <= 1):
		return 0, fmt.Errorf("column %s: the propensity is %v: must be in (0, 1]", column, n.Number)
	}
	return n.Number, nil
}

// Moment parses a time: RFC 3339, the forms of other programs, or seconds, milliseconds, microseconds or nanoseconds
// since the year 1970. The size of an integer tells its unit: seconds are below 10¹¹, and each smaller unit is below a
// thousand times the bound of the one before.
func Moment(text string) (int64, error) {
	if n, err := strconv.ParseInt(text, 10, 64); err == nil {
		unit := int64(time.Second)
		for limit := int64(1e11); unit > 1 && (n >= limit || n <= -limit); limit *= 1000 {
			unit /= 1000
		}
		if n < math.MaxInt64/unit && n > math.MinInt64/unit {
			return n * unit, nil
		}
	} else if seconds, err := strconv.ParseFloat(text, 64); err == nil && math.Abs(seconds) < math.MaxInt64/1e9 {
		whole, fraction, _ := strings.Cut(text, ".")
		if n, err := strconv.ParseInt(whole+(fraction + "000000000")[:9], 10, 64); err == nil {
			return n, nil
		}
		return int64(seconds * 1e9), nil
	}
	for _, layout := range []string{time.RFC3339Nano, "2006-01-02 15:04:05.999999999Z07:00",
		"2006-01-02 15:04:05.999999999Z07", "2006-01-02 15:04:05.999999999 UTC", "2006-01-02 15:04:05.999999999",
		time.DateOnly, "2006-01-02 15:04:05.999999999Z0700", "2006-01-02T15:04:05.999999999Z0700",
		"2006-01-02T15:04:05.999999999", "1/2/2006 3:04:05 PM"} {
		if t, err := time.Parse(layout, text); err == nil {
			if y := t.Year(); y < 1678 || y > 2261 {
				return 0, fmt.Errorf("the time %.40q is beyond what a log holds", text)
			}
			return t.UnixNano(), nil
		}
	}
	return 0, fmt.Errorf("%.40q is not a time such as 2026-01-02T15:04:05Z", text)
}

// IsFlag reports whether a cell is a condition.
func IsFlag(v api.Value) bool { _, err := Flag("", v); return err == nil }

// IsTime reports whether a cell is a time.
func IsTime(v api.Value) bool { _, err := Moment(Text(v)); return err == nil }

// IsPosition reports whether a cell is a position on a page.
func IsPosition(v api.Value) bool { _, err := Position("", v, 1); return err == nil }

// Revenue returns an Amount that an item can earn.
func Revenue(column string, v api.Value) (*float64, error) {
	n, err := Amount(column, v)
	if err == nil && n != nil {
		err = api.CheckAmount("column "+column, *n, 0)
	}
	return n, err
}

// IsRevenue reports whether a cell is a revenue.
func IsRevenue(v api.Value) bool { n, err := Revenue("revenue", v); return n != nil && err == nil }

// Foreign matches a number in another form than 1234.5: with a decimal comma, separated thousands, or a currency.
var Foreign = regexp.MustCompile(`^(\p{Sc}|EUR|USD|GBP|CHF)?\s?[+-]?(\d+([.,]\d+)?|\d{1,3}([., '’\x{a0}\x{202f}]\d{3})+([.,]\d+)?)` +
	`[\s\x{a0}]?(\p{Sc}|EUR|USD|GBP|CHF|%)?$`)

// Number returns the number in a cell, and whether there is one.
func Number(v api.Value) (float64, bool) {
	n, err := Typed("number", v)
	return n.Number, err == nil && n.Kind == api.IsNumber
}
