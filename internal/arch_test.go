// Package internal_test holds the shape of the program: which room imports
// which, and which modules from elsewhere the program rests on.
package internal_test

import (
	"cmp"
	"flag"
	"fmt"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	_ "pitot/internal/rapidtest" // the same draws each time
)

const module = "pitot"

// room is a package and what it imports of the others. Data flows one way: a
// room imports what stands above it.
type room struct {
	name    string
	imports string // separated by spaces
}

// rooms is the whole program, from the ground up, as it is: a new arrow is
// drawn here, where it can be seen, and one that is no longer used is taken
// away.
func rooms() []room {
	return []room{
		// leaves
		{"docs/reference", ""},                       // documents that the program shows too
		{"say", ""},                                  // what is said to a user who got something wrong
		{"userfile", ""},                             // files that a user names, opened and read with a bound
		{"say/unreadable", "say userfile"},           // why a file that a user named cannot be read
		{"tokenizer", "say say/unreadable userfile"}, // the tokenizers that models are published with
		{"clock", ""},                                // monotonic nanoseconds, alarms
		{"client/stamp", "clock"},                    // sockets, and when what is read from them arrived
		{"stats", ""},                                // percentiles, intervals, tests: pure functions
		{"telemetry", ""},                            // what servers and GPUs tell of themselves: the vocabulary, the names, the text format
		{"cost", "say"},                              // prices and what they make of rates: pure functions
		{"results/metric", "stats telemetry"},        // the catalogue of metrics
		{"results/result", "results/metric stats"},   // run.json and its schema: what it was
		{"report/reasons", "results/result say"},     // the sentences of typed reasons
		{"results/rundir", "results/result say say/unreadable userfile"}, // names, state and result of a run directory
		{"results/parquet", ""}, // Parquet files: pages, columns, rows
		{"results/record", "results/rundir results/parquet userfile"}, // rows, chunks, journal: what happened
		{"results/spill", "stats"},                                    // more than memory should hold: columns, sorted records, order statistics
		{"slo", "say results/metric"},
		{"results/marks", "results/result"}, // the data of marks: what the records do not contain
		// asked
		{"workload/seed", ""},
		{"workload/token", "workload/seed"},
		{"workload/arrival", "workload/seed say stats"},
		{"workload/plain", "results/parquet userfile"}, // files as plain text, whatever they are packed in
		{"workload/field", ""},                         // what the fields of requests are called in files
		{"workload", "workload/seed workload/token say workload/arrival stats workload/plain results/spill say/unreadable userfile workload/field"},
		{"workload/question", "say workload workload/seed workload/token"}, // requests whose answers are known, and the check of these
		// engine
		{"sim", ""},
		{"sim/vllm", "sim"},
		{"sim/catalogue", "say userfile"},
		{"sim/fleet", "sim"},
		{"sim/sglang", "sim"},
		// the server in front of it: never imports wire, since an instrument and its
		// reference must not make the same mistake
		{"sim/serve/prom", ""},
		{"sim/serve/example", ""},
		{"sim/serve/lm", "sim sim/serve/example"},
		{"sim/serve/dialect", "sim sim/serve/lm sim/serve/prom"},
		{"sim/serve/vllmapi", "sim sim/serve/dialect sim/serve/example sim/serve/lm sim/serve/prom"},
		{"sim/serve/native", "sim sim/serve/dialect sim/serve/lm"},
		{"sim/serve/sglangapi", "sim sim/serve/dialect sim/serve/example sim/serve/lm sim/serve/prom"},
		// an engine: its row here, its line in sim/engines
		{"sim/engine", "telemetry sim sim/serve/dialect"}, // what an engine is: a table
		{"sim/engine/vllm", "say telemetry sim sim/engine sim/serve/vllmapi sim/vllm"},
		{"sim/engine/sglang", "say telemetry sim sim/engine sim/serve/dialect sim/serve/native sim/serve/sglangapi sim/sglang"},
		{"sim/engine/fixed", "sim sim/engine"},
		{"sim/engines", "telemetry sim/engine sim/engine/fixed sim/engine/sglang sim/engine/vllm sim/serve/dialect sim/serve/native sim/serve/vllmapi"}, // all of them
		{"sim/deploy", "sim sim/catalogue sim/fleet say userfile sim/engine sim/engines"},
		{"sim/serve", "sim sim/serve/dialect sim/serve/lm sim/serve/prom client/stamp clock say sim/engine sim/engines"},
		{"workload/profile", "say workload workload/arrival workload/plain workload/seed workload/token stats say/unreadable workload/field"}, // what a log was like, without text: logs, the profile, the workload of one
		{"config", "workload workload/arrival workload/question slo say results/rundir cost workload/seed workload/profile say/unreadable userfile sim/engines"},
		// measured
		{"client/api", "workload workload/token results/record results/result say"}, // the dialects of targets, one file each
		{"client", "client/stamp results/record clock client/api"},
		{"telemetry/scrape", "clock results/record telemetry client client/api sim/engines"}, // pages of metrics, asked again and again
		{"telemetry/local", "clock telemetry telemetry/scrape"},                              // what the machine of a server tells: nvidia-smi, /proc
		{"loadgen", "workload workload/seed client client/stamp sim results/record clock client/api telemetry tokenizer"},
		{"metrics/validity", "results/record results/spill results/result stats results/metric"}, // what a measurement is worth: checks, balance, steady state
		{"metrics", "metrics/validity results/record results/spill results/result slo stats results/metric telemetry cost results/marks"},
		{"target", "config tokenizer client client/stamp sim sim/deploy sim/serve results/record results/result workload workload/seed workload/token clock say results/metric client/api telemetry telemetry/scrape telemetry/local say/unreadable userfile sim/engine sim/engines"}, // what is measured: opened, asked, adapted to
		{"capacity", "say results/result stats results/metric"}, // which load next: decisions without clock, socket or file
		{"session/estimate", "config capacity"},                 // what a plan will send, take and cost
		{"session/hits", "sim sim/vllm results/marks"},          // what a prefix cache is expected to have of a load's prompts
		{"session", "config loadgen metrics results/record results/marks results/spill results/rundir results/result slo client client/stamp workload workload/question workload/seed workload/token workload/arrival clock say target capacity stats results/metric client/api metrics/validity telemetry telemetry/scrape cost session/hits sim workload/profile say/unreadable userfile session/estimate report/reasons"},
		{"workers/bus", "userfile"},           // messages and journals between processes: a NATS client, and a socket of this machine
		{"workers/natsserver", "workers/bus"}, // the embedded NATS server of pitot-fleet
		{"workers", "clock results/marks results/record results/result results/rundir workers/bus loadgen config session say"}, // one load carried out by several processes
		{"analysis/explain", "results/metric stats telemetry"},                                                                 // what limits a server: rules over facts
		{"analysis/predict", "analysis/explain config session loadgen results/record results/rundir results/result workload sim sim/catalogue sim/deploy stats say target results/metric metrics cost userfile sim/engines"},
		{"analysis/inspect", "results/metric results/result say analysis/explain analysis/predict sim/deploy results/record telemetry client/api config slo stats sim/engine sim/engines"},                    // a run as the evidence that explain weighs
		{"analysis/calibrate", "config session analysis/predict target sim/deploy workload results/record results/result results/rundir say sim/catalogue"},                                                   // a server's twin, by loads chosen for it
		{"analysis/choose", "cost results/metric results/record loadgen metrics config session say slo stats analysis/predict sim sim/catalogue sim/deploy workload workload/arrival sim/engine sim/engines"}, // which deployment carries a load for the least money
		{"analysis/audit", "config session metrics sim/serve results/record results/result stats workload results/metric say"},
		{"analysis/tools", "analysis/audit say results/result results/metric say/unreadable userfile"},                                                              // what other tools wrote, read as what they say
		{"analysis/compare", "analysis/tools results/rundir results/result stats say results/metric say/unreadable userfile results/record metrics report/reasons"}, // what changed between systems
		{"experiment/decide", "stats"},                          // what launches say together: who carries how much, what is given up, when there is enough
		{"experiment/server", "say results/rundir sim/engines"}, // a server that a command starts, and what it tells of its settings
		{"experiment", "experiment/server config slo workload/seed sim/deploy sim/catalogue target session analysis/explain analysis/inspect analysis/predict experiment/decide results/metric results/result results/rundir cost stats say say/unreadable userfile"}, // from a contract to a decision: the plan, its launches, the record
		// shown
		{"report/export", "metrics results/metric results/parquet results/record results/result say stats client/api results/spill"}, // a run in the formats of others
		{"report", "analysis/explain analysis/inspect slo results/record results/result analysis/audit analysis/compare analysis/tools analysis/predict sim/deploy stats say results/metric workload workload/arrival workload/profile experiment analysis/choose report/reasons sim/engines"},
		{"report/page", "results/metric results/record results/result results/spill metrics report say stats analysis/choose analysis/compare telemetry experiment"}, // a run or a comparison as one HTML file, with charts
		{"report/card", "report results/metric results/result say stats"}, // a run as one picture to share: SVG, PNG, Markdown
		{"cli", "workers config tokenizer analysis/inspect analysis/tools session capacity analysis/audit analysis/calibrate analysis/choose analysis/compare analysis/predict report results/record results/rundir results/result slo sim/catalogue sim/deploy sim/serve say target report/export client/api report/card report/page session/estimate workload workload/question workload/token workload/profile experiment say/unreadable userfile sim/engines docs/reference"},
		{"cmd/pitot", "cli"},
		{"cmd/pitot-fleet", "cli workers/bus workers/natsserver"},
	}
}

