package serve

import (
	"compress/gzip"
	"errors"
	"io"
	"math"
	"reflect"
	"strings"
	"syscall"
	"testing"
	"time"

	"pitot/internal/say"
	"pitot/internal/sim"
)

const fourTokens = `{"prompt":"x","max_tokens":4,"stream":true,"stream_options":{"include_usage":true}}`

// faulty runs one request of four tokens against a server on which everyone
// has the fault.
func faulty(t *testing.T, fault, request string) (raw string, tr Truth, err error) {
	t.Helper()
	fs, err := ParseFaults(fault)
	if err != nil {
		t.Fatal(err)
	}
	r := start(t, fast, Config{Faults: fs})
	raw, err = r.raw(request)
	all := r.stop()
	if len(all) != 1 {
		t.Fatalf("%d truths", len(all))
	}
	if name, _, _ := strings.Cut(fault, ":"); all[0].Fault != name {
		t.Errorf("truth says fault %q, want %q", all[0].Fault, name)
	}
	return raw, all[0], err
}

func TestFaultsBeforeTheAnswer(t *testing.T) {
	for _, c := range []struct{ fault, status, header, body string }{
		{"429:100%", "429 Too Many Requests", "retry-after: 1", `"type":"RateLimitError","param":null,"code":429}}`},
		{"500:100%", "500 Internal Server Error", "application/json", `"type":"InternalServerError","param":null,"code":500}}`},
		{"503:100%", "503 Service Unavailable", "retry-after: 1", `"type":"ServiceUnavailableError","param":null,"code":503}}`},
		{"html:100%", "502 Bad Gateway", "content-type: text/html", "</html>"},
	} {
		raw, tr, err := faulty(t, c.fault, closing(post("/v1/completions", fourTokens)))
		head, body := cutHead(t, raw)
		if err != nil || !strings.HasPrefix(head, "HTTP/1.1 "+c.status) || !strings.Contains(head, c.header) || !strings.Contains(body, c.body) {
			t.Errorf("%s: %v\n%s", c.fault, err, raw)
		}
		if tr.OutputTokens != 0 || tr.Status < 400 {
			t.Errorf("%s: truth %+v", c.fault, tr)
		}
	}
}

// What is left of a stream of four tokens, usage and end mark.
func TestFaultsOfStreams(t *testing.T) {
	const (
		token  = `"text":" `
		usage  = `"completion_tokens":4},"system_fingerprint"`
		finish = `"finish_reason":"length"`
		done   = "data: [DONE]\n\n"
	)
	for _, c := range []struct {
		fault  string
		chunks int // of HTTP
		whole  bool
		counts map[string]int
		emits  int // in the truth log
	}{
		{"cut:100%", 2, false, map[string]int{token: 2, finish: 0, usage: 0, done: 0}, 2},
		{"malformed:100%", 7, true, map[string]int{token: 4, `"delta":{"con` + "\n\n": 1, usage: 1, done: 1}, 4},
		{"error:100%", 4, true, map[string]int{token: 2, `data: {"error":{"message":`: 1, `"code":500}}`: 1, usage: 0, done: 1}, 2},
		{"no-done:100%", 5, true, map[string]int{token: 4, usage: 1, done: 0}, 4},
		{"no-usage:100%", 5, true, map[string]int{token: 4, usage: 0, done: 1}, 4},
		{"finish-close:100%", 4, false, map[string]int{token: 4, finish: 1, usage: 0, done: 0}, 4},
		{"crlf:100%", 6, true, map[string]int{token: 4, usage: 1, "data: [DONE]\r\n\r\n": 1, "\n\n": 0}, 4},
		{"ping:100%", 7, true, map[string]int{token: 4, ": ping\n\n": 7, done: 1}, 4},
		{"coalesce:100%:3", 2, true, map[string]int{token: 4, usage: 1, done: 1}, 4},
		{"coalesce:100%:4", 2, true, map[string]int{token: 4, usage: 1, done: 1}, 4},
		{"split:100%", 12, true, map[string]int{token: 4, usage: 1, done: 1}, 4},
		{"slow:100%:30ms", 6, true, map[string]int{token: 4, usage: 1, done: 1}, 4},
		{"stall:100%:30ms", 6, true, map[string]int{token: 4, usage: 1, done: 1}, 4},
	} {
		t.Run(c.fault, func(t *testing.T) {
			raw, tr, err := faulty(t, c.fault, closing(post("/v1/completions", fourTokens)))
			if err != nil {
				t.Fatal(err)
			}
			_, body := cutHead(t, raw)
			got, whole := chunks(t, body)
			if len(got) != c.chunks || whole != c.whole {
				t.Errorf("%d chunks, whole %v; want %d, %v", len(got), whole, c.chunks, c.whole)
			}
			all := strings.Join(got, "")
			for text, n := range c.counts {
				if k := strings.Count(all, text); k != n {
					t.Errorf("%q is there %d times, want %d:\n%s", text, k, n, all)
				}
			}
			if len(tr.EmitNS) != c.emits || tr.OutputTokens != c.emits || tr.Aborted {
				t.Errorf("truth %+v", tr)
			}
			const wait = int64(30 * time.Millisecond)
			switch {
			case tr.Fault == "slow" && tr.EmitNS[0]-tr.ArrivalNS < wait:
				t.Error("the first token was not slow")
			case tr.Fault == "stall" && tr.EmitNS[2]-tr.EmitNS[1] < wait:
				t.Error("there was no stall")
			case c.fault == "coalesce:100%:4" && tr.EmitNS[0] != tr.EmitNS[3]:
				t.Error("one write has two times")
			}
		})
	}
}

