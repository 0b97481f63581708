package main

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/goreleaser/nfpm/v2"
	_ "github.com/goreleaser/nfpm/v2/deb"
	nfpmfiles "github.com/goreleaser/nfpm/v2/files"
	_ "github.com/goreleaser/nfpm/v2/rpm"
)

// install makes a package for Debian or RPM.
func (r *release) install(format, machine string) error {
	work, err := os.MkdirTemp("", "package-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	program, err := r.program("linux/" + machine)
	if err != nil {
		return err
	}
	unit, err := os.ReadFile(filepath.Join(r.root, "deploy/vitrine.service"))
	if err != nil {
		return err
	}
	unit = bytes.ReplaceAll(unit, []byte("/usr/local/bin/"), []byte("/usr/bin/"))
	config, err := os.ReadFile(filepath.Join(r.root, "deploy/service.toml"))
	if err != nil {
		return err
	}
	var manual bytes.Buffer
	z, err := gzip.NewWriterLevel(&manual, gzip.BestCompression)
	if err != nil {
		return err
	}
	z.Write(r.find("vitrine.1"))
	z.Close()
	zsh := "vendor-completions"
	if format == "rpm" {
		zsh = "site-functions"
	}
	var contents nfpmfiles.Contents
	add := func(destination string, body []byte, mode os.FileMode, kind string) error {
		source := filepath.Join(work, fmt.Sprint(len(contents)))
		contents = append(contents, &nfpmfiles.Content{Source: source, Destination: destination, Type: kind,
			FileInfo: &nfpmfiles.ContentFileInfo{Mode: mode, Owner: "root", Group: "root", MTime: r.date}})
		return os.WriteFile(source, body, mode)
	}
	user, err := files.ReadFile("files/sysusers.conf")
	if err != nil {
		return err
	}
	for _, f := range []struct {
		destination string
		body        []byte
		mode        os.FileMode
		kind        string
	}{
		{"/usr/bin/vitrine", program, 0o755, ""},
		{"/usr/lib/systemd/system/vitrine.service", unit, 0o644, ""},
		{"/usr/lib/sysusers.d/vitrine.conf", user, 0o644, ""},
		{"/etc/vitrine/service.toml", config, 0o644, nfpmfiles.TypeConfigNoReplace},
		{"/usr/share/man/man1/vitrine.1.gz", manual.Bytes(), 0o644, ""},
		{"/usr/share/bash-completion/completions/vitrine", r.find("completions/vitrine.bash"), 0o644, ""},
		{"/usr/share/zsh/" + zsh + "/_vitrine", r.find("completions/_vitrine"), 0o644, ""},
		{"/usr/share/fish/vendor_completions.d/vitrine.fish", r.find("completions/vitrine.fish"), 0o644, ""},
		{"/usr/share/doc/vitrine/copyright", append(append(r.find("LICENSE"), '\n'),
			r.find("THIRD-PARTY-NOTICES.txt")...), 0o644, ""},
		{"/usr/share/doc/vitrine/CHANGELOG.md", r.find("CHANGELOG.md"), 0o644, ""},
	} {
		if err := add(f.destination, f.body, f.mode, f.kind); err != nil {
			return err
		}
	}
	var scripts nfpm.Scripts
	for name, path := range map[string]*string{"postinstall": &scripts.PostInstall, "preremove": &scripts.PreRemove,
		"postremove": &scripts.PostRemove} {
		body, err := files.ReadFile("files/" + name + ".sh")
		if err != nil {
			return err
		}
		*path = filepath.Join(work, name)
		if err := os.WriteFile(*path, body, 0o755); err != nil {
			return err
		}
	}
	info := nfpm.WithDefaults(&nfpm.Info{
		Name: "vitrine", Arch: machine, Platform: "linux", Version: r.Version, Section: "misc", Priority: "optional",
		Maintainer: "The Vitrine contributors", Vendor: "The Vitrine contributors", Homepage: r.Home(),
		License: "Apache-2.0",
		Description: "Chooses what to show, and learns from what customers take\nA decision service, a workbench " +
			"and a command for multinomial-logit contextual bandits.",
		MTime: r.date,
		Overridables: nfpm.Overridables{
			Contents: contents, Scripts: scripts,
			RPM: nfpm.RPM{Group: "Applications/Internet", Summary: "Chooses what to show, and learns from what " +
				"customers take", BuildHost: "vitrine", Compression: "zstd"},
			Deb: nfpm.Deb{Compression: "gzip"}, // which takes a tenth of the time of xz
		},
	})
	if format == "rpm" {
		info.Release = "1"
	}
	packager, err := nfpm.Get(format)
	if err != nil {
		return err
	}
	if err := nfpm.PrepareForPackager(info, format); err != nil {
		return err
	}
	var out bytes.Buffer
	if err := packager.Package(info, &out); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(r.out, packager.ConventionalFileName(info)), out.Bytes(), 0o644)
}

// Home is the page of the project: where its module is, if that has a host.
func (r *release) Home() string {
	if host, _, _ := strings.Cut(r.Module, "/"); strings.Contains(host, ".") {
		return "https://" + r.Module
	}
	return r.URL
}
