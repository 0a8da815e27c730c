// Command traces reads public traces, replays them in virtual time and holds what comes of
// it against what is known of them:
//
//	go run ./bench/traces DIR
//
// Of each file in DIR (mooncake/, azure/, ragpulse/ as their repositories have them) rows,
// sums of lengths and what blocks share are compared with golden values; every request is
// asked of a simulated server at its trace's own times, which are compared to the nanosecond;
// and those of a trace with blocks one after the other of one with room for all, whose prefix
// cache must have what the ids say. Rows are read here with nothing of what is tested.
package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"pitot/internal/loadgen"
	"pitot/internal/results/record"
	"pitot/internal/sim"
	"pitot/internal/sim/vllm"
	"pitot/internal/workload"
	"pitot/internal/workload/arrival"
)

// golden is what is known of a file.
type golden struct {
	path                      string
	rows                      int
	input, output             int64
	blocks, distinct, leading int
	leadingTokens             int64
	span                      time.Duration // of the due times
}

var files = []golden{
	{"mooncake/conversation_trace.jsonl", 12_031, 144_793_823, 4_122_048, 288_500, 182_790, 105_710, 54_098_411, 3_536_999 * time.Millisecond},
	{"mooncake/synthetic_trace.jsonl", 3_993, 61_194_628, 595_432, 121_877, 43_924, 77_953, 39_852_661, 1_022_025 * time.Millisecond},
	{"azure/AzureLLMInferenceTrace_code.csv", 8_819, 18_059_974, 245_896, 0, 0, 0, 0, 3_435_950 * time.Millisecond},
	{"azure/AzureLLMInferenceTrace_conv.csv", 19_366, 22_361_870, 4_088_665, 0, 0, 0, 0, 3_501_720 * time.Millisecond},
	{"ragpulse/0_trace.jsonl", 7_106, 20_917_099, 2_012_676, 0, 0, 0, 0, 0},
}

func main() {
	log.SetFlags(0)
	if len(os.Args) != 2 {
		log.Fatal("go run ./bench/traces DIR")
	}
	wrong := 0
	for _, g := range files {
		path := filepath.Join(os.Args[1], g.path)
		if _, err := os.Stat(path); err != nil {
			fmt.Printf("%-40s not there\n", g.path)
			continue
		}
		begin := time.Now()
		for _, problem := range check(path, g) {
			wrong++
			fmt.Printf("%-40s WRONG: %s\n", g.path, problem)
		}
		fmt.Printf("%-40s checked in %.1f s\n", g.path, time.Since(begin).Seconds())
	}
	if wrong > 0 {
		os.Exit(1)
	}
}

// request is a row as it is read here.
type request struct {
	at            int64
	input, output int
	ids           []int64
}

func read(path string) (list []request) {
	data, err := os.ReadFile(path)
	if err != nil {
		log.Fatal(err)
	}
	if data[0] != '{' {
		rows, err := csv.NewReader(bytes.NewReader(data)).ReadAll()
		if err != nil {
			log.Fatal(err)
		}
		for _, r := range rows[1:] {
			at, err := time.Parse("2006-01-02 15:04:05.0000000", r[0])
			if err != nil {
				log.Fatal(err)
			}
			in, _ := strconv.Atoi(r[1])
			out, _ := strconv.Atoi(r[2])
			list = append(list, request{at.UnixNano(), in, out, nil})
		}
		return list
	}
	for line := range bytes.Lines(data) {
		if len(bytes.TrimSpace(line)) == 0 {
			continue
		}
		var r struct {
			Timestamp json.RawMessage
			Input     int             `json:"input_length"`
			Output    int             `json:"output_length"`
			IDs       json.RawMessage `json:"hash_ids"`
		}
		if err := json.Unmarshal(line, &r); err != nil {
			log.Fatal(err)
		}
		unit := int64(1e6)
		if r.Timestamp[0] == '"' {
			unit, r.Timestamp = 1e9, r.Timestamp[1:len(r.Timestamp)-1]
		}
		at, err := strconv.ParseInt(string(r.Timestamp), 10, 64)
		if err != nil {
			log.Fatal(err)
		}
		q := request{at: at * unit, input: r.Input, output: r.Output}
		_ = json.Unmarshal(r.IDs, &q.ids) // RAGPulse's are no list
		list = append(list, q)
	}
	return list
}

