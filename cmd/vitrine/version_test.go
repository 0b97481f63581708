package main

import (
	"runtime/debug"
	"testing"
)

// The commit is the one that the build passes, or the one that the go command notes.
func TestSource(t *testing.T) {
	noted := &debug.BuildInfo{Settings: []debug.BuildSetting{{Key: "vcs.revision", Value: "abc"},
		{Key: "vcs.time", Value: "2026-01-02T15:04:05Z"}}}
	changed := &debug.BuildInfo{Settings: append(noted.Settings, debug.BuildSetting{Key: "vcs.modified",
		Value: "true"})}
	for _, c := range []struct {
		what         string
		passed, when string
		info         *debug.BuildInfo
		commit, date string
	}{
		{"passed", "def", "2026-03-04T00:00:00Z", changed, "def", "2026-03-04T00:00:00Z"},
		{"noted", "", "", noted, "abc", "2026-01-02T15:04:05Z"},
		{"noted with changes", "", "", changed, "abc with changes", "2026-01-02T15:04:05Z"},
		{"neither", "", "", &debug.BuildInfo{}, "unknown", "unknown"},
		{"no information", "", "", nil, "unknown", "unknown"},
	} {
		before, then := commit, date
		commit, date = c.passed, c.when
		if gotCommit, gotDate := source(c.info, c.info != nil); gotCommit != c.commit || gotDate != c.date {
			t.Errorf("%s: %s of %s, want %s of %s", c.what, gotCommit, gotDate, c.commit, c.date)
		}
		commit, date = before, then
	}
}
