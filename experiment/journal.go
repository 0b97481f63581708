package experiment

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

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

// openJournal reads the journal in dir, creating it if necessary, and opens it for appending. Damaged lines are
// removed, with a warning.
func openJournal(dir string, warn func(string)) (*journal, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	path := filepath.Join(dir, "runs.jsonl")
	data, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	units, sound := readJournal(data, func(line int, why string) {
		warn(fmt.Sprintf("%s, line %d: %s: the run is played again", path, line, why))
	})
	if len(sound) < len(data) {
		if err := replace.File(path, sound); err != nil {
			return nil, err
		}
	}
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o644)
	if err != nil {
		return nil, err
	}
	return &journal{file: file, units: units}, nil
}

// readJournal returns the units from the intact lines, and those lines. It calls damaged for each other line.
func readJournal(data []byte, damaged func(line int, why string)) (units map[unitKey]*unit, sound []byte) {
	units = map[unitKey]*unit{}
	number := 0
	for line := range bytes.Lines(data) {
		number++
		body, whole := bytes.CutSuffix(line, []byte("\n"))
		if !whole {
			damaged(number, "torn at the end of the file")
			break
		}
		u, err := decodeUnit(body)
		if err != nil {
			damaged(number, err.Error())
			continue
		}
		units[u.key()] = u
		sound = append(sound, line...)
	}
	return units, sound
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
