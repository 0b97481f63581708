// Package camera makes a pool of the digital cameras of a conjoint study and the tastes of its respondents
// (Allenby, Brazell, Howell and Rossi 2014, Quantitative Marketing and Economics 12:421–456; the data set
// camera of the R package bayesm).
//
// In each task a respondent chose one of four cameras or "none", as in the MNL bandit with an outside option.
// The tastes are the maximum likelihood estimate of one linear utility for all respondents,
//
//	u_i = x_iᵀθ,   u_none = 0,
//
// and the pool is the distinct cameras. Neither the best assortments sell with certainty, nor do the worst
// sell nothing.
package camera

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"gonum.org/v1/gonum/mat"

	"vitrine"
	"vitrine/env"
	"vitrine/internal/table"
	"vitrine/mle"
	"vitrine/utility"
)

// Source describes the data and says where to get it.
const Source = "the data set camera of the R package bayesm, as a file camera.csv with a row for each alternative of each task"

// Attributes are the features of a camera, in the order of its rows: the brand,
// whether it has more pixels, zoom, video, a swivel screen and wifi, and the
// price in hundreds of dollars.
var Attributes = []string{"canon", "sony", "nikon", "panasonic", "pixels", "zoom", "video", "swivel", "wifi", "price"}

// header is the first row of the file.
var header = append([]string{"respondent", "task", "alt", "choice"}, Attributes...)

// Task is a choice of a respondent among the cameras shown.
type Task struct {
	Respondent int
	Cameras    *mat.Dense // rows of Attributes
	Choice     vitrine.Choice
}

// Load returns the pool of the file at path, or of camera.csv in the folder at path, and a line with figures
// to check.
func Load(path string) (p *env.Pool, report string, err error) {
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		path = filepath.Join(path, "camera.csv")
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, "", err
	}
	defer f.Close()
	tasks, err := Read(f)
	if err != nil {
		return nil, "", fmt.Errorf("%s: %w", path, err)
	}
	theta, ll := Fit(tasks)
	p = &env.Pool{Features: distinct(tasks), Model: utility.NewLinear(len(Attributes), false), Params: theta}
	cameras, _ := p.Features.Dims()
	report = fmt.Sprintf("%d tasks, %d distinct cameras; log-likelihood %.6f", len(tasks), cameras, ll)
	if len(tasks) != Published {
		report += fmt.Sprintf(" (the data set has %d tasks)", Published)
	}
	return p, report, nil
}

// Published is the number of tasks in the data set as published.
const Published = 5312

// Read reads the tasks of a table, such as CSV, with the columns respondent, task, alt,
// choice and the attributes. Rows of a task are consecutive, with alt 1, 2, …;
// one of them has choice 1, and one, without attributes, is "none". Errors name
// the line.
func Read(f *os.File) ([]Task, error) {
	t, err := table.Open(f, table.Options{Texts: true})
	if err != nil {
		return nil, err
	}
	if first := t.Header(); !slices.Equal(first, header) {
		return nil, fmt.Errorf("line 1: the columns are %.100q: want %s", strings.Join(first, ","), strings.Join(header, ","))
	}
	var tasks []Task
	seen := map[[2]string]bool{} // respondent and task
	var open rows
	end := func() error {
		if !open.started {
			return nil
		}
		task, err := open.close()
		key := [2]string{open.respondent, open.task}
		if err == nil && seen[key] {
			err = fmt.Errorf("%s: task %.20s of respondent %.20s was there before", open.at, open.task, open.respondent)
		}
		seen[key] = true
		tasks = append(tasks, task)
		return err
	}
	record := make([]string, len(header))
	err = table.Each(t, func(at string, b *table.Batch, i int) error {
		for j := range record {
			record[j] = b.Columns[j].String(i)
		}
		if record[0] != open.respondent || record[1] != open.task {
			if err := end(); err != nil {
				return err
			}
			open = rows{started: true, at: at, respondent: record[0], task: record[1]}
		}
		if err := open.add(record); err != nil {
			return fmt.Errorf("%s: %w", at, err)
		}
		return nil
	})
	if err = cmp.Or(err, end()); err != nil {
		return nil, err
	}
	if len(tasks) == 0 {
		return nil, errors.New("the file has no tasks")
	}
	return tasks, nil
}