func TestFaultReset(t *testing.T) {
	raw, tr, err := faulty(t, "reset:100%", closing(post("/v1/completions", fourTokens)))
	if !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("the connection ended with %v after %q", err, raw)
	}
	if len(tr.EmitNS) != 2 || tr.Aborted {
		t.Errorf("truth %+v", tr)
	}
}

func TestFaultHang(t *testing.T) {
	fs, _ := ParseFaults("hang:1")
	r := start(t, fast, Config{Faults: fs})
	c := r.dial()
	_, _ = io.WriteString(c, post("/v1/completions", fourTokens))
	waitFor(t, "the request", func() bool { return r.Stats().Active == 1 })
	_ = c.SetReadDeadline(time.Now().Add(30 * time.Millisecond))
	got, err := io.ReadAll(c)
	var timeout interface{ Timeout() bool }
	if !errors.As(err, &timeout) || !timeout.Timeout() || !strings.HasSuffix(string(got), "\r\n\r\n") || strings.Contains(string(got), "data:") {
		t.Errorf("%v: %q", err, got)
	}
	c.Close()
	waitFor(t, "the abort", func() bool { return r.Stats().Aborted == 1 })
	if tr := r.stop(); len(tr) != 1 || !tr[0].Aborted || len(tr[0].EmitNS) != 0 {
		t.Errorf("truth %+v", tr)
	}
}

func TestFaultGzip(t *testing.T) {
	for _, body := range []string{fourTokens, `{"prompt":"x","max_tokens":4}`} {
		fs, _ := ParseFaults("gzip:100%")
		r := start(t, fast, Config{Faults: fs})
		resp, got := r.do(post("/v1/completions", body))
		if resp.Header.Get("Content-Encoding") != "gzip" {
			t.Error("no content-encoding")
		}
		zr, err := gzip.NewReader(strings.NewReader(got))
		if err != nil {
			t.Fatal(err)
		}
		plain, err := io.ReadAll(zr)
		if err != nil || !strings.Contains(string(plain), `"completion_tokens":4`) {
			t.Errorf("%v: %s", err, plain)
		}
	}
}

func TestFaultHTTP10(t *testing.T) {
	raw, _, err := faulty(t, "http10:100%", post("/v1/completions", fourTokens))
	head, body := cutHead(t, raw)
	if err != nil || !strings.HasPrefix(head, "HTTP/1.0 200 OK\r\n") || strings.Contains(head, "chunked") || strings.Contains(head, "length") {
		t.Errorf("%v: %s", err, head)
	}
	if !strings.HasPrefix(body, "data: {") || !strings.HasSuffix(body, "data: [DONE]\n\n") || strings.Count(body, "\n\n") != 6 {
		t.Errorf("body %q", body)
	}
	raw, _, err = faulty(t, "http10:100%", post("/v1/completions", `{"prompt":"x","max_tokens":1}`))
	if _, body := cutHead(t, raw); err != nil || !strings.HasSuffix(body, `"metrics":null}`) {
		t.Errorf("%v: %s", err, raw)
	}
}

// Faults of answers that are not streamed.
func TestFaultsOfWholeAnswers(t *testing.T) {
	const ask = `{"prompt":"x","max_tokens":4}`
	if raw, _, err := faulty(t, "cut:100%", post("/v1/completions", ask)); err != nil || raw != "" {
		t.Errorf("cut: %v, %q", err, raw)
	}
	if _, _, err := faulty(t, "reset:100%", post("/v1/completions", ask)); !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("reset: %v", err)
	}
	if raw, tr, _ := faulty(t, "error:100%", closing(post("/v1/completions", ask))); !strings.HasPrefix(raw, "HTTP/1.1 500") || tr.Status != 500 {
		t.Errorf("error: %q", raw)
	}
}

