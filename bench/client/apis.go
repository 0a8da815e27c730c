package main

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"slices"
	"strings"

	"pitot/internal/analysis/audit"
	"pitot/internal/client"
	"pitot/internal/client/api"
	"pitot/internal/client/stamp"
	"pitot/internal/results/record"
	"pitot/internal/session"
	"pitot/internal/sim/serve"
	"pitot/internal/workload"
)

// answer is a stream as a server wrote it: its head, and what each write of it brought.
type answer struct {
	api    api.API
	of     string // who wrote it
	head   []byte
	writes [][]byte
	chunks int // it comes to
}

// compareAPIs prints what a chunk costs in each API, from the bytes to the record, beside
// a chat's. The streams are those of the mock's faces, and where it has none are made as the
// API is documented. Each is read in turn with chat's, in the same round, and
// processor time is taken: on a shared machine both have the same luck.
func compareAPIs(pitot string, rounds int) {
	var all []*answer
	for _, a := range api.All() {
		if api.GeneratesTokens(a) {
			all = append(all, capture(pitot, a))
		}
	}
	chat := all[slices.IndexFunc(all, func(x *answer) bool { return x.api.Name() == api.Default().Name() })]
	fmt.Printf("%-20s %-10s %12s %10s %12s %12s   %s\n", "api", "stream of", "bytes/chunk", "ns/chunk", "chunk: chat", "byte: chat", "(rounds)")
	for _, x := range all {
		var ns, ratio []float64
		for range rounds {
			// Before and after, so that a drift of the machine's speed is in neither's favour.
			before, cost, after := chat.cost(), x.cost(), chat.cost()
			ns, ratio = append(ns, cost), append(ratio, 2*cost/(before+after))
		}
		bytes, base := x.bytesPerChunk(), chat.bytesPerChunk()
		fmt.Printf("%-20s %-10s %12.0f %10.0f %12.2f %12.2f   (%.2f to %.2f)\n", x.api.Name(), x.of, bytes, median(ns), median(ratio),
			median(ratio)*base/bytes, slices.Min(ratio), slices.Max(ratio))
	}
}

// cost is the processor time of a chunk, in nanoseconds, of the same answer read again
// and again.
func (a *answer) cost() float64 {
	x := client.NewExchange(a.api)
	x.Sink = nothing{}
	x.Asked = api.Asked{Tokens: int64(a.chunks) + 16, Choices: 1}
	x.Request = make([]byte, 4096)
	begun, chunks := session.ProcessorTime(), 0
	for chunks < 60_000 {
		chunks += a.read(x)
	}
	return float64(session.ProcessorTime()-begun) / float64(chunks)
}

// read reads the answer once and gives the chunks that it had.
func (a *answer) read(x *client.Exchange) int {
	row := record.BlankRow()
	row.Stream = true
	x.Begin(row)
	x.MarkSent(0)
	x.Feed(a.head, stamp.Arrival{Time: 1, Kernel: true})
	for i, b := range a.writes {
		x.Feed(b, stamp.Arrival{Time: int64(i) + 2, Kernel: true})
	}
	x.Close(int64(len(a.writes))+3, nil)
	if x.Row.Outcome != record.OK {
		log.Fatalf("%s: %s %s", a.api.Name(), x.Row.Error, x.Row.Detail)
	}
	return int(x.Row.Chunks)
}

func (a *answer) bytesPerChunk() float64 {
	n := 0
	for _, b := range a.writes {
		n += len(b)
	}
	return float64(n) / float64(a.chunks)
}

// nothing is a sink that keeps nothing.
type nothing struct{}

func (nothing) Chunk(record.Chunk) {}
func (nothing) Done(*record.Row)   {}

// capture gives a stream of an API.
func capture(pitot string, a api.API) *answer {
	x := &answer{api: a}
	face, served := serve.DialectOf(a.Name())
	if served {
		x.of = "mock " + face
		x.record(pitot, face)
	} else {
		x.of = "documents"
		x.write()
	}
	ex := client.NewExchange(a)
	ex.Sink, ex.Asked, ex.Request = nothing{}, api.Asked{Tokens: 2 * tokens, Choices: 1}, make([]byte, 4096)
	if x.chunks = x.read(ex); x.chunks == 0 {
		log.Fatalf("%s: a stream without chunks", a.Name())
	}
	return x
}

