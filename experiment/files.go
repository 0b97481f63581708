package experiment

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"gonum.org/v1/gonum/stat"

	"vitrine/internal/replace"
)

// Summary is a row of summary.csv, including the paired difference to the first policy.
type Summary struct {
	Experiment, Policy string
	Seeds, Rounds      int
	FinalMean          float64 // mean over seeds of the regret after the last round
	FinalSD            float64 // sample standard deviation of that; NaN for a single seed
	SecondsPerRun      float64 // mean over seeds
	// mean over seeds of processor seconds; NaN if a run was played at the same time as another
	ProcessorPerRun float64
	PairedMean      float64 // mean over seeds of the final regret minus the first policy's
	PairedSE        float64 // standard error of that; NaN for a single seed
}

// write writes the files of a complete experiment from its units, ordered by policy and seed.
func (e *Experiment) write(dir string, units []*unit, machine any) ([]Summary, error) {
	summaries := e.summarize(units)
	record, err := e.record(machine)
	if err != nil {
		return nil, err
	}
	for p := range record.Policies {
		for _, u := range units[p*len(e.Seeds) : (p+1)*len(e.Seeds)] {
			record.Policies[p].Runs = append(record.Policies[p].Runs,
				runRecord{u.Seed, u.Seconds, u.Processor, u.Regret[e.Rounds-1], u.Diagnostics})
		}
	}
	err = replace.Stream(filepath.Join(dir, "regret.csv"), func(w io.Writer) error { return e.writeRegret(w, units) })
	if err != nil {
		return nil, err
	}
	if err := replace.File(filepath.Join(dir, "summary.csv"), summaryCSV(summaries)); err != nil {
		return nil, err
	}
	return summaries, record.write(filepath.Join(dir, "run.json"))
}

// writeRegret writes nine significant digits, more than the mean of thirty seeds needs.
func (e *Experiment) writeRegret(w io.Writer, units []*unit) error {
	if _, err := io.WriteString(w, "experiment,policy,seed,round,regret\n"); err != nil {
		return err
	}
	for _, u := range units {
		line := fmt.Appendf(nil, "%s,%s,%d,", e.Name, u.Policy, u.Seed)
		start := len(line)
		for t, regret := range u.Regret {
			line = append(strconv.AppendInt(line[:start], int64(t+1), 10), ',')
			line = append(strconv.AppendFloat(line, regret, 'g', 9, 64), '\n')
			if _, err := w.Write(line); err != nil {
				return err
			}
		}
	}
	return nil
}

func (e *Experiment) summarize(units []*unit) []Summary {
	summaries := make([]Summary, len(e.Policies))
	n := len(e.Seeds)
	for p, policy := range e.Policies {
		final, paired, seconds, processor := make([]float64, n), make([]float64, n), make([]float64, n), make([]float64,
			n)
		for k, u := range units[p*n : (p+1)*n] {
			final[k], seconds[k] = u.Regret[e.Rounds-1], u.Seconds
			paired[k] = final[k] - units[k].Regret[e.Rounds-1]
			if processor[k] = u.Processor; u.Processor == 0 {
				processor[k] = math.NaN()
			}
		}
		mean, sd := stat.MeanStdDev(final, nil) // of a single number the latter is NaN
		difference, sdOfDifferences := stat.MeanStdDev(paired, nil)
		summaries[p] = Summary{
			Experiment: e.Name, Policy: policy.Label, Seeds: n, Rounds: e.Rounds,
			FinalMean: mean, FinalSD: sd, SecondsPerRun: stat.Mean(seconds, nil),
			ProcessorPerRun: stat.Mean(processor, nil),
			PairedMean:      difference, PairedSE: sdOfDifferences / math.Sqrt(float64(n)),
		}
	}
	return summaries
}

func summaryCSV(summaries []Summary) []byte {
	var out bytes.Buffer
	out.WriteString("experiment,policy,seeds,rounds,final_mean,final_sd,seconds_per_run,processor_seconds_per_run\n")
	for _, s := range summaries {
		processor := ""
		if !math.IsNaN(s.ProcessorPerRun) {
			processor = fmt.Sprintf("%.4g", s.ProcessorPerRun)
		}
		fmt.Fprintf(&out, "%s,%s,%d,%d,%.6g,%.6g,%.4g,%s\n", s.Experiment, s.Policy, s.Seeds, s.Rounds, s.FinalMean,
			s.FinalSD, s.SecondsPerRun, processor)
	}
	return out.Bytes()
}

