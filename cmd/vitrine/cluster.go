package main

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"text/tabwriter"
	"time"

	"vitrine/internal/hint"
	"vitrine/service/api"
	"vitrine/service/client"
	"vitrine/service/load"
)

type clusterCmd struct {
	URLs    []string      `arg:"" name:"url" help:"URLs of the processes, such as http://127.0.0.1:8080."`
	KeyFile string        `placeholder:"FILE" help:"File with the token of an API key of the scope read."`
	Timeout time.Duration `default:"2s" help:"How long to wait for each process."`
	JSON    bool          `name:"json" help:"Print the result as JSON."`
}

func (clusterCmd) Help() string {
	return `Asks each process that serves one log what it does: which one writes the log, how far the others are behind it, the last entry of each and the epoch, which grows with every new writer.

The exit status is 0 if one process leads and all are ready, otherwise 1.

` + examples("vitrine cluster http://a:8080 http://b:8080 http://c:8080")
}

// member is a process, or why it gave no answer.
type member struct {
	URL string `json:"url"`
	*api.Process
	Error string `json:"error,omitempty"`
}

func (c clusterCmd) Run(ctx context.Context, t terminal) error {
	token, err := readToken(c.KeyFile)
	if err != nil {
		return err
	}
	members := make([]member, len(c.URLs))
	var asking sync.WaitGroup
	for i, url := range c.URLs {
		asking.Go(func() {
			process := &client.Client{Base: url, Key: token, Timeout: c.Timeout, Patience: -1}
			defer process.CloseIdleConnections()
			members[i].URL = url
			var err error
			if members[i].Process, err = process.Process(ctx); err != nil {
				members[i].Error = err.Error()
			}
		})
	}
	asking.Wait()
	if c.JSON {
		if err := t.printJSON(members); err != nil {
			return err
		}
	} else {
		table := tabwriter.NewWriter(t.out, 0, 0, 2, ' ', 0)
		fmt.Fprintln(table, "process\trole\tentry\tlag\tepoch\t")
		for _, m := range members {
			fmt.Fprintln(table, hint.Message(m.row()))
		}
		if err := table.Flush(); err != nil {
			return err
		}
	}
	return verdict(members)
}

func (m *member) row() string {
	if m.Error != "" {
		return fmt.Sprintf("%s\tnot ready: %s", m.URL, m.Error)
	}
	lag, leader := "", ""
	if m.Role == "follower" {
		lag = load.Milliseconds(1e3*m.LagSeconds) + " ms"
		leader = "follows " + m.Leader
		if m.Leader == "" {
			leader = "knows of no leader"
		}
	}
	return strings.TrimRight(fmt.Sprintf("%s\t%s\t%d\t%s\t%d\t%s", m.URL, m.Role, m.Entry, lag, m.Epoch, leader), "\t")
}

// verdict returns an error unless exactly one process leads and all are ready.
func verdict(members []member) error {
	var leaders, away []string
	for _, m := range members {
		if m.Process != nil && m.Role == "leader" {
			leaders = append(leaders, m.URL)
		}
		if m.Error != "" {
			away = append(away, m.URL)
		}
	}
	switch {
	case len(leaders) == 0:
		return hint.New(fmt.Errorf("none of %d processes leads, %d are not ready", len(members), len(away)),
			"a follower takes over within two seconds, unless the log's servers have no majority: try again, and "+
				"read the logs of the processes")
	case len(leaders) > 1:
		return hint.New(fmt.Errorf("%s say that they lead", strings.Join(leaders, " and ")),
			"they serve different logs, or one has not noticed yet that the log's servers refuse it: the one with "+
				"the higher epoch writes")
	case len(away) > 0:
		return fmt.Errorf("%d of %d processes are not ready: %s", len(away), len(members), strings.Join(away, ", "))
	}
	return nil
}
