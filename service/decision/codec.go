package decision

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"vitrine/internal/state"
	"vitrine/service/eventlog"
)

// snapshotKind names the encoding of a snapshot. There is one; whoever changes it changes the name.
const snapshotKind = "decision engine 1"

// decoder reads a snapshot.
type decoder struct{ *state.Decoder }

func newDecoder(data []byte) (decoder, error) {
	kind, d, err := state.Read(data)
	if err != nil {
		return decoder{}, err
	}
	if kind != snapshotKind {
		return decoder{}, state.UnknownFormat("snapshot", strconv.Quote(kind), strconv.Quote(snapshotKind))
	}
	return decoder{d}, nil
}

// position reads the position of the snapshot.
func (d decoder) position() (p eventlog.Position) {
	p.Sequence = d.Uint64()
	d.bytes(p.Log[:])
	d.bytes(p.Hash[:])
	if p.Log.IsZero() && p.Hash != [16]byte{} {
		d.Fail(errors.New("snapshot names no log, and has a hash of its entries"))
	}
	return p
}

// machines reads the sorted names of kinds of machines.
func (d decoder) machines() []string {
	names := strings.Fields(d.String())
	if !slices.IsSorted(names) || len(slices.Compact(slices.Clone(names))) != len(names) {
		d.Fail(fmt.Errorf("snapshot names the machines %q", names))
	}
	return names
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
	oldest := d.Uint64()
	if oldest == 0 || oldest > at.Sequence+1 {
		d.Fail(fmt.Errorf("snapshot of entry %d has an open decision of entry %d", at.Sequence, oldest))
	}
	return oldest
}