// Where rooms are: under internal, but for the command.
func (r room) dir() string {
	if strings.HasPrefix(r.name, "cmd/") || strings.HasPrefix(r.name, "docs/") {
		return r.name
	}
	return "internal/" + r.name
}

// dependency is a module from elsewhere, named in go.mod.
type dependency struct {
	path string
	why  string
	in   string // rooms that import it, "" for tests alone
}

func dependencies() []dependency {
	return []dependency{
		{"golang.org/x/sys", "kernel stamps, socket options and clocks that package syscall does not have", "clock client client/stamp results/rundir session"},
		{"golang.org/x/text", "Unicode's normalization forms, which tokenizers ask for", "tokenizer"},
		{"golang.org/x/term", "is it a terminal, and how wide", "cli"},
		{"go.yaml.in/yaml/v3", "config files, with the line of a mistake", "config sim/catalogue sim/deploy workload/profile experiment"},
		{"github.com/parquet-go/parquet-go", "what a Parquet file's footer and heads of pages hold, and how its numbers are packed", "results/parquet"},
		{"github.com/klauspost/compress", "Parquet files and workloads in Zstandard and Snappy; gzip responses, block by block", "results/parquet workload/plain client"},
		{"github.com/andybalholm/brotli", "Parquet files of others in Brotli", "results/parquet"},
		{"github.com/pierrec/lz4/v4", "Parquet files of others in LZ4", "results/parquet"},
		{"github.com/nats-io/nats.go", "messages and journals between the processes of a fleet, over whatever network lies between", "workers/bus"},
		{"github.com/nats-io/nats-server/v2", "its server in the process of pitot-fleet, so that --fleet listen:// needs nothing installed", "workers/natsserver"},
		{"github.com/rogpeppe/go-internal", "scripts of the command line", ""},
		{"github.com/google/go-cmp", "differences that can be read", ""},
		{"pgregory.net/rapid", "properties, with counterexamples made small", ""},
		{"github.com/santhosh-tekuri/jsonschema/v6", "run.json is held against its schema", ""},
	}
}

