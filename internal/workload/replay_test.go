package workload

import (
	"cmp"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func replay(t testing.TB, path string, c ReplayConfig) *Replay {
	t.Helper()
	rows, err := OpenRows(path)
	if err != nil {
		t.Fatal(err)
	}
	r, err := rows.NewReplay(c)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func replayed(t testing.TB, r *Replay, i int64) Request {
	t.Helper()
	q, err := r.At(i)
	if err != nil {
		t.Fatal(err)
	}
	return q
}

func wordsOf(q Request) (n int) {
	for _, m := range q.Messages {
		for _, s := range m.Segments {
			n += s.Words
		}
	}
	return n
}

// Blocks are the same words wherever their id stands, whole but for the last of a prompt; what
// ids leave over is the row's own, and what is too many of them is left out.
func TestReplayBlocks(t *testing.T) {
	rows := `{"timestamp": 0, "input_length": 1100, "output_length": 5, "hash_ids": [7, 8, 9]}
{"timestamp": 1, "input_length": 1024, "output_length": 5, "hash_ids": [7, 8]}
{"timestamp": 2, "input_length": 600, "output_length": 0, "hash_ids": [7, 8, 9, 10]}
{"timestamp": 3, "input_length": 1100, "output_length": 5, "hash_ids": [7]}
{"timestamp": 4, "input_length": 300, "output_length": 5}
{"timestamp": 5, "input_length": 300, "hash_ids": [7]}
{"timestamp": 6, "input_length": 512, "output_length": 5, "hash_ids": [8]}
`
	r := replay(t, written(t, rows), ReplayConfig{Nonce: 4, Output: FixedLength(9)})
	block := func(i int64, k int) Segment { return replayed(t, r, i).Messages[0].Segments[k] }
	sizes := func(i int64) (n []int) {
		for _, s := range replayed(t, r, i).Messages[0].Segments {
			n = append(n, s.Words)
		}
		return n
	}
	for i, want := range [][]int{{512, 512, 76}, {512, 512}, {512, 88}, {512, 588}, {300}, {300}, {512}} {
		if got := sizes(int64(i)); !slices.Equal(got, want) {
			t.Errorf("row %d: segments of %v words, want %v", i, got, want)
		}
	}
	if block(0, 0) != block(1, 0) || block(0, 1) != block(1, 1) || block(6, 0) != block(0, 1) || block(5, 0).Seed != block(0, 0).Seed {
		t.Error("one id, several texts")
	}
	if block(3, 1).Seed == block(0, 1).Seed || block(4, 0).Seed == block(0, 0).Seed {
		t.Error("what is a row's own is shared")
	}
	if a, b := replayed(t, r, 2).Output, replayed(t, r, 5).Output; a != 1 || b != 9 {
		t.Errorf("answers of %d and %d tokens", a, b)
	}
	again := replayed(t, r, 7) // of the next pass
	if again.Messages[0].Segments[0].Seed == block(0, 0).Seed || again.Input != 1100 || again.ID != 7 {
		t.Error("the second pass repeats the words of the first")
	}
	if other := replay(t, written(t, rows), ReplayConfig{Nonce: 5}); replayed(t, other, 0).Messages[0].Segments[0] == block(0, 0) {
		t.Error("another nonce, the same words")
	}
	// What a server counts is the recorded length, whatever it makes of a word.
	c := replay(t, written(t, rows), ReplayConfig{Calibration: Calibration{Overhead: 12, PerWord: 2}})
	if q := replayed(t, c, 0); wordsOf(q) != 544 || q.Input != 1100 || q.Messages[0].Segments[0].Words != 256 {
		t.Errorf("%+v", q)
	}
}

// RAGPulse says which part of a prompt is shared, and beside it how long each is.
func TestReplayComponents(t *testing.T) {
	r := replay(t, filepath.Join("testdata", "ragpulse", "0_trace_head20.jsonl"), ReplayConfig{})
	if r.rows.Len() != 20 {
		t.Fatalf("%d rows", r.rows.Len())
	}
	shared := map[Segment]int{}
	for i := range int64(20) {
		q := replayed(t, r, i)
		for _, s := range q.Messages[0].Segments {
			shared[s]++
		}
		if own := q.Messages[0].Segments[len(q.Messages[0].Segments)-1]; wordsOf(q) != q.Input || own.Words > 20 {
			t.Errorf("row %d: %d words for %d tokens, %d of them in no component", i, wordsOf(q), q.Input, own.Words)
		}
	}
	most := 0
	for s, n := range shared {
		if n > 15 && s.Words == 512 {
			most++
		}
	}
	if most == 0 {
		t.Error("no system prompt is shared")
	}
	// Without the side files nothing is known to be shared.
	data, err := os.ReadFile(filepath.Join("testdata", "ragpulse", "0_trace_head20.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	alone := replay(t, written(t, string(data)), ReplayConfig{})
	if q := replayed(t, alone, 0); len(q.Messages[0].Segments) != 1 || wordsOf(q) != q.Input {
		t.Errorf("%+v", q)
	}
}

// Whatever the order of the rows, requests come in the order of their times, rows of one time
// as they stand; a row that cannot be read is counted, with its line.
func TestReplayInOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		type r struct{ at, in int }
		list := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) r {
			return r{rapid.IntRange(0, 20).Draw(t, "at"), rapid.IntRange(1, 5000).Draw(t, "in")}
		}), 1, 50).Draw(t, "rows")
		var b strings.Builder
		b.WriteString("timestamp,input_tokens,output_tokens\n")
		for _, x := range list {
			b.WriteString(strings.Join([]string{strconv.Itoa(x.at), strconv.Itoa(x.in), "3"}, ",") + "\n")
		}
		path := filepath.Join(os.TempDir(), "pitot-replay-in-order")
		if err := os.WriteFile(path, []byte(b.String()), 0o600); err != nil {
			t.Fatal(err)
		}
		defer os.Remove(path)
		rows, err := openRows(path)
		if err != nil {
			t.Fatal(err)
		}
		defer rows.file.Close()
		w, err := rows.NewReplay(ReplayConfig{})
		if err != nil {
			t.Fatal(err)
		}
		slices.SortStableFunc(list, func(a, b r) int { return cmp.Compare(a.at, b.at) })
		times := make([]int64, len(list))
		rows.Times(times, 0)
		for i, want := range list {
			q, err := w.At(int64(i))
			if err != nil || q.Input != want.in || times[i] != int64(want.at)*1e9 {
				t.Fatalf("request %d: %d tokens at %d, want %+v: %v", i, q.Input, times[i], want, err)
			}
		}
	})
}