// Each row of the table does what it does without breaking the server for the
// next request, alone and with all the others.
func TestEveryFaultLeavesTheServerAlive(t *testing.T) {
	fs, err := ParseFaults("429:5%,500:5%,503:5%,html:5%,slow:20%:2ms,stall:20%:2ms,cut:10%,reset:10%,malformed:20%,error:10%,no-done:20%,no-usage:20%,finish-close:10%,crlf:30%,ping:30%,coalesce:30%:2,split:30%,gzip:20%,http10:20%,slow-accept:10%:2ms,garble:20%,freeze:every 40ms:5ms")
	if err != nil {
		t.Fatal(err)
	}
	if len(fs)+2 != len(faultTable) { // all but hang and wedge
		t.Errorf("%d faults of %d", len(fs), len(faultTable))
	}
	r := start(t, sim.FixedConfig{}, Config{Faults: fs, Seed: 3})
	names := map[string]bool{}
	for range 150 {
		_, _ = r.raw(closing(post("/v1/chat/completions", `{"messages":[{"role":"user","content":"x"}],"max_tokens":6,"stream":true}`)))
	}
	trs := r.stop()
	if len(trs) != 150 {
		t.Fatalf("%d truths", len(trs))
	}
	for _, tr := range trs {
		for name := range strings.SplitSeq(tr.Fault, "+") {
			names[name] = true
		}
	}
	if len(names) < len(faultTable)-4 { // hang, wedge and what is not drawn for a request are not in the log
		t.Errorf("only %v", names)
	}
}

// A client is told when to come again: after the time that the fault has, or a
// second; of a server's own failures only where it is asked for.
func TestRetryAfter(t *testing.T) {
	for fault, want := range map[string]string{
		"429:100%": "1", "429:100%:5s": "5", "503:100%:1m": "60", "500:100%": "", "500:100%:2s": "2", "html:100%": "", "html:100%:3s": "3",
	} {
		raw, _, _ := faulty(t, fault, closing(post("/v1/completions", fourTokens)))
		head, _ := cutHead(t, raw)
		_, got, _ := strings.Cut(head, "retry-after: ")
		if got, _, _ = strings.Cut(got, "\r\n"); got != want {
			t.Errorf("%s: retry-after %q, want %q", fault, got, want)
		}
	}
}

// Faults that end an answer take their turn from one draw: each has the share
// that was asked for, whatever stands before it.
func TestSharesOfEnds(t *testing.T) {
	fs, err := ParseFaults("429:40%,slow:50%,500:20%,503:2%,html:10%,cut:20%,reset:2%")
	if err != nil {
		t.Fatal(err)
	}
	const n = 20_000
	counts := map[string]float64{}
	for i := range int64(n) {
		got, _ := fs.drawFaults(7, i, 0)
		ends := 0
		for _, f := range got {
			counts[f.Name]++
			if faultRow(f.Name).ends {
				ends++
			}
		}
		if ends > 1 {
			t.Fatalf("%v", got)
		}
	}
	for _, f := range fs {
		if got := counts[f.Name] / n; math.Abs(got-f.Rate) > 0.012 {
			t.Errorf("%s has a share of %.3f, want %.3f", f.Name, got, f.Rate)
		}
	}
}

// The log says what took effect, and apart from it what was drawn.
func TestTruthOfFaults(t *testing.T) {
	const (
		chat  = `{"prompt":"x","max_tokens":4,"stream":true,"stream_options":{"include_usage":true}}`
		bare  = `{"prompt":"x","max_tokens":4,"stream":true}`
		whole = `{"prompt":"x","max_tokens":4}`
	)
	for _, c := range []struct{ faults, body, fault, drawn string }{
		{"stall:1:1ms,503:1,crlf:1", chat, "503", "stall+503+crlf"},
		{"slow:1:1ms,cut:1,no-done:1,no-usage:1", chat, "slow+cut", "slow+cut+no-done+no-usage"},
		{"no-usage:1,no-done:1,gzip:1", chat, "gzip+no-usage+no-done", "no-usage+no-done+gzip"},
		{"no-usage:1", bare, "", "no-usage"},
		{"no-usage:1,malformed:1,split:1,http10:1", whole, "http10", "no-usage+malformed+split+http10"},
		{"finish-close:1,no-done:1,ping:1", chat, "ping+finish-close", "finish-close+no-done+ping"},
		{"stall:1:1ms", chat, "stall", "stall"},
	} {
		fs, err := ParseFaults(c.faults)
		if err != nil {
			t.Fatal(err)
		}
		r := start(t, fast, Config{Faults: fs})
		_, _ = r.raw(closing(post("/v1/completions", c.body)))
		if tr := r.stop(); len(tr) != 1 || tr[0].Fault != c.fault || tr[0].Drawn != c.drawn {
			t.Errorf("%s: %+v", c.faults, tr)
		}
	}
}

