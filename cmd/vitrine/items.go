package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"vitrine/internal/hint"
	"vitrine/service/api"
	"vitrine/service/client"
)

type itemsCmd struct {
	Push itemsPushCmd `cmd:"" help:"Put the items of a file into the catalogue of a placement."`
	List itemsListCmd `cmd:"" help:"Print the catalogue of a placement as lines of JSON."`
}

func (itemsCmd) Help() string {
	return `A placement of a decision service has a catalogue of items, which requests name by their ids.

` + examples("vitrine items push products.csv --placement home --mapping products.toml", "vitrine items list --placement home > items.jsonl")
}

type catalogueFlags struct {
	URL       string `name:"url" default:"http://127.0.0.1:8080" help:"The service, or several of its processes with commas between them."`
	Placement string `required:"" placeholder:"NAME" help:"The placement."`
	KeyFile   string `placeholder:"FILE" help:"File with the token of an API key."`
}

func (f catalogueFlags) client() (*client.Client, error) {
	token, err := readToken(f.KeyFile)
	return &client.Client{Base: f.URL, Key: token}, err
}

// readToken reads an API key's token from a file, or returns "" without a file.
func readToken(path string) (string, error) {
	if path == "" {
		return "", nil
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	token := strings.TrimSpace(string(text))
	if token == "" || strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return "", hint.New(fmt.Errorf("%s is not a file with one token", path), "write the token that vitrine "+
			"keys add prints to it, and nothing else")
	}
	return token, nil
}

type itemsListCmd struct {
	catalogueFlags
}

func (c itemsListCmd) Run(ctx context.Context, t terminal) error {
	service, err := c.client()
	if err != nil {
		return err
	}
	defer service.CloseIdleConnections()
	version, err := eachPage(ctx, service, c.Placement, func(items []api.CatalogueItem) error {
		return writeLines(t.out, items)
	})
	if errors.Is(err, errMoving) {
		t.warn(fmt.Sprintf("the catalogue changed meanwhile, up to version %d: items may be missing or there twice",
			version))
		return nil
	}
	return serviceError(err)
}

func writeLines(w io.Writer, items []api.CatalogueItem) error {
	lines := jsontext.NewEncoder(w)
	for i := range items {
		if err := json.MarshalEncode(lines, &items[i], json.Deterministic(true)); err != nil {
			return err
		}
	}
	return nil
}

// errMoving is returned for a catalogue that changes while it is read.
var errMoving = errors.New("the catalogue has changed while it was read")

// eachPage calls visit with each page of a catalogue.
func eachPage(ctx context.Context, service *client.Client, placement string,
	visit func([]api.CatalogueItem) error) (version uint64, err error) {
	moving := false
	for from, first := 0, true; first || from > 0; first = false {
		page, err := service.Items(ctx, placement, from, 500) // at 16 KiB of payload each, an answer is half of what a client reads
		if err != nil {
			return version, err
		}
		moving = moving || !first && page.CatalogueEntry != version
		version = page.CatalogueEntry
		if err := visit(page.Items); err != nil {
			return version, err
		}
		from = page.Next
	}
	if moving {
		return version, errMoving
	}
	return version, nil
}

// serviceError adds a hint to an error of a call.
func serviceError(err error) error {
	var p *api.Problem
	if err == nil || errors.As(err, &p) || errors.Is(err, context.Canceled) {
		return err
	}
	return hint.New(err, "is vitrine serve at this URL? --url names another one")
}
