package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"pitot/internal/results/metric"
	"pitot/internal/results/record"
	"pitot/internal/results/result"
	"pitot/internal/results/rundir"
)

// measureSim runs pitot in process and gives its result.
func measureSim(t *testing.T, dir string, args ...string) *result.Run {
	t.Helper()
	var stdout, stderr bytes.Buffer
	Run(context.Background(), append(args, "--seed", "1", "--quiet", "--out", dir), strings.NewReader(""), &stdout, &stderr)
	data, err := os.ReadFile(filepath.Join(dir, "run.json"))
	if err != nil {
		t.Fatalf("%v: %s", err, stderr.String())
	}
	var run result.Run
	if err := json.Unmarshal(data, &run); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(stderr.String(), rundir.Page) {
		t.Error(stderr.String())
	}
	return &run
}

// readPage reads a run's page and the data in it.
func readPage(t *testing.T, dir string) (text string, charts map[string]pageChart) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(dir, rundir.Page))
	if err != nil {
		t.Fatal(err)
	}
	_, block, ok := bytes.Cut(data, []byte(`<script type="application/json" id="data">`))
	if block, _, _ = bytes.Cut(block, []byte("</script>")); !ok {
		t.Fatal("the page has no data")
	}
	if err := json.Unmarshal(block, &charts); err != nil {
		t.Fatal(err)
	}
	return string(data), charts
}

type pageChart struct {
	Series []struct {
		Name string
		X    []*float64 `json:"px"`
		Y    []*float64 `json:"py"`
	}
}

// What the page draws is what the records say, counted here once more and by
// other means, to the last digit.
func TestPageFromParquet(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "run")
	run := measureSim(t, dir, "run", "sim:llama-3.1-8b@h100", "--rate", "18", "--duration", "90s", "--slo", "p99 ttft<200ms", "--input", "lognormal(900,300)", "--output", "uniform(2,150)")
	_, charts := readPage(t, dir)
	p := run.Points[0]
	t0 := int64(math.Round(p.Seconds.Warmup * 1e9))
	t1 := t0 + int64(math.Round(p.Seconds.Window*1e9))
	values := map[string][]float64{}
	last := map[int64]int64{}
	gaps := map[int64][]float64{}
	for f, err := range record.Frames(dir) {
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range f.Chunks {
			if before, ok := last[c.Request]; ok && c.T != before {
				gaps[c.Request] = append(gaps[c.Request], float64(c.T-before))
			}
			last[c.Request] = c.T
		}
		for _, r := range f.Rows {
			if r.Due < t0 || r.Due >= t1 {
				continue
			}
			values["ttft"] = append(values["ttft"], float64(r.FirstToken-r.Due))
			values["e2e"] = append(values["e2e"], float64(r.LastToken-r.Due))
			if r.CompletionTokens > 1 {
				values["tpot"] = append(values["tpot"], float64(r.LastToken-r.FirstToken)/float64(r.CompletionTokens-1))
			}
			values["icl"] = append(values["icl"], gaps[r.ID]...)
		}
	}
	for id, s := range map[string]*result.Summary{"ttft": p.Metrics.SummaryOf(metric.TTFT), "tpot": p.Metrics.SummaryOf(metric.TPOT), "e2e": p.Metrics.SummaryOf(metric.E2E), "icl": p.Metrics.SummaryOf(metric.ICL)} {
		v := values[id]
		slices.Sort(v)
		if s == nil || int64(len(v)) != s.N {
			t.Fatalf("%s: %d values, run.json has %+v", id, len(v), s)
		}
		for share, reported := range map[float64]*float64{.5: s.P50, .9: s.P90, .95: s.P95, .99: s.P99} {
			x := v[int(math.Ceil(float64(len(v))*share))-1] / 1e6
			if reported == nil || *reported != x {
				t.Errorf("%s at %v: the records say %v, run.json %v", id, share, x, reported)
			}
		}
		drawn := charts["p1-"+id].Series
		if len(drawn) == 0 {
			t.Fatalf("%s is not drawn", id)
		}
		for i, x := range drawn[0].X {
			atMost, _ := slices.BinarySearchFunc(v, *x, func(ns, ms float64) int {
				if ns/1e6 <= ms {
					return -1
				}
				return 1
			})
			if got := float64(atMost) / float64(len(v)); got != *drawn[0].Y[i] && !(i+1 < len(drawn[0].X) && *drawn[0].X[i+1] == *x) {
				t.Errorf("%s: share at most %v ms is %v, drawn %v", id, *x, got, *drawn[0].Y[i])
			}
		}
		if id != "icl" && !slices.ContainsFunc(drawn[0].X, func(x *float64) bool { return *x == *s.P99 }) {
			t.Errorf("%s: p99 is not on the curve", id)
		}
	}
}

