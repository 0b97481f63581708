package setup

import (
	"vitrine/service/api"
	"vitrine/service/earnings"
	"vitrine/service/eventlog"
)

const (
	// RecordBytes is the size of a remembered decision without its id, including its places in the index and among the
	// open or the closed decisions.
	RecordBytes = 136
	// MaxRecordBytes is its size with the longest id.
	MaxRecordBytes = RecordBytes + MaxDecision + 16
	// EvictedShare is the part of a placement's memory for the names of evicted decisions.
	EvictedShare = 16
)

// Share is the part of a placement's memory for the rounds in the learner's queue, and the same again for
// those in its journal.
func (c *Config) Share() int { return c.MemoryBytes / 4 }

// Bound returns the maximal bytes of a placement's decisions and rounds under any traffic: Memory for the
// remembered decisions, a quarter of it for the rounds that wait for the learner, a quarter for the rounds
// since its last checkpoint, and a sixteenth each for the names of evicted decisions and the counts of items. The
// learner and its kept states come on top; their size depends on the policy, and some policies keep all rounds.
func (c *Config) Bound() int {
	return c.MemoryBytes + 2*c.Share() + c.MemoryBytes/EvictedShare +
		earnings.ItemBytes*earnings.MaxItems(c.MemoryBytes) + c.schema.NamesBytes()
}

// ShopperBytes returns the most bytes of the memory of shoppers.
func (c *Config) ShopperBytes() int {
	if c.ShopperHistory == nil {
		return 0
	}
	return c.ShopperHistory.MemoryBytes
}

// maxRecord bounds the memory of a decision: its record and its round, with rows from the log.
func (c *Config) maxRecord() int {
	rows := c.MaxSize
	if c.LogItems == "all" {
		rows += c.MaxItems // and those shown may come from the catalogue
	}
	return MaxRecordBytes + RoundBytes(min(rows*(c.schema.Width()+1), eventlog.MaxBatch/8), c.MaxSize)
}

// rowBytes returns the bytes of the numbers and of the places of the items shown. An allocator rounds up by
// at most a quarter.
func rowBytes(numbers, shown int) int { return 5 * (8*numbers + 4*shown) / 4 }

// RoundBytes returns the bytes of a round while it waits for the learner.
func RoundBytes(numbers, shown int) int { return 400 + rowBytes(numbers, shown) + 8*shown }

// LogBytes bounds a decision's bytes in the log, for ids of 16 bytes and a request without rules. If all candidates are
// recorded, each item that a request brings adds the bytes item, and each item of the catalogue the given bits.
func (c *Config) LogBytes() (decision, item, bits int) {
	const (
		fixed = 160        // the decision's id, the hash of its request, the propensity and the lengths
		id    = 16 + 1 + 1 // with its length and its place
		float = 8
	)
	d := c.schema.Width()
	item = (d+7)/8 + float*d + id + float // with the revenue
	decision = fixed + c.MaxSize*(item+float)
	if c.LogItems == "all" {
		if bits = 1; c.Explore == api.BySwaps { // and which of them may be in which slot
			bits += c.MaxSize
		}
		item += (bits + 7) / 8
	}
	return decision, item, bits
}
