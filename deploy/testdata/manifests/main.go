// Command manifests reads the files of deploy/ as Kubernetes and Compose do: every key must be one that they know, and
// hold a value of its type.
package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/compose-spec/compose-go/v2/cli"
	monitoring "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	"k8s.io/apimachinery/pkg/runtime/serializer/json"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/kubernetes/scheme"
)

func main() {
	failure := monitoring.AddToScheme(scheme.Scheme)
	for _, path := range os.Args[1:] {
		read := compose
		if text, err := os.ReadFile(path); err == nil && bytes.Contains(text, []byte("\nkind: ")) {
			read = kubernetes
		}
		parts, err := read(path)
		if err != nil {
			failure = errors.Join(failure, fmt.Errorf("%s: %w", path, err))
			continue
		}
		fmt.Printf("%s: %d parts\n", path, parts)
	}
	if failure != nil {
		fmt.Fprintln(os.Stderr, failure)
		os.Exit(1)
	}
}

// kubernetes reads the documents of a manifest strictly.
func kubernetes(path string) (n int, err error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return 0, err
	}
	strict := json.NewSerializerWithOptions(json.DefaultMetaFactory, scheme.Scheme, scheme.Scheme, json.SerializerOptions{Yaml: true, Strict: true})
	documents := yaml.NewDocumentDecoder(io.NopCloser(bytes.NewReader(text)))
	buffer := make([]byte, len(text)+1)
	for ; ; n++ {
		size, err := documents.Read(buffer)
		if err == io.EOF {
			return n, nil
		}
		if err == nil {
			_, _, err = strict.Decode(buffer[:size], nil, nil)
		}
		if err != nil {
			return n, fmt.Errorf("document %d: %w", n+1, err)
		}
	}
}

// compose reads a project with its variables set.
func compose(path string) (int, error) {
	options, err := cli.NewProjectOptions([]string{path}, cli.WithEnv([]string{"NATS_TOKEN=token"}), cli.WithName("vitrine"))
	if err != nil {
		return 0, err
	}
	project, err := options.LoadProject(context.Background())
	if err != nil {
		return 0, err
	}
	return len(project.Services), nil
}
