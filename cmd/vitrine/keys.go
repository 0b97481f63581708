package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"vitrine/internal/hint"
	"vitrine/service/keys"
	"vitrine/service/setup"
)

type keysCmd struct {
	Add    keysAddCmd    `cmd:"" help:"Make a key, and print its token. The token is not stored."`
	List   keysListCmd   `cmd:"" help:"List the keys of a file."`
	Remove keysRemoveCmd `cmd:"" help:"Withdraw a key."`
	Rotate keysRotateCmd `cmd:"" help:"Make a second key with the scopes and placements of another one, so that callers can switch to it."`
}

func (keysCmd) Help() string {
	return `The keys of a service are in a file; the service reads every change within a second. The file contains no token, so nobody can use the service with the file only.

` + examples("vitrine keys add keys.toml shop --scopes decide,outcome > shop.token", "vitrine keys add keys.toml page --scopes decide,outcome --placements home --public > page.token", "vitrine keys rotate keys.toml shop > shop-2.token", "vitrine keys remove keys.toml shop")
}

type keyFileArg struct {
	File string `arg:"" help:"The file of keys."`
}

type keysAddCmd struct {
	keyFileArg
	Name   string   `arg:"" help:"The name of the key in the service's messages."`
	Scopes []string `required:"" placeholder:"SCOPE,…" help:"What it permits: decide, outcome, read, admin."`

	Placements []string `placeholder:"NAME,…" help:"Placements that the key may use; they need not exist yet. Default: all."`
	Public     bool     `help:"For a key that anyone can read, for example in a web page: it may only decide and report outcomes, and sends no revenues."`
}

func (c keysAddCmd) Run(t terminal) error {
	var scopes []string
	for _, name := range c.Scopes {
		switch scope := strings.TrimSpace(name); {
		case !slices.Contains(keys.Scopes, scope):
			return usagef("--scopes %s: must be one or more of %s", name, strings.Join(keys.Scopes, ", "))
		case !slices.Contains(scopes, scope):
			scopes = append(scopes, scope)
		}
	}
	if scopes == nil {
		return usagef("--scopes names no scope: must be one or more of %s", strings.Join(keys.Scopes, ", "))
	}
	if c.Placements != nil && len(c.Placements) == 0 {
		return usageError{errors.New("--placements names no placement: leave it out for all")}
	}
	for _, name := range c.Placements {
		if !setup.IsName(name) {
			return usagef("--placements %q: a placement's name has from 1 to 64 letters, digits, "+
				"'.', '_', '-' and ':'", name)
		}
	}
	f, err := keys.EditFile(c.File)
	if err != nil {
		return err
	}
	defer f.Close()
	return addKey(t, f, keys.Key{Name: c.Name, Scopes: scopes, Placements: c.Placements, Public: c.Public})
}

// addKey makes a key like another one, and prints its token once it is in its file.
func addKey(t terminal, f *keys.File, like keys.Key) error {
	token, key := keys.New(like.Name, like.Scopes...)
	key.Placements, key.Public = like.Placements, like.Public
	if err := f.Add(key); errors.Is(err, keys.ErrTaken) {
		return hint.New(err, "vitrine keys rotate makes a second one next to it, vitrine keys remove withdraws it")
	} else if err != nil {
		return err
	}
	if _, err := fmt.Fprintln(t.out, token); err != nil {
		return hint.New(fmt.Errorf("the token of %q could not be printed: %w", key.Name, err), "the key is in the "+
			"file, and nobody has its token: remove it")
	}
	fmt.Fprintf(t.err, "vitrine: key %q is for %s; its token is printed this once\n", key.Name, reach(key))
	if p, ok := t.out.(*printer); ok {
		warnReadable(t.err, p.Writer)
	}
	return nil
}

// warnReadable warns if the file that a token was printed to can be read by other users.
func warnReadable(w, printed io.Writer) {
	file, _ := printed.(*os.File)
	info, err := file.Stat() // an error for nil
	if err == nil && info.Mode().IsRegular() && info.Mode().Perm()&0o077 != 0 {
		fmt.Fprintf(w, "vitrine: warning: other users can read the file that has the token (mode %v): chmod 600 "+
			"it, or make a new key after umask 077\n", info.Mode().Perm())
	}
}

// reach describes the scopes and placements of a key.
func reach(k keys.Key) string {
	text := strings.Join(k.Scopes, ", ")
	if k.Placements != nil {
		text += " at " + strings.Join(k.Placements, ", ")
	}
	if k.Public {
		text += " (public)"
	}
	return text
}

type keysListCmd struct{ keyFileArg }

func (c keysListCmd) Run(t terminal) error {
	f, err := keys.ReadFile(c.File)
	if err != nil {
		return err
	}
	if len(f.Keys()) == 0 {
		return hint.New(fmt.Errorf("%s has no key", c.File), "vitrine keys add makes one")
	}
	width := 0
	for _, k := range f.Keys() {
		width = max(width, len(k.Name))
	}
	for _, k := range f.Keys() {
		fmt.Fprintf(t.out, "%-*s  %s\n", width, k.Name, reach(k))
	}
	return nil
}

type keysRemoveCmd struct {
	keyFileArg
	Name string `arg:"" help:"The key."`
}

func (c keysRemoveCmd) Run() error {
	f, err := keys.EditFile(c.File)
	if err != nil {
		return err
	}
	defer f.Close()
	if err = f.Remove(c.Name); errors.Is(err, keys.ErrLast) {
		return hint.New(err, "add another one first; to shut out everybody, add one and throw its token away")
	}
	return hintOfNames(err, f)
}

type keysRotateCmd struct {
	keyFileArg
	Name string `arg:"" help:"The key."`
}

func (c keysRotateCmd) Run(t terminal) error {
	f, err := keys.EditFile(c.File)
	if err != nil {
		return err
	}
	defer f.Close()
	key, err := f.Find(c.Name)
	if err != nil {
		return hintOfNames(err, f)
	}
	key.Name = successor(f, c.Name)
	if err := addKey(t, f, key); err != nil {
		return err
	}
	fmt.Fprintf(t.err, "vitrine: once no caller uses the token of %q: vitrine keys remove %s %s\n", c.Name, c.File,
		c.Name)
	return nil
}

var numbered = regexp.MustCompile(`^(.*)-(\d{1,6})$`)

// successor returns the next free name: shop, shop-2, shop-3.
func successor(f *keys.File, name string) string {
	stem, n := name, 1
	if m := numbered.FindStringSubmatch(name); m != nil {
		stem = m[1]
		n, _ = strconv.Atoi(m[2])
	}
	for n++; ; n++ {
		next := fmt.Sprintf("%s-%d", stem, n)
		if _, err := f.Find(next); err != nil {
			return next
		}
	}
}

func hintOfNames(err error, f *keys.File) error {
	if !errors.Is(err, keys.ErrMissing) {
		return err
	}
	var names []string
	for _, k := range f.Keys() {
		names = append(names, k.Name)
	}
	if names == nil {
		return hint.New(err, "the file does not exist, or has no key: is its path right?")
	}
	return hint.New(err, "there are: "+strings.Join(names, ", "))
}
