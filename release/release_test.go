package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"debug/buildinfo"
	"debug/elf"
	"debug/macho"
	"debug/pe"
	"encoding/base64"
	"encoding/csv"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/CycloneDX/cyclonedx-go"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/validate"
	"go.yaml.in/yaml/v3"
)

var (
	keep     = flag.String("keep", "", "leave the files of the release in this folder")
	complete = flag.Bool("complete", false, "fail where a tool is missing, in place of a skip")
	systems  = flag.String("platforms", "linux/amd64", "build for these systems and architectures")
)

// dist is the folder with the files of the release that all tests look at, made of checkout.
var (
	dist, checkout string
	built          *release // its version
)

func TestMain(m *testing.M) {
	flag.Parse()
	os.Exit(func() int {
		dir, err := os.MkdirTemp("", "pitot-release-test-")
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer os.RemoveAll(dir)
		dist = filepath.Join(dir, "dist")
		if *keep != "" {
			dist = *keep
		}
		if dist, err = filepath.Abs(dist); err == nil {
			checkout, err = filepath.Abs("..")
		}
		if err == nil {
			err = build(checkout, dist, *systems, strings.Join(allKinds(), ","), os.Stdout)
		}
		if err == nil {
			built, err = newRelease(checkout)
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		return m.Run()
	}())
}

// find returns the files of the release that match a pattern, with at least one.
func find(t *testing.T, pattern string) []string {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(dist, pattern))
	if err != nil || len(paths) == 0 {
		t.Fatalf("no %s in the release: %v", pattern, err)
	}
	return paths
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// run runs a command and returns what it printed.
func run(t *testing.T, dir string, command ...string) string {
	t.Helper()
	c := exec.Command(command[0], command[1:]...)
	c.Dir = dir
	out, err := c.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", strings.Join(command, " "), err, out)
	}
	return string(out)
}

// lack skips the test because of what this machine lacks, or fails with -complete.
func lack(t *testing.T, format string, arguments ...any) {
	t.Helper()
	if *complete {
		t.Fatalf(format, arguments...)
	}
	t.Skipf(format, arguments...)
}

// need skips the test if a tool is not installed.
func need(t *testing.T, tools ...string) {
	t.Helper()
	for _, tool := range tools {
		if _, err := exec.LookPath(tool); err != nil {
			lack(t, "%s is not installed", tool)
		}
	}
}

// isVersion fails unless the text is what the built program says of itself.
func isVersion(t *testing.T, text string) {
	t.Helper()
	if want := fmt.Sprintf("pitot %s (commit %s) %s", built.version.full, built.version.commit, goToolchain); strings.TrimSpace(text) != want {
		t.Errorf("pitot version prints %q, want %q", text, want)
	}
}

// Versions have the form of each format.
func TestVersions(t *testing.T) {
	for _, c := range []struct{ full, python, npm, system, tag string }{
		{"v0.1.0", "0.1.0", "0.1.0", "0.1.0", "0.1.0"},
		{"v0.1.0+dirty", "0.1.0+dirty", "0.1.0-dirty", "0.1.0+dirty", "0.1.0-dirty"},
		{"v1.2.3-rc.1", "1.2.3rc1", "1.2.3-rc.1", "1.2.3~rc.1", "1.2.3-rc.1"},
		{"v0.0.0-20261129101300-5e5792741b96", "0.0.0.dev20261129101300+g5e5792741b96", "0.0.0-20261129101300-5e5792741b96",
			"0.0.0~20261129101300.5e5792741b96", "0.0.0-20261129101300-5e5792741b96"},
		{"v0.0.0-20261129101300-5e5792741b96+dirty", "0.0.0.dev20261129101300+g5e5792741b96.dirty", "0.0.0-20261129101300-5e5792741b96.dirty",
			"0.0.0~20261129101300.5e5792741b96+dirty", "0.0.0-20261129101300-5e5792741b96-dirty"},
	} {
		v := version{full: c.full}
		if v.python() != c.python || v.npm() != c.npm || v.system() != c.system || v.tag() != c.tag {
			t.Errorf("%s is %s for pip, %s for npm, %s for deb and rpm, %s for images", c.full, v.python(), v.npm(), v.system(), v.tag())
		}
	}
}

