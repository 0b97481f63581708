package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"text/tabwriter"
	"time"

	"vitrine/internal/hint"
	"vitrine/service/api"
	"vitrine/service/client"
)

type clusterCmd struct {
	URLs    []string      `arg:"" name:"url" help:"The URLs of the processes, such as http://127.0.0.1:8080."`
	KeyFile string        `placeholder:"FILE" help:"File with the token of an API key of the scope read."`
	Timeout time.Duration `default:"2s" help:"For the answer of a process."`
	JSON    bool          `name:"json" help:"Print the result as JSON."`
}

// Help is the tail of the command's help.
func (clusterCmd) Help() string {
	return `Asks each of the processes that serve one log what it does: which one writes the log, how far the others are behind it, the last entry of each and the epoch, which grows with every new writer. Of several shards it shows each. It needs no key; with one it also shows why a process does not have the log of a shard.

The exit status is 0 if one process leads (each shard) and all are ready, otherwise 1.

` + examples("vitrine cluster http://a:8080 http://b:8080 http://c:8080")
}

// member is a process, or why it gave no answer.
type member struct {
	URL string `json:"url"`
	*api.Process
	Error string `json:"error,omitempty"`
}

// Run prints what the processes do.
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
		printJSON(t.out, members)
	} else {
		table := tabwriter.NewWriter(t.out, 0, 0, 2, ' ', 0)
		shards := ""
		if slices.ContainsFunc(members, func(m member) bool { return m.Process != nil && m.Shards != nil }) {
			shards = "shard\t"
		}
		fmt.Fprintln(table, "process\t"+shards+"role\tentry\tlag\tepoch\t")
		for _, m := range apart(members) {
			fmt.Fprintln(table, m.row(shards != ""))
		}
		if err := table.Flush(); err != nil {
			return err
		}
	}
	return verdict(members)
}

// apart returns members for each shard of a process.
func apart(members []member) (list []member) {
	for _, m := range members {
		if m.Process == nil || m.Shards == nil {
			list = append(list, m)
			continue
		}
		for i := range m.Shards {
			list = append(list, member{URL: m.URL, Process: &m.Shards[i], Error: m.Shards[i].Problem})
		}
	}
	return list
}

func (m *member) row(shards bool) string {
	first := m.URL
	if shards {
		first += "\t"
		if m.Process != nil && m.Shard > 0 {
			first += strconv.Itoa(m.Shard)
		}
	}
	if m.Error != "" {
		return fmt.Sprintf("%s\tnot ready: %s", first, m.Error)
	}
	lag, leader := "", ""
	if m.Role == "follower" {
		lag = milliseconds(1e3*m.LagSeconds) + " ms"
		leader = "follows " + m.Leader
		if m.Leader == "" {
			leader = "knows of no leader"
		}
	}
	return strings.TrimRight(fmt.Sprintf("%s\t%s\t%d\t%s\t%d\t%s", first, m.Role, m.Entry, lag, m.Epoch, leader), "\t")
}

// verdict is an error unless one process leads each log and all are ready.
func verdict(members []member) error {
	leaders := map[int][]string{} // by shard
	var away []string
	for _, m := range apart(members) {
		where := m.URL
		if m.Process != nil {
			if _, known := leaders[m.Shard]; !known {
				leaders[m.Shard] = nil
			}
			if m.Shard > 0 {
				where += fmt.Sprintf(" (shard %d)", m.Shard)
			}
			if m.Role == "leader" {
				leaders[m.Shard] = append(leaders[m.Shard], m.URL)
			}
		}
		if m.Error != "" {
			away = append(away, where)
		}
	}
	if len(leaders) == 0 {
		leaders[0] = nil
	}
	for _, shard := range slices.Sorted(maps.Keys(leaders)) {
		of, by := "", leaders[shard]
		if shard > 0 {
			of = fmt.Sprintf(" shard %d", shard)
		}
		if len(by) == 0 {
			return hint.New(fmt.Errorf("none of %d processes leads%s, %d are not ready", len(members), of, len(away)), "a follower takes over within two seconds, unless the log's servers have no majority: try again, and read the logs of the processes")
		}
		if len(by) > 1 {
			return hint.New(fmt.Errorf("%s say that they lead%s", strings.Join(by, " and "), of), "they serve different logs, or one has not noticed yet that the log's servers refuse it: the one with the higher epoch writes")
		}
	}
	if len(away) > 0 {
		return fmt.Errorf("%d of %d processes are not ready: %s", len(away), len(apart(members)), strings.Join(away, ", "))
	}
	return nil
}
