package main

import (
	"cmp"
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/alecthomas/kong"

	"vitrine/internal/buildid"
)

// The build passes these with -ldflags -X: the release, its commit, and the commit's time in RFC 3339.
var (
	version = "0.1.0-dev"
	commit  string
	date    string
)

type versionCmd struct{}

func (versionCmd) Help() string {
	return "The date is the time of the commit. Programs with the same ID continue each other's runs; stripping " +
		"or signing a program does not change its ID."
}

func (versionCmd) Run(t terminal) error {
	id, err := buildid.Sum()
	if err != nil { // such as in a chroot without /proc
		id = "unknown: " + err.Error()
	}
	commit, date := source(debug.ReadBuildInfo())
	_, err = fmt.Fprintf(t.out, "vitrine %s\ncommit    %s\ndate      %s\nprogram   %s\nplatform  %s/%s, %s\n", version,
		commit, date, id, runtime.GOOS, runtime.GOARCH, runtime.Version())
	return err
}

// source returns the commit and its time: those that the build passed, otherwise those that the go command noted in a
// clone.
func source(info *debug.BuildInfo, ok bool) (string, string) {
	if commit != "" || !ok {
		return cmp.Or(commit, "unknown"), cmp.Or(date, "unknown")
	}
	noted := map[string]string{}
	for _, s := range info.Settings {
		noted[s.Key] = s.Value
	}
	revision := cmp.Or(noted["vcs.revision"], "unknown")
	if noted["vcs.modified"] == "true" {
		revision += " with changes"
	}
	return revision, cmp.Or(noted["vcs.time"], "unknown")
}

// versionFlag is --version, which prints what the command version prints.
type versionFlag bool

// BeforeReset implements kong's hook, so that the flag needs no command.
func (versionFlag) BeforeReset(parser *kong.Kong) error {
	if err := (versionCmd{}).Run(terminal{parser.Stdout, parser.Stderr}); err != nil {
		return err
	}
	parser.Exit(0)
	return nil
}

// fullVersion is the release and, after a '+', the program's ID. Runs of another program are not continued, so no
// figure mixes two programs.
func fullVersion() (string, error) {
	id, err := buildid.Sum()
	return version + "+" + id, err
}
