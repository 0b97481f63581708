package shoppers

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"vitrine/internal/expect"
	"vitrine/internal/fatal"
	_ "vitrine/internal/rapidseed"
)

func reopened(t *testing.T, f *File, path string) *File {
	t.Helper()
	if f != nil {
		fatal.If(t, f.Close())
	}
	again := fatal.Or(Open(path))(t)
	fatal.Or(again.Begin(0))(t)
	t.Cleanup(func() { _ = again.Close() })
	return again
}

func keyOf(t *testing.T, f *File, id string, draws bool) Key {
	t.Helper()
	drawsFor := ""
	if draws {
		drawsFor = "home"
	}
	return fatal.Or(f.Key(t.Context(), id, drawsFor))(t)
}

// A shopper keeps a key over restarts. Once erased, the file holds neither the key nor the hash of the id, and the next key
// is another one in the free place.
func TestKeysAreKeptAndErased(t *testing.T) {
	path := filepath.Join(t.TempDir(), "shoppers")
	f := reopened(t, nil, path)
	if k := keyOf(t, f, "anna", false); k != (Key{}) {
		t.Errorf("%x for an unknown shopper who only looks", k)
	}
	anna, bert := keyOf(t, f, "anna", true), keyOf(t, f, "bert", true)
	if anna == (Key{}) || anna == bert || keyOf(t, f, "anna", true) != anna {
		t.Fatalf("%x and %x", anna, bert)
	}
	f = reopened(t, f, path)
	if keyOf(t, f, "anna", false) != anna || keyOf(t, f, "bert", false) != bert {
		t.Error("the keys have changed")
	}
	for range 2 {
		fatal.If(t, f.Erase(t.Context(), "anna"))
	}
	data, hash := fatal.Or(os.ReadFile(path))(t), HashOf("anna")
	if bytes.Contains(data, anna[:]) || bytes.Contains(data, hash[:]) || !bytes.Contains(data, bert[:]) ||
		bytes.Contains(data, []byte("bert")) {
		t.Errorf("%x", data)
	}
	for range 2 {
		f = reopened(t, f, path)
		if keyOf(t, f, "anna", false) != (Key{}) || keyOf(t, f, "bert", false) != bert {
			t.Error("an erased shopper has a key, or another shopper has none")
		}
	}
	if k := keyOf(t, f, "anna", true); k == anna || len(fatal.Or(os.ReadFile(path))(t)) != len(data) {
		t.Errorf("the key %x", k)
	}
}

// A full disk keeps new shoppers away only until there is room.
func TestFailedWrite(t *testing.T) {
	path := filepath.Join(t.TempDir(), "later", "shoppers")
	f := reopened(t, nil, path)
	fails := func() {
		t.Helper()
		if _, err := f.Key(t.Context(), "anna", "home"); err == nil {
			t.Error("a key that was not written is returned")
		}
	}
	fails()
	fatal.If(t, os.Mkdir(filepath.Dir(path), 0o700))
	bert, file := keyOf(t, f, "bert", true), f.file
	keyOf(t, f, "carl", true)
	fatal.If(t, f.Erase(t.Context(), "carl"))
	hash := HashOf("anna")
	half := func() { // leaves 20 bytes of anna's record in carl's place
		t.Helper()
		f.file = fatal.Or(os.Open(path))(t)
		fails()
		fatal.If(t, f.file.Close())
		f.file = file
		fatal.Or(file.WriteAt(append(hash[:], 1, 2, 3, 4), headerSize+recordSize))(t)
	}
	half()
	fatal.If(t, f.Erase(t.Context(), "anna"))
	if bytes.Contains(fatal.Or(os.ReadFile(path))(t), hash[:]) {
		t.Error("an erased shopper's hash is left by a failed write")
	}
	half()
	fatal.If(t, f.Erase(t.Context(), "bert"))
	anna := keyOf(t, f, "anna", true)
	f = reopened(t, f, path)
	if keyOf(t, f, "anna", false) != anna || anna == bert {
		t.Error("the key has changed")
	}
}

// An erasure that may not last is an error until it is synced. Then it lasts, even if the system dropped the first write.
func TestFailedErasure(t *testing.T) {
	path := filepath.Join(t.TempDir(), "shoppers")
	f := reopened(t, nil, path)
	fatal.If(t, f.Erase(t.Context(), "nobody"))
	anna := keyOf(t, f, "anna", true)
	fatal.If(t, f.Erase(t.Context(), "anna"))
	fatal.If(t, f.file.Close())
	for range 2 {
		expect.Refused(f.Erase(t.Context(), "anna"))(t, "an erasure that was not synced is reported as done")
	}
	f.file = fatal.Or(os.OpenFile(path, os.O_RDWR, 0))(t)
	fatal.Or(f.file.WriteAt(anna[:], headerSize))(t)
	fatal.If(t, f.Erase(t.Context(), "anna"))
	if bytes.Contains(fatal.Or(os.ReadFile(path))(t), anna[:]) {
		t.Error("an erased key is left")
	}
}