// file is one Go file and its imports.
type file struct {
	path    string // from the repository's root
	test    bool
	imports []string
}

func (f file) dir() string { return filepath.ToSlash(filepath.Dir(f.path)) }

// files reads the imports of every Go file, whatever system it is for.
func files(t *testing.T) (out []file) {
	t.Helper()
	const root = ".."
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := d.Name()
		if d.IsDir() {
			if path != root && (name == "testdata" || strings.HasPrefix(name, ".") || strings.HasPrefix(name, "_")) {
				return filepath.SkipDir
			}
			if _, err := os.Stat(filepath.Join(path, "go.mod")); err == nil && path != root {
				return filepath.SkipDir // a module of its own
			}
			return nil
		}
		if !strings.HasSuffix(name, ".go") {
			return nil
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		f := file{path: filepath.ToSlash(rel)}
		f.test = strings.HasSuffix(name, "_test.go") || strings.HasSuffix(f.dir(), "test") // a room like reporttest is for tests alone
		for _, s := range parsed.Imports {
			p, err := strconv.Unquote(s.Path.Value)
			if err != nil {
				return err
			}
			f.imports = append(f.imports, p)
		}
		out = append(out, f)
		return nil
	})
	if err != nil || len(out) == 0 {
		t.Fatalf("%d files, %v", len(out), err)
	}
	return out
}

// inside gives the room that an import path names.
func inside(path string) (string, bool) {
	rest, ok := strings.CutPrefix(path, module+"/")
	return strings.TrimPrefix(rest, "internal/"), ok
}

// outside says whether an import is of another module: the standard library
// has no dot in its first element.
func outside(path string) bool {
	first, _, _ := strings.Cut(path, "/")
	return first != module && strings.Contains(first, ".")
}

