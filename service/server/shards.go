package server

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-json-experiment/json"

	"vitrine/service/api"
	"vitrine/service/decision"
	"vitrine/service/eventlog"
	"vitrine/service/personalizer"
	"vitrine/service/setup"
)

// Shards say how a service has several logs. A server begins without any: [Server.Mount] gives it one.
type Shards struct {
	Count  int   // the shards that get new placements, numbered from 1 on
	Follow []int // those whose logs this process follows
	Places Places

	// Pass passes a request of a caller, in the form of HTTP/1.1, on to a process that follows a shard: its Passed has the
	// answer. The error of a shard that no process follows is ErrAway, and that of a request that is too long ErrTooLong.
	Pass func(ctx context.Context, shard int, request []byte) (answer []byte, err error)
	// PassAtLength is the same of a request whose answer may have no end: its PassedAtLength writes the answer.
	PassAtLength func(ctx context.Context, shard int, request []byte) (answer io.ReadCloser, err error)
}

// ErrAway is returned by Shards.Pass for a shard that no process follows.
var ErrAway = errors.New("no process has the log of the shard")

// ErrTooLong is returned by Shards.Pass for a request that is too long to be passed on.
var ErrTooLong = errors.New("the request is too long to be passed on")

// Places say in which shard a placement is. It never changes. An error with a method Lacks() []int means that the placement may be in
// one of these shards, whose placements were not added yet.
type Places interface {
	// Shard returns the shard of a placement, 0 if it was never made. It may be from memory.
	Shard(ctx context.Context, placement string) (int, error)
	// Claim puts a placement into a shard, unless it is in one, and returns its shard.
	Claim(ctx context.Context, placement string, shard int) (int, error)
	// Add adds the placements that the log of a shard has. Those that are in other shards are returned with these.
	Add(ctx context.Context, shard int, placements []string) (elsewhere map[string]int, err error)
	// Lacks returns the shards whose placements were not added.
	Lacks(ctx context.Context) ([]int, error)
	// Counts returns how many placements each shard has.
	Counts(ctx context.Context) (map[int]int, error)
}

// slot is where a server has the log of a shard, while it is there.
type slot struct {
	number int
	shard  atomic.Pointer[Shard] // nil while the log is away
	cause  atomic.Pointer[string]
	busy   atomic.Int64 // requests in progress
}

// problem says why the log of a slot is away.
func (at *slot) problem() string {
	if cause := at.cause.Load(); cause != nil {
		return *cause
	}
	return "no process that follows it answers"
}

// Mount begins to answer requests for a shard. It puts the placements that the shard has into Places.
func (s *Server) Mount(ctx context.Context, number int, log Shard) (*Shard, error) {
	log.Number, log.early = number, newEarly(log.Engine)
	if err := s.addPlacements(ctx, &log); err != nil {
		return nil, err
	}
	s.slots[number].shard.Store(&log)
	s.feed.interrupt() // listeners come back, and listen to this shard too
	return &log, nil
}

// addPlacements puts the placements that a shard has into Places.
func (s *Server) addPlacements(ctx context.Context, shard *Shard) error {
	elsewhere, err := s.options.Shards.Places.Add(ctx, shard.Number, shard.Engine.Placements())
	for name, is := range elsewhere {
		s.log.Error("a placement is in two shards: requests for it go to the other one", "placement", name, "shard", shard.Number, "other", is)
	}
	return err
}

// restorePlacements puts them there again if Places have been lost since.
func (s *Server) restorePlacements(ctx context.Context, shard *Shard) {
	ctx, cancel := context.WithTimeout(ctx, restoreTime)
	defer cancel()
	lacks, err := s.options.Shards.Places.Lacks(ctx)
	if err == nil && slices.Contains(lacks, shard.Number) {
		s.log.Warn("the placements of the shard are added again to those of the others", "shard", shard.Number)
		err = s.addPlacements(ctx, shard)
	}
	if err != nil && ctx.Err() == nil {
		s.log.Error("it is not known whether the places of the shard's placements were lost", "shard", shard.Number, "cause", err.Error())
	}
}