// A sweep deletes the keys that are not used, unless they were drawn or asked for since the last one.
func TestSweep(t *testing.T) {
	path := filepath.Join(t.TempDir(), "shoppers")
	f := reopened(t, nil, path)
	used, unused := keyOf(t, f, "used", true), keyOf(t, f, "unused", true)
	sweep := func() {
		t.Helper()
		fatal.If(t, f.Sweep(t.Context(), func(k Key) bool { return k == used }))
	}
	sweep()
	if keyOf(t, f, "unused", false) != unused {
		t.Error("a fresh key is gone")
	}
	sweep()
	for range 2 {
		sweep()
		if keyOf(t, f, "unused", false) != (Key{}) || keyOf(t, f, "used", false) != used {
			t.Error("the wrong keys are swept")
		}
		f = reopened(t, f, path)
	}
}

// A full file gives a new shopper the place of another one, of the placement that drew most keys, also after a restart.
// It counts them until a sweep makes room.
func TestKeysAreBounded(t *testing.T) {
	path := filepath.Join(t.TempDir(), "shoppers")
	f := reopened(t, nil, path)
	own := keyOf(t, f, "own", true)
	for i := range 40 {
		if i == 20 {
			f = reopened(t, f, path)
		}
		id := fmt.Sprint("invented ", i)
		f.most = 4
		k := fatal.Or(f.Key(t.Context(), id, "flooded"))(t)
		if again := keyOf(t, f, id, false); again != k || len(f.keys) > 4 || keyOf(t, f, "own", false) != own {
			t.Errorf("%q has the key %x and then %x; the file has %d", id, k, again, len(f.keys))
		}
	}
	expect.Equal(t, len(fatal.Or(os.ReadFile(path))(t)), int(headerSize)+4*recordSize, "the file has n bytes")
	expect.Equal(t, f.Replaced(), 20, "keys were replaced since the restart")
	for range 2 {
		fatal.If(t, f.Sweep(t.Context(), func(k Key) bool { return k == own }))
	}
	expect.Equal(t, f.Replaced(), 0, "keys were replaced since there is room")
	if f = reopened(t, f, path); len(f.keys) != 1 || keyOf(t, f, "own", false) != own {
		t.Error("another placement's shopper has no key")
	}
}

// A name depends on the key and the placement.
func TestNames(t *testing.T) {
	k := Key{1}
	if n := k.Name("home"); len(n) != NameSize || n != k.Name("home") || n == k.Name("cart") ||
		n == (Key{2}).Name("home") {
		t.Errorf("%x", n)
	}
}

// A record that the machine's failure cut short is left out; another file is refused, and stays as it is.
func TestTornFiles(t *testing.T) {
	path := filepath.Join(t.TempDir(), "shoppers")
	f := reopened(t, nil, path)
	anna := keyOf(t, f, "anna", true)
	keyOf(t, f, "bert", true)
	data := fatal.Or(os.ReadFile(path))(t)
	fatal.If(t, f.Close())
	whole := int(headerSize) + recordSize
	for size := range data {
		text := data[:size:size]
		if size == int(headerSize) || size == whole { // the system made the file longer, but did not write the record
			text = append(text, make([]byte, len(data)-size)...)
		}
		fatal.If(t, os.WriteFile(path, text, 0o600))
		expect.Error(t, Check(path, 0), nil, size)
		f := fatal.Or(Open(path))(t)
		expect.Equal(t, f.wrong != "", size < int(headerSize), "something is wrong with n bytes", size)
		if k := keyOf(t, f, "anna", false); (k == anna) != (size >= whole) || keyOf(t, f, "bert", false) != (Key{}) {
			t.Errorf("%d bytes: %x", size, k)
		}
		bert := keyOf(t, f, "bert", true)
		f = reopened(t, f, path)
		if keyOf(t, f, "bert", false) != bert {
			t.Errorf("%d bytes: the next key is lost", size)
		}
		fatal.If(t, f.Close())
	}
	for _, other := range []string{"x", "VITRINE SHOPPER?", strings.Repeat("\x00", 100)} {
		fatal.If(t, os.WriteFile(path, []byte(other), 0o600))
		if _, err := Open(path); err == nil || !strings.Contains(err.Error(), "not a file of shoppers' keys") ||
			string(fatal.Or(os.ReadFile(path))(t)) != other {
			t.Errorf("%q: %v", other, err)
		}
	}
}

