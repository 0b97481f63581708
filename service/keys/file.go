package keys

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

	"vitrine/internal/flock"
	"vitrine/internal/hint"
	"vitrine/internal/replace"
)

// File is a file of API keys. Changes keep everything else in the file, including comments.
type File struct {
	path string
	text string
	keys []Key
	lock *flock.Lock // of a file opened by EditFile
}

// Errors of [File.Add], [File.Find] and [File.Remove].
var (
	ErrName    = errors.New("the name of a key has from 1 to 64 letters, digits, '.', '_' and '-'")
	ErrTaken   = errors.New("there is already a key with this name")
	ErrMissing = errors.New("there is no such key")
	ErrLast    = errors.New("it is the last key, and a service needs at least one")
)

// ReadFile reads a key file. A missing file counts as empty.
func ReadFile(path string) (*File, error) {
	f := &File{path: path}
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return f, nil
	}
	if err != nil {
		return nil, err
	}
	f.text = string(text)
	if f.keys, err = decode(text); err != nil && !errors.Is(err, errNone) {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return f, nil
}

// EditFile is ReadFile for changes: until Close, other calls of EditFile for the file wait. It
// locks the directory of the file, which must exist.
func EditFile(path string) (*File, error) {
	lock, err := flock.Take(filepath.Dir(behind(path)), os.O_RDONLY, flock.Exclusive)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	f, err := ReadFile(path)
	if err != nil {
		return nil, errors.Join(err, lock.Release())
	}
	f.lock = lock
	return f, nil
}

// Close releases the lock of a file opened by [EditFile].
func (f *File) Close() error { return f.lock.Release() }

// Keys returns the keys in the order of the file.
func (f *File) Keys() []Key { return f.keys }

// Find returns the key with a name, or [ErrMissing].
func (f *File) Find(name string) (Key, error) {
	if i := f.index(name); i >= 0 {
		return f.keys[i], nil
	}
	return Key{}, fmt.Errorf("key %q: %w", name, ErrMissing)
}

func (f *File) index(name string) int {
	return slices.IndexFunc(f.keys, func(k Key) bool { return k.Name == name })
}

var keyName = regexp.MustCompile(`^[A-Za-z0-9._-]{1,64}$`)

// Add adds a key at the end of the file. It returns [ErrName] or [ErrTaken] if the name is bad, and refuses a public key
// with scopes that are too wide.
func (f *File) Add(k Key) error {
	switch {
	case !keyName.MatchString(k.Name):
		return fmt.Errorf("key %q: %w", k.Name, ErrName)
	case f.index(k.Name) >= 0:
		return fmt.Errorf("key %q: %w", k.Name, ErrTaken)
	}
	if err := k.checkPublic(); err != nil {
		return err
	}
	text := f.text
	if text != "" {
		text = strings.TrimRight(text, "\n") + "\n\n"
	}
	return f.write(text+k.Table(), append(slices.Clone(f.keys), k))
}

// Table returns the key in file format.
func (k *Key) Table() string {
	text := fmt.Sprintf("[[key]]\nname = %q\nsha256 = %q\nscopes = %s\n", k.Name, k.SHA256, listed(k.Scopes))
	if k.Placements != nil {
		text += fmt.Sprintf("placements = %s\n", listed(k.Placements))
	}
	if k.Public {
		text += "public = true\n"
	}
	return text
}

func listed(names []string) string {
	quoted := make([]string, len(names))
	for i, name := range names {
		quoted[i] = strconv.Quote(name)
	}
	return "[" + strings.Join(quoted, ", ") + "]"
}

// Remove removes a key from the file. It keeps the last key and returns [ErrLast]: a file without keys is invalid, so a
// running service would keep the keys that it read before.
func (f *File) Remove(name string) error {
	i := f.index(name)
	switch {
	case i < 0:
		return fmt.Errorf("key %q: %w", name, ErrMissing)
	case len(f.keys) == 1:
		return fmt.Errorf("key %q: %w", name, ErrLast)
	}
	return f.write(without(f.text, i), slices.Delete(slices.Clone(f.keys), i, i+1))
}

// without returns the text without the i-th [[key]]. Comments after the last line of the key remain, because they
// belong to the next one.
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
	for end > begin && isBlank(lines[end-1]) {
		end--
	}
	for end < len(lines) && begin > 0 && strings.TrimSpace(lines[begin-1]) == "" &&
		strings.TrimSpace(lines[end]) == "" {
		end++
	}
	return strings.Join(lines[:begin], "") + strings.Join(lines[end:], "")
}

// isBlank reports whether a line is empty or a comment.
func isBlank(line string) bool {
	line = strings.TrimSpace(line)
	return line == "" || line[0] == '#'
}

// write replaces the file by text, after checking that text holds the given keys.
func (f *File) write(text string, keys []Key) error {
	if got, err := decode([]byte(text)); err != nil || !reflect.DeepEqual(got, keys) {
		return fmt.Errorf("%s: its keys are not in the form of [[key]] tables: change it by hand", f.path)
	}
	if err := replace.Shared(behind(f.path), []byte(text)); errors.Is(err, fs.ErrPermission) {
		return hint.New(err, "run vitrine keys as root, or as a user who may write the file and its directory")
	} else if err != nil {
		return err
	}
	f.text, f.keys = text, keys
	return nil
}

// behind resolves symbolic links in path.
func behind(path string) string {
	if to, err := filepath.EvalSymlinks(path); err == nil {
		return to
	}
	return path
}
