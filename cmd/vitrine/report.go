package main

import (
	"bytes"
	"context"
	"fmt"
	"time"

	"vitrine/internal/hint"
	"vitrine/service/api"
	"vitrine/service/client"
	reports "vitrine/service/report"
)

type reportCmd struct {
	Placement  string `arg:"" help:"The placement."`
	Experiment string `placeholder:"NAME" help:"An experiment that has ended. Without it, the one that runs, or else the last one."`
	URL        string `name:"url" default:"http://127.0.0.1:8080" help:"The service, or several of its processes with commas between them."`
	KeyFile    string `placeholder:"FILE" help:"File with the token of an API key with the scope read."`
}

func (reportCmd) Help() string {
	return `The command writes one file of HTML for those who decide about the experiment: the verdict, what was tried, revenue a decision and differences over time with bands, money, and whether the shoppers are divided as planned. The page needs no script and no other file, and prints well.

` + examples("vitrine report home > report.html", "vitrine report home --experiment summer > summer.html")
}

func (c reportCmd) Run(ctx context.Context, t terminal) error {
	token, err := readToken(c.KeyFile)
	if err != nil {
		return err
	}
	service := &client.Client{Base: c.URL, Key: token}
	defer service.CloseIdleConnections()
	all, err := service.Experiments(ctx, c.Placement)
	if err != nil {
		return serviceError(err)
	}
	r, err := chosen(all, c.Experiment)
	if err != nil {
		return err
	}
	config, err := service.Placement(ctx, c.Placement)
	if err != nil {
		return serviceError(err)
	}
	var html bytes.Buffer
	if err := reports.Page(&html, c.Placement, config.Currency, r, time.Now()); err != nil {
		return err
	}
	_, err = t.out.Write(html.Bytes())
	return err
}

// chosen returns the experiment with a name, the last one if there are several; without a name the one that runs, or
// else the last one.
func chosen(all *api.Experiments, name string) (*api.ExperimentReport, error) {
	list := all.Past
	if all.Experiment != nil {
		list = append(list, *all.Experiment)
	}
	var names []string
	for i := len(list) - 1; i >= 0; i-- {
		if name == "" || list[i].Name == name {
			return &list[i], nil
		}
		names = append(names, list[i].Name)
	}
	if names == nil {
		return nil, hint.New(fmt.Errorf("placement %q has had no experiment", all.Placement), "an experiment "+
			"begins with the mode experiment of the placement: see docs/experiments.md")
	}
	return nil, fmt.Errorf("placement %q has had no experiment %q: there are %q", all.Placement, name, names)
}
