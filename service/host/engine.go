package host

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"

	"vitrine/internal/hint"
	"vitrine/service/engine"
	"vitrine/service/eventlog"
	"vitrine/service/setup"
	"vitrine/service/state"
)

// gather is how long a commit waits for more callers. docs/adr/0041 measures what that saves.
const gather = 200 * time.Microsecond

// OpenEngine restores the state from the newest snapshot in a data directory and the entries after it. If that snapshot
// is unusable, it takes an earlier one, or replays the whole log. If the snapshot is of another log and the log is empty,
// that is an error. If a learner's state is unreadable and the log lost its rounds, the learner starts over, with a
// warning. OpenEngine uses the Store, Budget, Applied, Follow and Leader of o, and the options of followers; it sets the
// others itself.
func OpenEngine(ctx context.Context, data string, o engine.Options, logger *slog.Logger) (*engine.Engine, error) {
	o.Build, o.Size, o.Gather = setup.NewLearner, setup.LearnerSize, gather
	o.Progress = func(entries int) { logger.Info("replaying", "entries", entries) }
	paths, err := Snapshots(data)
	if err != nil {
		return nil, err
	}
	for _, path := range paths {
		if o.Snapshot, err = os.ReadFile(path); err != nil {
			return nil, err
		}
		e, err := engine.Open(ctx, o)
		if err == nil {
			compareMachines(path, o.Snapshot, logger)
		}
		switch {
		case err == nil || ctx.Err() != nil:
			return e, err
		case errors.Is(err, eventlog.ErrBeyond):
			return nil, newerThanLog(ctx, o.Store, paths, err)
		}
		if err := emptied(ctx, o.Store, err, strings.Join(paths, " and ")); err != nil {
			return nil, err
		}
		logger.Warn("a snapshot is unusable: more of the log is replayed", "snapshot", path, "cause", err.Error())
	}
	o.Snapshot = nil
	e, err := engine.Open(ctx, o)
	if errors.Is(err, eventlog.ErrRemoved) {
		if e := beginAgain(ctx, o, paths, logger); e != nil {
			return e, nil
		}
		return nil, hint.New(err, "the first entries of the log are only in snapshots, and "+data+" has none that this "+
			"program can use: copy state.snapshot and bases/ there from the log's former data directory, or from a "+
			"backup that no later release wrote")
	}
	return e, err
}

// emptied returns an error if a snapshot cannot be used because another log wrote it, and the log is empty.
func emptied(ctx context.Context, log engine.Log, unusable error, snapshots string) error {
	if _, empty := log.Position(ctx, 1); !errors.Is(unusable, eventlog.ErrForeign) || !errors.Is(empty, eventlog.ErrBeyond) {
		return nil
	}
	return hint.New(fmt.Errorf("this log is empty, but another log wrote %s", snapshots), "correct [log] url and stream, "+
		"restore the log, or copy it there with vitrine log copy; to begin with an empty log, remove these snapshots")
}

// newerThanLog names the snapshots that know later entries than the log.
func newerThanLog(ctx context.Context, log engine.Log, paths []string, cause error) error {
	var newer []string
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			continue
		}
		at, err := state.SnapshotPosition(data)
		if _, beyond := log.Position(ctx, at.Sequence); err == nil && errors.Is(beyond, eventlog.ErrBeyond) {
			newer = append(newer, path)
		}
	}
	if len(newer) == 0 { // the file was replaced meanwhile
		return cause
	}
	advice := "restore the whole log; or accept the loss of what came after its end, and move these files away"
	if _, err := log.Entry(ctx, 1); errors.Is(err, eventlog.ErrRemoved) && len(newer) == len(paths) {
		advice = "restore the log and these files from one backup: without them the log's first entries are missing"
	}
	return hint.New(fmt.Errorf("the log ends before %s: %w", strings.Join(newer, " and "), cause), advice)
}

// beginAgain restores the state from a snapshot with some unreadable learners, which start over. It returns nil without
// such a snapshot.
func beginAgain(ctx context.Context, o engine.Options, paths []string, logger *slog.Logger) *engine.Engine {
	o.BeginAgain = true
	for _, path := range paths {
		var err error
		if o.Snapshot, err = os.ReadFile(path); err != nil {
			continue
		}
		e, err := engine.Open(ctx, o)
		if err != nil {
			continue
		}
		for _, name := range e.Placements() {
			if stats, err := e.Stats(name); err == nil && stats.Forgotten > 0 {
				logger.Warn("a learner starts from nothing: its saved state cannot be read, and the log no longer "+
					"has its rounds",
					"placement", name, "forgotten", stats.Forgotten, "snapshot", path, "cause", stats.Problem)
			}
		}
		return e
	}
	return nil
}

// compareMachines logs if the state was learned on other machines, so that a replay here may differ in
// the last digits.
func compareMachines(path string, snapshot []byte, logger *slog.Logger) {
	machines, err := state.SnapshotMachines(snapshot)
	if err == nil && machines != nil && !slices.Equal(machines, []string{runtime.GOARCH}) {
		logger.Info("the state was learned on other machines: a replay of the log may differ in the last digits",
			"snapshot", path, "machines", machines, "here", runtime.GOARCH)
	}
}
