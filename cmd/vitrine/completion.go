package main

import (
	"fmt"
	"io"
	"slices"

	"github.com/alecthomas/kong"

	"vitrine/bandit/policy"
	"vitrine/figure"
	"vitrine/internal/commandline"
	"vitrine/paper/experiments"
)

type completionCmd struct {
	Shell string `arg:"" help:"bash, zsh, fish or powershell." complete:"shells"`
}

func (completionCmd) Help() string {
	return "The script completes commands, flags, experiments, policies and other names; it calls vitrine for " +
		"them, which must be in the PATH.\n\n" + examples(
		"source <(vitrine completion bash)                                          in ~/.bashrc",
		"vitrine completion zsh > \"${fpath[1]}/_vitrine\"                            once, before compinit",
		"vitrine completion fish > ~/.config/fish/completions/vitrine.fish          once",
		"vitrine completion powershell | Out-String | Invoke-Expression             in $PROFILE",
	)
}

func (c completionCmd) Run(t terminal) error {
	script, ok := commandline.Scripts[c.Shell]
	if !ok {
		return usagef("completion %s: must be bash, zsh, fish or powershell", c.Shell)
	}
	_, err := io.WriteString(t.out, script)
	return err
}

type completeCmd struct {
	Words []string `arg:"" optional:""`
}

func (c completeCmd) Run(t terminal, parser *kong.Kong) error {
	for _, word := range sources.Candidates(parser.Model.Node, c.Words) {
		fmt.Fprintln(t.out, word)
	}
	return nil
}

// sources return the possible values of a flag or an argument, by its tag complete.
var sources = commandline.Sources{
	"bands":     func(*kong.Node) []string { return figure.Bands() },
	"baselines": func(*kong.Node) []string { return []string{"theory", "tuned", "both"} },
	"commands":  func(root *kong.Node) []string { return commandline.Names(commandline.Visible(root)) },
	"experiments": func(*kong.Node) []string {
		return slices.Concat([]string{"all"}, experiments.Groups(), experiments.WithoutFile(), experiments.Names())
	},
	"formats":  func(*kong.Node) []string { return []string{"svg", "png", "pdf", "tex"} },
	"files":    func(*kong.Node) []string { return append(experiments.Names(), experiments.Tunings()...) },
	"lists":    func(*kong.Node) []string { return lists },
	"namings":  func(*kong.Node) []string { return []string{"label", "paper"} },
	"names":    func(*kong.Node) []string { return describable() },
	"policies": func(*kong.Node) []string { return policy.Names() },
	"scales":   func(*kong.Node) []string { return []string{"linear", "log"} },
	"shells":   func(*kong.Node) []string { return []string{"bash", "zsh", "fish", "powershell"} },
	"tunings":  func(*kong.Node) []string { return experiments.Tunings() },
}
