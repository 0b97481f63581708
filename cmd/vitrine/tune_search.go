package main

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"

	"vitrine/config"
	"vitrine/experiment"
	"vitrine/figure"
	"vitrine/internal/replace"
	"vitrine/tune"
)

// search is a running tuning.
type search struct {
	*config.Tuning
	terminal
	dir     string
	workers int
	version string
}

// run searches, plays the fresh seeds, and writes and prints the results.
func (s search) run(ctx context.Context) error {
	rungs := s.Halving.Rungs(s.Settings, len(s.Training))
	rung := 0
	ranking, err := tune.Search(s.Settings, s.Training, s.Halving, func(settings []int, seeds []uint64) ([][][]float64,
		error) {
		rung++
		return s.play(ctx, fmt.Sprintf("rung %d of %d", rung, len(rungs)), settings, seeds)
	})
	if err != nil {
		return err
	}
	training := s.table()
	for i, score := range ranking {
		training.Rows = append(training.Rows, tune.Row{Outcome: s.outcome(i, score), Values: s.Values(score.Setting),
			Score: score})
	}
	configured, err := s.scores(ctx, "as configured", []int{config.Configured}, s.Training, len(rungs))
	if err != nil {
		return err
	}
	training.Rows = append(training.Rows, s.configured(configured[0]))

	var best []int
	for _, row := range training.Rows[:min(s.Best, rungs[len(rungs)-1].Settings)] {
		best = append(best, row.Score.Setting)
	}
	scores, err := s.scores(ctx, "fresh seeds", append(best, config.Configured), s.Fresh, 1)
	if err != nil {
		return err
	}
	fresh := s.table()
	for i := range best {
		fresh.Rows = append(fresh.Rows, tune.Row{Outcome: training.Rows[i].Outcome, Values: training.Rows[i].Values,
			Score: scores[i]})
	}
	fresh.Rows = append(fresh.Rows, s.configured(scores[len(best)]))

	if err := s.write(training, fresh, rungs); err != nil {
		return err
	}
	tune.Report{Training: training, Fresh: fresh, TrainingSeeds: s.Training, FreshSeeds: s.Fresh, Settings: s.Settings,
		IsConfigured: s.IsConfigured(training.Find(tune.Winner).Score.Setting)}.Print(s.out)
	return drawTuning(s.dir)
}

func (s search) table() tune.Table {
	return tune.Table{Tuning: s.Name, Policy: s.Policy, Parameters: s.Parameters, Panels: s.Panels}
}

// outcome returns the outcome of the setting at a place of the ranking.
func (s search) outcome(place int, score tune.Score) string {
	switch {
	case place == 0:
		return tune.Winner
	case score.Seeds() == len(s.Training):
		return tune.Finished
	default:
		return tune.Stopped
	}
}

func (s search) configured(score tune.Score) tune.Row {
	return tune.Row{Outcome: tune.Configured, Values: s.Values(config.Configured), Score: score}
}

// play plays settings on seeds in every panel.
func (s search) play(ctx context.Context, what string, settings []int, seeds []uint64) ([][][]float64, error) {
	panels := make([]*experiment.Experiment, len(s.Panels))
	units, rounds := 0, 0
	for p := range panels {
		e, err := s.Experiment(p, settings, seeds, s.version)
		if err != nil {
			return nil, err
		}
		panels[p] = e
		units += len(e.Policies) * len(seeds)
		rounds += len(e.Policies) * len(seeds) * e.Rounds
	}
	bar := newProgress(s.err, s.Name+", "+what, runs(units), rounds)
	defer bar.close()
	regret := make([][][]float64, len(settings))
	for p, e := range panels {
		finals, err := experiment.Finals(ctx, e, experiment.Options{Dir: s.dir, Workers: s.workers, Progress: bar.add,
			Reused: bar.reuse, Warn: bar.between(s.warn)})
		if err != nil {
			return nil, err
		}
		for i, setting := range settings {
			regret[i] = append(regret[i], finals[s.Label(p, setting)])
		}
	}
	return regret, nil
}

// scores plays settings outside the search.
func (s search) scores(ctx context.Context, what string, settings []int, seeds []uint64,
	rung int) ([]tune.Score, error) {
	regret, err := s.play(ctx, what, settings, seeds)
	if err != nil {
		return nil, err
	}
	scores := make([]tune.Score, len(settings))
	for i, setting := range settings {
		scores[i] = tune.Score{Setting: setting, Rung: rung, Regret: regret[i]}
	}
	return scores, nil
}

// write writes all files except the pictures.
func (s search) write(training, fresh tune.Table, rungs []tune.Rung) error {
	winner := training.Find(tune.Winner)
	type panel struct {
		Experiment string `json:"experiment"`
		World      any    `json:"world"`
		Winner     any    `json:"winner"`
		Configured any    `json:"configured"`
	}
	var panels []panel
	for p := range s.Panels {
		e, err := s.Experiment(p, []int{winner.Score.Setting, config.Configured}, s.Fresh, s.version)
		if err != nil {
			return err
		}
		last := len(e.Policies) - 1 // 0 if the winner is the configured setting
		panels = append(panels, panel{e.Name, e.Settings, e.Policies[0].Settings, e.Policies[last].Settings})
	}
	drawn := figure.Tuning{Name: s.Name, Title: s.Title, Policy: s.Policy, Parameters: s.Parameters}
	for _, r := range training.Rows {
		mean, over := r.Score.Estimate(), r.Score.Difference(winner.Score)
		result := figure.Setting{Stopped: r.Outcome == tune.Stopped, Values: r.Values, Seeds: r.Score.Seeds(),
			Regret: mean.Mean, Over: over.Mean}
		if result.Seeds > 1 {
			result.SE, result.OverSE = mean.SE, over.SE
		}
		drawn.Settings = append(drawn.Settings, result)
	}
	n := len(drawn.Settings) - 1
	drawn.Settings, drawn.Configured = drawn.Settings[:n], drawn.Settings[n]
	record, err := json.MarshalIndent(struct {
		figure.Tuning
		Settings int            `json:"settings"`
		Rungs    []tune.Rung    `json:"rungs"`
		Training []uint64       `json:"training_seeds"`
		Fresh    []uint64       `json:"fresh_seeds"`
		Winner   []string       `json:"winner"`
		Version  string         `json:"version"`
		Machine  map[string]any `json:"machine"`
		Panels   []panel        `json:"panels"`
	}{drawn, s.Settings, rungs, s.Training, s.Fresh, winner.Values, s.version, experiment.Machine(), panels}, "", "  ")
	if err != nil {
		return fmt.Errorf("%s: %w", s.Name, err)
	}
	for _, file := range []struct {
		name    string
		content []byte
	}{
		{"tune.csv", training.TrainingCSV()},
		{"fresh.csv", fresh.FreshCSV()},
		{"tune.json", append(record, '\n')},
	} {
		if err := replace.File(filepath.Join(s.dir, file.name), file.content); err != nil {
			return err
		}
	}
	return nil
}