// restoreTime is how long an attempt to restore the places of placements may take. It is made every second.
const restoreTime = 5 * time.Second

// Unmount ends that, for a cause that problems name, and /readyz to callers who may read.
func (s *Server) Unmount(number int, cause string) {
	s.slots[number].cause.Store(&cause)
	s.slots[number].shard.Store(nil)
	s.feed.interrupt()
}

// Tend does what the log of a shard needs now and then, until ctx ends or the engine stops.
func (s *Server) Tend(ctx context.Context, shard *Shard, every time.Duration) error {
	ticker := time.NewTicker(cmp.Or(every, time.Second))
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
		if err := shard.tend(ctx, s.log); err != nil && ctx.Err() == nil {
			s.log.Error("the engine has stopped", "cause", err.Error())
			return err
		}
		s.observe(shard)
		if s.several() {
			s.restorePlacements(ctx, shard)
		}
	}
}

// Applied returns the function that the engine of a shard must call for each entry.
func (s *Server) Applied(number int) func(sequence uint64, e *eventlog.Event) {
	return func(sequence uint64, e *eventlog.Event) {
		if s.slots[number].shard.Load() != nil {
			s.feed.send(number, sequence, e)
		}
	}
}

// several reports whether the service has several logs.
func (s *Server) several() bool { return s.options.Shards != nil }

// here returns the shards whose logs are here, by number; of those that a request is for if another process has passed it on.
func (s *Server) here(c *call) []*Shard {
	var list []*Shard
	for _, number := range slices.Sorted(maps.Keys(s.slots)) {
		if shard := s.slots[number].shard.Load(); shard != nil && (relayOf(c).shard == 0 || relayOf(c).shard == number) {
			list = append(list, shard)
		}
	}
	return list
}

// elsewhere returns the numbers of the shards whose logs are not here.
func (s *Server) elsewhere(c *call) (list []int) {
	if !s.several() || relayOf(c).shard > 0 {
		return nil
	}
	for number := range s.options.Shards.Count {
		if s.slots[number+1].shard.Load() == nil {
			list = append(list, number+1)
		}
	}
	return list
}

// locate finds the shard of a call's placement or decision. A request for a shard whose log is not here is answered by a
// process that has it: done is true.
func (s *Server) locate(c *call, rt *route) (done bool, err error) {
	name, id := c.PathValue("name"), c.PathValue("id")
	if rt.contract != nil {
		name = c.Placement()
	}
	switch {
	case !s.several():
		c.shard = s.slots[0].shard.Load()
		if name == "" && id != "" && c.placements != nil {
			_, err = c.placementOf(id)
		}
		return false, err
	case relayOf(c).shard > 0 && (rt.stream && !relayOf(c).atLength || len(s.here(c)) == 0):
		return false, s.away(relayOf(c).shard, fmt.Errorf("%w here: ask a process that follows it", ErrAway))
	case name == "" && id == "" || rt.id == "":
		return false, nil
	case name == "":
		return s.locateDecision(c, id)
	}
	number := relayOf(c).shard
	if number == 0 {
		if number, err = s.shardOf(c, rt, name); err != nil {
			return false, err
		}
	}
	if number, err = s.confirmShard(c, rt, name, number); err != nil {
		return false, err
	}
	if err := s.occupy(c, number); err != nil {
		return false, err
	}
	if at := s.slots[number]; at != nil {
		if c.shard = at.shard.Load(); c.shard != nil {
			c.now = c.shard.Clock().UnixNano()
			return false, nil
		}
	}
	return true, s.passOn(c, rt, number)
}

// occupy counts a request for a shard, until it is answered. The requests of shards that do not answer must leave places to the
// others, so any minority of the shards has less than all places.
func (s *Server) occupy(c *call, number int) error {
	at := s.slots[number]
	if at == nil {
		return nil
	}
	most := max(2*s.limits.Concurrent/(s.options.Shards.Count+1), 1)
	if at.busy.Add(1) > int64(most) {
		at.busy.Add(-1)
		return problemf(http.StatusServiceUnavailable, "busy", "%d requests for shard %d are in progress, which is the limit of each of %d shards", most, number, s.options.Shards.Count)
	}
	c.slot = at
	return nil
}

