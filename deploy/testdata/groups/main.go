// Command groups plays docs/howto/more-than-one-log.md: two services, each with a log of its own, behind Caddy with deploy/groups/Caddyfile.
//
//	go run . VITRINE CADDY CADDYFILE
//
// VITRINE and CADDY are programs. It exits with 1 at the first answer that is not as the page says.
package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

const patience = time.Minute

func main() {
	if err := play(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "groups:", err)
		os.Exit(1)
	}
	fmt.Println("each placement is in the service of its group")
}

func play(args []string) (err error) {
	if len(args) != 3 {
		return errors.New("usage: groups VITRINE CADDY CADDYFILE")
	}
	ctx, stop := context.WithTimeout(context.Background(), 3*patience)
	defer stop()
	dir, err := os.MkdirTemp("", "groups")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	var addresses []string
	for range 3 {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return err
		}
		addresses = append(addresses, l.Addr().String())
		l.Close()
	}
	proxy, eu, us := addresses[0], addresses[1], addresses[2]
	var started []*exec.Cmd
	defer func() {
		for _, c := range started {
			c.Process.Kill()
			c.Wait()
		}
	}()
	start := func(name string, args ...string) error {
		c := exec.CommandContext(ctx, name, args...)
		var said bytes.Buffer
		c.Stderr = &said
		c.Env = append(os.Environ(), "LISTEN="+proxy, "EU="+eu, "US="+us, "HOME="+dir)
		if err := c.Start(); err != nil {
			return err
		}
		started = append(started, c)
		return nil
	}
	vitrine, caddy, file := args[0], args[1], args[2]
	for _, s := range []struct{ name, address string }{{"eu", eu}, {"us", us}} {
		if err := start(vitrine, "serve", "--listen", s.address, "--data", filepath.Join(dir, s.name)); err != nil {
			return err
		}
	}
	if err := start(caddy, "run", "--adapter", "caddyfile", "--config", file); err != nil {
		return err
	}
	for _, group := range []string{"eu", "us"} {
		placement := "/v1/placements/" + group + ".home"
		config := `{"max_size": 1, "policy": {"name": "auto"}, "features": [{"name": "price", "kind": "number"}]}`
		if err := eventually(201, "PUT", proxy, placement, config); err != nil { // the proxy and the services are starting
			return err
		}
		request := `{"decision_id": "d1", "items": [{"id": "a", "features": {"price": 1}}, {"id": "b", "features": {"price": 2}}]}`
		if err := want(201, "POST", proxy, placement+"/decisions", request); err != nil {
			return err
		}
		if err := want(204, "POST", proxy, placement+"/decisions/d1/outcome", `{"choice": null}`); err != nil {
			return err
		}
	}
	for _, c := range []struct {
		address, placement string
		status             int
	}{{eu, "eu.home", 200}, {eu, "us.home", 404}, {us, "us.home", 200}, {us, "eu.home", 404}} {
		if err := want(c.status, "GET", c.address, "/v1/placements/"+c.placement, ""); err != nil {
			return err
		}
	}
	return want(404, "GET", proxy, "/v1/placements", "")
}

// eventually asks until the status is right.
func eventually(status int, method, address, path, body string) error {
	for end := time.Now().Add(patience); ; time.Sleep(200 * time.Millisecond) {
		err := want(status, method, address, path, body)
		if err == nil || time.Now().After(end) {
			return err
		}
	}
}

func want(status int, method, address, path, body string) error {
	r, err := http.NewRequest(method, "http://"+address+path, strings.NewReader(body))
	if err != nil {
		return err
	}
	r.Header.Set("Content-Type", "application/json")
	a, err := http.DefaultClient.Do(r)
	if err != nil {
		return err
	}
	defer a.Body.Close()
	text, _ := io.ReadAll(a.Body)
	if a.StatusCode != status {
		return fmt.Errorf("%s %s at %s: status %d, want %d: %s", method, path, address, a.StatusCode, status, text)
	}
	return nil
}
