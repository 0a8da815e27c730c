package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"pitot/internal/config"
	"pitot/internal/results/record"
	"pitot/internal/results/result"
	"pitot/internal/results/rundir"
	"pitot/internal/sim/serve"
	"pitot/internal/target"
)

// counted is what requests come to.
type counted struct{ requests, prompt, output int64 }

// A server sees the load and the probes, to the last request: by its log of the
// truth, by its own metrics, in the records and in the result.
func TestServerCountsWhatWasSent(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		args []string
	}{
		{"run", []string{"run", "URL", "--rate", "40", "--duration", "1s", "--warmup", "500ms", "--input", "64", "--output", "8"}},
		{"closed", []string{"run", "URL", "--concurrency", "4", "--requests", "40", "--warmup", "200ms", "--input", "64", "--output", "8"}},
		{"sweep", []string{"sweep", "URL", "--loads", "20,40", "--duration", "500ms", "--warmup", "200ms", "--input", "64", "--output", "8"}},
		{"no probes", []string{"run", "URL", "--no-probe", "--model", "fixed", "--concurrency", "2", "--requests", "20", "--exactly", "--warmup", "0s", "--output", "4"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel() // each waits, and little else
			dir := t.TempDir()
			truth := filepath.Join(dir, "truth.jsonl")
			var out bytes.Buffer
			srv, url := serveFixed(t, "?truth="+truth)
			at := filepath.Join(dir, "run")
			args := append(c.args, "--out", at, "--quiet", "--format", "json")
			for i := range args {
				args[i] = strings.Replace(args[i], "URL", url, 1)
			}
			if code := Run(t.Context(), args, strings.NewReader(""), &out, io.Discard); code == Bug || code == Usage || code == TargetFailed {
				t.Fatalf("exit code %d", code)
			}
			seen := fromMetrics(t, url)
			if err := srv.Shutdown(t.Context()); err != nil {
				t.Fatal(err)
			}
			logged := fromTruth(t, truth)
			var run result.Run
			if err := json.Unmarshal(out.Bytes(), &run); err != nil {
				t.Fatal(err)
			}
			for i := range run.Points { // and its own check agrees
				if c.name == "no probes" {
					break // nothing is asked for then
				}
				if served := servedCheck(t, &run.Points[i]); served.Status != result.Pass {
					t.Errorf("%+v", served)
				}
			}
			sent := run.Sent.Load
			probes := counted{}
			if x := run.Sent.Probes; x != nil {
				probes = counted{x.Requests, x.PromptTokens, x.OutputTokens}
				sent.Requests += x.Requests
				sent.PromptTokens += x.PromptTokens
				sent.OutputTokens += x.OutputTokens
			}
			if logged.requests != sent.Requests {
				t.Errorf("the server's log has %d requests, Pitot sent %d, %d of them probes", logged.requests, sent.Requests, probes.requests)
			}
			if all := run.Sent.Load.OK + probes.requests; seen.requests < all || seen.requests > sent.Requests {
				t.Errorf("the server's metrics have %d requests, Pitot has %d answers of %d", seen.requests, all, sent.Requests)
			}
			if run.Sent.Load.Requests == run.Sent.Load.OK && (seen.prompt != sent.PromptTokens || seen.output != sent.OutputTokens) {
				t.Errorf("the server counts %+v, Pitot %+v", seen, sent)
			}

			// The records say the same; no point and no table has the probes.
			rows, apart := int64(0), counted{}
			for f, err := range record.Frames(at) {
				if err != nil {
					t.Fatal(err)
				}
				for i := range f.Rows {
					if r := &f.Rows[i]; r.Sent >= 0 {
						rows++
						if f.Point == record.Probing {
							apart.requests++
							apart.prompt += int64(r.PromptTokens)
							apart.output += int64(r.CompletionTokens)
							if r.Class != record.ProbeClass || r.Due >= 0 || r.ID != apart.requests-1 || r.Done < r.Sent {
								t.Errorf("%+v", r)
							}
						}
					}
				}
			}
			if rows != sent.Requests || apart != probes {
				t.Errorf("%d rows, %+v of probes; sent %d, %+v of probes", rows, apart, sent.Requests, probes)
			}
			if c.name == "no probes" {
				if probes.requests > 0 || run.Sent.Probes != nil {
					t.Errorf("%+v", run.Sent)
				}
				return
			}
			if probes.requests != 7 || probes.output != 5+2*8 {
				t.Errorf("%+v", probes)
			}
			table := filepath.Join(dir, "table.csv")
			if code, _, stderr := pitot(t, "report", at, "--export", "csv-requests="+table); code == Bug || code == Usage {
				t.Fatalf("%d: %s", code, stderr)
			}
			data, err := os.ReadFile(table)
			if err != nil || strings.Contains(string(data), record.ProbeClass) {
				t.Errorf("%v, or the table has probes", err)
			}
		})
	}
}