// record asks the mock for an answer and keeps what it writes.
func (a *answer) record(pitot, face string) {
	srv, err := audit.StartServer(context.Background(), []string{pitot}, "--face", face, "--ttft", "10ms", "--itl", "1ms")
	if err != nil {
		log.Fatal(err)
	}
	defer srv.Stop()
	o := api.Options{Model: "reference", Stream: true, Route: a.api.Routes()[0]}
	if err := cmp.Or(a.api.Prepare("", &o), a.api.Prepare("pitot", &o)); err != nil {
		log.Fatal(err)
	}
	body, err := a.api.Body(nil, &workload.Request{Messages: []workload.Message{{Role: "user", Segments: []workload.Segment{{Text: "What does an event cost?"}}}}, Output: tokens, Exact: true}, o)
	if err != nil {
		log.Fatal(err)
	}
	req, err := http.NewRequest("POST", srv.URL+strings.ReplaceAll(o.Route, "{model}", o.Model), bytes.NewReader(body))
	if err != nil {
		log.Fatal(err)
	}
	for _, h := range a.api.Headers("") {
		req.Header.Set(h.Name, h.Value)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Close = true
	conn, err := net.Dial("tcp", strings.TrimPrefix(srv.URL, "http://"))
	if err != nil {
		log.Fatal(err)
	}
	defer conn.Close()
	if err := req.Write(conn); err != nil {
		log.Fatal(err)
	}
	all, err := io.ReadAll(conn)
	if err != nil {
		log.Fatal(err)
	}
	a.split(all)
}

// split takes an answer's head and its HTTP chunks, which a server writes one at a time.
func (a *answer) split(all []byte) {
	head, rest, ok := bytes.Cut(all, []byte("\r\n\r\n"))
	if !ok || !bytes.HasPrefix(head, []byte("HTTP/1.1 200")) {
		log.Fatalf("%s: %.300s", a.api.Name(), all)
	}
	a.head = all[:len(head)+4]
	for len(rest) > 0 {
		line, _, _ := bytes.Cut(rest, []byte("\r\n"))
		n := 0
		if _, err := fmt.Sscanf(string(line), "%x", &n); err != nil {
			log.Fatalf("%s: a chunk of size %q", a.api.Name(), line)
		}
		end := min(len(line)+2+n+2, len(rest))
		a.writes, rest = append(a.writes, rest[:end]), rest[end:]
	}
}

// documented are the events of APIs of which the mock has no face, as their documents have
// them: the text, tokens so far, and whether it is the last.
var documented = map[string]func(text string, n int, last bool) string{
	"tgi": func(text string, n int, last bool) string {
		ends := `"generated_text":null,"details":null`
		if last {
			ends = fmt.Sprintf(`"generated_text":"%s","details":{"finish_reason":"length","generated_tokens":%d,"input_length":9,"seed":null}`, text, n)
		}
		return fmt.Sprintf(`data:{"index":%d,"token":{"id":17,"text":"%s","logprob":-0.5,"special":false},%s}`, n, text, ends)
	},
	"llamacpp": func(text string, n int, last bool) string {
		event := fmt.Sprintf(`data: {"index":0,"content":"%s","tokens":[],"stop":false,"id_slot":-1,"tokens_predicted":%d,"tokens_evaluated":9}`, text, n)
		if last {
			event += fmt.Sprintf("\n\n"+`data: {"index":0,"content":"","tokens":[],"id_slot":0,"stop":true,"model":"m","tokens_predicted":%d,"tokens_evaluated":9,"tokens_cached":%d,"truncated":false,"stop_type":"limit","stopping_word":""}`, n, n+8)
		}
		return event
	},
	"gemini": func(text string, n int, last bool) string {
		finish := ""
		if last {
			finish = `"finishReason":"MAX_TOKENS",`
		}
		return fmt.Sprintf(`data: {"candidates":[{"content":{"parts":[{"text":"%s"}],"role":"model"},%s"index":0}],"usageMetadata":{"promptTokenCount":9,"candidatesTokenCount":%d,"totalTokenCount":%d},"modelVersion":"m"}`, text, finish, n, n+9)
	},
	"triton": func(text string, _ int, _ bool) string {
		return fmt.Sprintf(`data: {"model_name":"ensemble","model_version":"1","sequence_end":false,"sequence_id":0,"sequence_start":false,"text_output":"%s"}`, text)
	},
}

// write makes a stream of which the mock has no face.
func (a *answer) write() {
	event := documented[a.api.Name()]
	if event == nil {
		log.Fatalf("%s: neither a face of the mock nor a documented form", a.api.Name())
	}
	var all bytes.Buffer
	all.WriteString("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n")
	w := httputil.NewChunkedWriter(&all)
	words := strings.Fields("An event costs what its bytes make one do and no more than that I should think")
	for i := range tokens {
		fmt.Fprintf(w, "%s\n\n", event(" "+words[i%len(words)], i+1, i == tokens-1))
	}
	w.Close()
	all.WriteString("\r\n")
	a.split(all.Bytes())
}