// Who gets which fault depends on the seed and the request's number alone, and
// rates are kept.
func TestDraw(t *testing.T) {
	fs := Faults{{Name: "429", Rate: 0.1}, {Name: "stall", Rate: 0.5, For: time.Second}}
	counts := map[string]float64{}
	const n = 20_000
	for i := range int64(n) {
		_, names := fs.drawFaults(1, i, 0)
		if _, again := fs.drawFaults(1, i, 0); again != names {
			t.Fatal("a second draw differs")
		}
		counts[names]++
	}
	for names, want := range map[string]float64{"": 0.45, "429": 0.05, "stall": 0.45, "429+stall": 0.05} {
		if got := counts[names] / n; math.Abs(got-want) > 0.012 {
			t.Errorf("%q has a share of %.3f, want %.3f", names, got, want)
		}
	}
}

func TestParseFaults(t *testing.T) {
	got, err := ParseFaults("429:1%, reset:0.5%,stall:2%:3s,coalesce:0.25,freeze:every 20s:2s")
	want := Faults{
		{Name: "429", Rate: 0.01, For: time.Second}, {Name: "reset", Rate: 0.005}, {Name: "stall", Rate: 0.02, For: 3 * time.Second},
		{Name: "coalesce", Rate: 0.25, K: 4}, {Name: "freeze", Rate: 1, For: 2 * time.Second, Every: 20 * time.Second},
	}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%v, %v", got, err)
	}
	for text, want := range map[string]string{
		"x:1%":                 "no such fault; known: 429, 500",
		"stal:1%":              "did you mean stall?",
		"429":                  "want 429:1%:5s",
		"429:1%:3s:x":          "want 429:1%:5s",
		"503:1%:500ms":         "retry-after counts whole seconds, and 500ms is none",
		"500:1%:0s":            "not positive",
		"cut:1%:3s":            "want cut:1%",
		"429:101%":             "or 0..100%; a share of the requests is written 2% or 0.02",
		"429:NaN":              "or 0..100%; a share",
		"429:-1%":              "or 0..100%; a share",
		"429:2":                "rate 2 is not in 0..1 or 0..100%; write 2% for 2 requests in a hundred, or 0.02",
		"429:x":                "is not a rate; a share",
		"stall:1%:-3s":         "not positive",
		"stall:1%:3":           "missing unit",
		"coalesce:1%:1":        "not in 2..1000",
		"freeze:1%":            "want freeze:every 20s:2s",
		"freeze:every 2s:2s":   "no less than every 2s",
		"429:1%,,reset:0.5%":   "no such fault",
		"freeze:every 0s:0s":   "not positive",
		"freeze:every 2s:1s:x": "want freeze",
	} {
		if _, err := ParseFaults(text); err == nil || !strings.Contains(err.Error()+"; "+say.HintOf(err), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
	if fs, err := ParseFaults(" "); fs != nil || err != nil {
		t.Errorf("nothing: %v, %v", fs, err)
	}
}

// The help has every fault, written as the parser wants it.
func TestFaultUsage(t *testing.T) {
	lines := strings.Split(strings.TrimSpace(FaultUsage()), "\n")
	for i, name := range FaultNames() {
		form := strings.TrimSpace(lines[i][:22])
		if fs, err := ParseFaults(form); err != nil || len(fs) != 1 || fs[0].Name != name {
			t.Errorf("%s is shown as %q: %v, %v", name, form, fs, err)
		}
	}
	if got, names := (Faults{{Name: "nonsense", Rate: 1}}).drawFaults(1, 1, 0); got != nil || names != "" {
		t.Error("an unknown fault was drawn")
	}
}

func FuzzParseFaults(f *testing.F) {
	for _, text := range []string{"", "429:1%,reset:0.5%,stall:2%:3s", "freeze:every 20s:2s", "coalesce:1:7", "split:1e-300", "gzip:33.3%", "slow:.1:1ns", "html:0"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		fs, err := ParseFaults(text)
		if err != nil {
			return
		}
		for _, f := range fs {
			row := faultRow(f.Name)
			if row == nil || !(f.Rate >= 0 && f.Rate <= 1) || row.lasts > 0 && f.For <= 0 || row.k > 0 && f.K < 2 ||
				row.when == clocked && f.Every <= f.For || row.when == once && f.From <= 0 || f.Until < 0 || f.From < 0 {
				t.Errorf("%q is %+v", text, f)
			}
		}
	})
}
