package main

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/goreleaser/nfpm/v2"
	_ "github.com/goreleaser/nfpm/v2/deb"
	nfpmfiles "github.com/goreleaser/nfpm/v2/files"
	_ "github.com/goreleaser/nfpm/v2/rpm"
)

// install makes a package for Debian or RPM.
func (r *release) install(format, machine string) {
	unit := bytes.ReplaceAll(r.read("deploy/vitrine.service"), []byte("/usr/local/bin/"), []byte("/usr/bin/"))
	gz := func(body []byte) []byte {
		var out bytes.Buffer
		z := must(gzip.NewWriterLevel(&out, gzip.BestCompression))
		must(z.Write(body))
		check(z.Close())
		return out.Bytes()
	}
	maintainer := "The Vitrine contributors <noreply@" + must(url.Parse(r.Home())).Hostname() + ">"
	zsh := "vendor-completions"
	if format == "rpm" {
		zsh = "site-functions"
	}
	var contents nfpmfiles.Contents
	for i, f := range []struct {
		destination string
		body        []byte
		mode        os.FileMode
		kind        string
	}{
		{"/usr/bin/vitrine", r.program("linux/" + machine), 0o755, ""},
		{"/usr/lib/systemd/system/vitrine.service", unit, 0o644, ""},
		{"/usr/lib/sysusers.d/vitrine.conf", must(files.ReadFile("files/sysusers.conf")), 0o644, ""},
		{"/etc/vitrine/service.toml", r.read("deploy/service.toml"), 0o644, nfpmfiles.TypeConfigNoReplace},
		{"/usr/share/man/man1/vitrine.1.gz", gz(r.find("vitrine.1")), 0o644, ""},
		{"/usr/share/bash-completion/completions/vitrine", r.find("completions/vitrine.bash"), 0o644, ""},
		{"/usr/share/zsh/" + zsh + "/_vitrine", r.find("completions/_vitrine"), 0o644, ""},
		{"/usr/share/fish/vendor_completions.d/vitrine.fish", r.find("completions/vitrine.fish"), 0o644, ""},
		{"/usr/share/doc/vitrine/copyright", append(append(r.find("LICENSE"), '\n'),
			r.find("THIRD-PARTY-NOTICES.txt")...), 0o644, ""},
		{"/usr/share/doc/vitrine/CHANGELOG.md", r.find("CHANGELOG.md"), 0o644, ""},
		{"/usr/share/doc/vitrine/changelog.gz", gz(fmt.Appendf(nil, "vitrine (%s) unstable; urgency=medium\n\n  "+
			"* CHANGELOG.md has the changes.\n\n -- %s  %s\n", strings.Replace(r.Version, "-", "~", 1), maintainer, r.date.Format(time.RFC1123Z))),
			0o644, ""},
		{"/usr/share/doc/vitrine/defaults.toml", r.find("defaults.toml"), 0o644, ""},
	} {
		if format == "rpm" && strings.HasSuffix(f.destination, "changelog.gz") { // only Debian asks for it
			continue
		}
		source := filepath.Join(work, fmt.Sprint(i))
		check(os.WriteFile(source, f.body, f.mode))
		contents = append(contents, &nfpmfiles.Content{Source: source, Destination: f.destination, Type: f.kind,
			FileInfo: &nfpmfiles.ContentFileInfo{Mode: f.mode, Owner: "root", Group: "root", MTime: r.date}})
	}
	var scripts nfpm.Scripts
	for name, path := range map[string]*string{"postinstall": &scripts.PostInstall, "preremove": &scripts.PreRemove,
		"postremove": &scripts.PostRemove} {
		*path = filepath.Join(work, name)
		check(os.WriteFile(*path, must(files.ReadFile("files/"+name+".sh")), 0o755))
	}
	info := nfpm.WithDefaults(&nfpm.Info{
		Name: "vitrine", Arch: machine, Platform: "linux", Version: r.Version, Section: "misc", Priority: "optional",
		Maintainer: maintainer, Vendor: "The Vitrine contributors", Homepage: r.Home(),
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
	packager := must(nfpm.Get(format))
	check(nfpm.PrepareForPackager(info, format))
	var out bytes.Buffer
	check(packager.Package(info, &out))
	r.write(packager.ConventionalFileName(info), out.Bytes())
}

// Home is the page of the project: where its module is, if that has a host.
func (r *release) Home() string {
	if host, _, _ := strings.Cut(r.Module, "/"); strings.Contains(host, ".") {
		return "https://" + r.Module
	}
	return r.URL
}
