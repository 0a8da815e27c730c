// Package export writes a run in the formats of others: tables (CSV, Parquet),
// traces (Perfetto), metrics (OpenMetrics), and the result files of vllm bench
// serve, SGLang's bench_serving and AIPerf, one file each. A figure in them
// follows that tool's definition.
package export

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"pitot/internal/results/result"
	"pitot/internal/say"
)

// Format is one that a run can be written in.
type Format struct {
	Name  string // as in --export NAME=PATH
	About string
	write func(w io.Writer, run *result.Run, dir string) error
}

// Formats lists what a run can be written as.
func Formats() []Format {
	return []Format{
		{"vllm", "result JSON of vllm bench serve --save-result", writeVLLM},
		{"vllm-detailed", "the same with --save-detailed: arrays of every request and gap", writeVLLMDetailed},
		{"sglang", "JSON line of SGLang's bench_serving --output-file", writeSGLang},
		{"sglang-detailed", "the same with --output-details", writeSGLangDetailed},
		{"aiperf", "AIPerf's profile_export_aiperf.json, of a run of one point", writeAIPerf},
		{"aiperf-requests", "AIPerf's profile_export.jsonl: a line for each request of such a run", writeAIPerfRequests},
		{"openmetrics", "OpenMetrics text with histograms, for Prometheus", writeOpenMetrics},
		{"perfetto", "trace events of requests, for ui.perfetto.dev", writePerfetto},
		{"csv", "one line for each point: what --format csv prints", writeCSV},
		{"csv-requests", "one line for each request, with its latencies", writeCSVRequests},
		{"csv-sessions", "one line for each conversation or session of an agent, and what became of it", writeCSVSessions},
		{"parquet", "the same table as csv-requests", writeParquet},
		{"parquet-sessions", "the same table as csv-sessions", writeParquetSessions},
	}
}

// Export is a format and a place.
type Export struct{ Format, Path string }

// ParseExports reads NAME=PATH. Every error is a [say.Error].
func ParseExports(texts []string) ([]Export, error) {
	var out []Export
	var names []string
	for _, f := range Formats() {
		names = append(names, f.Name)
	}
	for _, t := range texts {
		name, path, ok := strings.Cut(t, "=")
		if !ok || path == "" {
			return nil, say.Errorf("--export: %q is not NAME=PATH", t).WithHint("for example --export vllm=result.json")
		}
		if _, known := formatOf(name); !known {
			return nil, say.Errorf("--export: unknown format %q", name).WithHint(say.KnownHint(name, names))
		}
		if info, err := os.Stat(path); err == nil && info.IsDir() {
			return nil, say.Errorf("--export: %s is a directory", path).WithHint("name a file")
		}
		if err := checkWritable(filepath.Dir(path)); err != nil { // before anything is measured
			return nil, say.Errorf("--export: %v", err).WithHint("choose another place")
		}
		for _, e := range out {
			if e.Path == path {
				return nil, say.Errorf("--export: %s is named twice", path).WithHint("give each a file of its own")
			}
		}
		out = append(out, Export{name, path})
	}
	return out, nil
}

// checkWritable says why no file can be made in a directory, nil if one can. One
// that does not exist is made when it is needed.
func checkWritable(dir string) error {
	for {
		_, err := os.Stat(dir)
		if !errors.Is(err, fs.ErrNotExist) || filepath.Dir(dir) == dir {
			break
		}
		dir = filepath.Dir(dir)
	}
	f, err := os.CreateTemp(dir, ".pitot-")
	if err != nil {
		return fmt.Errorf("nothing can be written in %s: %w", dir, err)
	}
	return errors.Join(f.Close(), os.Remove(f.Name()))
}

func formatOf(name string) (Format, bool) {
	for _, f := range Formats() {
		if f.Name == name {
			return f, true
		}
	}
	return Format{}, false
}

// Write writes a run, whose records are in dir. A file that is there already
// is replaced once the new one is whole.
func (e Export) Write(run *result.Run, dir string) error {
	f, ok := formatOf(e.Format)
	if !ok {
		return fmt.Errorf("export %s: no such format", e.Format)
	}
	var part partly
	err := ReplaceFile(e.Path, func(w io.Writer) error {
		err := f.write(w, run, dir)
		errors.As(err, &part)
		return totalFailure(err)
	})
	if err == nil && part.error != nil {
		err = part.error
	}
	if err != nil {
		return fmt.Errorf("export %s: %w", e.Format, err)
	}
	return nil
}

// ReplaceFile writes a file as a whole, and its directory if it is not there. What
// is no regular file, such as /dev/stdout, is written to as it is. That the
// place cannot be written to is a [say.Error].
func ReplaceFile(path string, write func(io.Writer) error) (err error) {
	place := func(err error) error {
		var at *fs.PathError
		if errors.As(err, &at) {
			err = at.Err
		}
		return say.Errorf("write %s: %v", path, err).WithHint("choose another place")
	}
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		file, err := os.OpenFile(path, os.O_WRONLY, 0)
		if err != nil {
			return place(err)
		}
		defer file.Close()
		return writeBuffered(file, write, place)
	}
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return place(err)
	}
	temp, err := os.CreateTemp(dir, filepath.Base(path)+".*.tmp")
	if err != nil {
		return place(err)
	}
	defer os.Remove(temp.Name()) // gone already when all went well
	if err := writeBuffered(temp, write, place); err != nil {
		temp.Close()
		return err
	}
	if err := errors.Join(temp.Chmod(0o644), temp.Close()); err != nil {
		return place(err)
	}
	if err := os.Rename(temp.Name(), path); err != nil {
		return place(err)
	}
	return nil
}

// writeBuffered hands write a buffer in front of w; place makes the error of what w
// does not take.
func writeBuffered(w io.Writer, write func(io.Writer) error, place func(error) error) error {
	out := &outlet{w: w}
	b := bufio.NewWriterSize(out, 1<<16)
	err := write(b)
	if err == nil {
		err = b.Flush()
	}
	if out.err != nil {
		return place(out.err)
	}
	return err
}

// outlet remembers its error, so that it is not taken for one of the records.
type outlet struct {
	w   io.Writer
	err error
}

func (o *outlet) Write(b []byte) (int, error) {
	n, err := o.w.Write(b)
	if err != nil {
		o.err = err
	}
	return n, err
}

// errNoRecords says that a run's records are not there any more.
var errNoRecords = say.Errorf("the run's directory has no records, or not all of them").WithHint("requests.parquet and chunks.parquet belong to it; " + withoutRecords)

// withoutRecords says what can be had of a run without its records.
const withoutRecords = "csv and --format json are written from run.json alone"

// partly is the error of what was written as far as the records of a damaged run go.
type partly struct{ error }

func (p partly) Unwrap() error { return p.error }

// totalFailure is an error that leaves nothing written: nil for one that is a [partly].
func totalFailure(err error) error {
	if errors.As(err, new(partly)) {
		return nil
	}
	return err
}

// errNothing says that there is nothing to write.
var errNothing = say.Errorf("the run has no request to write: none came due in a window").WithHint("measure for longer, or at a higher load")

// unreadableError makes the user's error of one that reading the records ended with.
func unreadableError(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return errNoRecords
	}
	return say.Errorf("the run's records are damaged: %v", err).WithHint(withoutRecords + "; a copy that is whole has the rest")
}