// A sweep of twenty points is at most a megabyte.
func TestPageSize(t *testing.T) {
	if testing.Short() {
		t.Skip("slow under the race detector, and has one goroutine")
	}
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "run")
	run := measureSim(t, dir, "sweep", "sim:llama-3.1-8b@h100", "--points", "20", "--requests", "400", "--output", "32", "--slo", "p99 ttft<200ms, p99 tpot<20ms")
	page, charts := readPage(t, dir)
	if len(run.Points) < 15 || len(page) > 1_000_000 || len(charts) < 100 {
		t.Errorf("%d points, %d charts in %d bytes", len(run.Points), len(charts), len(page))
	}
}

// A run whose files are damaged or gone has a page of what is left.
func TestPageOfDamagedRun(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	measureSim(t, dir, "run", "sim:fixed", "--rate", "20", "--duration", "5s")
	whole, err := os.ReadFile(filepath.Join(dir, "chunks.parquet"))
	if err != nil {
		t.Fatal(err)
	}
	again := func() string {
		t.Helper()
		var stdout, stderr bytes.Buffer
		Run(context.Background(), []string{"report", dir}, strings.NewReader(""), &stdout, &stderr)
		text, _ := readPage(t, dir)
		return text
	}
	for name, damage := range map[string][]byte{"cut": whole[:len(whole)/2], "empty": {}, "noise": bytes.Repeat([]byte("PAR1"), 99)} {
		if err := os.WriteFile(filepath.Join(dir, "chunks.parquet"), damage, 0o644); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(again(), "The records are damaged") {
			t.Errorf("%s: the page does not say that the records are damaged", name)
		}
	}
	if err := os.Remove(filepath.Join(dir, "requests.parquet")); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(again(), "The records are not all in the run directory") {
		t.Error("the page does not say that the records are gone")
	}
	// A page that cannot be written is a note, and the run is shown.
	if err := os.Remove(filepath.Join(dir, rundir.Page)); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(dir, rundir.Page), 0o755); err != nil {
		t.Fatal(err)
	}
	var stdout, stderr bytes.Buffer
	Run(context.Background(), []string{"report", dir}, strings.NewReader(""), &stdout, &stderr)
	if !strings.Contains(stderr.String(), "note: no report.html") || !strings.Contains(stdout.String(), "req/s") {
		t.Errorf("%s%s", stdout.String(), stderr.String())
	}
}

// compareSim compares sides that are measured in virtual time, and writes the
// page. Settings of a side follow its name.
func compareSim(t *testing.T, dir string, sides map[string]string, measure ...string) {
	t.Helper()
	command := []string{"compare", "--html", filepath.Join(dir, rundir.Page)}
	for _, name := range slices.Sorted(maps.Keys(sides)) {
		for launch := range 3 {
			args := append([]string{measure[0], "sim:llama-3.1-8b@h100" + sides[name]}, measure[1:]...)
			args = append(args, "--launch", strconv.Itoa(launch), "--seed", strconv.Itoa(10*len(name)+launch), "--quiet", "--out", filepath.Join(dir, name, strconv.Itoa(launch)))
			var stderr bytes.Buffer
			if code := Run(context.Background(), args, strings.NewReader(""), io.Discard, &stderr); code != Done && code != Invalid && code != SLOMissed {
				t.Fatalf("%s: exit code %d: %s", strings.Join(args, " "), code, stderr.String())
			}
		}
		command = append(command, filepath.Join(dir, name))
	}
	var stdout, stderr bytes.Buffer
	if code := Run(context.Background(), command, strings.NewReader(""), &stdout, &stderr); code != Done {
		t.Fatalf("exit code %d: %s", code, stderr.String())
	}
}

