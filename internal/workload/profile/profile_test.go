package profile

import (
	"bytes"
	"compress/gzip"
	"flag"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	_ "pitot/internal/rapidtest" // the same draws each time
	"pitot/internal/say"
	"pitot/internal/workload"
	"pitot/internal/workload/plain"
)

// All forms of logs tell the same of the same traffic, as far as they tell it.
func TestLogsTellTheSame(t *testing.T) {
	list := traffic(400)
	for form := range logs() {
		t.Run(form, func(t *testing.T) {
			p, l := profileOf(t, logOf(form, list, letters), Options{5, 2})
			if l.Requests != len(list) || p.Requests != len(list) || len(l.Rejected) > 0 {
				t.Fatalf("%d and %d requests, left out %v", l.Requests, p.Requests, l.Rejected)
			}
			var in, out, n, stop, all float64
			for _, c := range p.Classes {
				for _, b := range c.Lengths.Buckets {
					n += float64(b[4])
					in += float64(b[4]) * math.Sqrt(float64(b[0])*float64(b[1]))
					out += float64(b[4]) * math.Sqrt(float64(b[2])*float64(b[3]))
				}
				stop += float64(c.Finish["stop"])
				all += float64(c.Requests)
			}
			var wantIn, wantOut, wantStop float64
			for _, a := range list {
				wantIn, wantOut = wantIn+float64(a.input), wantOut+float64(a.output)
				if a.finish == "stop" {
					wantStop++
				}
			}
			if int(n) != len(list) || math.Abs(in/wantIn-1) > 0.1 || math.Abs(out/wantOut-1) > 0.1 {
				t.Errorf("%g requests with %g tokens in and %g out, want %d, %g and %g", n, in, out, len(list), wantIn, wantOut)
			}
			if stop != wantStop || all != float64(len(list)) {
				t.Errorf("%g of %g stopped, want %g", stop, all, wantStop)
			}
			if p.Arrival == nil || math.Abs(p.Arrival.Rate*list[len(list)-1].at/float64(len(list))-1) > 0.05 {
				t.Errorf("arrivals %+v", p.Arrival)
			}
			switch form {
			case "vllm":
			default:
				if p.Sessions == nil || p.Sessions.Sessions < 50 {
					t.Errorf("sessions %+v", p.Sessions)
				}
			}
			if p.Anonymity.Clients == 0 && form != "vllm" {
				t.Error("no clients")
			}
		})
	}
}

