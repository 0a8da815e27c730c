package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"golang.org/x/crypto/x509roots/fallback/bundle"
)

// user is who runs the program in the image.
const user = 65532

// makeImages adds an image for each Linux platform. Its file is a layout of OCI that "docker load" reads too.
func (r *release) makeImages() error {
	for _, p := range r.programs {
		if p.name != "pitot" || p.os != "linux" {
			continue
		}
		image, err := r.image(p)
		if err != nil {
			return fmt.Errorf("build for %s: %w", p.platform, err)
		}
		data, err := r.packImage(p, image)
		if err != nil {
			return fmt.Errorf("pack for %s: %w", p.platform, err)
		}
		r.add(fmt.Sprintf("pitot-%s-image-%s.tar", r.version.full, p.arch), 0o644, data)
	}
	return nil
}

// image returns the image of a program. One layer has the files of the system, the other the program.
func (r *release) image(p *program) (v1.Image, error) {
	zones, err := r.timeZones()
	if err != nil {
		return nil, err
	}
	system := append(zones,
		file{"etc/passwd", 0o644, fmt.Appendf(nil, "root:x:0:0:root:/:/none\npitot:x:%d:%d:pitot:/work:/none\n", user, user)},
		file{"etc/group", 0o644, fmt.Appendf(nil, "root:x:0:\npitot:x:%d:\n", user)},
		file{"etc/ssl/certs/ca-certificates.crt", 0o644, certificates()})
	folders := []tar.Header{
		{Name: "tmp/", Mode: 0o1777},
		{Name: "work/", Mode: 0o755, Uid: user, Gid: user},
		{Name: "work/runs/", Mode: 0o755, Uid: user, Gid: user},
	}
	var layers []mutate.Addendum
	for _, content := range []struct {
		files   []file
		folders []tar.Header
		by      string
	}{
		{system, folders, "certificates, time zones and folders"},
		{[]file{{"pitot", 0o755, p.data}}, nil, "the program"},
	} {
		entries, contents := layerEntries(content.files, content.folders)
		parts, err := tarParts(entries, contents, r.modified)
		if err != nil {
			return nil, fmt.Errorf("write layer: %w", err)
		}
		packed, err := gzipParts(parts, r.modified)
		if err != nil {
			return nil, fmt.Errorf("compress layer: %w", err)
		}
		layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(packed)), nil },
			tarball.WithMediaType(types.OCILayer))
		if err != nil {
			return nil, fmt.Errorf("make layer: %w", err)
		}
		layers = append(layers, mutate.Addendum{
			Layer: layer, MediaType: types.OCILayer, History: v1.History{Created: v1.Time{Time: r.modified}, CreatedBy: content.by},
		})
	}
	base := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	image, err := mutate.Append(base, layers...)
	if err != nil {
		return nil, fmt.Errorf("append layers: %w", err)
	}
	config, err := image.ConfigFile()
	if err != nil {
		return nil, fmt.Errorf("read configuration: %w", err)
	}
	config = config.DeepCopy()
	config.OS, config.Architecture, config.Created = p.os, p.arch, v1.Time{Time: r.modified}
	config.Config = v1.Config{
		User: fmt.Sprintf("%d:%d", user, user), WorkingDir: "/work", Entrypoint: []string{"/pitot"}, Cmd: []string{"--help"},
		Env: []string{"PATH=/", "HOME=/work"},
		Labels: map[string]string{
			"org.opencontainers.image.title":       "pitot",
			"org.opencontainers.image.description": summary,
			"org.opencontainers.image.version":     r.version.number(),
			"org.opencontainers.image.revision":    r.version.commit,
			"org.opencontainers.image.created":     r.modified.Format("2006-01-02T15:04:05Z"),
			"org.opencontainers.image.source":      home,
			"org.opencontainers.image.licenses":    licence,
		},
	}
	return mutate.ConfigFile(image, config)
}

// layerEntries returns the headers of a layer: folders before what they contain.
func layerEntries(files []file, folders []tar.Header) ([]tar.Header, map[string][]byte) {
	contents := map[string][]byte{}
	byName := map[string]tar.Header{}
	for _, folder := range folders {
		folder.Typeflag = tar.TypeDir
		byName[folder.Name] = folder
	}
	for _, f := range files {
		contents[f.name] = f.data
		byName[f.name] = tar.Header{Name: f.name, Typeflag: tar.TypeReg, Mode: int64(f.mode)}
		for dir := path.Dir(f.name); dir != "."; dir = path.Dir(dir) {
			byName[dir+"/"] = tar.Header{Name: dir + "/", Typeflag: tar.TypeDir, Mode: 0o755}
		}
	}
	var entries []tar.Header
	for _, header := range byName {
		entries = append(entries, header)
	}
	slices.SortFunc(entries, func(a, b tar.Header) int { return strings.Compare(a.Name, b.Name) })
	return entries, contents
}

