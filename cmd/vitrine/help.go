package main

import (
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"vitrine/internal/commandline"
)

type helpCmd struct {
	Command []string `arg:"" optional:"" help:"A command, and a subcommand of it; the whole program if left out." complete:"commands"`
}

// Run prints the help that --help prints.
func (c helpCmd) Run(parser *kong.Kong) error {
	node := parser.Model.Node
	for _, name := range c.Command {
		children := commandline.Visible(node)
		i := slices.IndexFunc(children, func(n *kong.Node) bool { return n.Name == name })
		if i < 0 {
			return usagef("there is no command %q: there are %s", strings.Join(c.Command, " "),
				strings.Join(commandline.Names(commandline.Visible(parser.Model.Node)), ", "))
		}
		node = children[i]
	}
	_, err := parser.Parse(append(slices.Clone(c.Command), "--help"))
	return err
}
