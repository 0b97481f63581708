package panics_test

import (
	"sync"
	"testing"

	"vitrine/internal/panics"
)

// wait runs the functions concurrently and returns the value that Repanic panics with.
func wait(c *panics.Catcher, functions ...func()) any {
	var group sync.WaitGroup
	for _, f := range functions {
		group.Go(func() {
			defer c.Catch()
			f()
		})
	}
	group.Wait()
	return panics.Value(c.Repanic)
}

func TestAPanicIsHandedOver(t *testing.T) {
	var c panics.Catcher
	fine, broken := func() {}, func() { panic("no ink") }
	if got := wait(&c, fine, broken, fine, broken); got != "no ink" {
		t.Errorf("the caller panics with %v, want no ink", got)
	}
	if got := wait(&c, fine, fine); got != nil {
		t.Errorf("a later group panics with %v that is not its own", got)
	}
	if got := wait(&c, broken); got != "no ink" {
		t.Errorf("after a panic the caller panics with %v, want no ink", got)
	}
}

func TestTheFirstPanicIsKept(t *testing.T) {
	var c panics.Catcher
	for _, v := range []string{"no ink", "no paper"} {
		func() {
			defer c.Catch()
			panic(v)
		}()
	}
	if got := wait(&c); got != "no ink" {
		t.Errorf("the caller panics with %v, want no ink", got)
	}
}

func TestCatchingNothingDoesNotAllocate(t *testing.T) {
	var c panics.Catcher
	if n := testing.AllocsPerRun(100, func() {
		defer c.Repanic()
		defer c.Catch()
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
