// Package commandline derives completions of shells and the page of the manual from the model of a command line.
package commandline

import (
	"fmt"
	"regexp"
	"slices"

	"github.com/alecthomas/kong"
)

// Visible returns the subcommands of a node that help shows.
func Visible(node *kong.Node) []*kong.Node {
	return slices.DeleteFunc(slices.Clone(node.Children), func(n *kong.Node) bool {
		return n.Hidden || n.Type != kong.CommandNode
	})
}

// CheckNames returns an error if a flag for a file, directory or address is empty, as with an unset shell variable.
func CheckNames(command *kong.Context) error {
	for _, f := range command.Flags() {
		name := slices.Contains([]string{"FILE", "DIR", "PATH", "ADDRESS"}, f.PlaceHolder)
		if text, ok := f.Target.Interface().(string); ok && name && f.Set && text == "" {
			return fmt.Errorf("--%s is empty: give it a value, or leave it out", f.Name)
		}
	}
	return nil
}

var negative, flag = regexp.MustCompile(`^-[0-9.]`), regexp.MustCompile(`^--[a-z-]+$`)

// JoinNegative joins negative numbers to the flags before them: the parser takes -1 alone for a flag.
func JoinNegative(args []string) (list []string) {
	for _, a := range args {
		if n := len(list) - 1; n >= 0 && negative.MatchString(a) && flag.MatchString(list[n]) {
			list[n] += "=" + a
		} else {
			list = append(list, a)
		}
	}
	return list
}

// Names returns the names of nodes.
func Names(nodes []*kong.Node) (list []string) {
	for _, n := range nodes {
		list = append(list, n.Name)
	}
	return list
}
