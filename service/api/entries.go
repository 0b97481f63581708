package api

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Entries are places in the logs of a service: an entry of each shard, by its number, from 1 on. A service with one log has
// only the number 0. As text they are "812", or "1:812,3:77".
type Entries map[int]uint64

// ParseEntries reads the text of entries.
func ParseEntries(text string) (Entries, error) {
	entries := Entries{}
	for part := range strings.SplitSeq(text, ",") {
		shard := 0
		number, entry, several := strings.Cut(part, ":")
		if several {
			n, err := strconv.ParseUint(number, 10, 31)
			if err != nil || n == 0 {
				return nil, fmt.Errorf("%q: must be the number of a shard, from 1 on", number)
			}
			shard = int(n)
		} else {
			entry = number
		}
		n, err := strconv.ParseUint(entry, 10, 64)
		if err != nil {
			return nil, fmt.Errorf("%q: must be a whole number", entry)
		}
		if _, twice := entries[shard]; twice {
			return nil, fmt.Errorf("%q: has shard %d twice", text, shard)
		}
		entries[shard] = n
	}
	if _, only := entries[0]; only && len(entries) > 1 {
		return nil, fmt.Errorf("%q: must be one entry, or one of each shard", text)
	}
	return entries, nil
}

// String returns the text of entries.
func (e Entries) String() string {
	var parts []string
	for _, shard := range slices.Sorted(maps.Keys(e)) {
		parts = append(parts, EntryOf(shard, e[shard]))
	}
	return strings.Join(parts, ",")
}

// EntryOf returns the text of an entry of a shard, 0 for the only log.
func EntryOf(shard int, entry uint64) string {
	if shard == 0 {
		return strconv.FormatUint(entry, 10)
	}
	return strconv.Itoa(shard) + ":" + strconv.FormatUint(entry, 10)
}