// A profile is read back as it was, and strictly.
func TestProfileIsReadBack(t *testing.T) {
	p, _ := profileOf(t, logOf("openai", traffic(300), letters), Options{5, 2})
	text := encoded(t, p)
	again, err := Read(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	if encoded(t, again) != text {
		t.Error("it is another one")
	}
	for what, spoiled := range map[string]string{
		"another schema":  strings.Replace(text, "/v1", "/v9", 1),
		"an unknown key":  text + "more: 1\n",
		"a text":          strings.Replace(text, "name: class-1", "name: secret", 1),
		"no requests":     strings.Replace(text, "requests: 300", "requests: 0", 1),
		"cut off":         text[:len(text)/2],
		"nothing":         "",
		"another file":    "a: 1\n",
		"a law of a file": strings.Replace(text, "steady: ", "law: trace(/etc/passwd)\n  was: ", 1),
	} {
		_, err := Read(strings.NewReader(spoiled))
		if err == nil {
			t.Errorf("%s is read", what)
		} else if say.HintOf(err) == "" {
			t.Errorf("%s: %v, without a hint", what, err)
		}
	}
}

// Each bucket has as many requests and clients as were asked for, and each request is in one.
func TestBucketsAreAnonymous(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		e := enough{rapid.IntRange(1, 20).Draw(t, "k"), rapid.IntRange(0, 4).Draw(t, "m")}
		n := rapid.IntRange(1, 200).Draw(t, "n")
		g := newGrid()
		type one struct {
			x, y   int
			client uint64
		}
		var list []one
		length := rapid.OneOf(rapid.IntRange(1, 40), rapid.IntRange(1, 100_000), rapid.SampledFrom([]int{1, 512, 4096}))
		for range n {
			o := one{length.Draw(t, "x"), length.Draw(t, "y"), rapid.Uint64Range(1, 6).Draw(t, "client")}
			list = append(list, o)
			g.add(o.x, o.y, o.client, max(e.clients, 1))
		}
		buckets := g.mergeBuckets(e)
		total := 0
		for i, b := range buckets {
			total += b[4]
			if b[4] < e.requests || b[0] >= b[1] || b[2] >= b[3] {
				t.Fatalf("bucket %v", b)
			}
			for k, c := range buckets[:i] {
				if b[0] < c[1] && c[0] < b[1] && b[2] < c[3] && c[2] < b[3] {
					t.Fatalf("buckets %d and %d overlap: %v, %v", i, k, b, c)
				}
			}
		}
		if buckets == nil {
			return
		}
		if total != n {
			t.Fatalf("%d of %d requests", total, n)
		}
		// As many requests, and of as many clients, lie at or beyond either end.
		for axis := range 2 {
			low, high, least, most := math.MaxInt, 0, math.MaxInt, 0
			for _, b := range buckets {
				low, high = min(low, b[2*axis+1]), max(high, b[2*axis])
				least, most = min(least, b[2*axis]), max(most, b[2*axis+1]-1)
			}
			var below, above int
			clients := [2]map[uint64]bool{{}, {}}
			for _, o := range list {
				x := min(max([2]int{o.x, o.y}[axis], least), most) // taken into the outermost
				if x < low {
					below++
					clients[0][o.client] = true
				}
				if x >= high {
					above++
					clients[1][o.client] = true
				}
			}
			if below < e.requests || above < e.requests || len(clients[0]) < e.clients || len(clients[1]) < e.clients {
				t.Fatalf("the ends %d and %d have %d and %d requests", low, high, below, above)
			}
		}
	})
}

func TestBucketOf(t *testing.T) {
	for x := range 100_000 {
		if b := bucketOf(x); x < bucketEdge(b) || x >= bucketEdge(b+1) {
			t.Fatalf("%d is in bucket %d, from %d below %d", x, b, bucketEdge(b), bucketEdge(b+1))
		}
	}
	for x := 1; x < workload.MaxLength; x = x*9/8 + 1 {
		if b := bucketOf(x); x < bucketEdge(b) || x >= bucketEdge(b+1) {
			t.Fatalf("%d is in bucket %d, from %d below %d", x, b, bucketEdge(b), bucketEdge(b+1))
		}
	}
}

// Lines that are no request are counted, with the first line of each reason; a file of which
// none is one is an error that says so.
func TestBadLines(t *testing.T) {
	good := logOf("openai", traffic(50), letters)
	bad := "{broken\n" + `{"model":"m"}` + "\n" + `{"timestamp":"yesterday","usage":{"prompt_tokens":4}}` + "\n[1,2]\n"
	_, l := profileOf(t, good+bad, Options{5, 1})
	if l.LeftOut() != 4 || l.Requests != 50 {
		t.Errorf("%d left out of %d", l.LeftOut(), l.Requests)
	}
	for reason, line := range map[string]int{"no JSON object": 51, "neither a time nor lengths of a request": 52, "a time that is not known": 53} {
		if l.First[reason] != line {
			t.Errorf("%s: first at line %d, want %d", reason, l.First[reason], line)
		}
	}
	for _, text := range []string{"", "{}\n", "{broken", "hello\n", "\x1f\x8bxx", strings.Repeat("[", 1000)} {
		_, err := ReadLog(write(t, text), func(*Request) bool { return true })
		if err == nil {
			t.Errorf("%.10q is read", text)
		} else if say.HintOf(err) == "" {
			t.Errorf("%.10q: %v, without a hint", text, err)
		}
	}
}