// certificates returns the root certificates that Mozilla trusts without a constraint, as PEM.
func certificates() []byte {
	var out []byte
	for root := range bundle.Roots() {
		if root.Constraint == nil {
			out = append(out, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate})...)
		}
	}
	return out
}

// timeZones returns the time zones of the Go that compiles the programs.
func (r *release) timeZones() ([]file, error) {
	root, err := output(r.root, []string{"GOTOOLCHAIN=" + goToolchain, "GOENV=off"}, "go", "env", "GOROOT")
	if err != nil {
		return nil, fmt.Errorf("find time zones: %w", err)
	}
	archive, err := zip.OpenReader(filepath.Join(root, "lib", "time", "zoneinfo.zip"))
	if err != nil {
		return nil, fmt.Errorf("open time zones: %w", err)
	}
	defer archive.Close()
	var zones []file
	for _, f := range archive.File {
		if strings.HasSuffix(f.Name, "/") {
			continue
		}
		reader, err := f.Open()
		if err != nil {
			return nil, fmt.Errorf("open time zone: %w", err)
		}
		data, err := io.ReadAll(reader)
		if err != nil {
			return nil, fmt.Errorf("read time zone: %w", err)
		}
		zones = append(zones, file{"usr/share/zoneinfo/" + f.Name, 0o644, data})
	}
	return zones, nil
}

// packImage returns an image as a layout of OCI, with the manifest.json that docker load wants.
func (r *release) packImage(p *program, image v1.Image) ([]byte, error) {
	name := "pitot:" + r.version.tag()
	index := mutate.AppendManifests(mutate.IndexMediaType(empty.Index, types.OCIImageIndex), mutate.IndexAddendum{
		Add: image,
		Descriptor: v1.Descriptor{
			MediaType: types.OCIManifestSchema1, Platform: &v1.Platform{OS: p.os, Architecture: p.arch},
			Annotations: map[string]string{"org.opencontainers.image.ref.name": r.version.tag(), "io.containerd.image.name": "docker.io/library/" + name},
		},
	})
	indexJSON, err := index.RawManifest()
	if err != nil {
		return nil, fmt.Errorf("write index: %w", err)
	}
	files := []file{{"oci-layout", 0o644, []byte(`{"imageLayoutVersion":"1.0.0"}`)}, {"index.json", 0o644, indexJSON}}
	blob := func(h v1.Hash, data []byte) string {
		files = append(files, file{"blobs/" + h.Algorithm + "/" + h.Hex, 0o644, data})
		return files[len(files)-1].name
	}
	manifest, err := image.RawManifest()
	if err != nil {
		return nil, fmt.Errorf("write manifest: %w", err)
	}
	digest, err := image.Digest()
	if err != nil {
		return nil, fmt.Errorf("hash manifest: %w", err)
	}
	blob(digest, manifest)
	config, err := image.RawConfigFile()
	if err != nil {
		return nil, fmt.Errorf("write configuration: %w", err)
	}
	configName, err := image.ConfigName()
	if err != nil {
		return nil, fmt.Errorf("hash configuration: %w", err)
	}
	docker := struct {
		Config   string
		RepoTags []string
		Layers   []string
	}{Config: blob(configName, config), RepoTags: []string{name}}
	layers, err := image.Layers()
	if err != nil {
		return nil, fmt.Errorf("list layers: %w", err)
	}
	for _, layer := range layers {
		reader, err := layer.Compressed()
		if err != nil {
			return nil, fmt.Errorf("open layer: %w", err)
		}
		data, err := io.ReadAll(reader)
		if err != nil {
			return nil, fmt.Errorf("read layer: %w", err)
		}
		digest, err := layer.Digest()
		if err != nil {
			return nil, fmt.Errorf("hash layer: %w", err)
		}
		docker.Layers = append(docker.Layers, blob(digest, data))
	}
	dockerJSON, err := json.Marshal([]any{docker})
	if err != nil {
		return nil, fmt.Errorf("write manifest for docker: %w", err)
	}
	files = append(files, file{"manifest.json", 0o644, dockerJSON})
	entries, contents := layerEntries(files, nil)
	parts, err := tarParts(entries, contents, r.modified)
	return bytes.Join(parts, nil), err
}