// rows are the rows of the task being read.
type rows struct {
	started          bool
	at               string // of its first row
	respondent, task string
	cameras          []float64
	choice           vitrine.Choice
	alternatives     int
	none, chosen     int // rows
}

// add reads a row.
func (t *rows) add(record []string) error {
	t.alternatives++
	if record[2] != strconv.Itoa(t.alternatives) {
		return fmt.Errorf("alt is %.20q: want %d, for the rows of a task count from 1", record[2], t.alternatives)
	}
	camera := false
	x := make([]float64, len(Attributes))
	for j, text := range record[4:] {
		v, err := strconv.ParseFloat(text, 64)
		if err != nil || math.IsNaN(v) || math.Abs(v) > vitrine.MaxFeature || strings.Contains(text, "_") {
			return fmt.Errorf("%s is %.20q: want a number of at most %v in size", Attributes[j], text, vitrine.MaxFeature)
		}
		x[j] = v
		camera = camera || v != 0
	}
	if camera {
		t.cameras = append(t.cameras, x...)
	} else {
		t.none++
	}
	switch record[3] {
	case "0":
	case "1":
		t.chosen++
		if camera {
			t.choice = vitrine.Choice(len(t.cameras) / len(Attributes))
		}
	default:
		return fmt.Errorf("choice is %.20q: want 0 or 1", record[3])
	}
	return nil
}

// close returns the task.
func (t *rows) close() (Task, error) {
	what := fmt.Sprintf("%s: task %.20s of respondent %.20s", t.at, t.task, t.respondent)
	respondent, err := strconv.Atoi(t.respondent)
	switch {
	case err != nil:
		return Task{}, fmt.Errorf("%s: respondent is %.20q: want an integer", t.at, t.respondent)
	case t.chosen != 1:
		return Task{}, fmt.Errorf("%s has %d rows with choice 1: want one", what, t.chosen)
	case t.none != 1:
		return Task{}, fmt.Errorf("%s has %d rows without attributes: want one, none of the cameras", what, t.none)
	case len(t.cameras) == 0:
		return Task{}, fmt.Errorf("%s shows no camera", what)
	}
	x := mat.NewDense(len(t.cameras)/len(Attributes), len(Attributes), t.cameras)
	return Task{Respondent: respondent, Cameras: x, Choice: t.choice}, nil
}

// ridge is a penalty that moves the estimate by less than its eighth digit, and gives 0 to an attribute that
// no task varies.
const ridge = 1e-8

// Fit returns the maximum likelihood estimate of θ and its log-likelihood.
func Fit(tasks []Task) (theta []float64, logLikelihood float64) {
	n := mle.NewNewton(ridge, make([]float64, len(Attributes)), 1e-16)
	for _, t := range tasks {
		k, _ := t.Cameras.Dims()
		n.Append(make([]float64, k), t.Cameras, t.Choice)
	}
	n.Minimize()
	theta = slices.Clone(n.Params())
	return theta, LogLikelihood(tasks, theta)
}

// LogLikelihood returns Σ log p(i_s | S_s, θ).
func LogLikelihood(tasks []Task, theta []float64) float64 {
	sum := 0.0
	for _, t := range tasks {
		k, _ := t.Cameras.Dims()
		u := make([]float64, k)
		mat.NewVecDense(k, u).MulVec(t.Cameras, mat.NewVecDense(len(theta), theta))
		sum -= vitrine.LogSumExp1(u)
		if t.Choice != vitrine.Outside {
			sum += u[t.Choice-1]
		}
	}
	return sum
}

// distinct returns the cameras in the tasks, once each, in the order of their attributes.
func distinct(tasks []Task) *mat.Dense {
	var cameras [][]float64
	for _, t := range tasks {
		k, _ := t.Cameras.Dims()
		for i := range k {
			cameras = append(cameras, t.Cameras.RawRowView(i))
		}
	}
	slices.SortFunc(cameras, slices.Compare)
	cameras = slices.CompactFunc(cameras, slices.Equal)
	x := mat.NewDense(len(cameras), len(Attributes), nil)
	for i, row := range cameras {
		x.SetRow(i, row)
	}
	return x
}
