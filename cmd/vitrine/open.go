package main

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"os/exec"
	"runtime"
	"sync"

	"vitrine/service/host"
)

// announce prints the address of the demonstration's shop when the service answers, and opens it, or the desk, in a
// browser if open is true. A log that is opened again is not announced again.
func announce(o *host.Options, scheme string, demo, open bool, t terminal) {
	serving := o.Serving
	var once sync.Once
	o.Serving = func(ctx context.Context, address string) {
		once.Do(func() {
			url := deskURL(scheme, address)
			if demo {
				url += "#/shop"
				fmt.Fprintf(t.out, "The shop is at %s\n", url)
			}
			if open {
				if err := browse(url); err != nil {
					t.warn(fmt.Sprintf("no browser opens: %v; go to %s", err, url))
				}
			}
		})
		if serving != nil {
			serving(ctx, address)
		}
	}
}

// deskURL returns the address of the desk for a browser on this machine.
func deskURL(scheme, address string) string {
	if at, err := netip.ParseAddrPort(address); err == nil && at.Addr().IsUnspecified() {
		address = net.JoinHostPort("localhost", fmt.Sprint(at.Port()))
	}
	return scheme + "://" + address + "/"
}

// browse opens an address in a browser, which it does not wait for.
func browse(url string) error {
	command := exec.Command("xdg-open", url)
	switch runtime.GOOS {
	case "darwin":
		command = exec.Command("open", url)
	case "windows":
		command = exec.Command("rundll32", "url.dll,FileProtocolHandler", url)
	}
	if err := command.Start(); err != nil {
		return err
	}
	go func() { _ = command.Wait() }()
	return nil
}