// The readers take whatever a file has in it.
func FuzzReadLog(f *testing.F) {
	list := traffic(6)
	for form := range logs() {
		f.Add([]byte(logOf(form, list, letters)))
	}
	f.Add([]byte("[\n{\"usage\":{\"prompt_tokens\":1e99}},\n{\"created\":-1}\n]"))
	f.Add([]byte("{\n \"resourceSpans\": [1, {\"scopeSpans\": {}}]\n}"))
	f.Add([]byte("2026-01-02 03:04:05 Received request x: \nGenerated response x: "))
	f.Fuzz(func(t *testing.T, data []byte) {
		b, err := NewBuilder(Options{1, 1})
		if err != nil {
			t.Fatal(err)
		}
		l, err := ReadLog(write(t, string(data)), func(q *Request) bool {
			if q.Input < unknown || q.Output < unknown || q.Input > workload.MaxLength || q.Output > workload.MaxLength {
				t.Fatalf("lengths %d and %d", q.Input, q.Output)
			}
			return b.Add(q)
		})
		if err != nil {
			return
		}
		if l.Requests != b.count {
			t.Fatalf("%d requests, %d were added", l.Requests, b.count)
		}
		p, err := b.BuildProfile()
		if err != nil {
			return
		}
		text := encoded(t, p)
		if _, err := Read(strings.NewReader(text)); err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
	})
}

// A profile that somebody wrote does no harm, and what it asks is the same each time.
func FuzzRead(f *testing.F) {
	p, _ := profileOf(f, logOf("openai", traffic(60), letters), Options{5, 2})
	f.Add([]byte(encoded(f, p)))
	f.Add([]byte("schema: pitot.workload-profile/v1\nrequests: 1\nanonymity: {requests: 1}\nclasses: [{name: class-1, requests: 1, lengths: {buckets: [[1, 2, 1, 2, 1]]}}]\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		p, err := Read(strings.NewReader(string(data)))
		if err != nil {
			return
		}
		if law, err := p.ArrivalLaw(); err == nil {
			if process, err := law.NewProcess(5, 1, 0); err == nil {
				for range 20 {
					process.Next()
				}
			}
		}
		s, err := NewSource(p, Config{Seed: 1, Nonce: 2})
		if err != nil {
			return
		}
		for i := range int64(10) {
			if _, err := s.At(i); err != nil {
				t.Fatal(err)
			}
		}
	})
}

var update = flag.Bool("update", false, "write the log that documents and scripts use anew")

// The log of documents and scripts is the one that is written here, of nobody's requests.
func TestLogOfDocuments(t *testing.T) {
	const name = "../testdata/access.jsonl.gz"
	text := logOf("openai", traffic(400), func(kind string, n int) string { return fmt.Sprintf("%s %d", kind, n) })
	if *update {
		var b bytes.Buffer
		z, _ := gzip.NewWriterLevel(&b, gzip.BestCompression)
		_, _ = z.Write([]byte(text))
		_ = z.Close()
		if err := os.WriteFile(name, b.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	f, err := plain.OpenStream(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if got, err := io.ReadAll(f); err != nil || string(got) != text {
		t.Errorf("it is another one (%v): go test ./internal/workload/profile -update", err)
	}
}

// Exported logs are read as logs, with or without prompts, as CSV and as JSON.
func TestReadExports(t *testing.T) {
	for _, file := range []string{"litellm_spend_logs.csv", "litellm_spend_logs_with_prompts.csv", "langfuse_observations.csv", "langfuse_generations.csv", "langfuse_traces.csv", "openrouter_activity.csv", "portkey_logs.jsonl", "helicone_requests.csv"} {
		var lengths []int
		var at []int64
		l, err := ReadLog(filepath.Join("..", "testdata", "exports", file), func(q *Request) bool {
			lengths, at = append(lengths, q.Input, q.Output), append(at, q.At)
			return true
		})
		if err != nil || l.Requests != 3 || !slices.Equal(lengths, []int{21, 9, 40, 12, 19, 30}) {
			t.Errorf("%s: %+v, %v, %v", file, l, lengths, err)
			continue
		}
		if at[1]-at[0] != 4250e6 || at[2]-at[0] != 1750e6 {
			t.Errorf("%s: times %v", file, at)
		}
	}
}
