package decision

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"vitrine/internal/state"
	"vitrine/service/eventlog"
)

// snapshotKind and the format after it name the encoding: change the format with the fields. All formats are
// read:
//
//	1  no deferred decisions, and no outcomes reported in parts
//	2  no identity of the log, no machines that have learned, no learners that began again
//	3  no evicted decisions
//	4  no learners that are behind
//	5  the offers of decisions instead of their entries
//	6  had one learner a placement, that learned from every outcome, and versions without time, count and note
//	7  no catalogues
//	8  had categories that learned no values
//	9  had no guards
//	10 had no series
//	11 had no experiments and no eras
//	12 had no counts of items
//	13
const (
	snapshotKind   = "decision engine "
	snapshotFormat = 13
)

// decoder reads a snapshot of a format.
type decoder struct {
	*state.Decoder
	format int
}

func newDecoder(data []byte) (decoder, error) {
	kind, d, err := state.Read(data)
	if err != nil {
		return decoder{}, err
	}
	for format := range snapshotFormat {
		if kind == fmt.Sprint(snapshotKind, format+1) {
			return decoder{d, format + 1}, nil
		}
	}
	return decoder{}, fmt.Errorf("snapshot is of %q, want %q up to %d", kind, snapshotKind, snapshotFormat)
}

// position reads the position of the snapshot.
func (d decoder) position() (p eventlog.Position) {
	p.Sequence = d.Uint64()
	if d.format >= 3 {
		d.bytes(p.Log[:])
		d.bytes(p.Hash[:])
	}
	if p.Log.IsZero() && p.Hash != [16]byte{} {
		d.Fail(errors.New("snapshot names no log, and has a hash of its entries"))
	}
	return p
}

// machines reads the sorted names of kinds of machines. Earlier programs named vector code; AVX-512 learned
// as all vector code does now.
func (d decoder) machines() []string {
	if d.format < 3 {
		return nil
	}
	names := strings.Fields(d.String())
	if !slices.IsSorted(names) || len(slices.Compact(slices.Clone(names))) != len(names) {
		d.Fail(fmt.Errorf("snapshot names the machines %q", names))
	}
	for i, name := range names {
		if name == "avx512" {
			names[i] = "amd64"
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// bytes reads a string of the length of dst into it.
func (d decoder) bytes(dst []byte) {
	if s := d.String(); len(s) == len(dst) {
		copy(dst, s)
	} else {
		d.Fail(fmt.Errorf("snapshot has %d bytes where there are %d", len(s), len(dst)))
	}
}

func (d decoder) oldest(at eventlog.Position) uint64 {
	if d.format < 6 {
		return at.Sequence + 1
	}
	oldest := d.Uint64()
	if oldest == 0 || oldest > at.Sequence+1 {
		d.Fail(fmt.Errorf("snapshot of entry %d has an open decision of entry %d", at.Sequence, oldest))
	}
	return oldest
}