// Damage at any byte of a file that was closed is found. The keys of other records stay, and neither the damaged key nor
// its hash is left once the shopper is erased.
func TestDamagedFiles(t *testing.T) {
	path := filepath.Join(t.TempDir(), "shoppers")
	f := reopened(t, nil, path)
	anna, bert := keyOf(t, f, "anna", true), keyOf(t, f, "bert", true)
	keyOf(t, f, "carl", true)
	fatal.If(t, f.Erase(t.Context(), "carl"))
	fatal.If(t, f.Close())
	data, hash := fatal.Or(os.ReadFile(path))(t), HashOf("anna")
	expect.Error(t, Check(path, 2), nil)
	found := func(damaged []byte, what ...any) {
		t.Helper()
		fatal.If(t, os.WriteFile(path, damaged, 0o600))
		f, err := Open(path)
		if err != nil {
			return
		}
		fatal.If(t, f.Close())
		expect.Part(0, Check(path, 2))(t, "up to 2 remembered shoppers are new", what...)
		expect.Equal(t, bytes.Equal(fatal.Or(os.ReadFile(path))(t), damaged), true, "the file is as it was", what)
		if err := Check(path, 0); err != nil && strings.Contains(err.Error(), "shoppers are new") {
			t.Error(what, err)
		}
		f = fatal.Or(Open(path))(t)
		if wrong, err := f.Begin(2); wrong == "" || err != nil {
			t.Error(what, wrong, err)
		}
		fatal.If(t, f.Close())
		expect.Error(t, Check(path, 2), nil, "after it was opened", what)
	}
	for at := len(magic); at < len(data); at++ {
		damaged := bytes.Clone(data)
		damaged[at] ^= 1
		found(damaged, "byte", at)
		f := fatal.Or(Open(path))(t)
		is := func(k Key, record int) bool {
			return (k == Key{}) == ((at-int(headerSize)+recordSize)/recordSize-1 == record)
		}
		if a, b := keyOf(t, f, "anna", false), keyOf(t, f, "bert", false); !is(a, 0) && a != anna || !is(b, 1) && b != bert {
			t.Errorf("byte %d: %x and %x", at, a, b)
		}
		fatal.If(t, f.Erase(t.Context(), "anna"))
		fatal.If(t, f.Close())
		if left := fatal.Or(os.ReadFile(path))(t); bytes.Contains(left, anna[:8]) || bytes.Contains(left, anna[8:]) ||
			bytes.Contains(left, hash[:8]) || bytes.Contains(left, hash[8:]) {
			t.Errorf("byte %d: an erased key is left", at)
		}
	}
	for size := range data {
		found(data[:size:size], "cut to", size)
		if zeros := append(data[:size:size], make([]byte, len(data)-size)...); size >= len(magic) && !bytes.Equal(zeros, data) {
			found(zeros, "zeros from", size)
		}
	}
	fatal.If(t, os.WriteFile(path, data[:len(data)-1], 0o600))
	fatal.If(t, Create(path))
	expect.Part(0, Check(path, 2))(t, "was cut short", "after Create")
	fatal.If(t, os.Remove(path))
	expect.Error(t, Check(path, 0), nil)
	expect.Part(0, Check(path, 2))(t, "is missing")
	for range 2 {
		fatal.If(t, Create(path))
		expect.Error(t, Check(path, 2), nil)
	}
}

// Records that were never synced may be damaged after the machine failed. Their shoppers are unknown, the records are free,
// and no damage is reported.
func TestUnsyncedRecords(t *testing.T) {
	path := filepath.Join(t.TempDir(), "shoppers")
	f := reopened(t, nil, path)
	anna := keyOf(t, f, "anna", true)
	f = reopened(t, f, path)
	keyOf(t, f, "carl", true)
	bert := keyOf(t, f, "bert", true)
	fatal.Or(f.file.WriteAt(make([]byte, recordSize), headerSize+recordSize))(t)
	size := len(fatal.Or(os.ReadFile(path))(t))
	expect.Error(t, Check(path, 2), nil)
	f = fatal.Or(Open(path))(t)
	expect.Equal(t, fatal.Or(f.Begin(2))(t), "", "what is wrong")
	if keyOf(t, f, "anna", false) != anna || keyOf(t, f, "bert", false) != bert || keyOf(t, f, "carl", false) != (Key{}) {
		t.Error("the keys have changed")
	}
	keyOf(t, f, "carl", true)
	fatal.If(t, f.Close())
	expect.Equal(t, len(fatal.Or(os.ReadFile(path))(t)), size, "the file has n bytes")
}

// Any file is refused, or read, and then keeps a new key.
func FuzzFile(f *testing.F) {
	f.Add(header(0))
	f.Add(slices.Concat(header(2), checked(bytes.Repeat([]byte("a"), recordSize-4)), freeRecord, []byte("cut")))
	f.Add(slices.Concat(header(9), bytes.Repeat([]byte("a"), recordSize), make([]byte, 2*recordSize)))
	f.Add([]byte("VITRINE"))
	f.Fuzz(func(t *testing.T, data []byte) {
		path := filepath.Join(t.TempDir(), "shoppers")
		fatal.If(t, os.WriteFile(path, data, 0o600))
		file, err := Open(path)
		if err != nil {
			return
		}
		fatal.Or(file.Begin(1))(t)
		k := keyOf(t, file, "anna", true)
		if file = reopened(t, file, path); keyOf(t, file, "anna", false) != k {
			t.Error("a key is lost")
		}
	})
}
