package experiment

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"vitrine/internal/flock"
	"vitrine/internal/replace"
)

// journal is runs.jsonl: a line per finished unit. A line is the unit's JSON with a last member "crc", the CRC-32C in
// hexadecimal of the object without it. Each line is appended in one write, and synced.
type journal struct {
	mu     sync.Mutex
	file   *os.File
	failed error // error of the first failed append; later ones fail too, because its line may be incomplete
	units  map[unitKey]*unit
}

type unitKey struct {
	fingerprint, policy string
	seed                uint64
}

func (u *unit) key() unitKey { return unitKey{u.Fingerprint, u.Policy, u.Seed} }

// lockDir creates a directory of results if necessary, and reserves it for this command: another one could take finished
// units out of the journal, or write other results at the same time. If the file system has no locks, it warns.
func lockDir(dir string, warn func(string)) (*flock.Lock, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	lock, err := flock.Take(filepath.Join(dir, "lock"), os.O_RDWR|os.O_CREATE, flock.TryExclusive)
	if errors.Is(err, flock.ErrTaken) {
		return nil, fmt.Errorf("another command is playing in %s: wait for it, or choose another directory", dir)
	}
	if failed, ok := errors.AsType[*os.PathError](err); ok && failed.Op == "lock" {
		warn(fmt.Sprintf("%v: do not play two commands in this directory at the same time", err))
		return nil, nil
	}
	return lock, err
}

// openJournal reads the journal in dir and opens it for appending, creating it if necessary. Damaged lines are removed,
// with a warning.
func openJournal(dir string, warn func(string)) (*journal, error) {
	path := filepath.Join(dir, "runs.jsonl")
	damaged := false
	units, err := journalUnits(path, func(line int, why string) {
		damaged = true
		warn(fmt.Sprintf("%s, line %d: %s: the run is played again", path, line, why))
	})
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	if damaged {
		err := replace.Stream(path, func(w io.Writer) error {
			return readJournal(path, func(_ *unit, line []byte) error {
				_, err := w.Write(line)
				return err
			}, func(int, string) {})
		})
		if err != nil {
			return nil, err
		}
	}
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o644)
	if err != nil {
		return nil, err
	}
	return &journal{file: file, units: units}, nil
}

// journalUnits returns the units of the intact lines of the journal at path. It calls damaged for each other line.
func journalUnits(path string, damaged func(line int, why string)) (map[unitKey]*unit, error) {
	units := map[unitKey]*unit{}
	err := readJournal(path, func(u *unit, _ []byte) error {
		units[u.key()] = u
		return nil
	}, damaged)
	return units, err
}

// readJournal reads the journal at path with scanJournal.
func readJournal(path string, sound func(u *unit, line []byte) error, damaged func(line int, why string)) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	return scanJournal(file, sound, damaged)
}

// scanJournal calls sound for each intact line, until it returns an error, and damaged for each other line.
func scanJournal(r io.Reader, sound func(u *unit, line []byte) error, damaged func(line int, why string)) error {
	lines := bufio.NewReader(r)
	for number := 1; ; number++ {
		line, err := lines.ReadBytes('\n')
		if err == io.EOF {
			if len(line) > 0 {
				damaged(number, "torn at the end of the file")
			}
			return nil
		}
		if err != nil {
			return err
		}
		u, err := decodeUnit(line[:len(line)-1])
		if err != nil {
			damaged(number, err.Error())
			continue
		}
		if err := sound(u, line); err != nil {
			return err
		}
	}
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// crcMember is the format of a line's last member.
const crcMember = `,"crc":"%08x"}`

func encodeUnit(u *unit) ([]byte, error) {
	body, err := json.Marshal(u)
	if err != nil {
		return nil, err
	}
	sum := crc32.Checksum(body, castagnoli)
	return fmt.Appendf(body[:len(body)-1], crcMember+"\n", sum), nil
}

func decodeUnit(line []byte) (*unit, error) {
	at := len(line) - len(fmt.Sprintf(crcMember, 0))
	if at < 1 {
		return nil, errors.New("too short")
	}
	body := append(bytes.Clone(line[:at]), '}')
	if string(line[at:]) != fmt.Sprintf(crcMember, crc32.Checksum(body, castagnoli)) {
		return nil, errors.New("wrong checksum")
	}
	u := new(unit)
	if err := json.Unmarshal(body, u); err != nil {
		return nil, err
	}
	return u, nil
}

// find returns a finished unit, or nil.
func (j *journal) find(fingerprint, policy string, seed uint64) *unit {
	return j.units[unitKey{fingerprint, policy, seed}]
}

// append adds a unit durably: once it returns, the unit survives a crash.
func (j *journal) append(u *unit) error {
	line, err := encodeUnit(u)
	if err != nil {
		return err
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.failed != nil {
		return j.failed
	}
	if _, j.failed = j.file.Write(line); j.failed == nil {
		j.failed = j.file.Sync()
	}
	return j.failed
}

// close closes the file. Later calls have no effect.
func (j *journal) close() error {
	if j.file == nil {
		return nil
	}
	err := j.file.Close()
	j.file = nil
	return err
}

// fingerprint identifies everything that determines a unit, except its seed.
func fingerprint(e *Experiment, p Policy) (string, error) {
	data, err := json.Marshal(map[string]any{"version": e.Version, "rounds": e.Rounds, "world": e.Settings,
		"policy": p.Settings})
	if err != nil {
		return "", fmt.Errorf("%s: policy %s: %w", e.Name, p.Label, err)
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:8]), nil
}