// In a browser every chart is drawn, nothing is asked of the network and the
// console is quiet: on a screen and on a phone, light and dark. Where AXE_CORE
// names axe.min.js, of the npm package axe-core, it finds nothing serious, and
// there has to be a browser.
func TestPageInBrowser(t *testing.T) {
	t.Parallel()
	browser := ""
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome", "google-chrome-stable"} {
		if path, err := exec.LookPath(name); err == nil && browser == "" {
			browser = path
		}
	}
	if browser == "" && os.Getenv("AXE_CORE") != "" {
		t.Fatal("no Chromium")
	}
	if browser == "" || testing.Short() {
		t.Skip("no Chromium, or -short")
	}
	root := t.TempDir()
	measureSim(t, filepath.Join(root, "one"), "run", "sim:llama-3.1-8b@h100", "--rate", "18", "--duration", "20s", "--slo", "p99 ttft<200ms, p99 tpot<20ms", "--output", "uniform(2,150)")
	measureSim(t, filepath.Join(root, "sweep"), "sweep", "sim:llama-3.1-8b@h100", "--points", "8", "--requests", "60", "--output", "16", "--slo", "p99 ttft<200ms")
	measureSim(t, filepath.Join(root, "none"), "run", "mock:fixed?faults=500:100%", "--rate", "20", "--duration", "1s", "--warmup", "0s", "--no-probe")
	compareSim(t, filepath.Join(root, "compared"), map[string]string{"before": "", "after": "?max_num_seqs=8"}, "sweep", "--loads", "4,12,24", "--requests", "60", "--output", "16", "--slo", "p99 ttft<200ms")
	compareSim(t, filepath.Join(root, "launches"), map[string]string{"a": "", "b": "?max_num_seqs=64", "a-third-side": "?max_num_batched_tokens=1024"}, "run", "--rate", "10", "--duration", "10s", "--output", "32")
	for _, one := range []struct {
		theme  string
		frames []frame
	}{
		{"light", []frame{{"one", wide}, {"sweep", wide}, {"none", phone}}},
		{"dark", []frame{{"one", phone}, {"compared", phone}, {"launches", wide}}},
	} {
		t.Run(one.theme, func(t *testing.T) {
			t.Parallel()
			path := func(f frame) string { return filepath.Join(root, f.page, rundir.Page) }
			dom, console := browsed(t, browser, framed(t, path, one.frames), one.theme)
			if console != "" {
				t.Error(console)
			}
			for i, f := range one.frames {
				_, tag, ok := strings.Cut(dom, fmt.Sprintf(`<iframe id="f%d"`, i))
				if tag, _, _ = strings.Cut(tag, ">"); !ok {
					t.Fatalf("no frame %d: %s", i, dom)
				}
				attribute := func(name string) string {
					_, rest, _ := strings.Cut(tag, "data-"+name+`="`)
					value, _, _ := strings.Cut(rest, `"`)
					return value
				}
				points := f.page == "sweep" // behind disclosures
				if drawn, charts := attribute("drawn"), attribute("charts"); drawn == "0" || drawn == "" || drawn != charts && !points {
					t.Errorf("%v: %s of %s charts are drawn", f, drawn, charts)
				}
				for name, want := range map[string]string{"failed": "0", "requests": "0", "wider": "false", "width": strconv.Itoa(f.screen.width)} {
					if got := attribute(name); got != want {
						t.Errorf("%v: %s is %q, want %q", f, name, got, want)
					}
				}
				if axe := os.Getenv("AXE_CORE"); axe != "" {
					accessible(t, browser, axe, path(f), f.screen, one.theme)
				}
			}
		})
	}
}