// confirmShard returns the shard of a placement again. If the request may make the placement, Places are asked, because what was
// known may be from before they were lost.
func (s *Server) confirmShard(c *call, rt *route, name string, number int) (int, error) {
	var here *Shard
	if at := s.slots[number]; at != nil {
		here = at.shard.Load()
	}
	if makes := rt.id == "putPlacement" || here != nil && s.isFirstRank(rt, name); !makes || !setup.IsName(name) {
		return number, nil
	}
	if here != nil {
		if _, err := here.Engine.Config(name); err == nil {
			return number, nil
		}
	}
	number, err := s.options.Shards.Places.Claim(c.Context(), name, number)
	return number, s.unplaced(err)
}

// isFirstRank reports whether a request of Personalizer's contract may make its placement.
func (s *Server) isFirstRank(rt *route, name string) bool {
	return rt.contract != nil && name == personalizer.Placement && s.options.Personalizer
}

// shardOf returns the shard of a placement. One that a request may make gets a shard.
func (s *Server) shardOf(c *call, rt *route, name string) (int, error) {
	places := s.options.Shards.Places
	number, err := places.Shard(c.Context(), name)
	if err != nil || number > 0 {
		return number, s.unplaced(err)
	}
	for _, shard := range s.here(c) { // made by a process that has only this log
		if _, err := shard.Engine.Config(name); err == nil {
			number, err := places.Claim(c.Context(), name, shard.Number)
			return number, s.unplaced(err)
		}
	}
	wanted := &setup.Config{}
	switch {
	case s.isFirstRank(rt, name):
	case rt.id == "putPlacement", rt.id == "previewPlacement":
		body, err := c.jsonBody()
		if err != nil {
			return 0, err
		}
		if !setup.IsName(name) {
			return s.options.Shards.Follow[0], nil // whose engine refuses it
		}
		if wanted, err = setup.Parse(body); err != nil {
			return 0, malformed(body, err)
		}
		c.again(bytes.Clone(body))
	default:
		return 0, fmt.Errorf("placement %q: %w", name, decision.ErrNotFound)
	}
	if number, err = s.choose(c, wanted); err != nil || rt.id == "previewPlacement" {
		return number, err
	}
	number, err = places.Claim(c.Context(), name, number)
	return number, s.unplaced(err)
}

// choose returns the shard of a new placement: that of the catalogue that it uses, or the one that its configuration names, or the
// one with the fewest placements among those that are not known to be away.
func (s *Server) choose(c *call, wanted *setup.Config) (int, error) {
	o := s.options.Shards
	if wanted.Shard > o.Count || wanted.Shard < 0 {
		return 0, api.Fieldf("/shard", "%d: must be from 1 to %d, or left out", wanted.Shard, o.Count)
	}
	if owner := wanted.Catalogue; owner != "" && c.mine(owner) {
		number, err := o.Places.Shard(c.Context(), owner)
		switch {
		case err != nil:
			return 0, s.unplaced(err)
		case number > 0 && wanted.Shard > 0 && wanted.Shard != number:
			return 0, api.Fieldf("/shard", "%d: placement %q, whose catalogue this one uses, is in shard %d: leave the shard out", wanted.Shard, owner, number)
		case number > 0:
			return number, nil
		}
	}
	if wanted.Shard > 0 {
		return wanted.Shard, nil
	}
	counts, err := o.Places.Counts(c.Context())
	if err != nil {
		return 0, s.unplaced(err)
	}
	best := 0
	for number := 1; number <= o.Count; number++ {
		if slices.Contains(o.Follow, number) && s.slots[number].shard.Load() == nil {
			continue
		}
		if best == 0 || counts[number] < counts[best] {
			best = number
		}
	}
	return max(best, 1), nil
}

