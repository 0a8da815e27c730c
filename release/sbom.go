package main

import (
	"bytes"
	"crypto/sha1"
	"debug/buildinfo"
	"encoding/base64"
	"fmt"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/CycloneDX/cyclonedx-go"
)

// makeSBOMs adds a list of the modules in each program, in the format of CycloneDX. The list has
// what the programs say themselves, on all platforms together.
func (r *release) makeSBOMs() error {
	modules := map[string]map[string]*debug.Module{} // by program and package URL
	for _, p := range r.programs {
		info, err := buildinfo.Read(bytes.NewReader(p.data))
		if err != nil {
			return fmt.Errorf("read modules of %s: %w", p.fileName(r.version), err)
		}
		if modules[p.name] == nil {
			modules[p.name] = map[string]*debug.Module{}
		}
		add := func(m *debug.Module) { modules[p.name]["pkg:golang/"+m.Path+"@"+m.Version] = m }
		add(&debug.Module{Path: "std", Version: strings.TrimPrefix(info.GoVersion, "go")})
		for _, m := range info.Deps {
			if m.Replace != nil {
				m = m.Replace
			}
			add(m)
		}
	}
	for name, byURL := range modules {
		data, err := r.sbom(name, byURL)
		if err != nil {
			return fmt.Errorf("list modules of %s: %w", name, err)
		}
		r.add(fmt.Sprintf("%s-%s.cdx.json", name, r.version.full), 0o644, data)
	}
	return nil
}

func (r *release) sbom(name string, byURL map[string]*debug.Module) ([]byte, error) {
	main := "pkg:generic/" + name + "@" + r.version.number()
	var components []cyclonedx.Component
	var urls []string
	for url := range byURL {
		urls = append(urls, url)
	}
	slices.Sort(urls)
	for _, url := range urls {
		m := byURL[url]
		component := cyclonedx.Component{
			BOMRef: url, Type: cyclonedx.ComponentTypeLibrary, Name: m.Path, Version: m.Version, PackageURL: url, Scope: cyclonedx.ScopeRequired,
		}
		if sum, ok := strings.CutPrefix(m.Sum, "h1:"); ok {
			hash, err := base64.StdEncoding.DecodeString(sum)
			if err != nil {
				return nil, fmt.Errorf("read checksum of %s: %w", m.Path, err)
			}
			component.Hashes = &[]cyclonedx.Hash{{Algorithm: cyclonedx.HashAlgoSHA256, Value: fmt.Sprintf("%x", hash)}}
		}
		components = append(components, component)
	}
	bom := cyclonedx.NewBOM()
	bom.Metadata = &cyclonedx.Metadata{
		Timestamp: r.modified.Format("2006-01-02T15:04:05Z"),
		Component: &cyclonedx.Component{
			BOMRef: main, Type: cyclonedx.ComponentTypeApplication, Name: name, Version: r.version.number(), Description: summary, PackageURL: main,
			Licenses: &cyclonedx.Licenses{{License: &cyclonedx.License{ID: licence}}},
		},
	}
	bom.Components = &components
	bom.Dependencies = &[]cyclonedx.Dependency{{Ref: main, Dependencies: &urls}}
	encode := func() ([]byte, error) {
		var out bytes.Buffer
		encoder := cyclonedx.NewBOMEncoder(&out, cyclonedx.BOMFileFormatJSON).SetPretty(true)
		err := encoder.EncodeVersion(bom, cyclonedx.SpecVersion1_6)
		return out.Bytes(), err
	}
	content, err := encode()
	if err != nil {
		return nil, err
	}
	// The number is of the content, a UUID of version 5, so that equal lists have equal numbers.
	id := sha1.Sum(content)
	id[6], id[8] = id[6]&0x0f|0x50, id[8]&0x3f|0x80
	bom.SerialNumber = fmt.Sprintf("urn:uuid:%x-%x-%x-%x-%x", id[:4], id[4:6], id[6:8], id[8:10], id[10:16])
	return encode()
}