// record is run.json: the experiment, the machine, and the learners' diagnostics. Without runs it is [ShardFile] and
// world.json.
type record struct {
	Experiment string          `json:"experiment"`
	Title      string          `json:"title"`
	Settings   json.RawMessage `json:"settings"`
	Seeds      []uint64        `json:"seeds"`
	Version    string          `json:"version"`
	Machine    any             `json:"machine,omitempty"`
	Policies   []policyRecord  `json:"policies"`
	Rounds     int             `json:"rounds,omitempty"` // of a shard, like the next; run.json keeps them in settings
	Shard      *Shard          `json:"shard,omitempty"`

	dir string // directory that it was read from
}

type policyRecord struct {
	Label    string          `json:"label"`
	Settings json.RawMessage `json:"settings"`
	Runs     []runRecord     `json:"runs,omitempty"`
}

type runRecord struct {
	Seed        uint64             `json:"seed"`
	Seconds     float64            `json:"seconds"`
	Processor   float64            `json:"processor_seconds,omitempty"`
	Regret      float64            `json:"regret"`
	Diagnostics map[string]float64 `json:"diagnostics,omitempty"`
}

// record returns the experiment's record without runs.
func (e *Experiment) record(machine any) (*record, error) {
	r := &record{Experiment: e.Name, Title: e.Title, Version: e.Version, Seeds: e.Seeds, Machine: machine,
		Policies: []policyRecord{}}
	var err error
	if r.Settings, err = json.Marshal(e.Settings); err != nil {
		return nil, fmt.Errorf("%s: %w", e.Name, err)
	}
	for _, p := range e.Policies {
		settings, err := json.Marshal(p.Settings)
		if err != nil {
			return nil, fmt.Errorf("%s: policy %s: %w", e.Name, p.Label, err)
		}
		r.Policies = append(r.Policies, policyRecord{Label: p.Label, Settings: settings})
	}
	return r, nil
}

func (r *record) write(path string) error {
	data, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return fmt.Errorf("%s: %w", r.Experiment, err)
	}
	return replace.File(path, append(data, '\n'))
}

// labels returns the policies' labels.
func (r *record) labels() (list []string) {
	for _, p := range r.Policies {
		list = append(list, p.Label)
	}
	return list
}

// settings returns the policies' settings.
func (r *record) settings() (list []string) {
	for _, p := range r.Policies {
		list = append(list, p.Label, compact(p.Settings))
	}
	return list
}

func compact(data json.RawMessage) string {
	var out bytes.Buffer
	if err := json.Compact(&out, data); err != nil {
		return string(data)
	}
	return out.String()
}

func readRecord(path string) (*record, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	r := &record{dir: filepath.Dir(path)}
	if err := json.Unmarshal(data, r); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return r, nil
}

// changed names a change since the files in a directory were written: settings, seeds, policies or program. It returns
// "" if nothing changed or there are no files.
func (e *Experiment) changed(dir string) string {
	its, err := readRecord(filepath.Join(dir, "run.json"))
	if err != nil {
		return ""
	}
	mine, err := e.record(nil)
	if err != nil {
		return ""
	}
	var list []string
	for _, c := range []struct {
		what string
		same bool
	}{
		{"the settings", compact(mine.Settings) == compact(its.Settings)},
		{"the seeds", slices.Equal(mine.Seeds, its.Seeds)},
		{"the policies", slices.Equal(mine.settings(), its.settings())},
		{"the program", mine.Version == its.Version},
	} {
		if !c.same {
			list = append(list, c.what)
		}
	}
	return strings.Join(list, ", ")
}

// Machine describes the computer and the compiler, for records of results.
func Machine() map[string]any {
	return map[string]any{"os": runtime.GOOS, "arch": runtime.GOARCH, "processors": runtime.NumCPU(),
		"go": runtime.Version()}
}

// Played describes a finished run, from run.json.
type Played struct {
	Title    string
	Policies []string
	Seeds    int
	Rounds   int
}

// ReadPlayed reads the run.json in dir, and reports whether it is readable.
func ReadPlayed(dir string) (p Played, ok bool) {
	r, err := readRecord(filepath.Join(dir, "run.json"))
	var settings struct {
		Rounds int `json:"rounds"`
	}
	if err != nil || json.Unmarshal(r.Settings, &settings) != nil {
		return Played{}, false
	}
	return Played{Title: r.Title, Policies: r.labels(), Seeds: len(r.Seeds), Rounds: settings.Rounds}, true
}
