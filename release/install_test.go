package main

import (
	"bytes"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"go.yaml.in/yaml/v3"
)

// These tests install the files for linux/amd64 without a network, and run what they installed.

func TestInstallByPip(t *testing.T) {
	t.Parallel()
	need(t, "python3")
	dir := t.TempDir()
	run(t, dir, "python3", "-m", "venv", "venv")
	pip := filepath.Join(dir, "venv", "bin", "pip")
	run(t, dir, pip, "install", "--quiet", "--no-index", "--find-links", dist, packageName+"=="+built.version.python())
	isVersion(t, run(t, dir, filepath.Join(dir, "venv", "bin", "pitot"), "version"))
	if listed := run(t, dir, pip, "list"); !strings.Contains(listed, packageName) {
		t.Errorf("pip lists %s", listed)
	}
	run(t, dir, pip, "check")
	run(t, dir, pip, "uninstall", "--yes", "--quiet", packageName)
	if _, err := os.Stat(filepath.Join(dir, "venv", "bin", "pitot")); err == nil {
		t.Error("the program is still there after pip uninstall")
	}
}

func TestInstallByUV(t *testing.T) {
	t.Parallel()
	need(t, "uv")
	dir := t.TempDir()
	wheel := find(t, "*linux*x86_64.whl")[0]
	out := run(t, dir, "uv", "tool", "run", "--quiet", "--offline", "--no-config", "--cache-dir", filepath.Join(dir, "cache"), "--from", wheel, "pitot", "version")
	isVersion(t, out)
}

// The launcher of the package passes arguments, exit codes and signals.
func TestInstallByNPM(t *testing.T) {
	t.Parallel()
	need(t, "node", "npm")
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "package.json"), []byte(`{"name":"test","private":true}`), 0o644); err != nil {
		t.Fatal(err)
	}
	main := filepath.Join(dist, packageName+"-"+built.version.npm()+".tgz")
	run(t, dir, "npm", "install", "--offline", "--no-audit", "--no-fund", "--cache", filepath.Join(dir, "cache"), main, find(t, packageName+"-linux-x64-*.tgz")[0])
	isVersion(t, run(t, dir, "npx", "--offline", "pitot", "version"))
	launcher := filepath.Join(dir, "node_modules", ".bin", "pitot")
	var exit *exec.ExitError
	if err := exec.Command(launcher, "no-such-verb").Run(); !errors.As(err, &exit) || exit.ExitCode() != 2 {
		t.Errorf("an unknown verb ends with %v", err)
	}
	c := exec.Command(launcher, "run", "mock:fixed", "--rate", "20", "--duration", "1m", "--warmup", "1s", "--out", "run")
	var out bytes.Buffer
	c.Dir, c.Stdout, c.Stderr = dir, &out, &out
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	for range 200 {
		if entries, _ := os.ReadDir(filepath.Join(dir, "run")); len(entries) > 0 {
			break
		}
		time.Sleep(50 * time.Millisecond)
	}
	time.Sleep(time.Second)
	if err := c.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if err := c.Wait(); !errors.As(err, &exit) || exit.ExitCode() != 130 {
		t.Errorf("after an interrupt the launcher ends with %v\n%s", err, out.String())
	}
}

func TestInstallByDpkg(t *testing.T) {
	t.Parallel()
	need(t, "dpkg-deb")
	for _, path := range find(t, "*.deb") {
		fields := run(t, "", "dpkg-deb", "--field", path)
		for _, line := range []string{"Package: pitot\n", "Version: " + built.version.system() + "-1\n", "Section: utils\n"} {
			if !strings.Contains(fields, line) {
				t.Errorf("%s has no %q:\n%s", path, line, fields)
			}
		}
		listed := run(t, "", "dpkg-deb", "--contents", path)
		if !regexp.MustCompile(`-rwxr-xr-x root/root +\d+ ` + built.modified.Format("2006-01-02 15:04") + ` ./usr/bin/pitot\n`).MatchString(listed) {
			t.Errorf("%s has no program:\n%s", path, listed)
		}
	}
	root := t.TempDir()
	path := find(t, "*_amd64.deb")[0]
	if os.Getuid() != 0 {
		run(t, "", "dpkg-deb", "--extract", path, root)
	} else {
		if err := os.MkdirAll(filepath.Join(root, "var/lib/dpkg/updates"), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(root, "var/lib/dpkg/status"), nil, 0o644); err != nil {
			t.Fatal(err)
		}
		run(t, "", "dpkg", "--root="+root, "--log=/dev/null", "--install", path)
	}
	isVersion(t, run(t, "", filepath.Join(root, "usr/bin/pitot"), "version"))
}

