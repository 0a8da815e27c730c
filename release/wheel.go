package main

import (
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"strings"
)

// makeWheels adds a wheel of pitot for each platform. The program is a script of the wheel, which
// pip and uv put on the PATH. There is no Python code.
func (r *release) makeWheels() error {
	for _, p := range r.programs {
		if p.name != "pitot" {
			continue
		}
		name := strings.ReplaceAll(packageName, "-", "_") + "-" + r.version.python()
		tags := "py3-none-" + p.wheel
		info := name + ".dist-info/"
		metadata := fmt.Sprintf(`Metadata-Version: 2.4
Name: %s
Version: %s
Summary: %s
Project-URL: Homepage, %s
License-Expression: %s
License-File: LICENSE
Classifier: Environment :: Console
Classifier: Topic :: System :: Benchmark
Description-Content-Type: text/markdown

%s`, packageName, r.version.python(), summary, home, licence, r.readme)
		// The file has one Tag for each combination of the compressed set in the name.
		var wheel strings.Builder
		fmt.Fprintf(&wheel, "Wheel-Version: 1.0\nGenerator: pitot-release\nRoot-Is-Purelib: false\n")
		for tag := range strings.SplitSeq(p.wheel, ".") {
			fmt.Fprintf(&wheel, "Tag: py3-none-%s\n", tag)
		}
		content := []file{
			{name + ".data/scripts/" + p.executable("pitot"), 0o755, p.data},
			{info + "licenses/LICENSE", 0o644, r.licence},
			{info + "METADATA", 0o644, []byte(metadata)},
			{info + "WHEEL", 0o644, []byte(wheel.String())},
		}
		var record strings.Builder
		for _, f := range content {
			sum := sha256.Sum256(f.data)
			fmt.Fprintf(&record, "%s,sha256=%s,%d\n", f.name, base64.RawURLEncoding.EncodeToString(sum[:]), len(f.data))
		}
		fmt.Fprintf(&record, "%sRECORD,,\n", info)
		content = append(content, file{info + "RECORD", 0o644, []byte(record.String())})
		data, err := packZip(content, r.modified)
		if err != nil {
			return err
		}
		r.add(name+"-"+tags+".whl", 0o644, data)
	}
	return nil
}