// A room imports what its row says, no more and no less, whatever system it
// is built for.
func TestRooms(t *testing.T) {
	drawn := map[string]string{}
	for _, r := range rooms() {
		drawn[r.dir()] = r.imports
	}
	actual := map[string][]string{}
	for _, f := range files(t) {
		if f.test || !strings.HasPrefix(f.dir(), "internal") && !strings.HasPrefix(f.dir(), "cmd") && !strings.HasPrefix(f.dir(), "docs") {
			continue // tests look anywhere; programs beside the product are nobody's room
		}
		if _, known := drawn[f.dir()]; !known {
			t.Errorf("%s: %s is in no row of the table", f.path, f.dir())
			continue
		}
		arrows := actual[f.dir()]
		for _, path := range f.imports {
			name, ok := inside(path)
			if ok && !slices.Contains(strings.Fields(drawn[f.dir()]), name) {
				t.Errorf("%s imports %s, the row of its room has only: %s", f.path, name, drawn[f.dir()])
			}
			arrows = append(arrows, name)
		}
		actual[f.dir()] = arrows
	}
	for _, r := range rooms() {
		if _, built := actual[r.dir()]; !built {
			t.Errorf("%s is in the table, and there is no such room", r.name)
			continue
		}
		for _, name := range strings.Fields(r.imports) {
			if !slices.Contains(actual[r.dir()], name) {
				t.Errorf("the row of %s has %s, which it does not import", r.name, name)
			}
		}
	}
}

// pure are the rooms that say that they have no clock, socket or file, and mean what
// they stand on too.
func pure() []string {
	return []string{"stats", "results/result", "sim", "sim/vllm", "capacity", "workload/seed", "analysis/explain", "experiment/decide"}
}

// What a pure room imports, however far down, is pure too.
func TestPureRooms(t *testing.T) {
	impure := func(path string) bool {
		first, _, _ := strings.Cut(path, "/")
		return slices.Contains([]string{"os", "net", "syscall", "runtime", "golang.org"}, first)
	}
	imports, built := map[string][]string{}, map[string]bool{}
	for _, f := range files(t) {
		if name, ok := inside(module + "/" + f.dir()); ok && !f.test {
			built[name] = true
			imports[name] = append(imports[name], f.imports...)
		}
	}
	for _, name := range pure() {
		if !built[name] {
			t.Errorf("%s is said to be pure, and there is no such room", name)
		}
		seen := map[string]bool{name: true}
		for queue := []string{name}; len(queue) > 0; queue = queue[1:] {
			for _, path := range imports[queue[0]] {
				if impure(path) {
					t.Errorf("%s is said to be pure, and %s imports %s", name, queue[0], path)
				}
				if below, ok := inside(path); ok && !seen[below] {
					seen[below] = true
					queue = append(queue, below)
				}
			}
		}
	}
}

// The table itself flows one way.
func TestRoomsFlowOneWay(t *testing.T) {
	above := map[string]bool{}
	var later []string
	for _, r := range rooms() {
		if above[r.name] {
			t.Errorf("%s has two rows", r.name)
		}
		for _, name := range strings.Fields(r.imports) {
			if !above[name] {
				later = append(later, fmt.Sprintf("%s imports %s", r.name, name))
			}
		}
		above[r.name] = true
	}
	for _, l := range later {
		t.Errorf("%s, which does not stand above it", l)
	}
}

// The instrument and its reference share nothing, tests included: who tests
// the one with the other's code proves nothing.
func TestMockIsApartFromClient(t *testing.T) {
	for _, f := range files(t) {
		if !strings.HasPrefix(f.dir(), "internal/sim") {
			continue
		}
		for _, path := range f.imports {
			switch name, _ := inside(path); name {
			case "client", "loadgen", "target", "session":
				t.Errorf("%s imports %s", f.path, name)
			}
		}
	}
}

// Property tests draw the same cases each time: a package that uses rapid imports rapidtest.
func TestPropertyTestsDrawTheSameCases(t *testing.T) {
	const rapid, fixed = "pgregory.net/rapid", module + "/internal/rapidtest"
	has := map[string][]string{} // of a directory, what its tests import
	for _, f := range files(t) {
		if strings.HasSuffix(f.path, "_test.go") {
			has[f.dir()] = append(has[f.dir()], f.imports...)
		}
	}
	for dir, imports := range has {
		if slices.Contains(imports, rapid) && !slices.Contains(imports, fixed) {
			t.Errorf("tests of %s use rapid, and none imports _ %q", dir, fixed)
		}
	}
	if seed := flag.Lookup("rapid.seed"); seed == nil || os.Getenv("RAPID_SEED") == "" && seed.DefValue == "0" {
		t.Error("rapidtest sets no seed")
	}
}

