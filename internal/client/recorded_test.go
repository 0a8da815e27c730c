package client

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"pitot/internal/client/api"
	"pitot/internal/client/stamp"
	"pitot/internal/results/record"
)

var update = flag.Bool("update", false, "rewrite what recorded answers come to")

// recordedAnswers are the answers in testdata/recorded, whose names begin with the API's.
func recordedAnswers(t testing.TB) (all []recordedAnswer) {
	files, err := filepath.Glob("testdata/recorded/*.http")
	if err != nil || len(files) == 0 {
		t.Fatal("no recorded answers", err)
	}
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		name := strings.TrimSuffix(filepath.Base(file), ".http")
		short, _, _ := strings.Cut(name, "-")
		all = append(all, recordedAnswer{name, apiOf(t, short), string(b)})
	}
	return all
}

// recordedAnswer is what a server sent over one connection.
type recordedAnswer struct {
	name  string
	api   api.API
	bytes string
}

// apiOf is the API whose name is, or ends in, a word.
func apiOf(t testing.TB, word string) api.API {
	for _, a := range api.All() {
		if a.Name() == word || a.Name() == "openai-"+word {
			return a
		}
	}
	t.Fatalf("no API is called %s", word)
	return nil
}

// play gives it to an exchange in reads.
func (a *recordedAnswer) play(reads ...read) (*Exchange, []record.Chunk) {
	return playAs(a.api, !strings.Contains(a.name, "whole"), nil, reads...)
}

// What recorded answers come to stands in testdata; however they are split, it is the
// same.
func TestRecordedAnswers(t *testing.T) {
	const golden = "testdata/recorded/digests.txt"
	var got strings.Builder
	for _, a := range recordedAnswers(t) {
		whole := digest(a.play(read{a.bytes, 10, false}))
		got.WriteString(a.name + ": " + whole + "\n")
		for i := 1; i < len(a.bytes); i++ {
			if split := digest(a.play(read{a.bytes[:i], 10, false}, read{a.bytes[i:], 20, false})); split != whole {
				t.Fatalf("%s, split at %d:\n got %s\nwant %s", a.name, i, split, whole)
			}
		}
	}
	if *update {
		if err := os.WriteFile(golden, []byte(got.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil || got.String() != string(want) {
		t.Errorf("%v got:\n%s\nwant:\n%s", err, got.String(), want)
	}
}

// With Spell an answer comes to the same, and the text of its chunks is as long as they say.
func TestRecordedAnswersSpelt(t *testing.T) {
	for _, a := range recordedAnswers(t) {
		sink := &kept{}
		x := NewExchange(a.api)
		x.Sink, x.Secret, x.Request, x.Asked, x.Spell = sink, testSecret, []byte("POST"), testAsked, true
		x.Begin(blank(!strings.Contains(a.name, "whole"), false))
		x.MarkSent(0)
		if !x.Feed([]byte(a.bytes), stamp.Arrival{Time: 10, Kernel: true}) {
			x.Close(1000, nil)
		}
		chunks, text := x.TakeSpelt()
		if got, want := digest(x, chunks), digest(a.play(read{a.bytes, 10, false})); got != want || len(sink.chunks) > 0 {
			t.Errorf("%s:\n got %s\nwant %s", a.name, got, want)
		}
		bytes := 0
		for _, c := range chunks {
			bytes += int(c.Bytes)
		}
		if bytes != len(text) && len(chunks) > 0 {
			t.Errorf("%s: chunks of %d bytes, text of %d: %q", a.name, bytes, len(text), text)
		}
	}
}

// Any number of splits, at any times.
func TestRecordedAnswersInPieces(t *testing.T) {
	all := recordedAnswers(t)
	rapid.Check(t, func(t *rapid.T) {
		a := rapid.SampledFrom(all).Draw(t, "answer")
		want := digest(a.play(read{a.bytes, 10, false}))
		var reads []read
		at := int64(0)
		for _, s := range split(t, a.bytes) {
			at += rapid.Int64Range(0, 3).Draw(t, "later")
			reads = append(reads, read{s, at, rapid.Bool().Draw(t, "more")})
		}
		x, chunks := a.play(reads...)
		if got := digest(x, chunks); got != want {
			t.Fatalf("%s:\n got %s\nwant %s", a.name, got, want)
		}
		checkTimes(t, &x.Row, chunks)
	})
}

// A stream without an end mark is complete when its body is, and not before.
func TestUnmarkedStream(t *testing.T) {
	text := streamHead + chunk(event(`{"text_output":" Hi"}`)) + chunk(event(`{"text_output":" you"}`))
	for body, want := range map[string]string{text + lastChunk: "ok 200", text: "failed closed 200"} {
		x, chunks := playAs(api.Triton, true, nil, read{body, 10, false})
		if got := digest(x, chunks); !strings.HasPrefix(got, want) || len(chunks) != 2 {
			t.Errorf("%s, want %s", got, want)
		}
	}
}
