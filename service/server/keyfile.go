package server

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"vitrine/internal/replace"
)

// KeyFile is a file of keys. Whatever else is in it, comments too, stays when it is changed.
type KeyFile struct {
	path   string
	text   string
	keys   []Key
	unlock func() error // of one that is to be changed
}

// Errors of a change.
var (
	ErrKeyName  = errors.New("a name of a key has from 1 to 64 letters, digits, '.', '_' and '-'")
	ErrKeyTaken = errors.New("there is a key of this name")
	ErrNoKey    = errors.New("there is no such key")
	ErrLastKey  = errors.New("it is the last key, and a service needs one")
)

// ReadKeyFile reads the keys of a file. One that is not there has none.
func ReadKeyFile(path string) (*KeyFile, error) {
	f := &KeyFile{path: path}
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return f, nil
	}
	if err != nil {
		return nil, err
	}
	f.text = string(text)
	if f.keys, err = decodeKeys(text); err != nil && !errors.Is(err, errNoKeys) {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return f, nil
}

// EditKeyFile is ReadKeyFile for who changes the file until Close: others who do so wait for that.
// It locks the directory that the file is in, which must be there.
func EditKeyFile(path string) (*KeyFile, error) {
	unlock, err := lockDir(filepath.Dir(behind(path)))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	f, err := ReadKeyFile(path)
	if err != nil {
		return nil, errors.Join(err, unlock())
	}
	f.unlock = unlock
	return f, nil
}

// Close lets others change the file.
func (f *KeyFile) Close() error { return f.unlock() }

// Keys returns them, in the order of the file.
func (f *KeyFile) Keys() []Key { return f.keys }

// Find returns the key of a name, or ErrNoKey.
func (f *KeyFile) Find(name string) (Key, error) {
	if i := f.index(name); i >= 0 {
		return f.keys[i], nil
	}
	return Key{}, fmt.Errorf("key %q: %w", name, ErrNoKey)
}

func (f *KeyFile) index(name string) int {
	return slices.IndexFunc(f.keys, func(k Key) bool { return k.Name == name })
}

var keyName = regexp.MustCompile(`^[A-Za-z0-9._-]{1,64}$`)

// Add writes the file with another key, at its end.
func (f *KeyFile) Add(k Key) error {
	switch {
	case !keyName.MatchString(k.Name):
		return fmt.Errorf("key %q: %w", k.Name, ErrKeyName)
	case f.index(k.Name) >= 0:
		return fmt.Errorf("key %q: %w", k.Name, ErrKeyTaken)
	}
	text := f.text
	if text != "" {
		text = strings.TrimRight(text, "\n") + "\n\n"
	}
	text += fmt.Sprintf("[[key]]\nname = %q\nsha256 = %q\nscopes = %s\n", k.Name, k.SHA256, listed(k.Scopes))
	if k.Placements != nil {
		text += fmt.Sprintf("placements = %s\n", listed(k.Placements))
	}
	return f.write(text, append(slices.Clone(f.keys), k))
}

func listed[T ~string](names []T) string {
	quoted := make([]string, len(names))
	for i, name := range names {
		quoted[i] = strconv.Quote(string(name))
	}
	return "[" + strings.Join(quoted, ", ") + "]"
}

// Remove writes the file without a key. The last one stays, ErrLastKey: without keys the file is
// none, and a service that runs would keep those that it had.
func (f *KeyFile) Remove(name string) error {
	i := f.index(name)
	switch {
	case i < 0:
		return fmt.Errorf("key %q: %w", name, ErrNoKey)
	case len(f.keys) == 1:
		return fmt.Errorf("key %q: %w", name, ErrLastKey)
	}
	return f.write(without(f.text, i), slices.Delete(slices.Clone(f.keys), i, i+1))
}

// without returns the text without a [[key]], from its head to the last line that says something of it: the comments
// after that are of what follows.
func without(text string, i int) string {
	lines := strings.SplitAfter(text, "\n")
	begin, end, head := len(lines), len(lines), -1
	for n, line := range lines {
		if !strings.HasPrefix(strings.TrimSpace(line), "[") {
			continue
		}
		if head++; head == i {
			begin = n
		} else if head == i+1 {
			end = n
		}
	}
	for end > begin && saysNothing(lines[end-1]) {
		end--
	}
	for end < len(lines) && begin > 0 && strings.TrimSpace(lines[begin-1]) == "" && strings.TrimSpace(lines[end]) == "" {
		end++
	}
	return strings.Join(lines[:begin], "") + strings.Join(lines[end:], "")
}

func saysNothing(line string) bool {
	line = strings.TrimSpace(line)
	return line == "" || line[0] == '#'
}

// write puts the text in the place of the file, if it says what it should.
func (f *KeyFile) write(text string, keys []Key) error {
	if got, err := decodeKeys([]byte(text)); err != nil || !reflect.DeepEqual(got, keys) {
		return fmt.Errorf("%s: its keys do not stand in lines below a [[key]] each: change it by hand", f.path)
	}
	if err := replace.Private(behind(f.path), []byte(text)); err != nil {
		return err
	}
	f.text, f.keys = text, keys
	return nil
}

// behind returns the file that a path stands for, through symbolic links.
func behind(path string) string {
	if to, err := filepath.EvalSymlinks(path); err == nil {
		return to
	}
	return path
}