// What the program is megabytes smaller without is not imported.
func TestLeftOut(t *testing.T) {
	left := map[string]string{
		"text/template":                    "it calls methods by name: every exported method of every type is kept, 3.4 MB",
		"html/template":                    "as text/template, which it imports",
		"github.com/parquet-go/parquet-go": "protobuf, geometry and all compressors come with its root, and reflection over all of it: 5.3 MB; its other packages are small",
	}
	for _, f := range files(t) {
		for _, path := range f.imports {
			if why := left[path]; why != "" && !f.test && strings.HasPrefix(f.dir(), "internal/") {
				t.Errorf("%s imports %s: %s", f.path, path, why)
			}
		}
	}
}

// Only pitot-fleet embeds the NATS server, which is 11 MB of a program.
func TestServerIsEmbedded(t *testing.T) {
	imports := map[string][]string{}
	for _, f := range files(t) {
		if name, _ := inside(module + "/" + f.dir()); !f.test {
			imports[name] = append(imports[name], f.imports...)
		}
	}
	for program, want := range map[string]bool{"cmd/pitot": false, "cmd/pitot-fleet": true} {
		got, seen := false, map[string]bool{program: true}
		for queue := []string{program}; len(queue) > 0; queue = queue[1:] {
			for _, path := range imports[queue[0]] {
				got = got || strings.HasPrefix(path, "github.com/nats-io/nats-server/")
				if name, ok := inside(path); ok && !seen[name] {
					seen[name] = true
					queue = append(queue, name)
				}
			}
		}
		if got != want {
			t.Errorf("%s embeds the NATS server: %v, and it should be %v", program, got, want)
		}
	}
}

// go.mod names the modules of the table, and each is used where it says.
func TestDependencies(t *testing.T) {
	byPath := map[string]dependency{}
	for _, d := range dependencies() {
		byPath[d.path] = d
		if d.why == "" {
			t.Errorf("%s: no reason", d.path)
		}
	}
	direct := direct(t)
	for path := range direct {
		if _, ok := byPath[path]; !ok {
			t.Errorf("go.mod requires %s, which is not in the table", path)
		}
	}
	for path := range byPath {
		if !direct[path] {
			t.Errorf("%s is in the table, and go.mod does not require it", path)
		}
	}
	uses := map[string][]string{} // module: rooms that import it
	for _, f := range files(t) {
		for _, path := range f.imports {
			if !outside(path) {
				continue
			}
			d, ok := owner(byPath, path)
			if !ok {
				t.Errorf("%s imports %s, which is of no module in the table", f.path, path)
				continue
			}
			name, ok := inside(module + "/" + f.dir())
			if f.test || !strings.HasPrefix(f.dir(), "internal") && d.in != "" {
				continue
			}
			if !ok || !slices.Contains(strings.Fields(d.in), name) {
				t.Errorf("%s imports %s, which is for %s", f.path, path, cmp.Or(d.in, "tests alone"))
			}
			uses[d.path] = append(uses[d.path], name)
		}
	}
	for _, d := range dependencies() {
		for _, name := range strings.Fields(d.in) {
			if !slices.Contains(uses[d.path], name) {
				t.Errorf("%s is said to be for %s, which does not import it", d.path, name)
			}
		}
	}
}

func owner(byPath map[string]dependency, path string) (dependency, bool) {
	for p := path; p != "."; p = filepath.ToSlash(filepath.Dir(p)) {
		if d, ok := byPath[p]; ok {
			return d, true
		}
	}
	return dependency{}, false
}

// direct gives the modules that go.mod requires directly.
func direct(t *testing.T) map[string]bool {
	t.Helper()
	data, err := os.ReadFile("../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]bool{}
	block := false
	for line := range strings.Lines(string(data)) {
		line = strings.TrimSpace(line)
		switch {
		case line == "require (":
			block = true
			continue
		case line == ")":
			block = false
		}
		rest, single := strings.CutPrefix(line, "require ")
		if !block && !single || strings.HasSuffix(line, "// indirect") {
			continue
		}
		if path, _, ok := strings.Cut(rest, " "); ok {
			out[path] = true
		}
	}
	if len(out) == 0 {
		t.Fatal("go.mod requires nothing")
	}
	return out
}
