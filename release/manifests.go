package main

import (
	"embed"
	"strings"
)

//go:embed kubernetes/*.yaml
var manifests embed.FS

// anyImage is the image that the manifests have in the repository.
const anyImage = "pitot:VERSION"

// makeManifests adds the manifests for Kubernetes, with the image of this version.
func (r *release) makeManifests() error {
	entries, err := manifests.ReadDir("kubernetes")
	if err != nil {
		return err
	}
	for _, entry := range entries {
		name := "kubernetes/" + entry.Name()
		text, err := manifests.ReadFile(name)
		if err != nil {
			return err
		}
		r.add(name, 0o644, []byte(strings.ReplaceAll(string(text), anyImage, "pitot:"+r.version.tag())))
	}
	return nil
}
