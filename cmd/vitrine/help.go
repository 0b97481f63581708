package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/alecthomas/kong"
)

type helpCmd struct {
	Command []string `arg:"" optional:"" help:"A command, and a subcommand of it; the whole program if left out." complete:"commands"`
}

// Run prints the help that --help prints.
func (c helpCmd) Run(parser *kong.Kong) error {
	node := parser.Model.Node
	for _, name := range c.Command {
		children := visible(node)
		i := slices.IndexFunc(children, func(n *kong.Node) bool { return n.Name == name })
		if i < 0 {
			return usageError{fmt.Errorf("there is no command %q: there are %s", strings.Join(c.Command, " "),
				strings.Join(nodeNames(visible(parser.Model.Node)), ", "))}
		}
		node = children[i]
	}
	_, err := parser.Parse(append(slices.Clone(c.Command), "--help"))
	return err
}

// visible returns the subcommands of a node that help shows.
func visible(node *kong.Node) []*kong.Node {
	return slices.DeleteFunc(slices.Clone(node.Children), func(n *kong.Node) bool {
		return n.Hidden || n.Type != kong.CommandNode
	})
}

func nodeNames(nodes []*kong.Node) (list []string) {
	for _, n := range nodes {
		list = append(list, n.Name)
	}
	return list
}