func check(path string, g golden) (wrong []string) {
	fail := func(format string, args ...any) { wrong = append(wrong, fmt.Sprintf(format, args...)) }
	rows := read(path)
	trace, err := workload.ReadTrace(path)
	if err != nil {
		return []string{err.Error()}
	}
	var in, out int64
	for i := range trace.Input {
		in, out = in+int64(trace.Input[i]), out+int64(trace.Output[i])
	}
	if trace.Requests() != g.rows || in != g.input || out != g.output || len(rows) != g.rows {
		fail("%d rows, %d tokens in and %d out, want %d, %d and %d", trace.Requests(), in, out, g.rows, g.input, g.output)
	}
	if span := time.Duration(trace.At[len(trace.At)-1] - trace.At[0]); g.span > 0 && span.Round(10*time.Millisecond) != g.span.Round(10*time.Millisecond) {
		fail("a span of %v, want %v", span, g.span)
	}
	// What blocks share, in the order of the file.
	seen := map[int64]bool{}
	all, lead := 0, 0
	var tokens, served int64
	for _, r := range rows {
		k := 0
		for k < len(r.ids) && seen[r.ids[k]] {
			k++
		}
		for _, id := range r.ids {
			seen[id] = true
		}
		all, lead, tokens = all+len(r.ids), lead+k, tokens+int64(min(512*k, r.input))
		served += int64(min(512*k, r.input-1) / 512 * 512) // whole blocks; the last token is always computed
	}
	if g.blocks > 0 && (all != g.blocks || len(seen) != g.distinct || lead != g.leading || tokens != g.leadingTokens) {
		fail("%d blocks, %d distinct, %d leading hits of %d tokens", all, len(seen), lead, tokens)
	}
	if g.blocks > 0 {
		if blocks, _, ok := trace.BlockSharing(); !ok || int(blocks*float64(all)+.5) != g.leading {
			fail("stats tells %.3f of the blocks shared", blocks)
		}
	}
	// Replayed at its own times.
	index, err := workload.OpenRows(path)
	if err != nil {
		return append(wrong, err.Error())
	}
	law, err := arrival.ParseLaw("trace("+path+")", workload.ArrivalFiles())
	if err != nil {
		return append(wrong, err.Error())
	}
	due, err := law.NewProcess(law.OwnRate(), 1, 0)
	if err != nil {
		return append(wrong, err.Error())
	}
	asked := replay(index, loadgen.Config{Arrivals: due, Total: int64(g.rows), Window: loadgen.Never}, sim.NewFixed(sim.FixedConfig{TTFT: 50 * time.Millisecond, ITL: 10 * time.Millisecond}), 0)
	late, other := 0, 0
	slices.SortStableFunc(rows, func(a, b request) int { return cmp.Compare(a.at, b.at) })
	for i, r := range rows {
		if asked[int64(i)].Due != r.at-rows[0].at {
			late++
		}
		if int(asked[int64(i)].InputPlanned) != r.input || int(asked[int64(i)].PromptTokens) != r.input || int(asked[int64(i)].OutputPlanned) != r.output {
			other++
		}
	}
	if len(asked) != g.rows || late+other > 0 {
		fail("%d requests asked, %d at other times, %d of other lengths", len(asked), late, other)
	}
	fmt.Printf("%-40s %d requests replayed at their own times to the nanosecond and of their lengths\n", g.path, len(asked))
	if g.blocks == 0 {
		return wrong
	}
	// One after the other, with room for all.
	s := vllm.Default()
	s.BlockSize, s.MaxModelLen, s.MaxNumBatchedTokens, s.NumGPUBlocks = 512, 1<<20, 1<<20, 2*g.blocks
	asked = replay(index, loadgen.Config{Users: 1, Total: int64(g.rows), Window: loadgen.Never}, vllm.New(s, step{}), 0)
	var cached int64
	for _, r := range asked {
		cached += int64(r.CachedTokens)
	}
	if cached != served {
		fail("the prefix cache served %d tokens, the ids say %d", cached, served)
	}
	fmt.Printf("%-40s %d leading hits, %d tokens; served by the cache %d, in whole blocks and but for the last token %d\n", g.path, lead, tokens, cached, served)
	return wrong
}

// step is what a step of the engine takes.
type step struct{}

func (step) Step(*sim.Batch) time.Duration { return time.Millisecond }

// rowsOf keeps rows, by number.
type rowsOf map[int64]*record.Row

func (rowsOf) Chunk(record.Chunk)   {}
func (k rowsOf) Done(r *record.Row) { c := *r; k[r.ID] = &c }

func replay(index *workload.Rows, cfg loadgen.Config, engine sim.Engine, seed uint64) rowsOf {
	source, err := index.NewReplay(workload.ReplayConfig{Seed: seed, Nonce: seed})
	if err != nil {
		log.Fatal(err)
	}
	kept := rowsOf{}
	loadgen.Run(context.Background(), loadgen.NewCore(cfg), loadgen.NewVirtual(loadgen.VirtualConfig{Engine: engine, Source: source, Sink: kept}))
	return kept
}
