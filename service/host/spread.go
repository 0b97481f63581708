package host

import (
	"context"
	"sync"
	"time"
)

// spread lets the processes of a service lead about as many shards each. A process that leads at least two shards less than another
// takes one from that: it is led by nobody for about a second. So the shards of a process that has died, which the others take as
// they notice, and those of a service whose first process leads all, are soon spread again.
type spread struct {
	mu    sync.Mutex
	lives map[int]*life // of the shards whose logs are here, by number
	order []int
}

// spreadEvery is the time between two looks at who leads.
var spreadEvery = 5 * time.Second

func newSpread(order []int) *spread { return &spread{lives: map[int]*life{}, order: order} }

// has notes that a log is here; nil that it is not.
func (s *spread) has(shard int, l *life) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lives[shard] = l
}

// run evens out who leads, until ctx ends.
func (s *spread) run(ctx context.Context, process string) {
	repeat(ctx, spreadEvery, func() { s.even(process) })
}

// even takes a shard from the process that leads most of those that are here, if this one leads at least two less.
func (s *spread) even(process string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	led := map[string][]*life{}
	most := process
	for _, number := range s.order {
		l := s.lives[number]
		if l == nil {
			continue
		}
		by := l.store.Leader().Process
		if led[by] = append(led[by], l); by != "" && len(led[by]) > len(led[most]) {
			most = by
		}
	}
	if len(led[most]) < len(led[process])+2 {
		return
	}
	for _, l := range led[most] {
		if l.engine.Lag() < spreadLag {
			l.Logger.Info("this process takes the shard over: another one leads more", "entry", l.engine.Sequence(), "leader", l.leader())
			l.store.Seize(most)
			return
		}
	}
}

// spreadLag is how far behind its log a process may be that takes it over.
const spreadLag = time.Second
