// Package panics passes a goroutine's panic on to the goroutine that waits for it. Without it, a panic that the
// goroutine's own stack does not recover ends the process, even if the caller is prepared to recover.
package panics

import (
	"fmt"
	"sync/atomic"
)

// Catcher keeps the first panic of a group of goroutines. The zero value is ready to use.
type Catcher struct{ first atomic.Pointer[any] }

// Catch recovers a panic and keeps it if it is the first. Each goroutine of the group must defer it.
func (c *Catcher) Catch() {
	if v := recover(); v != nil {
		kept := v // allocated only if there is a panic
		c.first.CompareAndSwap(nil, &kept)
	}
}

// Repanic panics with the value kept by Catch, if any, and forgets it. Call it in the goroutine that waits for the
// group, after all others ended.
func (c *Catcher) Repanic() {
	if v := c.first.Swap(nil); v != nil {
		panic(*v)
	}
}

// Value calls f and returns the value of its panic, or nil if it did not panic.
func Value(f func()) (v any) {
	defer func() { v = recover() }()
	f()
	return nil
}

// Safely calls f and turns its panic into an error.
func Safely(f func() error) (err error, panicked bool) {
	if v := Value(func() { err = f() }); v != nil {
		return fmt.Errorf("panic: %v", v), true
	}
	return err, false
}