// unplaced is the problem of a service that cannot look up where placements are.
func (s *Server) unplaced(err error) error {
	if err == nil {
		return nil
	}
	p := problemf(http.StatusServiceUnavailable, "shards", "the service cannot look up the shard of the placement: the log's servers do not answer, or the bucket of the shards is missing")
	var partial interface{ Lacks() []int }
	if errors.As(err, &partial) {
		p = problemf(http.StatusServiceUnavailable, "shards", "it is not known yet which placements are in the shards %v, and this one may be: start a process that follows them", partial.Lacks())
	}
	p.cause = err.Error()
	return p
}

// locateDecision finds the shard of a decision by its id: one whose state here has it, or else the first that has it when all are
// asked in turn. A shard that does not answer takes only its part of the time.
func (s *Server) locateDecision(c *call, id string) (done bool, err error) {
	here, rest := s.here(c), s.elsewhere(c)
	var found *Shard
	for _, shard := range here {
		switch _, err := shard.Engine.FindSeen(id, c.mine); {
		case errors.Is(err, decision.ErrNotFound):
		case err != nil:
			return false, err
		case found != nil:
			return false, fmt.Errorf("decision %q: %w", api.Abbreviate(id, 40), decision.ErrAmbiguous)
		default:
			found = shard
		}
	}
	if found != nil {
		return false, s.enterShard(c, found)
	}
	deadline, _ := c.Context().Deadline()
	left := len(here) + len(rest)
	part := func() (context.Context, context.CancelFunc) {
		left--
		return context.WithTimeout(c.Context(), time.Until(deadline)/time.Duration(left+1))
	}
	var away error
	for _, shard := range here {
		ctx, cancel := part()
		err := s.enterShard(c, shard)
		if err == nil {
			_, err = shard.Engine.Find(ctx, id, c.mine)
		}
		cancel()
		if err == nil || errors.Is(err, decision.ErrAmbiguous) {
			return false, err
		}
		c.leaveShard()
		if !errors.Is(err, decision.ErrNotFound) {
			away = fmt.Errorf("shard %d: %w", shard.Number, err)
		}
	}
	if len(rest) == 0 {
		return false, cmp.Or(away, fmt.Errorf("decision %q: %w", api.Abbreviate(id, 40), decision.ErrNotFound))
	}
	request, err := s.requestOf(c, c.URL.RequestURI())
	if err != nil {
		return false, err
	}
	var unready *http.Response // of a shard elsewhere that cannot say
	var why []byte
	for _, number := range rest {
		ctx, cancel := part()
		var a *http.Response
		var text []byte
		err := s.occupy(c, number)
		if err == nil {
			a, text, err = s.request(ctx, c, number, request)
		}
		cancel()
		switch {
		case err != nil:
			away = err
		case a.StatusCode == http.StatusServiceUnavailable:
			unready, why = a, text
		case a.StatusCode != http.StatusNotFound:
			return true, c.relay(a, text)
		}
		c.leaveShard()
	}
	if unready != nil {
		return true, c.relay(unready, why)
	}
	return false, cmp.Or(away, fmt.Errorf("decision %q: %w", api.Abbreviate(id, 40), decision.ErrNotFound))
}

// enterShard makes a shard that is here that of a call.
func (s *Server) enterShard(c *call, shard *Shard) error {
	if err := s.occupy(c, shard.Number); err != nil {
		return err
	}
	c.shard, c.now = shard, shard.Clock().UnixNano()
	return nil
}

// leaveShard ends what occupy and enterShard began.
func (c *call) leaveShard() {
	if c.slot != nil {
		c.slot.busy.Add(-1)
	}
	c.slot, c.shard = nil, nil
}

// passOn answers a call by a process that has the log of a shard.
func (s *Server) passOn(c *call, rt *route, number int) error {
	if rt.stream {
		return s.passAtLength(c, number)
	}
	if err := s.onlyOnce(c, number); err != nil {
		return err
	}
	request, err := s.requestOf(c, c.URL.RequestURI())
	if err != nil {
		return err
	}
	a, text, err := s.request(c.Context(), c, number, request)
	if err != nil {
		return err
	}
	return c.relay(a, text)
}

