package main

import (
	"math"
	"regexp"
	"strconv"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"
)

var cell = regexp.MustCompile(`[-+]?[0-9]+\.[0-9]+`)

// sameTable TEX TEXT wants in a table in LaTeX the numbers of the table that a
// run prints: by policy, mean, sd, paired difference and its se, to the last
// digit that is printed.
func sameTable(ts *testscript.TestScript, _ bool, args []string) {
	rows := map[string][]string{}
	for _, line := range strings.Split(ts.ReadFile(args[0]), "\n") {
		name, rest, _ := strings.Cut(line, " & ")
		rows[name] = cell.FindAllString(rest, -1)
	}
	compared := 0
	for _, line := range strings.Split(ts.ReadFile(args[1]), "\n")[2:] {
		printed := strings.Fields(line)
		if len(printed) == 0 {
			continue
		}
		want := printed[1 : len(printed)-1] // without the seconds
		got := rows[printed[0]]
		if len(got) != len(want) {
			ts.Fatalf("%s: %d numbers in LaTeX, %d printed", printed[0], len(got), len(want))
		}
		for i := range want {
			a, err := strconv.ParseFloat(got[i], 64)
			ts.Check(err)
			b, err := strconv.ParseFloat(want[i], 64)
			ts.Check(err)
			if math.Abs(a-b) > 0.0501 {
				ts.Fatalf("%s: %v in LaTeX, %v printed", printed[0], a, b)
			}
			compared++
		}
	}
	if compared == 0 {
		ts.Fatalf("there is nothing to compare")
	}
}
