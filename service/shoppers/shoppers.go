// Package shoppers keeps the keys of the shoppers that placements remember.
//
// The log never holds a shopper's id. A shopper gets a random key at the first visit, and the log holds a name, which is a
// hash under that key:
//
//	name = first 16 bytes of HMAC-SHA-256(key, placement)
//
// Only a [Store] leads from an id to a key, so a shopper is erased by deleting the key: from then on the log's entries,
// snapshots and backups hold a name that belongs to nobody. The store keeps a hash of the id in place of the id. That
// does not hide it from readers of the store, who can try all ids: keep the store as safe as the ids.
package shoppers

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"time"
)

// NameSize is the number of bytes of a shopper's name in the log.
const NameSize = 16

// Store keeps keys. It is safe for concurrent use.
type Store interface {
	// Key returns the key of a shopper. A shopper without a key gets one for the placement drawsFor, or has the zero key if
	// drawsFor is "". Other placements use the same key.
	Key(ctx context.Context, id, drawsFor string) (Key, error)
	// Erase deletes the key of a shopper. When it returns nil, the key is gone for good.
	Erase(ctx context.Context, id string) error
	// Sweep deletes the keys that are not used. It spares keys that were drawn, or asked for with drawsFor, since the last
	// sweep or, if several processes share the store, in the last MaxFlight. It asks isUsed about the others only.
	Sweep(ctx context.Context, isUsed func(Key) bool) error
}

// MaxFlight is how long a decision may use the key that it has asked for before the log has its shopper's name.
const MaxFlight = 30 * time.Minute

// Key is a shopper's key.
type Key [16]byte

// Name returns the shopper's name in the log of a placement.
func (k Key) Name(placement string) string {
	h := hmac.New(sha256.New, k[:])
	h.Write([]byte(placement))
	return string(h.Sum(nil)[:NameSize])
}

// Hash stands for a shopper's id in a store.
type Hash [16]byte

// HashOf returns the first 16 bytes of SHA-256 over "vitrine shopper", a zero byte and the id.
func HashOf(id string) Hash {
	sum := sha256.Sum256([]byte("vitrine shopper\x00" + id))
	return Hash(sum[:16])
}

// Draw returns a new key.
func Draw() (k Key) {
	rand.Read(k[:]) // never fails
	return k
}
