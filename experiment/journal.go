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
	"os"
	"path/filepath"
	"sync"
)

// journal is runs.jsonl: a line for each finished unit, its JSON with a last
// member "crc", the CRC-32C in hexadecimal of the object without it. Lines are
// only ever appended, each in one write that is synced.
type journal struct {
	mu    sync.Mutex
	file  *os.File
	units map[unitKey]*unit
}

type unitKey struct {
	fingerprint, policy string
	seed                uint64
}

func (u *unit) key() unitKey { return unitKey{u.Fingerprint, u.Policy, u.Seed} }

// openJournal reads the journal in dir, which is made where it is missing, and
// opens it for appending. Damaged lines are left out, with a warning; what a
// crash tore from the end is cut off.
func openJournal(dir string, warn func(string)) (*journal, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	path := filepath.Join(dir, "runs.jsonl")
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o644)
	if err != nil {
		return nil, err
	}
	units, whole, err := readJournal(file, func(line int, why string) {
		warn(fmt.Sprintf("%s, line %d: %s: the run is played again", path, line, why))
	})
	if err == nil {
		err = file.Truncate(whole)
	}
	if err != nil {
		file.Close()
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return &journal{file: file, units: units}, nil
}

// readJournal returns the sound units and the length of the whole lines. It
// tells damaged of the other lines.
func readJournal(r io.Reader, damaged func(line int, why string)) (map[unitKey]*unit, int64, error) {
	units := map[unitKey]*unit{}
	var whole int64
	in := bufio.NewReaderSize(r, 1<<16)
	for number := 1; ; number++ {
		line, err := in.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			if len(line) > 0 {
				damaged(number, "torn at the end of the file")
			}
			return units, whole, nil
		}
		if err != nil {
			return nil, 0, err
		}
		whole += int64(len(line))
		u, err := decodeUnit(bytes.TrimSuffix(line, []byte("\n")))
		if err != nil {
			damaged(number, err.Error())
			continue
		}
		units[u.key()] = u
	}
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// crcMember is the form of the last member of a line.
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

// append adds a unit and returns once it would survive a crash.
func (j *journal) append(u *unit) error {
	line, err := encodeUnit(u)
	if err != nil {
		return err
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if _, err := j.file.Write(line); err != nil {
		return err
	}
	return j.file.Sync()
}

// close closes the file. Later calls do nothing.
func (j *journal) close() error {
	if j.file == nil {
		return nil
	}
	err := j.file.Close()
	j.file = nil
	return err
}

// fingerprint names all that determines a unit but for its seed.
func fingerprint(e *Experiment, p Policy) (string, error) {
	data, err := json.Marshal(map[string]any{"build": e.Build, "rounds": e.Rounds, "world": e.Settings, "policy": p.Settings})
	if err != nil {
		return "", fmt.Errorf("%s: policy %s: %w", e.Name, p.Label, err)
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:8]), nil
}
