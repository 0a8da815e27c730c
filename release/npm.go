package main

import (
	_ "embed"
	"encoding/json"
	"fmt"
)

//go:embed launcher.js
var launcher []byte

// npmManifest is a package.json.
type npmManifest struct {
	Name         string            `json:"name"`
	Version      string            `json:"version"`
	Description  string            `json:"description"`
	Homepage     string            `json:"homepage"`
	License      string            `json:"license"`
	Bin          map[string]string `json:"bin,omitempty"`
	Files        []string          `json:"files,omitempty"`
	Engines      map[string]string `json:"engines,omitempty"`
	OS           []string          `json:"os,omitempty"`
	CPU          []string          `json:"cpu,omitempty"`
	Prefer       bool              `json:"preferUnplugged,omitempty"`
	Dependencies map[string]string `json:"optionalDependencies,omitempty"`
}

// makeNPM adds a package with the launcher, and one with the program for each platform. npm installs
// the one for its platform.
func (r *release) makeNPM() error {
	main := npmManifest{
		Name: packageName, Version: r.version.npm(), Description: summary, Homepage: home, License: licence,
		Bin: map[string]string{"pitot": "bin/pitot.js"}, Files: []string{"bin"},
		Engines: map[string]string{"node": ">=18"}, Dependencies: map[string]string{},
	}
	for _, p := range platforms { // all, whichever were compiled
		main.Dependencies[p.npmName()] = r.version.npm()
	}
	if err := r.addNPM(main, file{"package/bin/pitot.js", 0o755, launcher}, file{"package/README.md", 0o644, r.readme}); err != nil {
		return err
	}
	for _, p := range r.programs {
		if p.name != "pitot" {
			continue
		}
		err := r.addNPM(npmManifest{
			Name: p.npmName(), Version: r.version.npm(), Description: fmt.Sprintf("The program of %s for %s", packageName, p.platform),
			Homepage: home, License: licence, OS: p.npm[:1], CPU: p.npm[1:], Files: []string{"bin"}, Prefer: true,
		}, file{"package/bin/" + p.executable("pitot"), 0o755, p.data})
		if err != nil {
			return err
		}
	}
	return nil
}

func (p platform) npmName() string { return packageName + "-" + p.npm[0] + "-" + p.npm[1] }

func (r *release) addNPM(m npmManifest, files ...file) error {
	manifest, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return fmt.Errorf("write package.json: %w", err)
	}
	all := append([]file{{"package/package.json", 0o644, append(manifest, '\n')}, {"package/LICENSE", 0o644, r.licence}}, files...)
	data, err := packTar(all, r.modified)
	if err != nil {
		return fmt.Errorf("pack %s: %w", m.Name, err)
	}
	r.add(m.Name+"-"+m.Version+".tgz", 0o644, data)
	return nil
}