// onlyOnce refuses to pass a request on that was passed on.
func (s *Server) onlyOnce(c *call, number int) error {
	if relayOf(c) == (relay{}) {
		return nil
	}
	return s.away(number, fmt.Errorf("%w here: ask a process that follows it", ErrAway))
}

// request asks a process that has the log of a shard.
func (s *Server) request(ctx context.Context, c *call, number int, request []byte) (*http.Response, []byte, error) {
	answer, err := s.options.Shards.Pass(ctx, number, request)
	if err != nil {
		return nil, nil, s.unpassed(number, request, err)
	}
	a, text, err := readAnswer(answer, c.Request)
	if err != nil {
		return nil, nil, fmt.Errorf("the answer of a process with shard %d: %w", number, err)
	}
	return a, text, nil
}

// unpassed is the problem of a request that cannot be passed on.
func (s *Server) unpassed(number int, request []byte, err error) error {
	if errors.Is(err, ErrTooLong) {
		return problemf(http.StatusServiceUnavailable, "shard-away", "the request has %d bytes, which is too long to be passed on: ask a process that follows shard %d", len(request), number)
	}
	return s.away(number, err)
}

// away is the problem of a shard that cannot be asked.
func (s *Server) away(number int, err error) error {
	if !errors.Is(err, ErrAway) && !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	why := new(slot).problem()
	if at := s.slots[number]; at != nil {
		why = at.problem()
	}
	p := problemf(http.StatusServiceUnavailable, "shard-away", "shard %d is away: %s. Placements of other shards are served; vitrine cluster and the logs of the processes say more", number, why)
	p.cause = err.Error()
	return p
}

// Passed answers a request that another process has passed on because it does not have the log of a shard. An answer that has
// more than most bytes is replaced by a problem.
func (s *Server) Passed(number int, request []byte, most int) []byte {
	answer := s.relayed(request, relay{shard: number})
	if len(answer) <= most {
		return answer
	}
	w := &written{header: http.Header{}}
	c := &call{w: recorder{ResponseWriter: w}}
	c.fail(problemf(http.StatusServiceUnavailable, "shard-away", "the answer has %d bytes, which is too long to be passed on: ask a process that follows shard %d", len(answer), number))
	return w.bytes()
}

// again lets the body be read once more.
func (c *call) again(body []byte) {
	c.Header.Del("Content-Encoding")
	c.Body, c.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
}

// listTime is how long a list waits for the part of a shard that is not here.
const listTime = 2 * time.Second

// fetch reads the parts of a list that the shards elsewhere have, all at once: add gets the answer of each to a GET of a path. It
// returns those that have not answered.
func (s *Server) fetch(c *call, path string, add func(answer []byte) error) (away []int, err error) {
	rest := s.elsewhere(c)
	if len(rest) == 0 {
		return nil, nil
	}
	request, err := s.requestOf(c, path)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(c.Context(), listTime)
	defer cancel()
	answers := make([][]byte, len(rest)) // nil of those that have none
	var asking sync.WaitGroup
	for i, number := range rest {
		asking.Go(func() {
			if a, text, err := s.request(ctx, c, number, request); err == nil && a.StatusCode == http.StatusOK {
				answers[i] = text
			}
		})
	}
	asking.Wait()
	for i, number := range rest {
		if answers[i] == nil || add(answers[i]) != nil {
			s.log.Warn("a list lacks a shard", "request_id", c.id, "shard", number)
			away = append(away, number)
		}
	}
	return away, nil
}

// adder returns the function of a list whose answers have the type T.
func adder[T any](add func(part *T)) func(answer []byte) error {
	return func(answer []byte) error {
		part := new(T)
		if err := json.Unmarshal(answer, part); err != nil {
			return err
		}
		add(part)
		return nil
	}
}