// A copy of the checkout in another folder gives the same bytes.
func TestSameBytes(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	copied := filepath.Join(dir, "elsewhere", "copy")
	run(t, "", "git", "clone", "--quiet", "--shared", "--no-checkout", checkout, copied)
	run(t, copied, "git", "reset", "--quiet")
	files := run(t, checkout, "git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	for name := range strings.SplitSeq(strings.TrimSuffix(files, "\x00"), "\x00") {
		info, err := os.Stat(filepath.Join(checkout, name))
		if os.IsNotExist(err) {
			continue // removed, and not committed
		} else if err != nil {
			t.Fatal(err)
		}
		to := filepath.Join(copied, name)
		if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(to, read(t, filepath.Join(checkout, name)), info.Mode()); err != nil {
			t.Fatal(err)
		}
	}
	again := filepath.Join(dir, "dist")
	if err := build(copied, again, *systems, strings.Join(allKinds(), ","), io.Discard); err != nil {
		t.Fatal(err)
	}
	first, second := string(read(t, filepath.Join(dist, checksums))), string(read(t, filepath.Join(again, checksums)))
	if first != second {
		t.Errorf("the checksums differ:\n%s\n%s", first, second)
	}
}

// The checksums are of the files, and of all files.
func TestChecksums(t *testing.T) {
	sums := map[string]string{}
	for line := range strings.Lines(string(read(t, filepath.Join(dist, checksums)))) {
		sum, name, _ := strings.Cut(strings.TrimSpace(line), "  ")
		sums[name] = sum
	}
	err := filepath.WalkDir(dist, func(path string, entry fs.DirEntry, err error) error {
		name, _ := filepath.Rel(dist, path)
		if err != nil || entry.IsDir() || name == checksums {
			return err
		}
		if got := fmt.Sprintf("%x", sha256.Sum256(read(t, path))); sums[filepath.ToSlash(name)] != got {
			t.Errorf("%s has the checksum %s, and %s says %q", name, got, checksums, sums[name])
		}
		delete(sums, filepath.ToSlash(name))
		return nil
	})
	if err != nil || len(sums) > 0 {
		t.Errorf("no files for %v, %v", sums, err)
	}
}

// Programs are for the system and processor that their names say, and static on Linux. macOS wants
// a signature on arm64, and the version that the wheels name.
func TestPrograms(t *testing.T) {
	for _, path := range find(t, "pitot-*-*-a*64*") {
		name := strings.TrimSuffix(filepath.Base(path), ".exe")
		switch {
		case strings.HasSuffix(name, ".tar.gz") || strings.HasSuffix(name, ".zip") || strings.HasSuffix(name, ".tar") || strings.HasSuffix(name, ".tgz"):
		case strings.HasSuffix(name, "-linux-amd64"), strings.HasSuffix(name, "-linux-arm64"):
			f, err := elf.Open(path)
			if err != nil {
				t.Fatal(err)
			}
			want := elf.EM_X86_64
			if strings.HasSuffix(name, "arm64") {
				want = elf.EM_AARCH64
			}
			libraries, err := f.ImportedLibraries()
			if f.Machine != want || err != nil || len(libraries) > 0 || f.Section(".interp") != nil {
				t.Errorf("%s is for %v, has libraries %v, %v", name, f.Machine, libraries, err)
			}
			f.Close()
		case strings.Contains(name, "-darwin-"):
			f, err := macho.Open(path)
			if err != nil {
				t.Fatal(err)
			}
			want := macho.CpuAmd64
			if strings.HasSuffix(name, "arm64") {
				want = macho.CpuArm64
			}
			signed, least := false, ""
			for _, load := range f.Loads {
				raw := load.Raw()
				switch f.ByteOrder.Uint32(raw) {
				case 0x1d: // LC_CODE_SIGNATURE
					signed = true
				case 0x32: // LC_BUILD_VERSION
					n := f.ByteOrder.Uint32(raw[12:])
					least = fmt.Sprintf("macosx_%d_%d", n>>16, n>>8&255)
				}
			}
			if f.Cpu != want || want == macho.CpuArm64 && !signed || least != "macosx_12_0" {
				t.Errorf("%s is for %v and %s, signed %v", name, f.Cpu, least, signed)
			}
			f.Close()
		case strings.Contains(name, "-windows-"):
			f, err := pe.Open(path)
			if err != nil {
				t.Fatal(err)
			}
			want := uint16(pe.IMAGE_FILE_MACHINE_AMD64)
			if strings.HasSuffix(name, "arm64") {
				want = pe.IMAGE_FILE_MACHINE_ARM64
			}
			if f.Machine != want {
				t.Errorf("%s is for %x", name, f.Machine)
			}
			f.Close()
		default:
			t.Errorf("%s has no known system", name)
		}
	}
}

