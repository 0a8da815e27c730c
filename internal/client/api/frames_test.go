package api

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// ev is a server-sent event.
type ev struct{ Name, Data string }

// events reads a stream that comes in the given reads.
func events(t interface{ Fatal(...any) }, reads ...string) (got []ev) {
	var p Frames
	take := func(name, data []byte) error {
		got = append(got, ev{string(name), string(data)})
		return nil
	}
	for _, r := range reads {
		if err := p.Feed([]byte(r), nil, take); err != nil {
			t.Fatal(err)
		}
	}
	if err := p.FlushEvent(take); err != nil {
		t.Fatal(err)
	}
	return got
}

var sseCases = []struct {
	name, stream string
	want         []ev
}{
	{"nothing", "", nil},
	{"LF", "data: a\n\ndata: b\n\n", []ev{{"", "a"}, {"", "b"}}},
	{"CRLF", "data: a\r\n\r\ndata: b\r\n\r\n", []ev{{"", "a"}, {"", "b"}}},
	{"CR", "data: a\r\rdata: b\r\r", []ev{{"", "a"}, {"", "b"}}},
	{"mixed ends", "data: a\r\n\ndata: b\n\r\ndata: c\r\r\ndata: d\n\r", []ev{{"", "a"}, {"", "b"}, {"", "c"}, {"", "d"}}},
	{"no space", "data:a\n\ndata:  b\n\n", []ev{{"", "a"}, {"", " b"}}},
	{"several lines", "data: a\ndata:\ndata\ndata: d\n\n", []ev{{"", "a\n\n\nd"}}},
	{"empty data", "data\n\ndata:\n\n", []ev{{"", ""}, {"", ""}}},
	{"names", "event: x\ndata: a\n\ndata: b\n\nevent:y\ndata: c\n\n", []ev{{"x", "a"}, {"", "b"}, {"y", "c"}}},
	{"name behind the data", "data: a\nevent: x\n\n", []ev{{"x", "a"}}},
	{"a name alone is no event", "event: x\n\ndata: a\n\n", []ev{{"", "a"}}},
	{"comments", ": ping\n\n:\ndata: a\n: in between\ndata: b\n\n: end\n\n", []ev{{"", "a\nb"}}},
	{"other fields", "id: 7\nretry: 10\nfoo: bar\ndatax: no\nDATA: no\ndata: a\n\n", []ev{{"", "a"}}},
	{"many blank lines", "\n\n\r\n\rdata: a\n\n\n\n\ndata: b\n\n", []ev{{"", "a"}, {"", "b"}}},
	{"byte order mark", "\xef\xbb\xbfdata: a\n\n", []ev{{"", "a"}}},
	{"a later mark is no mark", "data: a\n\n\xef\xbb\xbfdata: b\n\ndata: c\n\n", []ev{{"", "a"}, {"", "c"}}},
	{"last empty line missing", "data: a\n\ndata: b\n", []ev{{"", "a"}, {"", "b"}}},
	{"last line end missing", "data: a\n\nevent: x\ndata: b", []ev{{"", "a"}, {"x", "b"}}},
	{"only CR of the end", "data: a\r\n\r", []ev{{"", "a"}}},
	{"JSON with everything", "data: {\"a\":\"b: c\"}\n\ndata: [DONE]\n\n", []ev{{"", `{"a":"b: c"}`}, {"", "[DONE]"}}},
	{"a character of several bytes", "data: é😀\n\n", []ev{{"", "é😀"}}},
}

func TestSSE(t *testing.T) {
	for _, c := range sseCases {
		if diff := cmp.Diff(c.want, events(t, c.stream)); diff != "" {
			t.Errorf("%s: (-want +got)\n%s", c.name, diff)
		}
		if diff := cmp.Diff(c.want, events(t, strings.Split(c.stream, "")...)); diff != "" {
			t.Errorf("%s, byte by byte: (-want +got)\n%s", c.name, diff)
		}
		for i := range c.stream {
			if diff := cmp.Diff(c.want, events(t, c.stream[:i], c.stream[i:])); diff != "" {
				t.Errorf("%s, split at %d: (-want +got)\n%s", c.name, i, diff)
			}
		}
	}
}

// plainEvents reads a whole stream the slow way: line by line, as the
// standard tells it.
func plainEvents(stream string) (got []ev) {
	stream = strings.TrimPrefix(stream, "\xef\xbb\xbf")
	stream = strings.ReplaceAll(strings.ReplaceAll(stream, "\r\n", "\n"), "\r", "\n")
	var data []string
	var name string
	for _, line := range append(strings.Split(stream, "\n"), "") {
		field, value, _ := strings.Cut(line, ":")
		value = strings.TrimPrefix(value, " ")
		switch {
		case line == "":
			if data != nil {
				got = append(got, ev{name, strings.Join(data, "\n")})
			}
			data, name = nil, ""
		case field == "data":
			data = append(data, value)
		case strings.HasPrefix(line, "event:"):
			name = value
		}
	}
	return got
}