func TestInstallByRPM(t *testing.T) {
	t.Parallel()
	need(t, "rpm")
	for _, path := range find(t, "*.rpm") {
		got := run(t, "", "rpm", "--query", "--package", "--queryformat", "%{NAME} %{VERSION} %{RELEASE} %{LICENSE} %{BUILDTIME} %{BUILDHOST}", path)
		if want := fmt.Sprintf("pitot %s 1 Apache-2.0 %d pitot", built.version.system(), built.modified.Unix()); got != want {
			t.Errorf("%s says %s, want %s", path, got, want)
		}
		run(t, "", "rpm", "--checksig", "--nosignature", path)
	}
	if os.Getuid() != 0 {
		lack(t, "only root installs packages with rpm --root")
	}
	root := t.TempDir()
	run(t, "", "rpm", "--root", root, "--install", find(t, "*.x86_64.rpm")[0])
	isVersion(t, run(t, "", filepath.Join(root, "usr/bin/pitot"), "version"))
}

// The image runs as its user, with a root that nothing can write to but /tmp and /work/runs.
func TestRunImage(t *testing.T) {
	t.Parallel()
	image, err := tarball.ImageFromPath(find(t, "*-image-amd64.tar")[0], nil)
	if err != nil {
		t.Fatal(err)
	}
	files := mutate.Extract(image)
	defer files.Close()
	headers, contents := unpackFrom(t, files)
	for name, mode := range map[string]os.FileMode{
		"tmp": os.ModeDir | os.ModeSticky | 0o777, "work/runs": os.ModeDir | 0o755, "pitot": 0o755, "usr/share/zoneinfo/Europe/Berlin": 0o644,
	} {
		if headers[name] == nil || headers[name].FileInfo().Mode() != mode {
			t.Errorf("the image has %s as %v", name, headers[name])
		}
	}
	roots := 0
	for rest := contents["etc/ssl/certs/ca-certificates.crt"]; ; roots++ {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			break
		}
	}
	if roots < 100 {
		t.Errorf("the image has %d certificates", roots)
	}
	if os.Getuid() != 0 {
		lack(t, "only root can change the root directory")
	}
	need(t, "chroot", "unshare", "mount")
	root := t.TempDir()
	writeTree(t, root, headers, contents)
	if err := os.Chmod(root, 0o755); err != nil {
		t.Fatal(err)
	}
	isVersion(t, run(t, "", "chroot", "--userspec=65532:65532", root, "/pitot", "version"))
	inside := func(command string) (string, error) {
		script := `set -e
mount --bind "$0" "$0"
mount -t tmpfs -o mode=1777 none "$0/tmp"
mount -t tmpfs -o uid=65532,gid=65532 none "$0/work/runs"
mount -o remount,ro,bind "$0"
cd "$0"
` + command
		out, err := exec.Command("unshare", "--mount", "bash", "-c", script, root).CombinedOutput()
		return string(out), err
	}
	if out, err := inside("true"); err != nil {
		lack(t, "this machine allows no mounts: %v\n%s", err, out)
	}
	out, err := inside(`! chroot --userspec=65532:65532 . /pitot run mock:fixed --rate 5 --duration 1s --out /work/elsewhere 2>/dev/null
chroot --userspec=65532:65532 . /pitot run mock:fixed --rate 5 --duration 3s --warmup 1s --quiet --out /work/runs/run || test $? = 4 # a busy machine
test -s work/runs/run/run.json`)
	if err != nil {
		t.Errorf("a run in the image: %v\n%s", err, out)
	}
}

