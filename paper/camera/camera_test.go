package camera_test

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/optimize"

	"vitrine"
	"vitrine/internal/fatal"
	"vitrine/paper/camera"
)

const columns = "respondent,task,alt,choice,canon,sony,nikon,panasonic,pixels,zoom,video,swivel,wifi,price\n"

// table has two tasks: the second camera was taken, then none.
const table = columns +
	"1,1,1,0,0,0,1,0,0,1,0,1,0,0.79\n" +
	"1,1,2,1,0,1,0,0,1,1,0,1,1,2.29\n" +
	"1,1,3,0,0,0,0,0,0,0,0,0,0,0\n" +
	"1,2,1,0,1,0,0,0,0,1,0,1,0,1.29\n" +
	"1,2,2,0,0,0,1,0,0,1,0,1,0,0.79\n" +
	"1,2,3,1,0,0,0,0,0,0,0,0,0,0\n"

func read(t *testing.T, text string) ([]camera.Task, error) {
	path := filepath.Join(t.TempDir(), "camera.csv")
	fatal.If(t, os.WriteFile(path, []byte(text), 0o600))
	f := fatal.Or(os.Open(path))(t)
	defer f.Close()
	return camera.Read(f)
}

func TestRead(t *testing.T) {
	tasks := fatal.Or(read(t, table))(t)
	if len(tasks) != 2 || tasks[0].Choice != 2 || tasks[1].Choice != vitrine.Outside || tasks[0].Respondent != 1 {
		t.Fatalf("tasks %+v", tasks)
	}
	want := mat.NewDense(2, 10, []float64{0, 0, 1, 0, 0, 1, 0, 1, 0, 0.79, 0, 1, 0, 0, 1, 1, 0, 1, 1, 2.29})
	if !mat.Equal(tasks[0].Cameras, want) {
		t.Errorf("cameras\n%v", mat.Formatted(tasks[0].Cameras))
	}
}

func TestDamageIsNamed(t *testing.T) {
	lines := strings.SplitAfter(table, "\n")
	with := func(k int, line string) string {
		changed := append([]string(nil), lines...)
		changed[k] = line
		return strings.Join(changed, "")
	}
	for want, text := range map[string]string{
		"the file is empty":                      "",
		"the file has no tasks":                  columns,
		"line 1: the columns are \"a,b\"":        "a,b\n1,2\n",
		"line 3: alt is \"1\": want 2":           with(2, "1,1,1,1,0,1,0,0,1,1,0,1,1,2.29\n"),
		"has 0 rows without attributes":          with(3, ""),
		"has 2 rows without attributes":          with(2, "1,1,2,1,0,0,0,0,0,0,0,0,0,0\n"),
		"line 8: task 1 of respondent 1 was":     table + strings.Join(lines[1:4], ""),
		"line 3: price is \"1_0\"":               with(2, "1,1,2,1,0,1,0,0,1,1,0,1,1,1_0\n"),
		"line 3: bare \" in non-quoted":          with(2, "1,1,2,1,0,1,0,0,1,1,0,1,1,2\"\n"),
		"line 3: price is \"dear\"":              with(2, "1,1,2,1,0,1,0,0,1,1,0,1,1,dear\n"),
		"line 3: price is \"NaN\"":               with(2, "1,1,2,1,0,1,0,0,1,1,0,1,1,NaN\n"),
		"line 4: choice is \"yes\"":              with(3, "1,1,3,yes,0,0,0,0,0,0,0,0,0,0\n"),
		"line 2: task 1 of respondent 1 has":     with(2, "1,1,2,0,0,1,0,0,1,1,0,1,1,2.29\n"),
		"has 2 rows with choice 1":               with(3, "1,1,3,1,0,0,0,0,0,0,0,0,0,0\n"),
		"respondent is \"x\"":                    columns + "x,1,1,1,1,0,0,0,0,1,0,1,0,1.29\n",
		"task 1 of respondent 1 shows no":        columns + "1,1,1,1,0,0,0,0,0,0,0,0,0,0\n",
		"line 3 has 3 fields, and the header 14": with(2, "1,1,2\n"),
	} {
		if _, err := read(t, text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want one that says %q", err, want)
		}
	}
	if _, _, err := camera.Load(filepath.Join(t.TempDir(), "none.csv")); !os.IsNotExist(err) {
		t.Errorf("error %v for a file that does not exist", err)
	}
}

