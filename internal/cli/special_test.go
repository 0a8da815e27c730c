//go:build unix

package cli

import (
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// special makes the files that no flag may read without end, or wait for.
func special(t *testing.T) map[string]string {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	for _, err := range []error{
		os.Symlink("/dev/zero", at("link")),
		os.Mkdir(at("directory"), 0o700),
		os.WriteFile(at("sparse"), nil, 0o600),
		os.Truncate(at("sparse"), 64<<30),
	} {
		if err != nil {
			t.Skip(err)
		}
	}
	list := map[string]string{"a link": at("link"), "a directory": at("directory"), "a sparse file": at("sparse")}
	for _, name := range []string{"/dev/zero", "/dev/urandom", "/dev/full"} {
		if _, err := os.Stat(name); err == nil {
			list[name] = name
		}
	}
	return list
}

// silent makes a pipe that nothing writes to.
func silent(t *testing.T) string {
	path := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Skip(err)
	}
	return path
}

// Every file that a user names is refused within seconds where it has no end, or nothing writes to
// it. FILE stands for it; DIR/NAME for a file of a directory that is named.
func TestSpecialFiles(t *testing.T) {
	t.Parallel()
	const url = "http://127.0.0.1:1" // where nothing listens
	lines := []string{
		"run " + url + " --rate 1 --model m --api openai-chat --tokenizer FILE",
		"run --config FILE",
		"run " + url + " --rate 1 --key-file FILE",
		"run https://127.0.0.1:1 --rate 1 --ca-cert FILE",
		"run https://127.0.0.1:1 --rate 1 --cert FILE",
		"run https://127.0.0.1:1 --rate 1 --cert CERT --key FILE",
		"run sim:fixed --rate 1 --workload FILE",
		"run sim:fixed --concurrency 1 --workload FILE --dry-run",
		"run sim:fixed --rate 1 --input quantiles(FILE,input)",
		"run sim:fixed --rate 1 --output pairs(FILE,output)",
		"run sim:fixed --arrival trace(FILE)",
		"run sim:fixed --rate 1 --arrival piecewise(FILE)",
		"run sim:fixed --arrival profile(FILE)",
		"run sim:llama-3.1-8b@h100?profile=FILE --rate 1",
		"run sim:DIR/config.json@h100 --rate 1",
		"find sim:fixed --slo chat --workload FILE",
		"sweep sim:fixed --workload FILE",
		"mock fixed --key-file FILE",
		"workload lint FILE",
		"workload stats FILE",
		"workload sample FILE",
		"workload show FILE",
		"workload profile FILE",
		"workload convert FILE --to pitot",
		"workload lint chat --tokenizer FILE",
		"report FILE",
		"report DIR/run.json",
		"report DIR/journal.pitot",
		"report DIR/requests.parquet",
		"compare FILE FILE",
		"compare DIR/run.json DIR/run.json",
		"explain DIR/run.json",
		"experiment forecast FILE",
		"experiment run FILE",
		"experiment report DIR/plan.yaml",
		"experiment trend DIR/decision.json",
		"predict DIR/config.json@h100",
		"predict llama-3.1-8b@h100 --replay DIR/meta.json",
		"predict llama-3.1-8b@h100 --run DIR/run.json",
		"worker --join nats://127.0.0.1:1?token_file=FILE",
		"worker --join nats://127.0.0.1:1?nkey_file=FILE",
		"worker --join tls://127.0.0.1:1?ca=FILE",
		"worker --join tls://127.0.0.1:1?cert=FILE",
	}
	cert := filepath.Join(t.TempDir(), "cert.pem")
	if err := os.WriteFile(cert, []byte("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var all sync.WaitGroup
	files := special(t)
	files["a pipe"] = ""
	for what, file := range files {
		for _, line := range lines {
			path := file
			if what == "a pipe" {
				path = silent(t) // what gives one up is a writer for a moment
			}
			args := strings.Fields(line)
			named := false
			for i, a := range args {
				a = strings.ReplaceAll(strings.ReplaceAll(a, "FILE", path), "CERT", cert)
				before, in, ok := strings.Cut(a, "DIR/")
				if named = named || ok; ok {
					name, rest, _ := strings.Cut(in, "@")
					dir := t.TempDir()
					if err := os.Symlink(path, filepath.Join(dir, name)); err != nil {
						t.Fatal(err)
					}
					if a = before + dir; rest != "" {
						a += "@" + rest
					}
				}
				args[i] = a
			}
			switch {
			case what == "a directory" && (strings.Contains(line, "workload") || strings.Contains(line, "report") || strings.Contains(line, "compare")):
				continue // which these take
			case what == "a sparse file" && strings.Contains(line, "journal"):
				continue // damaged records are looked for to the end
			}
			all.Go(func() {
				var out, said bytes.Buffer
				done := make(chan int)
				go func() { done <- Run(ctx, args, strings.NewReader(""), &out, &said) }()
				select {
				case code := <-done:
					if code != Usage && code != TargetFailed && !(named && code == Done) || strings.Contains(said.String(), "unknown flag") {
						t.Errorf("%s: pitot %s: exit code %d\n%s%s", what, line, code, &said, &out)
					}
					if code == Usage && strings.Contains(line, "FILE") && !strings.Contains(said.String(), path) {
						t.Errorf("%s: pitot %s names no file: %s", what, line, &said)
					}
				case <-time.After(limit):
					t.Errorf("%s: pitot %s does not end", what, line)
				}
			})
		}
	}
	all.Wait()
}

// A run of somebody else may hold such files in place of its own: it is shown, or refused, within
// seconds.
func TestSpecialFilesOfRuns(t *testing.T) {
	t.Parallel()
	whole := filepath.Join(t.TempDir(), "run")
	var said bytes.Buffer
	if code := Run(t.Context(), []string{"run", "sim:fixed", "--rate", "20", "--duration", "2s", "--warmup", "0s", "--seed", "1", "--out", whole}, strings.NewReader(""), io.Discard, &said); code != Done {
		t.Fatalf("exit code %d: %s", code, &said)
	}
	entries, err := os.ReadDir(whole)
	if err != nil || len(entries) < 6 {
		t.Fatal(entries, err)
	}
	files := special(t)
	files["a pipe"] = ""
	var all sync.WaitGroup
	for what, file := range files {
		for _, entry := range entries {
			path := file
			if what == "a pipe" {
				path = silent(t)
			}
			dir := t.TempDir()
			for _, other := range entries {
				from := filepath.Join(whole, other.Name())
				if other == entry {
					from = path
				}
				if err := os.Symlink(from, filepath.Join(dir, other.Name())); err != nil {
					t.Fatal(err)
				}
			}
			all.Go(func() {
				for _, args := range [][]string{{"report", dir}, {"compare", dir, dir}, {"report", dir, "--export", "csv-requests=" + filepath.Join(dir, "table.csv")}} {
					done := make(chan int, 1)
					go func() { done <- Run(t.Context(), args, strings.NewReader(""), io.Discard, io.Discard) }()
					select {
					case code := <-done:
						if code == Bug {
							t.Errorf("%s as %s: pitot %s: exit code %d", what, entry.Name(), args[0], code)
						}
					case <-time.After(limit):
						t.Errorf("%s as %s: pitot %s does not end", what, entry.Name(), args[0])
					}
				}
			})
		}
	}
	all.Wait()
}