// unpack returns the headers and contents of a tar file, which is compressed if its name says so.
func unpack(t *testing.T, path string) (map[string]*tar.Header, map[string][]byte) {
	t.Helper()
	var reader io.Reader = bytes.NewReader(read(t, path))
	if strings.HasSuffix(path, "gz") {
		packed, err := gzip.NewReader(reader)
		if err != nil {
			t.Fatal(err)
		}
		if packed.ModTime.Unix() != built.modified.Unix() {
			t.Errorf("%s is of %v", path, packed.ModTime)
		}
		reader = packed
	}
	return unpackFrom(t, reader)
}

func unpackFrom(t *testing.T, reader io.Reader) (map[string]*tar.Header, map[string][]byte) {
	t.Helper()
	headers, contents := map[string]*tar.Header{}, map[string][]byte{}
	for archive := tar.NewReader(reader); ; {
		header, err := archive.Next()
		if err == io.EOF {
			return headers, contents
		} else if err != nil {
			t.Fatal(err)
		}
		if !header.ModTime.Equal(built.modified) {
			t.Errorf("%s is of %v, the commit of %v", header.Name, header.ModTime, built.modified)
		}
		headers[header.Name] = header
		if contents[header.Name], err = io.ReadAll(archive); err != nil {
			t.Fatal(err)
		}
	}
}