// serveFixed serves fixed latencies over HTTP, at a URL.
func serveFixed(t *testing.T, settings string) (srv *serve.Server, url string) {
	t.Helper()
	var usual config.Embedded
	config.Reset(&usual)
	srv, _, _, err := target.NewMock(&config.Serving{}, &usual, "fixed"+settings)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go srv.Serve(l)
	return srv, "http://" + l.Addr().String()
}

// Somebody else who asks the server during a load is seen in its count, and named.
func TestOtherTrafficIsSeen(t *testing.T) {
	t.Parallel()
	srv, url := serveFixed(t, "")
	ctx, stop := context.WithCancel(t.Context())
	var others sync.WaitGroup
	others.Go(func() {
		for ctx.Err() == nil {
			a, err := http.Post(url+"/v1/completions", "application/json", strings.NewReader(`{"model":"fixed","prompt":"Who else?","max_tokens":1}`))
			if err == nil {
				io.Copy(io.Discard, a.Body)
				a.Body.Close()
			}
		}
	})
	dir := filepath.Join(t.TempDir(), "run")
	code, out, said := pitot(t, "run", url, "--concurrency", "2", "--requests", "40", "--warmup", "0s", "--input", "64", "--output", "8", "--quiet", "--full", "--out", dir)
	stop()
	others.Wait()
	if err := srv.Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
	run, err := rundir.ReadResult(dir)
	if err != nil {
		t.Fatalf("%d, %v: %s", code, err, said)
	}
	c := servedCheck(t, &run.Points[0])
	if c.Status != result.Flag || c.Case != result.CaseForeign || run.Points[0].Verdict == result.Valid || c.Detail["counted"] <= c.Detail["sent"] || !strings.Contains(out, "other traffic on the server: it counted ") {
		t.Errorf("%+v\n%s", c, out)
	}
}

// servedCheck is that of the server's count of requests.
func servedCheck(t *testing.T, p *result.Point) result.Check {
	t.Helper()
	for _, c := range p.Checks {
		if c.Name == result.CheckServed {
			return c
		}
	}
	t.Fatal("the server's count is not checked")
	return result.Check{}
}

func fromTruth(t *testing.T, path string) (c counted) {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for x, err := range serve.ReadTruth(f) {
		if err != nil {
			t.Fatal(err)
		}
		c.requests++
		c.prompt += int64(x.PromptTokens)
		c.output += int64(x.OutputTokens)
	}
	return c
}

// fromMetrics asks the server what it counted of requests that ended.
func fromMetrics(t *testing.T, url string) (c counted) {
	t.Helper()
	a, err := http.Get(url + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer a.Body.Close()
	page, err := io.ReadAll(a.Body)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(page)) {
		for name, to := range map[string]*int64{"vllm:request_success_total{": &c.requests, "vllm:prompt_tokens_total{": &c.prompt, "vllm:generation_tokens_total{": &c.output} {
			if strings.HasPrefix(line, name) {
				x, err := strconv.ParseFloat(strings.TrimSpace(line[strings.LastIndexByte(line, ' '):]), 64)
				if err != nil {
					t.Fatal(err)
				}
				*to += int64(x)
			}
		}
	}
	return c
}

// A sweep that goes on keeps the probes it had, and adds those of the second start.
func TestProbesOfAResumedSweep(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "run")
	args := []string{"sweep", "mock:fixed", "--loads", "20,40", "--duration", "300ms", "--warmup", "100ms", "--input", "32", "--output", "4", "--out", dir, "--quiet"}
	if code, _, stderr := pitot(t, args...); code == Bug || code == Usage {
		t.Fatalf("%d: %s", code, stderr)
	}
	if code, _, stderr := pitot(t, append(args, "--resume")...); code == Bug || code == Usage {
		t.Fatalf("%d: %s", code, stderr)
	}
	run, err := rundir.ReadResult(dir)
	if err != nil {
		t.Fatal(err)
	}
	ids := map[string]bool{}
	n := 0
	for f, err := range record.Frames(dir) {
		if err != nil {
			t.Fatal(err)
		}
		for i := range f.Rows {
			if f.Point == record.Probing {
				n++
				ids[fmt.Sprint(f.Rows[i].ID)] = true
			}
		}
	}
	if p := run.Sent.Probes; p == nil || p.Requests != int64(n) || len(ids) != n || n <= 7 || len(run.Points) != 2 {
		t.Errorf("%+v, %d rows, %d ids, %d points", p, n, len(ids), len(run.Points))
	}
}
