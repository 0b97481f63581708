package main

import (
	"bytes"
	"time"

	"github.com/CycloneDX/cyclonedx-go"
)

// bill writes the bill of materials: the modules linked into any of the programs, with their licences.
func (r *release) bill() {
	component := func(kind cyclonedx.ComponentType, registry, path, version string, licences ...string) cyclonedx.Component {
		purl := "pkg:" + registry + "/" + path + "@" + version
		c := cyclonedx.Component{Type: kind, Name: path, Version: version, BOMRef: purl, PackageURL: purl}
		var list cyclonedx.Licenses
		for _, id := range licences {
			list = append(list, cyclonedx.LicenseChoice{License: &cyclonedx.License{ID: id}})
		}
		c.Licenses = &list
		return c
	}
	program := component(cyclonedx.ComponentTypeApplication, "golang", r.Module, "v"+r.Version, "Apache-2.0")
	var parts []cyclonedx.Component
	var uses []string
	for _, m := range r.modules {
		parts = append(parts, component(cyclonedx.ComponentTypeLibrary, m.Registry, m.Path, m.Version, m.Licences...))
		uses = append(uses, parts[len(parts)-1].BOMRef)
	}
	bom := cyclonedx.NewBOM()
	bom.Metadata = &cyclonedx.Metadata{Timestamp: r.date.UTC().Format(time.RFC3339), Component: &program}
	bom.Components = &parts
	bom.Dependencies = &[]cyclonedx.Dependency{{Ref: program.BOMRef, Dependencies: &uses}}
	var out bytes.Buffer
	check(cyclonedx.NewBOMEncoder(&out, cyclonedx.BOMFileFormatJSON).SetPretty(true).Encode(bom))
	r.write("vitrine_"+r.Version+".cdx.json", out.Bytes())
}