// writeTree writes the files of an archive to a folder, with their modes and, as root, their owners.
func writeTree(t *testing.T, dir string, headers map[string]*tar.Header, contents map[string][]byte) {
	t.Helper()
	for _, name := range slices.Sorted(maps.Keys(headers)) {
		to := filepath.Join(dir, name)
		var err error
		if headers[name].Typeflag == tar.TypeDir {
			err = os.MkdirAll(to, 0o755)
		} else {
			err = os.WriteFile(to, contents[name], 0o600)
		}
		if err == nil && os.Getuid() == 0 {
			err = os.Chown(to, headers[name].Uid, headers[name].Gid)
		}
		if err == nil {
			err = os.Chmod(to, headers[name].FileInfo().Mode()) // with the sticky bit
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// unpackZip returns the contents and modes of a zip file.
func unpackZip(t *testing.T, path string) (map[string][]byte, map[string]fs.FileMode) {
	t.Helper()
	archive, err := zip.OpenReader(path)
	if err != nil {
		t.Fatal(err)
	}
	defer archive.Close()
	contents, modes := map[string][]byte{}, map[string]fs.FileMode{}
	for _, f := range archive.File {
		if apart := built.modified.Sub(f.Modified); apart < 0 || apart.Seconds() >= 2 { // a zip has even seconds
			t.Errorf("%s is of %v, the commit of %v", f.Name, f.Modified, built.modified)
		}
		reader, err := f.Open()
		if err != nil {
			t.Fatal(err)
		}
		if contents[f.Name], err = io.ReadAll(reader); err != nil {
			t.Fatal(err)
		}
		modes[f.Name] = f.Mode()
	}
	return contents, modes
}

func TestArchives(t *testing.T) {
	for _, path := range find(t, "pitot-*v*-*-*.*") {
		contents, modes := map[string][]byte{}, map[string]fs.FileMode{}
		bare, ending := strings.TrimSuffix(path, ".tar.gz"), ""
		switch {
		case strings.HasSuffix(path, ".tar.gz"):
			headers, all := unpack(t, path)
			for name, header := range headers {
				contents[name], modes[name] = all[name], header.FileInfo().Mode()
			}
		case strings.HasSuffix(path, ".zip"):
			contents, modes = unpackZip(t, path)
			bare, ending = strings.TrimSuffix(path, ".zip")+".exe", ".exe"
		default:
			continue
		}
		program := "pitot" + ending
		if strings.HasPrefix(filepath.Base(path), "pitot-fleet-") {
			program = "pitot-fleet" + ending
		}
		if got := slices.Sorted(maps.Keys(contents)); !slices.Equal(got, []string{"LICENSE", "README.md", program}) {
			t.Errorf("%s has %v", path, got)
		}
		if modes[program] != 0o755 || modes["LICENSE"] != 0o644 {
			t.Errorf("%s has the modes %v", path, modes)
		}
		if !bytes.Equal(contents[program], read(t, bare)) || !bytes.Equal(contents["LICENSE"], built.licence) {
			t.Errorf("%s has other bytes", path)
		}
	}
}

func TestWheels(t *testing.T) {
	for _, path := range find(t, "*.whl") {
		contents, modes := unpackZip(t, path)
		name := strings.Join(strings.Split(filepath.Base(path), "-")[:2], "-")
		tags := strings.TrimSuffix(filepath.Base(path), ".whl")[len(name)+1:]
		records, err := csv.NewReader(bytes.NewReader(contents[name+".dist-info/RECORD"])).ReadAll()
		if err != nil || len(records) != len(contents) {
			t.Errorf("%s records %d of %d files, %v", path, len(records), len(contents), err)
		}
		for _, record := range records {
			data, ok := contents[record[0]]
			sum := sha256.Sum256(data)
			want := []string{record[0], "sha256=" + base64.RawURLEncoding.EncodeToString(sum[:]), fmt.Sprint(len(data))}
			if strings.HasSuffix(record[0], "/RECORD") {
				want = []string{record[0], "", ""}
			}
			if !ok || !slices.Equal(record, want) {
				t.Errorf("%s records %v, want %v", path, record, want)
			}
		}
		script := name + ".data/scripts/pitot"
		if strings.Contains(tags, "-win_") {
			script += ".exe"
		}
		if modes[script] != 0o755 {
			t.Errorf("%s has %s with mode %v", path, script, modes[script])
		}
		for platform := range strings.SplitSeq(strings.TrimPrefix(tags, "py3-none-"), ".") {
			if !strings.Contains(string(contents[name+".dist-info/WHEEL"]), "\nTag: py3-none-"+platform+"\n") {
				t.Errorf("%s has no tag %s", path, platform)
			}
		}
		metadata := string(contents[name+".dist-info/METADATA"])
		for _, line := range []string{"Name: pitot-llm\n", "Version: " + built.version.python() + "\n", "License-Expression: Apache-2.0\n", string(built.readme)} {
			if !strings.Contains(metadata, line) {
				t.Errorf("%s has no %.40q in its metadata", path, line)
			}
		}
		if limit := 9_000_000; strings.HasSuffix(path, "x86_64.whl") && strings.Contains(path, "linux") && len(read(t, path)) > limit {
			t.Errorf("%s has %d bytes, more than %d", path, len(read(t, path)), limit)
		}
	}
}

func TestNPM(t *testing.T) {
	main := false
	for _, path := range find(t, "pitot-llm-*.tgz") {
		headers, contents := unpack(t, path)
		var m npmManifest
		if err := json.Unmarshal(contents["package/package.json"], &m); err != nil {
			t.Fatal(err)
		}
		if filepath.Base(path) != m.Name+"-"+m.Version+".tgz" || m.License != licence || bytes.Contains(contents["package/package.json"], []byte("scripts")) {
			t.Errorf("%s is %s %s, licence %s", path, m.Name, m.Version, m.License)
		}
		program := "package/bin/pitot"
		if m.Name == packageName {
			main, program = true, "package/bin/pitot.js"
			if len(m.Dependencies) != len(platforms) || m.Bin["pitot"] != "bin/pitot.js" {
				t.Errorf("%s depends on %v, and has the commands %v", path, m.Dependencies, m.Bin)
			}
		} else if slices.Equal(m.OS, []string{"win32"}) {
			program += ".exe"
		}
		if m.Name != packageName && m.Name != packageName+"-"+m.OS[0]+"-"+m.CPU[0] {
			t.Errorf("%s is for %v on %v", m.Name, m.OS, m.CPU)
		}
		if headers[program] == nil || headers[program].Mode != 0o755 {
			t.Errorf("%s has no program %s", path, program)
		}
	}
	if !main {
		t.Error("the package with the command is not there")
	}
}

func TestFormula(t *testing.T) {
	formula := string(read(t, filepath.Join(dist, "pitot.rb")))
	found := regexp.MustCompile(`url "`+home+`/releases/(\S+)/(\S+)"\n\s+sha256 "(\w+)"`).FindAllStringSubmatch(formula, -1)
	if len(found) == 0 {
		t.Fatalf("no addresses in %s", formula)
	}
	for _, match := range found {
		if sum := fmt.Sprintf("%x", sha256.Sum256(read(t, filepath.Join(dist, match[2])))); sum != match[3] || match[1] != built.version.full {
			t.Errorf("the formula has %s for %s of %s, which has %s", match[3], match[2], match[1], sum)
		}
	}
	if _, err := exec.LookPath("ruby"); err == nil {
		run(t, dist, "ruby", "-c", "pitot.rb")
	}
}

func TestSBOMs(t *testing.T) {
	for _, name := range []string{"pitot", "pitot-fleet"} {
		var bom cyclonedx.BOM
		data := read(t, filepath.Join(dist, name+"-"+built.version.full+".cdx.json"))
		if err := cyclonedx.NewBOMDecoder(bytes.NewReader(data), cyclonedx.BOMFileFormatJSON).Decode(&bom); err != nil {
			t.Fatal(err)
		}
		listed := map[string]bool{}
		for _, component := range *bom.Components {
			listed[component.Name+" "+component.Version] = true
			if component.Name != "std" && (component.Hashes == nil || len((*component.Hashes)[0].Value) != 64) {
				t.Errorf("%s has no checksum", component.Name)
			}
		}
		for _, path := range find(t, name+"-v*-*-a*64") {
			info, err := buildinfo.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range info.Deps {
				if !listed[m.Path+" "+m.Version] {
					t.Errorf("the list of %s has no %s %s", name, m.Path, m.Version)
				}
			}
		}
		if !listed["std "+strings.TrimPrefix(goToolchain, "go")] || bom.SpecVersion != cyclonedx.SpecVersion1_6 || !strings.HasPrefix(bom.SerialNumber, "urn:uuid:") {
			t.Errorf("the list of %s has %v, format %v, number %s", name, listed, bom.SpecVersion, bom.SerialNumber)
		}
	}
}

// programHere returns the program for this machine, which tests run.
func programHere(t *testing.T) string {
	return find(t, "pitot-v*-linux-amd64")[0]
}

// The manifest of the fleet is what pitot fleet manifest prints, and pitot knows the arguments of the job.
func TestManifests(t *testing.T) {
	pitot := programHere(t)
	image := "pitot:" + built.version.tag()
	want := run(t, "", pitot, "fleet", "manifest", "--workers", "4", "--image", image, "--", "run", "http://vllm:8000", "--rate", "8000")
	got := string(read(t, filepath.Join(dist, "kubernetes", "fleet.yaml")))
	if strings.ReplaceAll(got, image, "") != strings.ReplaceAll(want, image, "") || strings.Count(got, image) != 2 {
		t.Errorf("fleet.yaml differs from the output of pitot fleet manifest:\n%s", want)
	}
	var job struct {
		Kind string
		Spec struct {
			Template struct {
				Spec struct {
					Containers []struct {
						Image string
						Args  []string
					}
				}
			}
		}
	}
	if err := yaml.Unmarshal(read(t, filepath.Join(dist, "kubernetes", "job.yaml")), &job); err != nil {
		t.Fatal(err)
	}
	container := job.Spec.Template.Spec.Containers[0]
	if job.Kind != "Job" || container.Image != image {
		t.Errorf("job.yaml has a %s with %s", job.Kind, container.Image)
	}
	arguments := slices.Clone(container.Args)
	arguments[1] = "mock:fixed"
	run(t, t.TempDir(), append(append([]string{pitot}, arguments...), "--dry-run")...)
}

func TestImages(t *testing.T) {
	t.Parallel()
	for _, path := range find(t, "*-image-*.tar") {
		image, err := tarball.ImageFromPath(path, nil) // as docker load reads it
		if err != nil {
			t.Fatal(err)
		}
		if err := validate.Image(image); err != nil {
			t.Errorf("%s: %v", path, err)
		}
		dir := t.TempDir()
		headers, contents := unpack(t, path)
		writeTree(t, dir, headers, contents)
		index, err := layout.ImageIndexFromPath(dir)
		if err != nil {
			t.Fatal(err)
		}
		if err := validate.Index(index); err != nil {
			t.Errorf("%s: %v", path, err)
		}
		config, err := image.ConfigFile()
		if err != nil {
			t.Fatal(err)
		}
		c := config.Config
		if c.User != "65532:65532" || !slices.Equal(c.Entrypoint, []string{"/pitot"}) || !slices.Equal(c.Cmd, []string{"--help"}) || c.WorkingDir != "/work" ||
			c.Labels["org.opencontainers.image.revision"] != built.version.commit || config.OS != "linux" || !strings.HasSuffix(path, "-"+config.Architecture+".tar") {
			t.Errorf("%s is configured as %+v", path, config)
		}
	}
}
