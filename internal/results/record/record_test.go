package record

import (
	"iter"
	"os"
	"reflect"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// contents is what frames hold, without their bounds.
type contents struct {
	Chunks  map[int32][]Chunk // by point
	Rows    map[int32][]Row
	Samples map[int32][]Sample
	Marks   map[int32][]Mark
}

func newContents() contents {
	return contents{map[int32][]Chunk{}, map[int32][]Row{}, map[int32][]Sample{}, map[int32][]Mark{}}
}

func (c contents) add(f Frame) {
	c.Chunks[f.Point] = append(c.Chunks[f.Point], f.Chunks...)
	c.Rows[f.Point] = append(c.Rows[f.Point], f.Rows...)
	c.Samples[f.Point] = append(c.Samples[f.Point], f.Samples...)
	c.Marks[f.Point] = append(c.Marks[f.Point], f.Marks...)
}

// diff compares records; an empty list is as good as none.
func (c contents) diff(other contents) string {
	for _, m := range []contents{c, other} {
		for p, v := range m.Chunks {
			if len(v) == 0 {
				delete(m.Chunks, p)
			}
		}
		for p, v := range m.Rows {
			if len(v) == 0 {
				delete(m.Rows, p)
			}
		}
		for p, v := range m.Samples {
			if len(v) == 0 {
				delete(m.Samples, p)
			}
		}
		for p, v := range m.Marks {
			if len(v) == 0 {
				delete(m.Marks, p)
			}
		}
	}
	return cmp.Diff(c, other)
}

type fataler interface{ Fatalf(string, ...any) }

// collect reads all frames. It checks what every frame promises: one point,
// and no chunk of a request after its row.
func collect(t fataler, frames iter.Seq2[Frame, error]) contents {
	got := newContents()
	type request struct {
		point int32
		id    int64
	}
	ended := make(map[request]bool)
	for f, err := range frames {
		if err != nil {
			t.Fatalf("frames: %v", err)
		}
		got.add(f)
		for _, c := range f.Chunks {
			if ended[request{f.Point, c.Request}] {
				t.Fatalf("chunk of request %d of point %d comes after its row", c.Request, f.Point)
			}
		}
		for _, r := range f.Rows {
			if r.Point != f.Point {
				t.Fatalf("row of point %d in a frame of point %d", r.Point, f.Point)
			}
			ended[request{f.Point, r.ID}] = true
		}
	}
	return got
}

// A step is one thing a run tells its journal.
type step struct {
	point  *int32
	chunk  *Chunk
	row    *Row
	sample *Sample
	mark   *Mark
	flush  bool
}

// drawSteps makes a run: any values, ids that come again in every point, and
// the one rule there is, that a request is over once its row was written.
func drawSteps(t *rapid.T) []step {
	point := int32(0)
	ended := map[int64]bool{}
	var steps []step
	for range rapid.IntRange(0, 60).Draw(t, "steps") {
		switch rapid.IntRange(0, 9).Draw(t, "what") {
		case 0:
			point += rapid.Int32Range(1, 3).Draw(t, "point")
			clear(ended)
			steps = append(steps, step{point: new(point)})
		case 1:
			steps = append(steps, step{flush: true})
		case 2:
			s := rapid.Make[Sample]().Draw(t, "sample")
			s.Point = max(0, point-rapid.Int32Range(0, 1).Draw(t, "late"))
			steps = append(steps, step{sample: &s})
		case 3:
			m := rapid.Make[Mark]().Draw(t, "mark")
			m.Point, m.Data = point, []byte(`{"k":"<é>"}`)
			steps = append(steps, step{mark: &m})
		case 4, 5:
			r := rapid.Make[Row]().Draw(t, "row")
			r.ID, r.Outcome, r.Point = rapid.Int64Range(0, 9).Draw(t, "id"), r.Outcome&3, point
			r.After = max(r.After&(1<<workerShift-1), Unset)
			if rapid.Bool().Draw(t, "unset") {
				r.FirstToken, r.Session, r.PromptTokens = Unset, Unset, Unset
			}
			if !ended[r.ID] {
				steps = append(steps, step{row: &r})
			}
			ended[r.ID] = true
		default:
			c := rapid.Make[Chunk]().Draw(t, "chunk")
			c.Request, c.Kind = rapid.Int64Range(0, 9).Draw(t, "id"), c.Kind&3
			if rapid.Bool().Draw(t, "usual") {
				c.Earliest, c.Tokens, c.Choice = c.T, c.Tokens&1, 0
			}
			if !ended[c.Request] {
				steps = append(steps, step{chunk: &c})
			}
		}
	}
	return steps
}

// play writes steps to a journal in dir and gives what it then holds.
func play(t fataler, dir string, steps []step) contents {
	j, err := Create(dir)
	if err != nil {
		t.Fatalf("create: %v", err)
	}
	want, point := newContents(), int32(0)
	for _, s := range steps {
		switch {
		case s.point != nil:
			point = *s.point
			j.SetPoint(point)
		case s.chunk != nil:
			j.Chunk(*s.chunk)
			want.add(Frame{Point: point, Chunks: []Chunk{*s.chunk}})
		case s.row != nil:
			j.Done(s.row)
			want.add(Frame{Point: point, Rows: []Row{*s.row}})
		case s.sample != nil:
			j.AddSample(*s.sample)
			want.add(Frame{Point: s.sample.Point, Samples: []Sample{*s.sample}})
		case s.mark != nil:
			j.AddMark(*s.mark)
			want.add(Frame{Point: s.mark.Point, Marks: []Mark{*s.mark}})
		case s.flush:
			j.Flush()
		}
	}
	if err := j.Close(); err != nil {
		t.Fatalf("close: %v", err)
	}
	return want
}

func TestRoundTrips(t *testing.T) {
	root := t.TempDir()
	rapid.Check(t, func(rt *rapid.T) {
		dir, err := os.MkdirTemp(root, "")
		if err != nil {
			rt.Fatalf("%v", err)
		}
		want := play(rt, dir, drawSteps(rt))
		if d := want.diff(collect(rt, Frames(dir))); d != "" {
			rt.Fatalf("journal differs:\n%s", d)
		}
		if rapid.IntRange(0, 2).Draw(rt, "parquet") > 0 {
			return // the files cost more time than the rest
		}
		if err := Finish(dir, Frames(dir), func(Frame) {}); err != nil {
			rt.Fatalf("finish: %v", err)
		}
		if d := want.diff(collect(rt, Frames(dir))); d != "" {
			rt.Fatalf("parquet differs:\n%s", d)
		}
	})
}

// A field of a record that no list names would be lost without a word.
func TestFieldsAreComplete(t *testing.T) {
	check := func(record string, fields, named int) {
		if fields != named {
			t.Errorf("%s has %d fields, the list of its columns %d", record, fields, named)
		}
	}
	check("Row", reflect.TypeFor[Row]().NumField(), len(rowFields))
	check("Chunk", reflect.TypeFor[Chunk]().NumField()+1, len(chunkFields))    // and the point
	check("Sample", reflect.TypeFor[Sample]().NumField()+1, len(sampleFields)) // and the worker

	var names []string
	for _, f := range requestFields {
		names = append(names, f.name)
	}
	slices.Sort(names)
	if n := len(slices.Compact(names)); n != len(requestFields) {
		t.Errorf("a column name is used twice: %v", names)
	}
}

// Server errors have a class each, and are server errors all.
func TestServerErrors(t *testing.T) {
	for status, want := range map[int]string{500: "http_500", 502: "http_502", 503: "http_503", 504: "http_504", 529: "http_529"} {
		if got := ServerError(status); got != want || !IsServerError(got) {
			t.Errorf("%d is %s", status, got)
		}
	}
	if !IsServerError(ServerError(500)) || IsServerError(ErrRateLimited) || IsServerError("") {
		t.Error("server errors are told by more than their class")
	}
}
