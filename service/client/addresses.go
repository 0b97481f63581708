package client

import (
	"fmt"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
)

// addresses are Base's addresses, and the one to begin with.
type addresses struct {
	once sync.Once
	list []string
	err  error // of a wrong address

	first atomic.Uint32
}

// read returns the addresses in a Base. The base of later calls does not matter.
func (a *addresses) read(base string) ([]string, error) {
	a.once.Do(func() {
		for address := range strings.SplitSeq(base, ",") {
			address = strings.TrimSpace(address)
			u, err := url.Parse(address)
			if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
				a.err = fmt.Errorf("client: Base %q: must be a URL such as %q, or several with commas between them", address, "http://127.0.0.1:8080")
				return
			}
			a.list = append(a.list, strings.TrimSuffix(address, "/"))
		}
	})
	return a.list, a.err
}

// next makes calls begin with the address after one that failed, unless another call did so already.
func (a *addresses) next(failed int) {
	a.first.CompareAndSwap(uint32(failed), uint32((failed+1)%len(a.list)))
}