// Any split gives the events that the standard's algorithm gives of the whole.
func TestSSEProperty(t *testing.T) {
	piece := rapid.SampledFrom([]string{"data: a", "data:", "data", "event: x", ": c", "id: 1", "\n", "\n", "\r\n", "\r", "\n\n", "\r\n\r\n", "data: b\n\n", "\xef\xbb\xbf", "z", " "})
	rapid.Check(t, func(t *rapid.T) {
		stream := strings.Join(rapid.SliceOfN(piece, 0, 30).Draw(t, "pieces"), "")
		reads := split(t, stream)
		if got, want := events(t, reads...), plainEvents(stream); !slices.Equal(got, want) {
			t.Fatalf("%q gives %q, want %q", reads, got, want)
		}
	})
}

// split cuts a text into reads.
func split(t *rapid.T, text string) (reads []string) {
	for len(text) > 0 {
		n := rapid.IntRange(1, max(1, min(len(text), 40))).Draw(t, "read")
		reads, text = append(reads, text[:n]), text[n:]
	}
	return reads
}

func TestSSEBoundsEvents(t *testing.T) {
	none := func(name, data []byte) error { t.Error("an event"); return nil }
	long := strings.Repeat("x", 1<<20)
	for _, line := range []string{long, "data: " + long + "\n", "event: " + long + "\n"} {
		var p Frames
		var err error
		fed := 0
		for ; err == nil && fed < 2*MaxEvent; fed += len(line) {
			err = p.Feed([]byte(line), nil, none)
		}
		if held := cap(p.line) + cap(p.data) + cap(p.name); held > 3*MaxEvent {
			t.Errorf("endless %.7q: %d bytes held", line, held)
		}
		if err == nil && line[0] != 'e' { // a name is replaced by the next
			t.Errorf("endless %.7q is taken", line)
		}
	}
}

// An event that begins like the last one is asked for ahead, and cut out where it is not known.
// What stood before its data counts as the same only where nothing stands before that.
func TestSSEAhead(t *testing.T) {
	const stream = "event: x\ndata: ab\n\nevent: x\ndata: ab\n\nevent: x\ndata: cd\n\nevent: x\ndata: ab\ndata: e\n\ndata: ab\n\nevent: y\nevent: x\ndata: ab\n\ndata: ab\n: c\n\nevent: x\ndata: ab\n\n"
	for _, end := range []string{"\n", "\r\n"} {
		stream := strings.ReplaceAll(stream, "\n", end)
		for cut := range len(stream) + 1 {
			var p Frames
			var got []ev
			known := 0
			ahead := func(data []byte) (int, error) {
				if !strings.HasPrefix(string(data), "ab"+end+end) {
					return 0, nil
				}
				known++
				name, _ := strings.CutSuffix(string(p.head), "data: ")
				got = append(got, ev{strings.TrimPrefix(strings.TrimSpace(name), "event: "), "ab"})
				return len("ab" + end + end), nil
			}
			take := func(name, data []byte) error {
				got = append(got, ev{string(name), string(data)})
				return nil
			}
			for _, read := range []string{stream[:cut], stream[cut:]} {
				if err := p.Feed([]byte(read), ahead, take); err != nil {
					t.Fatal(err)
				}
			}
			if want := plainEvents(stream); !slices.Equal(got, want) {
				t.Errorf("cut at %d: %q, want %q", cut, got, want)
			}
			if cut == len(stream) && known != 2 {
				t.Errorf("%d events were known", known)
			}
			if p.HasPending() {
				t.Errorf("cut at %d: something is pending", cut)
			}
		}
	}
}

func TestSSEStopsAtAnError(t *testing.T) {
	var p Frames
	stop, n := errors.New("stop"), 0
	err := p.Feed([]byte("data: a\n\ndata: b\n\n"), nil, func(name, data []byte) error { n++; return stop })
	if err != stop || n != 1 {
		t.Errorf("%v after %d events", err, n)
	}
}

func FuzzSSE(f *testing.F) {
	for _, c := range sseCases {
		f.Add(c.stream, uint8(3))
	}
	f.Fuzz(func(t *testing.T, stream string, every uint8) {
		want := plainEvents(stream)
		var reads []string
		for b := range slices.Chunk([]byte(stream), max(int(every), 1)) {
			reads = append(reads, string(b))
		}
		if got := events(t, reads...); !slices.Equal(got, want) {
			t.Fatalf("%q gives %q, want %q", reads, got, want)
		}
	})
}

// JSON lines are events without a name, however they are cut.
func TestJSONLines(t *testing.T) {
	const stream = "{\"a\":1}\n\n {\"b\":2} \r\n{\"c\":3}"
	for cut := range stream {
		var p Frames
		p.Reset(JSONLines)
		var got []string
		take := func(name, data []byte) error {
			got = append(got, string(name)+string(data))
			return nil
		}
		for _, part := range []string{stream[:cut], stream[cut:]} {
			if err := p.Feed([]byte(part), nil, take); err != nil {
				t.Fatal(err)
			}
		}
		if err := p.FlushEvent(take); err != nil {
			t.Fatal(err)
		}
		if want := []string{`{"a":1}`, `{"b":2}`, `{"c":3}`}; !slices.Equal(got, want) {
			t.Errorf("cut at %d: %q", cut, got)
		}
	}
}