// The file made by hand, loaded as a folder: three distinct cameras.
func TestLoad(t *testing.T) {
	dir := t.TempDir()
	fatal.If(t, os.WriteFile(filepath.Join(dir, "camera.csv"), []byte(table), 0o644))
	p, report, err := camera.Load(dir)
	fatal.If(t, err)
	if m, d := p.Features.Dims(); m != 3 || d != 10 || len(p.Params) != 10 {
		t.Errorf("pool of %d×%d with %d parameters, want 3×10 with 10", m, d, len(p.Params))
	}
	if !strings.HasPrefix(report, "2 tasks, 3 distinct cameras; log-likelihood -") {
		t.Errorf("report %q", report)
	}
}

// A second minimiser finds the same estimate, on choices drawn at random.
func TestFitIsTheMaximum(t *testing.T) {
	text := columns
	for s := range 60 {
		for alt := 1; alt <= 3; alt++ {
			choice := 0
			if s%3+1 == alt {
				choice = 1
			}
			h := s*7 + alt*13
			text += fmt.Sprintf("%d,1,%d,%d,%d,%d,%d,%d,%d,%d,%d,%d,%d,%g\n", s, alt, choice,
				h%2, h/2%2, h/3%2, h/5%2, h/4%2, h/7%2, h/9%2, h/11%2, h/6%2, 1+float64(h%17)/10)
		}
		text += fmt.Sprintf("%d,1,4,0,0,0,0,0,0,0,0,0,0,0\n", s)
	}
	tasks := fatal.Or(read(t, text))(t)
	_, got := camera.Fit(tasks)
	result := fatal.Or(optimize.Minimize(optimize.Problem{Func: func(w []float64) float64 { return -camera.LogLikelihood(tasks, w) }},
		make([]float64, 10), nil, &optimize.NelderMead{}))(t)
	if got < -result.F-1e-6 || got > -result.F+0.05 {
		t.Errorf("log-likelihood %v, Nelder–Mead finds %v", got, -result.F)
	}
}

// The estimate of the real data, to the digits of an independent Newton fit.
func TestRealData(t *testing.T) {
	dir := os.Getenv("VITRINE_DATA")
	if dir == "" {
		dir = filepath.Join("..", "..", "shared", "data")
	}
	f, err := os.Open(filepath.Join(dir, "camera", "camera.csv"))
	if err != nil {
		t.Skipf("no data: set VITRINE_DATA to a folder with camera/camera.csv (%s)", camera.Source)
	}
	defer f.Close()
	tasks := fatal.Or(camera.Read(f))(t)
	within := func(what string, got, want, tol float64) {
		t.Helper()
		if math.Abs(got-want) > tol {
			t.Errorf("%s is %v, want %v", what, got, want)
		}
	}
	within("the number of tasks", float64(len(tasks)), 5312, 0)
	theta, ll := camera.Fit(tasks)
	within("the log-likelihood", ll, -6503.746518, 1e-6)
	for j, want := range []float64{.4650268, .2383719, .3116539, .0226606, .7582604, .8193529, .6278849, .3671048, .5778052, -1.4855533} {
		within(camera.Attributes[j], theta[j], want, 1e-7)
	}
	within("the log-likelihood of the null model", camera.LogLikelihood(tasks, make([]float64, 10)), -8549.334191, 1e-6)
	var train, test []camera.Task
	for _, task := range tasks {
		if task.Respondent <= 250 {
			train = append(train, task)
		} else {
			test = append(test, task)
		}
	}
	theta, ll = camera.Fit(train)
	within("the log-likelihood of 250 respondents", ll, -4880.832446, 1e-6)
	within("that of a task of the others", camera.LogLikelihood(test, theta)/float64(len(test)), -1.238716, 1e-6)
}

func FuzzRead(f *testing.F) {
	f.Add(table)
	f.Fuzz(func(t *testing.T, text string) {
		tasks, err := read(t, text)
		if err != nil {
			return
		}
		for _, task := range tasks {
			if k, _ := task.Cameras.Dims(); int(task.Choice) > k {
				t.Errorf("choice %d of %d cameras", task.Choice, k)
			}
		}
	})
}
