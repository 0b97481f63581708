// Package panics hands the panic of a goroutine to the goroutine that waits for
// it. A panic that no goroutine of its own stack recovers ends the process,
// whatever its caller is ready to recover.
package panics

import (
	"fmt"
	"sync/atomic"
)

// Catcher keeps the first panic of a group of goroutines. The zero value is
// ready.
type Catcher struct{ first atomic.Pointer[any] }

// Catch recovers a panic and keeps it if it is the first. Each goroutine of the
// group defers it.
func (c *Catcher) Catch() {
	if v := recover(); v != nil {
		kept := v // allocated here, and not where nothing panics
		c.first.CompareAndSwap(nil, &kept)
	}
}

// Repanic panics with the value that Catch keeps, and forgets it; it does nothing
// if there is none. Whoever waits for the group calls it after all goroutines
// have ended.
func (c *Catcher) Repanic() {
	if v := c.first.Swap(nil); v != nil {
		panic(*v)
	}
}

// Safely calls f and turns its panic into an error.
func Safely(f func() error) (err error, panicked bool) {
	defer func() {
		if v := recover(); v != nil {
			err, panicked = fmt.Errorf("panic: %v", v), true
		}
	}()
	return f(), false
}
