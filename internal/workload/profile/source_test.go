package profile

import (
	"fmt"
	"math"
	"reflect"
	"strings"
	"testing"

	"pitot/internal/workload"
	"pitot/internal/workload/arrival"
)

// What is asked of a profile is like its log: lengths, what is shared, sessions; the same
// each time it is asked for, and as long as it says.
func TestSourceIsLikeItsLog(t *testing.T) {
	list := traffic(600)
	p, _ := profileOf(t, logOf("openai", list, letters), Options{5, 2})
	src, err := NewSource(p, Config{Seed: 3, Nonce: 4})
	if err != nil {
		t.Fatal(err)
	}
	turns, ok := src.(workload.Sessions)
	if !ok {
		t.Fatal("no sessions")
	}
	const sessions = 1000
	var asked, input, output, begin int
	for i := range int64(sessions) {
		for next := []workload.Next{{Item: i}}; len(next) > 0; next = turns.Follow(next[0].Item, true) {
			r, err := src.At(next[0].Item)
			if err != nil {
				t.Fatal(err)
			}
			again, err := src.At(next[0].Item)
			if err != nil || !reflect.DeepEqual(r, again) {
				t.Fatalf("item %d is another the second time: %v", next[0].Item, err)
			}
			words := 0
			for _, m := range r.Messages {
				for _, s := range m.Segments {
					words += s.Words
				}
			}
			if words != r.Input || r.Input < 1 || r.Output < 1 || r.Session != i {
				t.Fatalf("%+v has %d words", r, words)
			}
			if next[0].After < 0 {
				t.Fatalf("a pause of %s", next[0].After)
			}
			if len(r.Messages[0].Segments) > 1 {
				begin++
			}
			asked, input, output = asked+1, input+r.Input, output+r.Output
		}
	}
	if turns.Follow(0, false) != nil {
		t.Error("a session goes on behind an answer that did not come")
	}
	var wantIn, wantOut, known int
	met := map[int]bool{}
	for _, a := range list {
		wantIn, wantOut = wantIn+a.input, wantOut+a.output
		met[a.session] = true
	}
	known = len(met)
	near := func(what string, got, want, within float64) {
		if math.Abs(got/want-1) > within {
			t.Errorf("%s: %.4g, want %.4g", what, got, want)
		}
	}
	near("turns of a session", float64(asked)/sessions, float64(len(list))/float64(known), 0.08)
	near("tokens of a prompt", float64(input)/float64(asked), float64(wantIn)/float64(len(list)), 0.1)
	near("tokens of an answer", float64(output)/float64(asked), float64(wantOut)/float64(len(list)), 0.1)
	if begin < asked/2 {
		t.Errorf("%d of %d prompts begin as others do", begin, asked)
	}
}

// What prompts have in common is the same text: two that begin with one stretch begin with
// the same segments, and one that begins as one before holds the beginning of that.
func TestSharedBeginnings(t *testing.T) {
	p := &Profile{Schema: Schema, Requests: 100, Anonymity: Anonymity{5, 0},
		Classes:  []Class{{Name: "class-1", Requests: 100, Lengths: &Lengths{Buckets: [][5]int{{512, 1024, 10, 20, 100}}}}},
		Prefixes: &Prefixes{Requests: 100, Prompts: [][2]int{{9, 100}}, Nodes: [][2]int{{0, 100}, {1, 200}}, Uses: [][3]int{{9, 1, 40}, {9, 2, 60}}, Again: [][6]int{{9, 400, 420, 1, 4, 50}}},
	}
	if err := p.Check(); err != nil {
		t.Fatal(err)
	}
	src, err := NewSource(p, Config{Seed: 1, Nonce: 2})
	if err != nil {
		t.Fatal(err)
	}
	// words are the first so many words of a prompt, each as its segment and place.
	type word struct {
		seed  uint64
		place int
	}
	prompt := func(i int64) (out []word) {
		r, err := src.At(i)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range r.Messages[0].Segments {
			for k := range s.Words {
				out = append(out, word{s.Seed, k})
			}
		}
		return out
	}
	const n = 400
	var all [][]word
	again := 0
	for i := range int64(n) {
		w := prompt(i)
		best := 0
		for _, before := range all[max(0, len(all)-4):] {
			k := 0
			for k < min(len(w), len(before)) && w[k] == before[k] {
				k++
			}
			best = max(best, k)
		}
		if i > 0 && best < 100 {
			t.Fatalf("request %d begins as none of the four before it: %d words", i, best)
		}
		if best >= 400 {
			again++
		}
		all = append(all, w)
	}
	if share := float64(again) / n; math.Abs(share-0.5) > 0.1 {
		t.Errorf("%.2f of the requests begin with 400 words of one before", share)
	}
}

// Arrivals of a profile are like those of its log, of which there were bursts: their rate, the
// gaps between them, and how many come in 1, 10 and 60 s.
func TestArrivalsAreLikeTheirLog(t *testing.T) {
	const n = 8000
	written, err := arrival.ParseLaw("mmpp(1:20s,5:5s)", arrival.Files{})
	if err != nil {
		t.Fatal(err)
	}
	process, err := written.NewProcess(5, 5, 0)
	if err != nil {
		t.Fatal(err)
	}
	var log strings.Builder
	log.WriteString("timestamp,input_tokens,output_tokens\n")
	due := make([]int64, n)
	for i := range due {
		due[i] = process.Next()
		fmt.Fprintf(&log, "%.6f,%d,%d\n", float64(due[i])/1e9, 700+i*7919%700, 20+i*104729%80)
	}
	p, _ := profileOf(t, log.String(), Options{5, 2})
	law, err := p.ArrivalLaw()
	if err != nil {
		t.Fatal(err)
	}
	if process, err = law.NewProcess(law.OwnRate(), 1, 0); err != nil {
		t.Fatal(err)
	}
	made := make([]int64, n)
	for i := range made {
		made[i] = process.Next()
	}
	if d := GapDistance(due, made); d > 0.03 {
		t.Errorf("gaps are %.3f apart", d)
	}
	want, got := arrival.ObserveTimes(due), arrival.ObserveTimes(made)
	near := func(what string, got, want, within float64) {
		if math.Abs(got/want-1) > within {
			t.Errorf("%s: %.4g, want %.4g", what, got, want)
		}
	}
	near("rate", got.Rate, want.Rate, 0.05)
	near("CV of the gaps", got.CV, want.CV, 0.05)
	for i, scale := range arrival.Scales {
		near(fmt.Sprintf("dispersion at %g s", scale), got.Dispersion[i], want.Dispersion[i], 0.15)
	}
}