// A file that changes under a run is noticed, and one that cannot be asked says why.
func TestReplayErrors(t *testing.T) {
	path := written(t, "timestamp,input_tokens\n0,100\n1,200\n")
	r := replay(t, path, ReplayConfig{})
	if err := os.WriteFile(path, []byte("timestamp,input_tokens\n0,900\n1,200\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := r.At(0); err == nil || !strings.Contains(err.Error(), "has changed") {
		t.Errorf("a changed file: %v", err)
	}
	for text, want := range map[string]string{
		"0\n1\n":                                 "times and no lengths",
		"{\"timestamp\": 1}\n{\"timestamp\": 2}": "times and no lengths",
		"{\"timestamp\": 1, \"input_length\": 5}\n{\"timestamp\": 2}": "1 of the 2 rows",
	} {
		rows, err := OpenRows(written(t, text))
		if err == nil {
			_, err = rows.NewReplay(ReplayConfig{})
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}

// Lines that are too long, cut or of other characters are counted, and the others asked.
func TestRowsRejected(t *testing.T) {
	good := `{"timestamp": 1, "input_length": 5, "output_length": 6}` + "\n"
	text := good + good + good + good + `{"timestamp": 1, "input_length": 5, "x": "` + strings.Repeat("a", mostRow) + `"}` + "\n" +
		"\xff\xfe\xfd\n" + `{"timestamp": 2, "input_length": -1}` + "\n" + good + `{"timestamp": 9, "input_le`
	rows, err := openRows(written(t, text))
	if err != nil {
		t.Fatal(err)
	}
	defer rows.file.Close()
	if rows.Len() != 5 || rows.count.Records != 9 || rows.count.First["a line of more than 16 MiB"] != 5 ||
		rows.count.First["a length that is no number of tokens"] != 7 || rows.count.Rejected["no JSON object with timestamp, input_length and output_length"] != 2 {
		t.Errorf("%d rows, %+v", rows.Len(), rows.count)
	}
}