// The steps of action.yml measure, compare, and fail the job if the server got worse.
func TestAction(t *testing.T) {
	t.Parallel()
	need(t, "bash")
	var action struct {
		Inputs map[string]struct{ Default string }
		Runs   struct {
			Steps []struct {
				Name, ID, Shell, Run string
				Env                  map[string]string
			}
		}
	}
	if err := yaml.Unmarshal(read(t, filepath.Join(checkout, "action.yml")), &action); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	pitot := programHere(t)
	commands := filepath.Join(dir, "commands") // a gh that notes how it was called
	if err := os.Mkdir(commands, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(commands, "gh"), []byte("#!/bin/sh\necho \"$@\" >> \"$GH_CALLS\"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	expression := regexp.MustCompile(`\$\{\{ *([a-z._-]+) *\}\}`)
	// act runs the steps as GitHub does, and returns the exit code and the summary of the job.
	act := func(name string, inputs map[string]string) (code int, summary, calls string) {
		values := map[string]string{"github.token": "secret", "github.event.pull_request.number": "7", "github.repository": "owner/repository"}
		for input, setting := range action.Inputs {
			values["inputs."+input] = setting.Default
		}
		for input, value := range inputs {
			if _, ok := action.Inputs[input]; !ok {
				t.Fatalf("the action has no input %s", input)
			}
			values["inputs."+input] = value
		}
		file := func(what string) string { return filepath.Join(dir, name+"-"+what) }
		values["inputs.out"] = file("runs")
		for _, step := range action.Runs.Steps {
			if step.Shell != "bash" || expression.MatchString(step.Run) {
				t.Fatalf("step %s runs in %q, and may have an input in its text", step.Name, step.Shell)
			}
			added, _ := os.ReadFile(file("path"))
			c := exec.Command("bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step.Run)
			c.Dir = dir
			c.Env = append(os.Environ(), "GITHUB_PATH="+file("path"), "GITHUB_OUTPUT="+file("output"), "GITHUB_STEP_SUMMARY="+file("summary"),
				"GH_CALLS="+file("calls"), "PATH="+strings.Join(append(strings.Fields(string(added)), commands, os.Getenv("PATH")), ":"))
			for key, value := range step.Env {
				c.Env = append(c.Env, key+"="+expression.ReplaceAllStringFunc(value, func(e string) string {
					return values[expression.FindStringSubmatch(e)[1]]
				}))
			}
			out, err := c.CombinedOutput()
			t.Logf("%s, %s: %v\n%s", name, step.Name, err, out)
			if err != nil {
				code = c.ProcessState.ExitCode()
				break
			}
			outputs, _ := os.ReadFile(file("output"))
			for line := range strings.Lines(string(outputs)) {
				key, value, _ := strings.Cut(strings.TrimSpace(line), "=")
				values["steps."+step.ID+".outputs."+key] = value
			}
		}
		text, _ := os.ReadFile(file("summary"))
		called, _ := os.ReadFile(file("calls"))
		return code, string(text), string(called)
	}
	load := "--rate 12 --requests 300 --seed "
	server := "sim:llama-3.1-8b@h100?launch_cv=0.01"
	run(t, dir, pitot, "run", server, "--rate", "12", "--requests", "300", "--seed", "1", "--launches", "4", "--quiet", "--out", "before")
	run(t, dir, pitot, "compare", "--save-baseline", "baseline.json", "before")
	wheel := find(t, "*linux*x86_64.whl")[0]
	slower := map[string]string{
		"path": wheel, "run": server + "&scale=1.4 " + load + "2", "launches": "4", "before-launch": "echo start >> starts",
		"baseline": "baseline.json", "fail-if": "p50 tpot slower by 5%", "comment": "true",
	}
	code, summary, calls := act("slower", slower)
	if starts := string(read(t, filepath.Join(dir, "starts"))); code != 6 || !strings.Contains(summary, "slower") || strings.Count(starts, "start") != 4 {
		t.Errorf("a slower server ends with %d, was started %q, summary:\n%s", code, starts, summary)
	}
	if !strings.HasPrefix(calls, "pr comment 7 --repo owner/repository ") {
		t.Errorf("gh was called as %q", calls)
	}
	same := map[string]string{"path": pitot, "run": server + " " + load + "3", "launches": "4", "baseline": "baseline.json", "fail-if": "p50 tpot slower by 20%"}
	if code, summary, calls := act("same", same); code != 0 || calls != "" || !strings.Contains(summary, "baseline.json") {
		t.Errorf("the same server ends with %d, gh was called as %q, summary:\n%s", code, calls, summary)
	}
	if code, summary, _ := act("slo", map[string]string{"path": pitot, "run": server + " " + load + `4 --slo "p99 ttft<1ms"`}); code != 5 || summary == "" {
		t.Errorf("a missed SLO ends with %d, summary:\n%s", code, summary)
	}
	if code, _, _ := act("missing", map[string]string{"path": pitot, "run": server + " " + load + "5", "baseline": "no-such-file.json"}); code != 2 {
		t.Errorf("a missing baseline ends with %d", code)
	}
	if code, _, _ := act("usage", map[string]string{"path": pitot, "run": "--no-such-flag"}); code != 2 {
		t.Errorf("a wrong flag ends with %d", code)
	}
}

// What is compressed unpacks to what it was, for data of all kinds.
func TestCompression(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	noise := make([]byte, 100_000)
	for i := range noise {
		noise[i] = byte(random.Uint32())
	}
	few := make([]byte, 200_000)
	for i := range few {
		few[i] = "abc"[random.IntN(3)]
	}
	inputs := [][]byte{nil, {0}, []byte("ab"), []byte("aaa"), make([]byte, chunkSize+1), noise, few, append(noise, noise[:40_000]...), bytes.Repeat(noise[:windowSize-1], 8)}
	for i, input := range inputs {
		if _, err := compressOnce(input); err != nil { // it unpacks what it packed
			t.Errorf("input %d of %d bytes: %v", i, len(input), err)
		}
	}
	packed, err := gzipParts([][]byte{few, []byte("rest")}, time.Unix(1, 0))
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "few.gz")
	if err := os.WriteFile(path, packed, 0o644); err != nil {
		t.Fatal(err)
	}
	need(t, "gzip")
	c := exec.Command("gzip", "-dc", path)
	pipe, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	got, _ := io.ReadAll(pipe)
	if err := c.Wait(); err != nil || !bytes.Equal(got, append(few, "rest"...)) {
		t.Errorf("gzip unpacks %d bytes, %v", len(got), err)
	}
}
