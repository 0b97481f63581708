package main

import (
	"github.com/alecthomas/kong"

	"vitrine/internal/commandline"
)

type manCmd struct{}

// Run prints the manual page, from the text of the help.
func (manCmd) Run(t terminal, parser *kong.Kong) error {
	_, err := t.out.Write(commandline.Manual(parser.Model, version))
	return err
}
