package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"vitrine/internal/hint"
)

type healthCmd struct {
	URL     string        `arg:"" optional:"" default:"http://127.0.0.1:8080" help:"Service's address, or the address of \"health\" in its configuration (default ${default})."`
	Ready   bool          `help:"Ask whether the service takes requests, too: it has read its log and is not behind its leader."`
	Timeout time.Duration `default:"3s" help:"How long to wait for the answer."`
}

func (healthCmd) Help() string {
	return `The exit status is 0 if the service is alive, otherwise 1. It needs no key, so that containers and supervisors can ask. A service that still reads its log is alive, but not ready.

` + examples("vitrine health", "vitrine health --ready http://127.0.0.1:8081")
}

func (c healthCmd) Run(ctx context.Context, t terminal) error {
	address, err := url.Parse(c.URL)
	if err != nil || address.Host == "" {
		return usagef("%q is not an address such as http://127.0.0.1:8080", c.URL)
	}
	path := "/healthz"
	if c.Ready {
		path = "/readyz"
	}
	ctx, stop := context.WithTimeout(ctx, c.Timeout)
	defer stop()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address.JoinPath(path).String(), nil)
	if err != nil {
		return err
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return hint.New(err, "is the service running, and is this its address?")
	}
	defer answer.Body.Close()
	said, err := io.ReadAll(io.LimitReader(answer.Body, 4096))
	if err != nil {
		return err
	}
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("%s answers %s: %s", address.JoinPath(path), answer.Status, strings.TrimSpace(string(said)))
	}
	_, err = fmt.Fprintf(t.out, "%s\n", hint.Printable(strings.TrimSpace(string(said))))
	return err
}
