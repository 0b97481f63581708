package eventlog

import (
	"crypto/rand"
	"encoding/hex"

	"github.com/minio/highwayhash"
)

// Identity names a log, independent of its directory or server. Copies of a log share its identity. The zero value
// stands for a log without identity.
type Identity [16]byte

// NewIdentity draws a random identity.
func NewIdentity() (id Identity) {
	rand.Read(id[:])
	return id
}

func (id Identity) String() string { return hex.EncodeToString(id[:]) }

// IsZero reports whether id is the zero value.
func (id Identity) IsZero() bool { return id == Identity{} }

// Position is a place in a log: after an entry, or 0 before the first. Two logs that share a position share all entries
// up to it.
type Position struct {
	Log      Identity
	Sequence uint64
	Hash     [16]byte // the running hash of the entries
}

// After returns the position after more entries. With h_n the running hash after entry n,
//
//	h_n = HighwayHash-128(key = h_{n−1} ‖ identity, entry n)
//
// and h is 0 before the first entry. A position without an identity, in a log that was never written, gets no hash.
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