// display is the size of a screen in pixels.
type display struct{ width, height int }

var wide, phone = display{1440, 900}, display{360, 800}

// frame is a page on a screen.
type frame struct {
	page   string
	screen display
}

// framed writes a page that shows others, each in a frame, so that one browser is started for
// all; a window is never as narrow as a phone. Each frame has what its page says of itself.
func framed(t *testing.T, path func(frame) string, frames []frame) string {
	t.Helper()
	var text strings.Builder
	text.WriteString(`<!doctype html><html><link rel="icon" href="data:,">`)
	for i, f := range frames {
		fmt.Fprintf(&text, `<iframe id="f%d" style="position:fixed;top:0;left:0;width:%dpx;height:%dpx;border:0" src="file://%s"></iframe>`, i, f.screen.width, f.screen.height, path(f))
	}
	text.WriteString(`<script>
for (const f of document.querySelectorAll('iframe')) {
  const copy = () => Object.assign(f.dataset, f.contentDocument.documentElement.dataset);
  f.onload = () => { copy(); setInterval(copy, 100); };
}
</script></html>`)
	all := filepath.Join(t.TempDir(), "framed.html")
	if err := os.WriteFile(all, []byte(text.String()), 0o644); err != nil {
		t.Fatal(err)
	}
	return all
}

// browsed gives a page as a browser has it, and the first thing on the console.
func browsed(t *testing.T, browser, path, theme string, args ...string) (dom, console string) {
	t.Helper()
	if theme == "dark" {
		args = append(args, "--blink-settings=preferredColorScheme=0")
	}
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute) // of one that hangs
	defer cancel()
	var out, stderr bytes.Buffer
	cmd := exec.CommandContext(ctx, browser, append([]string{"--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--user-data-dir=" + t.TempDir(),
		"--window-size=1440,900", "--allow-file-access-from-files", "--enable-logging=stderr", "--v=0", "--dump-dom", "file://" + path}, args...)...)
	cmd.Stdout, cmd.Stderr = &out, &stderr
	if err := cmd.Run(); err != nil || !strings.Contains(out.String(), "<html") {
		if os.Getenv("AXE_CORE") != "" {
			t.Fatalf("the browser does not start: %v\n%s", err, stderr.String())
		}
		t.Skipf("the browser does not start here: %v\n%s", err, stderr.String())
	}
	return out.String(), regexp.MustCompile(`CONSOLE.*`).FindString(stderr.String())
}

// accessible lets axe-core judge a page, without the policy that would keep it
// out. What it finds is moderate at most.
func accessible(t *testing.T, browser, axe, path string, on display, theme string) {
	t.Helper()
	script, err := os.ReadFile(axe)
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	text := regexp.MustCompile(`<meta http-equiv="Content-Security-Policy"[^>]*>`).ReplaceAllString(string(page), "")
	text = strings.Replace(text, "</body>", "<script>"+string(script)+`</script><script>
for (const d of document.querySelectorAll('details')) d.open = true;
setTimeout(async () => {
  const found = (await axe.run()).violations.filter(v => v.impact === 'serious' || v.impact === 'critical');
  document.documentElement.dataset.axe = 'judged ' + found.map(v => v.id + ': ' + v.nodes[0].target).join('; ');
}, 500);
</script></body>`, 1)
	judged := filepath.Join(t.TempDir(), "judged.html")
	if err := os.WriteFile(judged, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	whole := framed(t, func(frame) string { return judged }, []frame{{"judged", on}})
	dom, _ := browsed(t, browser, whole, theme, "--virtual-time-budget=60000")
	m := regexp.MustCompile(`data-axe="judged ([^"]*)"`).FindStringSubmatch(dom)
	if m == nil || m[1] != "" {
		t.Errorf("axe-core: %q", m)
	}
}
