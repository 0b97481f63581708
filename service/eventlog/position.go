package eventlog

import (
	"crypto/rand"
	"encoding/hex"

	"github.com/minio/highwayhash"
)

// Identity names a log, whatever directory or server has it. Copies of a log have the same identity. The zero
// value is no identity.
type Identity [16]byte

// NewIdentity draws an identity.
func NewIdentity() (id Identity) {
	rand.Read(id[:])
	return id
}

func (id Identity) String() string { return hex.EncodeToString(id[:]) }

// IsZero reports whether id is no identity.
func (id Identity) IsZero() bool { return id == Identity{} }

// Position is a place in a log: after an entry, 0 before the first. Two logs with a common position have the
// same entries up to it.
type Position struct {
	Log      Identity
	Sequence uint64
	Hash     [16]byte // the running hash of the entries
}

// After returns the position after more entries. With h_n the running hash after entry n,
//
//	h_n = HighwayHash-128(key = h_{n−1} ‖ identity, entry n)
//
// and h is 0 before the first entry. A position without an identity, of a log that nobody has written yet, gets no hash.
func (p Position) After(entries ...[]byte) Position {
	p.Sequence += uint64(len(entries))
	if p.Log.IsZero() {
		return p
	}
	var key [highwayhash.Size]byte
	copy(key[len(p.Hash):], p.Log[:])
	for _, e := range entries {
		copy(key[:], p.Hash[:])
		p.Hash = highwayhash.Sum128(e, key[:])
	}
	return p
}
