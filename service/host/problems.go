package host

import (
	"fmt"
	"time"

	"vitrine/service/alert"
	"vitrine/service/budget"
	"vitrine/service/engine"
	"vitrine/service/server"
)

// A disk is nearly full below this share and this number of bytes.
const (
	nearlyFull      = 0.05
	nearlyFullBytes = 10e9
)

// How long a process may be without the log's servers, or behind the log, before that is a problem. An election takes less.
const (
	maxAway   = 10 * time.Second
	maxBehind = time.Minute
)

// away says that the process lacks the log's servers or is behind the log at a time, or its level is "". A process that
// has just become the leader still follows until it has read the log.
func (l *session) away(lag time.Duration, now time.Time) (level, text string) {
	role, away := "writes", l.shared.Unreached()
	if l.engine.Role() == engine.Follower {
		role = "follows"
		if lag <= server.MaxLag {
			l.current.Store(&now)
		} else if current := l.current.Load(); current != nil {
			lag = max(lag, now.Sub(*current))
		}
		switch {
		case lag <= maxAway:
			return "", ""
		case away <= maxAway:
			level = "warning"
			if lag > maxBehind {
				level = "bad"
			}
			return level, fmt.Sprintf("This process has been behind the log for %v, although one of the log's servers answers: "+
				"the servers may lack a majority, or this process may lack processor time. Its output says more.",
				lag.Round(time.Second))
		}
	}
	if away <= maxAway {
		return "", ""
	}
	return "bad", fmt.Sprintf("This process %s the log, and has not reached its servers for %v: check the servers, the "+
		"network and the credentials.", role, away.Round(time.Second))
}

// problems returns what an operator should fix before the process stops. The memory is the service's.
func (l *session) problems(memory budget.Usage) (all []alert.Problem) {
	if text := l.unable.Load(); text != nil {
		all = append(all, alert.Problem{Level: "bad", Key: "lead", Text: *text})
	}
	if l.shared != nil {
		lag, _ := l.engine.Lag()
		if level, text := l.away(lag, time.Now()); level != "" {
			all = append(all, alert.Problem{Level: level, Key: "servers", Text: text})
		}
	}
	if over := memory.Over(); over > 0 { // a follower takes every placement that its leader has room for
		all = append(all, alert.Problem{Level: "warning", Key: "memory", Text: fmt.Sprintf("The placements need %d MB more "+
			"memory than they may have here, and the process may run out of memory: delete placements, lower their "+
			"memory_bytes, max_versions or columns, or raise memory in [limits].", over>>20+1)})
	}
	if text := l.unrecognized.Load(); text != nil {
		all = append(all, alert.Problem{Level: "bad", Key: "shoppers", Logged: true, Text: *text})
	}
	if l.replaced != nil && l.replaced() > 0 {
		all = append(all, alert.Problem{Level: "bad", Key: "shoppers-full", Text: fmt.Sprintf("There are more shoppers than keys: %d "+
			"shoppers of the placements with most of them are new when they return. Look for invented shopper ids, or lower "+
			"keep or memory_bytes of shopper_history.", l.replaced())})
	}
	free, size := diskSpace(l.Data)
	if text := fullness(free, size, l.shared != nil); text != "" {
		all = append(all, alert.Problem{Level: "bad", Key: "disk", Text: text})
	}
	if skew := l.clock.ahead(); skew.Abs() > maxSkew {
		whose, until := "service", " The service keeps its own time until it starts again."
		if l.clock.heard.Load() {
			whose, until = "log", ""
		}
		all = append(all, alert.Problem{Level: "warning", Key: "clock", Logged: true, Text: fmt.Sprintf("The machine's clock "+
			"differs from the %s's by %v: check the time synchronisation.%s", whose, skew.Round(time.Second), until)})
	}
	if age := l.keeper.age(); age > snapshotsLate*l.Snapshots.Every.Duration {
		all = append(all, alert.Problem{Level: "warning", Key: "snapshot", Logged: true, Text: fmt.Sprintf("The last "+
			"snapshot is %v old: the next start replays every entry since then, and no entries are removed. The "+
			"service's output says why.", age.Round(time.Second))})
	}
	return all
}

// fullness says that a disk is nearly full, or is "". The log may be on other machines.
func fullness(free, all float64, external bool) string {
	if all == 0 || free >= min(nearlyFull*all, nearlyFullBytes) {
		return ""
	}
	then := "Make room, or set [retention]. Decisions are refused once it is full."
	if external {
		then = "Make room: no snapshots are written once it is full."
	}
	unit, bytes := "GB", 1e9
	if all < 10*bytes {
		unit, bytes = "MB", 1e6
	}
	return fmt.Sprintf("The disk of the data directory is nearly full: %.1f of %.1f %s are free. %s", free/bytes,
		all/bytes, unit, then)
}
