package serve

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"time"
)

func TestTruthRoundTrip(t *testing.T) {
	want := []Truth{
		{ID: "cmpl-a\"b", RequestID: "a\"b", Drawn: "stall+crlf+cut", N: 3, Path: "/v1/completions", Status: 200, ArrivalNS: 5, PromptTokens: 7, OutputTokens: 3,
			RoleNS: 6, EmitNS: []int64{7, 9}, Tokens: []int{1, 2}, Choice: []int{0, 1}, DoneNS: 10, Fault: "stall+crlf", Aborted: true,
			Engine: []EngineTruth{{Choice: 1, ArrivedNS: 1, QueuedNS: 2, ScheduledNS: -1, FirstNS: 4, LastNS: 5, Steps: 6, FirstStep: 7, LastStep: 8, Cached: 9, Preemptions: 10}}},
		{Status: 429, EmitNS: []int64{}},
	}
	var b bytes.Buffer
	l := newTruthLog(&b)
	go l.run()
	for _, tr := range want {
		l.enqueue(tr)
	}
	l.enqueue(Truth{EmitNS: []int64{1, 2}, Tokens: []int{1, 1}})
	if err := l.close(); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(strings.Split(b.String(), "\n")[3], "tokens\":[") {
		t.Errorf("tokens that are all 1 are written: %s", b.String())
	}
	var got []Truth
	for tr, err := range ReadTruth(&b) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, tr)
	}
	if want = append(want, Truth{EmitNS: []int64{1, 2}}); !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}

// The first line says what the log is, and ties its clock to the wall's; ids are
// those that the client sees.
func TestTruthHeader(t *testing.T) {
	before := time.Now().UnixNano()
	r := start(t, fast, Config{})
	_, body := r.do(post("/v1/completions", `{"prompt":"x","max_tokens":1}`))
	_, named := r.do(post("/v1/chat/completions", `{"messages":[{"role":"user","content":"x"}],"max_tokens":1}`, "X-Request-Id: q"))
	_, _ = r.do(post("/v1/completions", `{"prompt":"x","max_tokens":-1}`, "X-Request-Id: bad"))
	tr := r.stop()
	after := time.Now().UnixNano()
	slices.SortFunc(tr, func(a, b Truth) int { return int(a.N - b.N) })
	first, _, _ := strings.Cut(r.truth.b.String(), "\n")
	var h TruthHeader
	if err := json.Unmarshal([]byte(first), &h); err != nil || h.Schema != TruthSchema {
		t.Fatalf("%v %s", err, first)
	}
	if at := h.EpochUnixNS + tr[0].ArrivalNS; at < before || at > after {
		t.Errorf("it arrived at %d, not between %d and %d", at, before, after)
	}
	for i, want := range []struct{ id, request, in string }{{"cmpl-0", "", body}, {"chatcmpl-q", "q", named}, {"", "bad", ""}} {
		if tr[i].ID != want.id || tr[i].RequestID != want.request || !strings.Contains(want.in, want.id) {
			t.Errorf("%+v for %s", tr[i], want.in)
		}
	}
	for _, err := range ReadTruth(strings.NewReader(`{"schema":"pitot.truth/v2"}`)) {
		if err == nil || !strings.Contains(err.Error(), `its schema is "pitot.truth/v2"`) {
			t.Errorf("%v", err)
		}
	}
}

// docs/reference/files.md has every field of the log, in its order.
func TestTruthIsDocumented(t *testing.T) {
	text, err := os.ReadFile("../../../docs/reference/files.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(text), "\n## The log of a mock\n")
	section, _, _ = strings.Cut(section, "\n## ")
	var got, want []string
	for line := range strings.Lines(section) {
		if name, _, ok := strings.Cut(strings.TrimPrefix(line, "| "), " | "); ok && !strings.HasPrefix(name, "field") {
			got = append(got, name)
		}
	}
	for _, of := range []reflect.Type{reflect.TypeFor[TruthHeader](), reflect.TypeFor[Truth]()} {
		for i := range of.NumField() {
			name, _, _ := strings.Cut(of.Field(i).Tag.Get("json"), ",")
			want = append(want, name)
		}
	}
	equalLines(t, got, want)
}

type fullDisk struct{}

func (fullDisk) Write([]byte) (int, error) { return 0, errors.New("no space") }

func TestTruthWriteError(t *testing.T) {
	l := newTruthLog(fullDisk{})
	go l.run()
	l.enqueue(Truth{})
	if err := l.close(); err == nil || err.Error() != "write truth log: no space" {
		t.Errorf("close gives %v", err)
	}
}

func TestReadTruthErrors(t *testing.T) {
	in := "{\"n\":1}\nnonsense\n{\"n\":2,\"emit_ns\":[1],\"tokens\":[1,2]}\n{\"n\":3}\n{\"n\":4"
	var got []int64
	var errs []string
	for tr, err := range ReadTruth(strings.NewReader(in)) {
		if err != nil {
			errs = append(errs, err.Error()[:len("parse line 0")])
			continue
		}
		got = append(got, tr.N)
	}
	if !reflect.DeepEqual(got, []int64{1, 3}) || !reflect.DeepEqual(errs, []string{"parse line 2", "parse line 3", "parse line 5"}) {
		t.Errorf("read %v, errors %v", got, errs)
	}
	broken := errors.New("broken")
	for _, err := range ReadTruth(iotest.ErrReader(broken)) {
		if !errors.Is(err, broken) {
			t.Errorf("got %v", err)
		}
	}
}

func FuzzReadTruth(f *testing.F) {
	f.Add([]byte("{\"id\":\"a\",\"n\":1,\"emit_ns\":[1,2],\"tokens\":[1,2]}\n{}\n"))
	f.Add([]byte("nonsense\n\n{\"n\":1e99}"))
	f.Fuzz(func(t *testing.T, in []byte) {
		lines := 0
		for tr, err := range ReadTruth(bytes.NewReader(in)) {
			lines++
			if err == nil && tr.Tokens != nil && len(tr.Tokens) != len(tr.EmitNS) {
				t.Errorf("%+v", tr)
			}
		}
		if lines > bytes.Count(in, []byte("\n"))+1 {
			t.Errorf("%d lines", lines)
		}
	})
}
