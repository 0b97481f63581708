package main

import (
	"bytes"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"golang.org/x/crypto/x509roots/fallback/bundle"
)

// image writes an archive with the images of all machines: an OCI layout, with the list that Docker's older store reads.
func (r *release) image() {
	var images []mutate.IndexAddendum
	var docker []map[string]any
	for _, target := range r.targets {
		system, machine, _ := strings.Cut(target, "/")
		if system != "linux" {
			continue
		}
		image := r.imageFor(machine)
		images = append(images, mutate.IndexAddendum{Add: image,
			Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: system, Architecture: machine}}})
		manifest := must(image.Manifest())
		blob := func(h v1.Hash) string { return "blobs/" + h.Algorithm + "/" + h.Hex }
		docker = append(docker, map[string]any{"Config": blob(manifest.Config.Digest),
			"Layers":   []string{blob(manifest.Layers[0].Digest)},
			"RepoTags": []string{name + ":" + r.Version + "-" + machine}})
	}
	if len(images) == 0 {
		return
	}
	all := mutate.IndexMediaType(mutate.AppendManifests(empty.Index, images...), types.OCIImageIndex)
	dir := filepath.Join(work, "image")
	check(must(layout.Write(dir, empty.Index)).AppendIndex(all, layout.WithAnnotations(map[string]string{
		"org.opencontainers.image.ref.name": r.Version, "io.containerd.image.name": qualified(name) + ":" + r.Version,
	})))
	list := []file{{name: "manifest.json", body: must(json.Marshal(docker))}}
	tree := os.DirFS(dir)
	check(fs.WalkDir(tree, ".", func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			list = append(list, file{name: path, body: must(fs.ReadFile(tree, path))})
		}
		return err
	}))
	r.write("vitrine_"+r.Version+"_image.tar", tarred(list, r.date))
}

// name is the image's name. make module gives it another one.
const name = "vitrine"

// nobody is the user and the group of the image.
const nobody = 65532

// qualified returns the name with its registry.
func qualified(name string) string {
	if strings.Contains(name, "/") {
		return name
	}
	return "docker.io/library/" + name
}

// imageFor makes the image of a machine: the program, its configuration, the certificates of authorities, and a directory for data.
func (r *release) imageFor(machine string) v1.Image {
	var authorities bytes.Buffer
	for root := range bundle.Roots() {
		check(pem.Encode(&authorities, &pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate}))
	}
	list := []file{
		{name: "vitrine", body: r.program("linux/" + machine), mode: 0o755},
		{name: "etc/"}, {name: "etc/vitrine/"}, {name: "etc/ssl/"}, {name: "etc/ssl/certs/"}, {name: "usr/"},
		{name: "usr/share/"}, {name: "usr/share/doc/"}, {name: "usr/share/doc/vitrine/"},
		{name: "etc/vitrine/service.toml", body: r.read("deploy/container.toml")},
		{name: "etc/ssl/certs/ca-certificates.crt", body: authorities.Bytes()},
		{name: "etc/passwd", body: fmt.Appendf(nil, "vitrine:x:%d:%d::/data:/sbin/nologin\n", nobody, nobody)},
		{name: "usr/share/doc/vitrine/LICENSE", body: r.find("LICENSE")},
		{name: "usr/share/doc/vitrine/THIRD-PARTY-NOTICES.txt", body: r.find("THIRD-PARTY-NOTICES.txt")},
		{name: "data/", mode: 0o700, user: nobody},
	}
	content := tarred(list, r.date)
	layer := must(tarball.LayerFromOpener(func() (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(content)), nil
	}, tarball.WithMediaType(types.OCILayer)))
	image := must(mutate.Append(mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1),
		types.OCIConfigJSON), mutate.Addendum{
		Layer: layer, History: v1.History{CreatedBy: "vitrine " + r.Version, Created: v1.Time{Time: r.date}},
	}))
	about := must(image.ConfigFile()).DeepCopy()
	about.OS, about.Architecture, about.Created = "linux", machine, v1.Time{Time: r.date}
	about.Config = v1.Config{
		User: fmt.Sprintf("%d:%d", nobody, nobody), Env: []string{"TMPDIR=/data"}, WorkingDir: "/data",
		Entrypoint: []string{"/vitrine"}, Cmd: []string{"serve", "--config", "/etc/vitrine/service.toml"},
		ExposedPorts: map[string]struct{}{"8080/tcp": {}}, Volumes: map[string]struct{}{"/data": {}},
		Healthcheck: &v1.HealthConfig{Test: []string{"CMD", "/vitrine", "health"}, Interval: 10 * time.Second,
			Timeout: 5 * time.Second, StartPeriod: 5 * time.Second, Retries: 3},
		Labels: map[string]string{
			"org.opencontainers.image.title": "vitrine", "org.opencontainers.image.description": "Chooses what to " +
				"show, and learns from what customers take",
			"org.opencontainers.image.version": r.Version, "org.opencontainers.image.revision": r.Commit,
			"org.opencontainers.image.created":  r.date.Format(time.RFC3339),
			"org.opencontainers.image.licenses": "Apache-2.0", "org.opencontainers.image.source": r.Home(),
		},
	}
	return must(mutate.ConfigFile(image, about))
}
