package workload

import (
	"bytes"
	"compress/gzip"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"pitot/internal/say"
	"pitot/internal/workload/arrival"
)

func traceOf(text string) (*Trace, error) { return readTrace("", strings.NewReader(text)) }

// Traces of all kinds, each as its tool writes it.
func TestReadTrace(t *testing.T) {
	for name, c := range map[string]struct {
		text   string
		format string
		at     []int64
		input  []int32
	}{
		"azure": {"TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:15:46.6805900,374,44\n2023-11-16 18:15:50.9951690,396,109\n",
			"csv", []int64{1700158546680590000, 1700158550995169000}, []int32{374, 396}},
		"azure 2024": {"TIMESTAMP,ContextTokens,GeneratedTokens\n2024-05-10 00:00:00.009930+00:00,374,44\n2024-05-10 00:00:01.009930+00:00,3,4\n",
			"csv", []int64{1715299200009930000, 1715299201009930000}, []int32{374, 3}},
		"burstgpt": {"Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type\n5,ChatGPT,472,18,490,Conversation log\n45,ChatGPT,1087,230,1317,Conversation log\n",
			"csv", []int64{5e9, 45e9}, []int32{472, 1087}},
		"burstgpt 3": {"Timestamp,Session ID,Elapsed time,Model,Request tokens,Response tokens,Total tokens,Log Type\n19440110.0,1722ac82,43,GPT-4,906,446,1352,Conversation log\n",
			"csv", []int64{19440110e9}, []int32{906}},
		"mooncake": {"{\"timestamp\": 27482, \"input_length\": 6955, \"output_length\": 52, \"hash_ids\": [46, 47]}\n",
			"mooncake", []int64{27482e6}, []int32{6955}},
		"bailian": {`{"chat_id": 159, "parent_chat_id": -1, "timestamp": 61.114, "input_length": 41, "output_length": 12, "type": "text", "turn": 1, "hash_ids": [1089]}`,
			"bailian", []int64{61114e6}, []int32{41}},
		"ragpulse": {`{"timestamp": "82", "input_length": 3112, "output_length": 192, "hash_ids": {"sys_prompt": [8302]}, "session_id": "1757"}`,
			"ragpulse", []int64{82e9}, []int32{3112}},
		"times":    {"\ufeff0\n1.5\n\n0.25\r\n", "times", []int64{0, 25e7, 15e8}, nil},
		"no times": {"isl,osl\n5,6\n7,8\n", "csv", nil, []int32{5, 7}},
	} {
		got, err := traceOf(c.text)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if got.Format != c.format || !slices.Equal(got.At, c.at) || !slices.Equal(got.Input, c.input) {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// Rows that cannot be read are counted with the line of the first; a file of mostly such is
// none.
func TestTraceRejects(t *testing.T) {
	got, err := traceOf("timestamp,input_tokens\n1,5\nx,5\n2,-1\n3,1e99\n0.5,7\n4,1\n5,2\n6,2\n2,2,2\n")
	if err != nil {
		t.Fatal(err)
	}
	if got.Requests() != 5 || got.Records != 9 || got.Rejected["no time that is known"] != 1 || got.First["no time that is known"] != 3 ||
		got.Rejected["column 2 is no number of tokens"] != 2 || got.Unsorted != 1 {
		t.Errorf("%+v", got)
	}
	for text, want := range map[string]string{
		"":                                 "it is empty",
		"what is this":                     "is no trace",
		"a,b\n1,2\n":                       "no column of its header is known",
		"timestamp\n":                      "is no trace",
		"timestamp,input\n1,2\nx,2\ny,2\n": "2 of 3 rows cannot be read; line 3: no time",
		"{\"a\": 1}\n":                     "line 1: none of timestamp",
		"{\"timestamp\": 5\n":              "line 1: no JSON object",
		"5\nabc\nxyz\n":                    "2 of 3 rows",
	} {
		if _, err := traceOf(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

func TestTraceGzipped(t *testing.T) {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, _ = w.Write([]byte("0\n1\n3\n"))
	_ = w.Close()
	path := filepath.Join(t.TempDir(), "times.gz")
	if err := os.WriteFile(path, b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	law, err := arrival.ParseLaw("trace("+path+")", ArrivalFiles())
	if err != nil {
		t.Fatal(err)
	}
	p, err := law.NewProcess(law.OwnRate(), 1, 0)
	if err != nil || p.Next() != 0 || p.Next() != 1e9 || p.Next() != 3e9 {
		t.Errorf("times of a gzipped trace: %v", err)
	}
	if err := os.WriteFile(path, b.Bytes()[:b.Len()-6], 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadTrace(path); err == nil {
		t.Error("half a file was read")
	}
}

// What cannot be read any further ends it.
func TestReadTraceEnds(t *testing.T) {
	path := filepath.Join(t.TempDir(), "t.csv.gz")
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	_, _ = io.WriteString(z, "timestamp,input_tokens\n"+strings.Repeat("1,2\n", 20_000))
	_ = z.Close()
	if err := os.WriteFile(path, b.Bytes()[:b.Len()/2], 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadTrace(path); err == nil {
		t.Error("half a file was read")
	}
}

func FuzzReadTrace(f *testing.F) {
	f.Add("TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:15:46.6805900,374,44\n")
	f.Add("{\"timestamp\": 27482, \"input_length\": 6955, \"output_length\": 52, \"hash_ids\": [46, 47]}\n")
	f.Add("0\n1.5\n")
	f.Add(",GeneratedTokens\n\"") // ends within quotes
	f.Fuzz(func(t *testing.T, text string) {
		got, err := traceOf(text)
		if err != nil {
			return
		}
		n := got.Requests()
		if got.At != nil && (len(got.At) != n || !slices.IsSorted(got.At)) || got.Input != nil && len(got.Input) != n || got.Output != nil && len(got.Output) != n {
			t.Fatalf("%d requests: %+v", n, got)
		}
	})
}

func FuzzParseRates(f *testing.F) {
	f.Add("seconds,rate\n0,2\n10,8\n20\n")
	f.Fuzz(func(t *testing.T, text string) {
		times, rates, err := parseRates("f", strings.NewReader(text))
		if err == nil && (len(times) != len(rates)+1 || !slices.IsSorted(times)) {
			t.Fatalf("%v, %v", times, rates)
		}
		if err != nil {
			return
		}
		law, err := arrival.ParseLaw("piecewise(f)", arrival.Files{Rates: func(string) ([]float64, []float64, error) { return times, rates, nil }})
		if err != nil {
			return
		}
		p, err := law.NewProcess(1, 1, 0)
		last := int64(0)
		for range 10 {
			if due := p.Next(); due < last || err != nil {
				t.Fatalf("%d after %d, %v", due, last, err)
			} else {
				last = due
			}
		}
	})
}

// Columns are those that some row has, in the order of the times; equal times stay as they stood.
func TestColumnsOfTraces(t *testing.T) {
	for _, c := range []struct {
		name, text string
		want       Trace
	}{
		{"in order", "timestamp,input_tokens\n1,10\n2,20\n",
			Trace{At: []int64{1e9, 2e9}, Input: []int32{10, 20}}},
		{"out of order", "timestamp,input_tokens,output_tokens,client\n3,30,1,a\n1,10,2,b\n1,11,3,a\n",
			Trace{At: []int64{1e9, 1e9, 3e9}, Input: []int32{10, 11, 30}, Output: []int32{2, 3, 1}, Clients: []string{"b", "a", "a"}, Unsorted: 1}},
		{"clients from the second row on", "{\"timestamp\":2,\"input_length\":1}\n{\"timestamp\":1,\"input_length\":2,\"session_id\":\"x\"}\n",
			Trace{At: []int64{1e6, 2e6}, Input: []int32{2, 1}, Clients: []string{"x", ""}, Unsorted: 1}},
		{"ids from the second row on", "{\"timestamp\":1,\"input_length\":1}\n{\"timestamp\":2,\"input_length\":2,\"hash_ids\":[7,8]}\n",
			Trace{At: []int64{1e6, 2e6}, Input: []int32{1, 2}, Blocks: [][]int64{nil, {7, 8}}}},
		{"no times", "input_tokens,output_tokens\n3,1\n2,1\n",
			Trace{Input: []int32{3, 2}, Output: []int32{1, 1}}},
		{"times alone", "2\n1\n",
			Trace{At: []int64{1e9, 2e9}, Unsorted: 1}},
	} {
		got, err := readTrace("", strings.NewReader(c.text))
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		got = &Trace{At: got.At, Input: got.Input, Output: got.Output, Clients: got.Clients, Blocks: got.Blocks, Unsorted: got.Unsorted}
		if diff := cmp.Diff(&c.want, got); diff != "" {
			t.Errorf("%s: %s", c.name, diff)
		}
	}
}

// A trace that is kept in memory has a bound, whatever it is made of.
func TestTraceIsBounded(t *testing.T) {
	for name, c := range map[string]columns{
		"rows": {names: map[string]string{}, at: make([]int64, mostTraceRows)},
		"ids":  {names: map[string]string{}, ids: mostTraceIDs},
	} {
		if err := c.add(&row{blocks: []int64{1}}); err == nil || say.HintOf(err) == "" {
			t.Errorf("%s: %v", name, err)
		}
	}
}
