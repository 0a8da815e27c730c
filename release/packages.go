package main

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/goreleaser/nfpm/v2"
	_ "github.com/goreleaser/nfpm/v2/deb"
	"github.com/goreleaser/nfpm/v2/files"
	_ "github.com/goreleaser/nfpm/v2/rpm"
)

// makePackages adds a package of the format deb or rpm for each Linux platform.
func (r *release) makePackages(format string) error {
	for _, p := range r.programs {
		if p.name != "pitot" || p.os != "linux" {
			continue
		}
		if err := r.makePackage(p, format); err != nil {
			return fmt.Errorf("pack for %s: %w", p.platform, err)
		}
	}
	return nil
}

func (r *release) makePackage(p *program, format string) error {
	dir, err := os.MkdirTemp("", "pitot-package-")
	if err != nil {
		return fmt.Errorf("make folder: %w", err)
	}
	defer os.RemoveAll(dir)
	var contents files.Contents
	for _, f := range []file{
		{"usr/bin/pitot", 0o755, p.data},
		{"usr/share/doc/pitot/copyright", 0o644, r.licence},
		{"usr/share/doc/pitot/README.md", 0o644, r.readme},
	} {
		source := filepath.Join(dir, filepath.Base(f.name))
		if err := os.WriteFile(source, f.data, f.mode); err != nil {
			return fmt.Errorf("write %s: %w", f.name, err)
		}
		contents = append(contents, &files.Content{
			Source: source, Destination: "/" + f.name,
			FileInfo: &files.ContentFileInfo{Owner: "root", Group: "root", Mode: f.mode, MTime: r.modified},
		})
	}
	info := nfpm.WithDefaults(&nfpm.Info{
		Name: "pitot", Arch: p.arch, Platform: "linux", Version: r.version.system(), VersionSchema: "none", Release: "1",
		Section: "utils", Priority: "optional", Maintainer: "The Pitot authors <pitot@" + strings.TrimPrefix(home, "https://") + ">",
		Description: summary, Homepage: home, License: licence, MTime: r.modified, DisableGlobbing: true,
		Overridables: nfpm.Overridables{
			Contents: contents,
			Deb:      nfpm.Deb{Compression: "gzip:9"},
			RPM:      nfpm.RPM{Compression: "gzip:9", BuildHost: "pitot", Summary: summary, Group: "Applications/System"},
		},
	})
	if err := nfpm.PrepareForPackager(info, format); err != nil {
		return fmt.Errorf("prepare: %w", err)
	}
	packager, err := nfpm.Get(format)
	if err != nil {
		return fmt.Errorf("find packager: %w", err)
	}
	var out bytes.Buffer
	if err := packager.Package(info, &out); err != nil {
		return fmt.Errorf("write package: %w", err)
	}
	r.add(packager.ConventionalFileName(info), 0o644, out.Bytes())
	return nil
}

// makeFormula adds the Homebrew formula, which has the address and checksum of each archive.
func (r *release) makeFormula() error {
	sources := map[string][]string{} // by on_macos and on_linux
	for _, p := range r.programs {
		if p.name != "pitot" || p.brew == "" {
			continue
		}
		name := p.fileName(r.version) + ".tar.gz"
		data, err := r.file(name)
		if err != nil {
			return err
		}
		system, processor, _ := strings.Cut(p.brew, " ")
		sources[system] = append(sources[system], fmt.Sprintf(`    %s do
      url "%s/releases/%s/%s"
      sha256 "%x"
    end
`, processor, home, r.version.full, name, sha256.Sum256(data)))
	}
	if len(sources) == 0 {
		return nil
	}
	var out strings.Builder
	fmt.Fprintf(&out, `class Pitot < Formula
  desc "%s"
  homepage "%s"
  version "%s"
  license "%s"

`, summary, home, r.version.number(), licence)
	for _, system := range []string{"on_macos", "on_linux"} {
		if list := sources[system]; len(list) > 0 {
			fmt.Fprintf(&out, "  %s do\n%s  end\n\n", system, strings.Join(list, "\n"))
		}
	}
	out.WriteString(`  def install
    bin.install "pitot"
    generate_completions_from_executable(bin/"pitot", "completion")
  end

  test do
    assert_match version.to_s, shell_output("#{bin}/pitot version")
  end
end
`)
	r.add("pitot.rb", 0o644, []byte(out.String()))
	return nil
}

// file returns the content of a file of the release.
func (r *release) file(name string) ([]byte, error) {
	for _, f := range r.files {
		if f.name == name {
			return f.data, nil
		}
	}
	return nil, fmt.Errorf("find %s: not in this release; add its kind to -only", name)
}
