// Package commandline derives completions of shells and the page of the manual from the model of a command line.
package commandline

import (
	"slices"

	"github.com/alecthomas/kong"
)

// Visible returns the subcommands of a node that help shows.
func Visible(node *kong.Node) []*kong.Node {
	return slices.DeleteFunc(slices.Clone(node.Children), func(n *kong.Node) bool {
		return n.Hidden || n.Type != kong.CommandNode
	})
}

// Names returns the names of nodes.
func Names(nodes []*kong.Node) (list []string) {
	for _, n := range nodes {
		list = append(list, n.Name)
	}
	return list
}
