//go:build unix

package kernel_test

import (
	"fmt"
	"runtime/debug"
	"syscall"
	"testing"
	"unsafe"

	"vitrine/internal/expect"
	"vitrine/internal/fatal"
)

// No path reads or writes outside its arguments, wherever they start. Each argument ends right before or starts right
// after a page that must not be touched.
func TestKernelsStayInBounds(t *testing.T) {
	arena := newArena(t)
	eachPath(t, func(t *testing.T) {
		for _, k := range kernels {
			t.Run(k.name, func(t *testing.T) {
				allShapes(func(n, d int) {
					want := k.call(positives(func(n int) []float64 { return make([]float64, n) }), n, d)
					for _, side := range []struct {
						name    string
						storage func(n int) []float64
					}{{"end", arena.atEnd}, {"beginning", arena.atBeginning}} {
						what := fmt.Sprintf("n=%d, d=%d, at the %s of pages", n, d, side.name)
						arena.reset()
						got := arena.guard(t, what, func() []float64 { return k.call(positives(side.storage), n, d) })
						wantBits(t, what, got, want)
					}
				})
			})
		}
	})
}

// arena hands out slices in separate pages, with a page that must not be touched on either side.
type arena struct {
	slots    [][]byte
	used     int
	canaries []*float64
}

const canary = 1234.5

func newArena(t *testing.T) *arena {
	a := new(arena)
	page := syscall.Getpagesize()
	for range 5 {
		slot := fatal.Or(
			syscall.Mmap(-1, 0, 66*page, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE),
		)(t)
		t.Cleanup(func() {
			expect.Error(t, syscall.Munmap(slot), nil)
		})
		for _, guard := range [][]byte{slot[:page], slot[len(slot)-page:]} {
			fatal.If(t, syscall.Mprotect(guard, syscall.PROT_NONE))
		}
		a.slots = append(a.slots, slot[page:len(slot)-page])
	}
	return a
}

// reset takes all slices back.
func (a *arena) reset() { a.used, a.canaries = 0, a.canaries[:0] }

// next returns the numbers of the next slot.
func (a *arena) next() []float64 {
	slot := a.slots[a.used]
	a.used++
	return unsafe.Slice((*float64)(unsafe.Pointer(&slot[0])), len(slot)/8)
}

// watch places a canary.
func (a *arena) watch(p *float64) {
	*p = canary
	a.canaries = append(a.canaries, p)
}

// atEnd returns a slice that ends at a guard page, with a canary before it.
func (a *arena) atEnd(n int) []float64 {
	all := a.next()
	a.watch(&all[len(all)-n-1])
	return all[len(all)-n : len(all) : len(all)]
}

// atBeginning returns a slice that starts after a guard page, with a canary behind it.
func (a *arena) atBeginning(n int) []float64 {
	all := a.next()
	a.watch(&all[n])
	return all[:n:n]
}

// guard returns the result of call, and fails the test if it touches a guard page or overwrites a canary.
func (a *arena) guard(t *testing.T, what string, call func() []float64) []float64 {
	t.Helper()
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if fault := recover(); fault != nil {
			t.Fatalf("%s: %v", what, fault)
		}
		for _, p := range a.canaries {
			expect.Equal(fatal.T(t), *p, canary, what, "writes outside its arguments")
		}
	}()
	return call()
}
