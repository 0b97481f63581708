package decision

import (
	"encoding/binary"
	"math"
)

// cutter takes fields off the beginning of data. After the first one that is not there or not legal, failed is true and all
// others are zero.
type cutter struct {
	data   []byte
	failed bool
}

func (c *cutter) fail() { c.data, c.failed = nil, true }

// take returns the next n bytes, nil if there are fewer.
func (c *cutter) take(n int) []byte {
	if n > len(c.data) {
		c.fail()
		return nil
	}
	taken := c.data[:n]
	c.data = c.data[n:]
	return taken
}

func (c *cutter) byte() byte {
	if b := c.take(1); b != nil {
		return b[0]
	}
	return 0
}

func (c *cutter) fixed64() uint64 {
	if b := c.take(8); b != nil {
		return binary.LittleEndian.Uint64(b)
	}
	return 0
}

func (c *cutter) float() float64 { return math.Float64frombits(c.fixed64()) }

// uvarint takes an integer in its shortest form, which is at most a maximum.
func (c *cutter) uvarint(maximum uint64) uint64 {
	v, size := binary.Uvarint(c.data)
	if size <= 0 || size > 1 && c.data[size-1] == 0 || v > maximum {
		c.fail()
		return 0
	}
	c.data = c.data[size:]
	return v
}

// length takes the number of the elements that follow, of at least a byte each.
func (c *cutter) length() int { return int(c.uvarint(uint64(len(c.data)))) }

func (c *cutter) string() string { return string(c.take(c.length())) }

// name takes a string that is not empty.
func (c *cutter) name() string {
	s := c.string()
	if s == "" {
		c.fail()
	}
	return s
}

func (c *cutter) strings() []string {
	list := make([]string, c.length())
	for k := range list {
		list[k] = c.string()
	}
	return list
}
