package telemetry_test

import (
	"errors"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"pitot/internal/sim/engines"
	. "pitot/internal/telemetry"
)

// names are what all engines and exporters call the signals.
var names = NewTable(engines.Metrics())

func page(t testing.TB, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", name+".prom"))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// What a live vLLM 0.32 told, under load.
func TestLivePage(t *testing.T) {
	r, err := names.Read(page(t, "vllm-0.32"))
	if err != nil || !r.Engine || !slices.Equal(r.Sources, []string{"vllm"}) {
		t.Fatalf("%v %v, %v", r.Sources, r.Engine, err)
	}
	want := map[Signal]float64{
		Running: 31, Waiting: 0, WaitingCapacity: 0, WaitingDeferred: 0, KVUse: 0.4631578947368421, KVTokens: 12288,
		Requests: 9140, Rejections: 0, Preemptions: 131, PromptTokens: 2410671, CachedTokens: 25600, ComputedTokens: 2332749,
		OutputTokens: 316882, PrefixQueries: 2412602, PrefixHits: 25600,
		ProcessStart: 1.79536644053e9, ProcessCPU: 97.49000000000001, ProcessMemory: 993718272,
	}
	for signal, x := range want {
		if got, ok := r.Values[signal]; !ok || got != x {
			t.Errorf("%s: %v %v, want %v", signal, got, ok, x)
		}
	}
	for _, signal := range []Signal{Steps, StepTokens, TTFTSum, TTFTCount, QueueSum, QueueCount, PrefillSum, PrefillCount, DecodeSum, DecodeCount, InferenceSum, InferenceCount, E2ESum, E2ECount, ITLSum, ITLCount} {
		if x, ok := r.Values[signal]; !ok || x <= 0 {
			t.Errorf("%s: %v %v", signal, x, ok)
		}
	}
	for _, signal := range []Signal{Flops, ReadBytes, WriteBytes, Drafts, Swapped, GPUPower} {
		if x, ok := r.Values[signal]; ok {
			t.Errorf("%s is told: %v", signal, x)
		}
	}
}

// The pages of the other engines and exporters, as they are documented.
func TestDocumentedPages(t *testing.T) {
	for name, want := range map[string]map[Signal]float64{
		"sglang": {Running: 12, Waiting: 3, KVUse: .28, KVTokens: 445440, OutputRate: 886.5, HitShare: .25, Preemptions: 4,
			PrefixQueries: 8000, PrefixHits: 2000, PromptTokens: 8128, CachedTokens: 2000, OutputTokens: 7557, Requests: 61,
			TTFTSum: 2.3, TTFTCount: 11, QueueSum: .7, QueueCount: 11},
		"tgi":          {Running: 9, Waiting: 2, Requests: 41, PromptTokens: 4400, OutputTokens: 820, Steps: 1000, QueueSum: 1.1, QueueCount: 44, E2ESum: 61.5, E2ECount: 41},
		"tensorrt-llm": {Running: 3, Waiting: 1, KVUse: .4, HitShare: .1, Requests: 8, QueueSum: .03, QueueCount: 8, PrefillSum: .2, PrefillCount: 8, PromptTokens: 800, OutputTokens: 160},
		"llamacpp":     {Running: 1, Waiting: 3, PromptTokens: 16185, ComputedTokens: 16185, OutputTokens: 394, PrefillSum: 13.636, DecodeSum: 5.75, Steps: 125},
		"dcgm": {GPUs: 2, GPUActive: .625, GPUMemoryActive: .5, GPUPower: 1050.5, GPUEnergy: 4000, GPUClock: 1755, GPUTemperature: 64,
			GPUMemory: 3072 * Mebi, GPUMemoryTotal: 4096 * Mebi},
		"amd":  {GPUs: 2, GPUPower: 1500, GPUActive: .85, GPUMemoryActive: .4, GPUEnergy: 5000, GPUMemory: 1024 * Mebi, GPUClock: 2100, GPUMemoryClock: 1300},
		"node": {HostCPU: 60, HostCores: 2},
	} {
		r, err := names.Read(page(t, name))
		if err != nil || !slices.Equal(r.Sources, []string{name}) {
			t.Errorf("%s: %v, %v", name, r.Sources, err)
		}
		for signal, x := range want {
			if got, ok := r.Values[signal]; !ok || math.Abs(got-x) > 1e-9*x {
				t.Errorf("%s: %s is %v %v, want %v", name, signal, got, ok, x)
			}
		}
		for signal, x := range r.Values {
			if _, ok := want[signal]; !ok {
				t.Errorf("%s: %s is %v", name, signal, x)
			}
		}
	}
}

// Whatever a page holds besides: other Labels, several engines, other names for the same,
// series that stand there twice, what is no number.
func TestPages(t *testing.T) {
	for name, c := range map[string]struct {
		page string
		want map[Signal]float64
		err  error
	}{
		"several engines":   {"vllm:num_requests_running{engine=\"0\"} 3\nvllm:num_requests_running{engine=\"1\"} 4\nvllm:kv_cache_usage_perc{engine=\"0\"} 0.2\nvllm:kv_cache_usage_perc{engine=\"1\"} 0.9\n", map[Signal]float64{Running: 7, KVUse: .9}, nil},
		"other Labels":      {"vllm:num_requests_running{pod=\"a\",zone=\"b}c\"} 3 1763740000123\n", map[Signal]float64{Running: 3}, nil},
		"without colons":    {"vllm_num_requests_running 3\n", map[Signal]float64{Running: 3}, nil},
		"quoted names":      {"{\"vllm:num_requests_running\",engine=\"0\"} 3\n{\"vllm:num_requests_waiting\"} 1\n", map[Signal]float64{Running: 3, Waiting: 1}, nil},
		"twice":             {"vllm:num_requests_running{a=\"1\",b=\"2\"} 3\nvllm:num_requests_running{b=\"2\",a=\"1\"} 3\n", map[Signal]float64{Running: 3}, nil},
		"older names":       {"vllm:gpu_cache_usage_perc 0.3\nvllm:gpu_prefix_cache_hits_total 9\n", map[Signal]float64{KVUse: .3, PrefixHits: 9}, nil},
		"both names":        {"vllm:gpu_cache_usage_perc 0.3\nvllm:kv_cache_usage_perc 0.4\n", map[Signal]float64{KVUse: .4}, nil},
		"no numbers":        {"vllm:num_requests_running NaN\nvllm:num_requests_waiting +Inf\nvllm:kv_cache_usage_perc x\nvllm:num_preemptions_total 1\n", map[Signal]float64{Preemptions: 1}, nil},
		"beyond numbers":    {"vllm:num_preemptions_total{a=\"1\"} 1e308\nvllm:num_preemptions_total{a=\"2\"} 1e308\nvllm:num_requests_running 1\n", map[Signal]float64{Running: 1}, nil},
		"one bad line":      {"vllm:num_requests_running{engine=\"0 3\nvllm:num_requests_waiting 2\n}{\n= 1\n", map[Signal]float64{Waiting: 2}, nil},
		"cut short":         {"vllm:num_requests_waiting 2\nvllm:num_requests_run", map[Signal]float64{Waiting: 2}, nil},
		"line ends":         {"vllm:num_requests_waiting 2\r\nvllm:num_requests_running 1\r\n", map[Signal]float64{Waiting: 2, Running: 1}, nil},
		"behind the end":    {"vllm:num_requests_waiting 2\n# EOF\nvllm:num_requests_running 1\n", map[Signal]float64{Waiting: 2}, nil},
		"blocks of a cache": {"vllm:cache_config_info{block_size=\"16\",num_gpu_blocks=\"1000\"} 1\nvllm:num_requests_waiting 0\n", map[Signal]float64{KVTokens: 16000, KVBlock: 16, Waiting: 0}, nil},
		"no blocks":         {"vllm:cache_config_info{block_size=\"16\",num_gpu_blocks=\"None\",kv_cache_size_tokens=\"None\"} 1\nvllm:num_requests_waiting 0\n", map[Signal]float64{KVBlock: 16, Waiting: 0}, nil},
		"two engines":       {"tgi_queue_size 5\nvllm:num_requests_waiting 2\nvllm:num_requests_running 1\nDCGM_FI_DEV_GPU_TEMP 50\n", map[Signal]float64{Waiting: 2, Running: 1, GPUTemperature: 50}, nil},
		"began":             {"vllm:num_requests_waiting 2\nprocess_start_time_seconds 1.7e9\nx_created 1.6e9\n", map[Signal]float64{Waiting: 2, ProcessStart: 1.7e9}, nil},
		"created":           {"vllm:num_requests_waiting 2\nx_created{a=\"b c\"} 1.8e9\ny_created 1.7e9\nz_created -5\n", map[Signal]float64{Waiting: 2, ProcessStart: 1.7e9}, nil},
		"several workers":   {"vllm:num_requests_waiting 2\nprocess_start_time_seconds{r=\"1\"} 1.8e9\nprocess_start_time_seconds{r=\"0\"} 1.7e9\n", map[Signal]float64{Waiting: 2, ProcessStart: 1.7e9}, nil},
		"never began":       {"vllm:num_requests_waiting 2\nprocess_start_time_seconds 0\n", map[Signal]float64{Waiting: 2}, nil},
		"an exporter":       {"DCGM_FI_DEV_GPU_TEMP 50\nprocess_cpu_seconds_total 5\n", map[Signal]float64{GPUTemperature: 50}, nil},
		"other metrics":     {"go_goroutines 5\nprocess_cpu_seconds_total 5\n", nil, ErrUnknownMetrics},
		"HTML":              {"<!doctype html>\n<html lang=\"en\"><body>vllm:num_requests_waiting 2</body></html>\n", nil, ErrNoMetrics},
		"JSON":              {`{"iterationStats": []}`, nil, ErrNoMetrics},
		"nothing":           {"", nil, ErrNoMetrics},
		"comments":          {"# HELP a b\n# TYPE a gauge\n", nil, ErrNoMetrics},
		"bytes":             {"\x00\xff\xfe{\"\n{{{{{{ 1\n", nil, ErrUnknownMetrics},
		"more JSON":         {"{\"a\": 1,\n \"b\": 2}", nil, ErrUnknownMetrics},
	} {
		r, err := names.Read([]byte(c.page))
		if !errors.Is(err, c.err) || err == nil && !maps.Equal(r.Values, c.want) {
			t.Errorf("%s: %v, %v, want %v, %v", name, r.Values, err, c.want, c.err)
		}
	}
}

// No page makes more of itself than numbers, and it makes the same of it again.
func FuzzRead(f *testing.F) {
	for _, name := range []string{"odd", "open", "sglang", "dcgm", "amd", "node", "llamacpp", "tgi"} {
		f.Add(page(f, name))
	}
	f.Add([]byte("{\"vllm:num_requests_running\",engine=\"0\"} 3 17637 # {a=\"b\"} 1\n"))
	f.Add([]byte("vllm:cache_config_info{num_gpu_blocks=\"1e300\",block_size=\"1e300\"} 1"))
	f.Fuzz(func(t *testing.T, page []byte) {
		r, err := names.Read(page)
		again, _ := names.Read(page)
		if !maps.Equal(r.Values, again.Values) {
			t.Errorf("%v, and again %v", r.Values, again.Values)
		}
		if err == nil && len(r.Sources) == 0 {
			t.Error("of nobody")
		}
		for signal, x := range r.Values {
			if !IsNumber(x) || Index[signal] == nil {
				t.Errorf("%s is %v", signal, x)
			}
		}
	})
}

// Every name of the table is of a signal, and every signal is told by something.
func TestTable(t *testing.T) {
	told := map[Signal]bool{}
	for _, s := range append(slices.Clone(names.Sources()), Source{Names: ProcessNames}) {
		for _, n := range s.Names {
			if Index[n.Signal] == nil {
				t.Errorf("%s: %s is no signal", s.Name, n.Signal)
			}
			told[n.Signal] = true
		}
	}
	apart := []Signal{GPUThrottledPower, GPUThrottledHeat, ServerCPU, ListenerCPU, ListenerWait, ServerProcesses} // by room telemetry/local
	for _, d := range AllSignals() {
		if !told[d.Signal] && !slices.Contains(apart, d.Signal) {
			t.Errorf("nothing tells %s", d.Signal)
		}
	}
}

func BenchmarkRead(b *testing.B) {
	data := page(b, "vllm-0.32")
	b.SetBytes(int64(len(data)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := names.Read(data); err != nil {
			b.Fatal(err)
		}
	}
}
