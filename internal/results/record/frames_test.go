package record

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"testing"

	_ "pitot/internal/rapidtest" // the same draws each time
	"pitot/internal/results/rundir"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// smallJournal gives the bytes of a journal of three frames and where each
// one ends. It is made without a [Journal], whose own goroutine may end a frame at
// any time.
func smallJournal(t testing.TB) (data []byte, ends []int) {
	t.Helper()
	var w frameWriter
	for p := range int32(3) {
		b := newBatch()
		b.reset(part{point: p})
		b.addMark(Mark{Point: p, Name: "start", Data: []byte(`{}`)})
		b.addChunk(Chunk{Request: 0, T: 1000, Earliest: 900, Tokens: 3, Bytes: 12, Choice: 1, Kind: Reasoning})
		b.addChunk(Chunk{Request: 1, T: 1500, Earliest: 1500, Tokens: 1, Bytes: 4})
		b.addSample(Sample{Point: p, T: 10, Source: "client", Name: "cpu", Value: 0.5})
		b.addRow(&Row{ID: 0, Session: Unset, Due: 5, Finish: "stop", Outcome: Cut})
		data = w.append(data, b)
		ends = append(ends, len(data))
	}
	return data, ends
}

// scan decodes a journal from memory: its sound frames, and what is told of
// those that are not.
func scan(t testing.TB, data []byte) (frames []Frame, damage []Damage) {
	t.Helper()
	s := scanner{in: bytes.NewReader(data), size: int64(len(data)), follows: true}
	for {
		f, err := s.nextFrame()
		if err == io.EOF {
			return frames, damage
		}
		if err != nil {
			t.Fatal(err)
		}
		if isDamage(&f) {
			d, ok := DamageOf(&f.Marks[0])
			if !ok || len(f.Marks) != 1 {
				t.Fatalf("marks %s", f.Marks[0].Data)
			}
			if f.Point == d.FirstPoint {
				damage = append(damage, d)
			}
			continue
		}
		frames = append(frames, Frame{Point: f.Point, Chunks: slices.Clone(f.Chunks), Rows: slices.Clone(f.Rows), Samples: slices.Clone(f.Samples), Marks: slices.Clone(f.Marks)})
	}
}

func TestTruncatedAnywhere(t *testing.T) {
	data, ends := smallJournal(t)
	for n := range len(data) + 1 {
		want := 0
		for _, end := range ends {
			if end <= n {
				want++
			}
		}
		if got, damage := scan(t, data[:n]); len(got) != want || len(damage) > 0 {
			t.Fatalf("cut at byte %d: %d frames, %v; want %d and a plain end", n, len(got), damage, want)
		}
	}
}

// Wherever a bit flips, all frames but one are read. The frame behind it tells what that held;
// of the last it is not known.
func TestFlippedAnywhere(t *testing.T) {
	data, ends := smallJournal(t)
	for i := range data {
		bad := bytes.Clone(data)
		bad[i] ^= 0x10
		got, damage := scan(t, bad)
		if len(got) != len(ends)-1 || len(damage) != 1 {
			t.Fatalf("byte %d damaged: %d frames, %v", i, len(got), damage)
		}
		d, n := damage[0], i/ends[0] // all frames are as long
		inHeader := i < n*ends[0]+headerSize
		want := Damage{Chunks: 2, Rows: 1, Samples: 1, Marks: 1, Exact: true, FirstPoint: int32(n), LastPoint: int32(n)}
		if inHeader { // the frames around it alone tell its point
			want.FirstPoint, want.LastPoint = int32(max(n-1, 0)), int32(n+1)
		}
		if last := len(ends) - 1; n == last {
			want = Damage{FirstPoint: int32(last), LastPoint: int32(last)}
			if inHeader { // nothing tells which point it was of
				want.FirstPoint, want.LastPoint = int32(last-1), int32(last-1)
			}
		}
		if d != want {
			t.Fatalf("byte %d: %+v, want %+v", i, d, want)
		}
	}
}

// held counts the records of frames.
func held(frames []Frame) (t tally) {
	for _, f := range frames {
		t = t.plus(tally{int64(len(f.Chunks)), int64(len(f.Rows)), int64(len(f.Samples)), int64(len(f.Marks))})
	}
	return t
}

// Whatever happens to a journal, what is read and what is told to be lost add up
// to what there was, up to the last frame that is left.
func TestDamageAddsUp(t *testing.T) {
	for name, data := range map[string][]byte{"small": first(smallJournal(t)), "large": largeJournal(t)} {
		t.Run(name, func(t *testing.T) {
			whole, none := scan(t, data)
			if len(none) > 0 {
				t.Fatal(none)
			}
			all, order := held(whole), map[string]int{}
			for i, f := range whole {
				order[string(encode(f))] = i
			}
			rapid.Check(t, func(rt *rapid.T) {
				bad := bytes.Clone(data)
				cut := false
				for range rapid.IntRange(1, 4).Draw(rt, "damages") {
					if len(bad) == 0 {
						break
					}
					at := rapid.IntRange(0, len(bad)-1).Draw(rt, "at")
					n := min(rapid.SampledFrom([]int{1, 7, 100, 1000, 20_000}).Draw(rt, "length"), len(bad)-at)
					switch rapid.SampledFrom([]string{"flip", "hole", "gone", "cut", "strange"}).Draw(rt, "what") {
					case "flip":
						bad[at] ^= 1 << rapid.IntRange(0, 7).Draw(rt, "bit")
					case "hole":
						clear(bad[at : at+n])
						cut = cut || at+n == len(bad) // zeros at the end are never written bytes
					case "gone":
						last := bytes.LastIndex(bad, []byte("PJ1\n"))
						bad = slices.Delete(bad, at, at+n)
						cut = cut || at+n > last // what is left of the last frame is as after a kill
					case "cut":
						bad, cut = bad[:at], true
					case "strange":
						bad = slices.Insert(bad, at, bytes.Repeat([]byte("PJ1\n"), n/4+1)...)
					}
				}
				if otherVersion(bad[:min(len(bad), headerSize)]) {
					rt.Skip("nobody can tell a damaged magic without a whole header")
				}
				frames, damage := scan(t, bad)
				left := held(frames)
				exact := true
				for _, d := range damage {
					left = left.plus(tally{d.Chunks, d.Rows, d.Samples, d.Marks})
					exact = exact && d.Exact
				}
				missing := all.minus(left)
				switch {
				case !cut && exact && missing != tally{} && !gone(bad, data):
					rt.Errorf("%+v of %+v are accounted for: %+v", left, all, damage)
				case exact && missing.isNegative():
					rt.Errorf("more than there was: %+v of %+v: %+v", left, all, damage)
				}
				// What is read is what was written, in its order.
				before := -1
				for _, f := range frames {
					k, written := order[string(encode(f))]
					if !written || k <= before {
						rt.Fatalf("frame %d behind %d: %v", k, before, written)
					}
					before = k
				}
			})
		})
	}
}

// gone says that the end of a journal is: what ends early ends as after a kill.
func gone(bad, data []byte) bool {
	n := min(len(bad), headerSize, len(data))
	return !bytes.HasSuffix(bad, data[len(data)-n:]) || len(bad) < headerSize
}

func first(data []byte, _ []int) []byte { return data }

// largeJournal has many frames of several points.
func largeJournal(t testing.TB) []byte {
	d := &disk{room: 1 << 20}
	j := newJournal(d, "")
	for p := range int32(3) {
		j.SetPoint(p)
		j.AddMark(Mark{Point: p, Name: "start", Data: []byte(`{}`)})
		for i := range int64(60) {
			for c := range int64(5) {
				j.Chunk(Chunk{Request: i, T: i*1000 + c, Earliest: i*1000 + c, Tokens: 1, Bytes: 12})
			}
			j.Done(&Row{ID: i, Session: Unset, Due: i * 900, Done: i*1000 + 7, Chunks: 5, Finish: "stop"})
			if i%3 == 0 {
				if err := j.Flush(); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	return d.data.Bytes()
}

// A damaged journal is finished, says so in every later reading, and stays as it was.
func TestFinishOfDamagedJournal(t *testing.T) {
	dir := t.TempDir()
	data, ends := smallJournal(t)
	data[ends[0]+headerSize+4] ^= 1
	if err := os.WriteFile(filepath.Join(dir, rundir.Journal), data, 0o644); err != nil {
		t.Fatal(err)
	}
	lossPoints := func() (points []int32) {
		for f, err := range Frames(dir) {
			if err != nil {
				t.Fatal(err)
			}
			for i := range f.Marks {
				if d, ok := DamageOf(&f.Marks[i]); ok {
					if d.Rows != 1 || !d.Exact {
						t.Errorf("%+v", d)
					}
					points = append(points, f.Marks[i].Point)
				}
			}
		}
		return points
	}
	if got := lossPoints(); !slices.Equal(got, []int32{1}) {
		t.Errorf("the journal tells of damage to points %v", got)
	}
	if err := Finish(dir, Frames(dir), func(Frame) {}); err != nil {
		t.Fatal(err)
	}
	if got := lossPoints(); !slices.Equal(got, []int32{1}) {
		t.Errorf("the files tell of damage to points %v", got)
	}
	kept, err := os.ReadFile(filepath.Join(dir, rundir.Damaged))
	if err != nil || !bytes.Equal(kept, data) {
		t.Errorf("the journal was not kept: %v", err)
	}
	if _, err := os.Stat(filepath.Join(dir, rundir.Journal)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the journal is there still: %v", err)
	}
}

// A journal of another version is no damaged one.
func TestOtherVersion(t *testing.T) {
	other := bytes.Repeat([]byte("PJ3\n and what is not known here"), 10)
	s := scanner{in: bytes.NewReader(other), size: int64(len(other)), follows: true}
	if _, err := s.nextFrame(); err != ErrVersion {
		t.Errorf("another version: %v", err)
	}
	var row batch
	row.addRow(&Row{ID: 1})
	more, fewer := row, row
	more.rows = append(bytes.Clone(row.rows), 0)
	more.rows[0]++ // one field more
	fewer.rows = bytes.Clone(row.rows)[:len(row.rows)-1]
	fewer.rows[0]--
	for name, b := range map[string]batch{"more fields": more, "fewer fields": fewer} {
		data := new(frameWriter).append(nil, &b)
		s = scanner{in: bytes.NewReader(data), size: int64(len(data)), follows: true}
		if _, err := s.nextFrame(); err != ErrVersion {
			t.Errorf("a row of %s: %v", name, err)
		}
	}
}

func TestFramesOfNothing(t *testing.T) {
	for _, err := range Frames(t.TempDir()) {
		if !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("an empty directory: %v", err)
		}
		return
	}
	t.Error("an empty directory gave no error")
}

// framed puts a sound header before any payload.
func framed(payload []byte) []byte {
	frame := make([]byte, headerSize, headerSize+len(payload))
	copy(frame, magic)
	binary.LittleEndian.PutUint32(frame[4:], uint32(len(payload)))
	binary.LittleEndian.PutUint32(frame[8:], crc32.Checksum(payload, castagnoli))
	binary.LittleEndian.PutUint32(frame[72:], crc32.Checksum(frame[:72], castagnoli))
	return append(frame, payload...)
}

// encode writes a frame's records as the journal does.
func encode(f Frame) []byte {
	b := batch{point: f.Point}
	for _, c := range f.Chunks {
		b.addChunk(c)
	}
	for i := range f.Rows {
		b.addRow(&f.Rows[i])
	}
	for _, s := range f.Samples {
		b.addSample(s)
	}
	for _, m := range f.Marks {
		b.addMark(m)
	}
	return new(frameWriter).append(nil, &b)
}

func FuzzScan(f *testing.F) {
	data, ends := smallJournal(f)
	f.Add(data)
	f.Add(data[:ends[1]-3])
	f.Add([]byte{})
	f.Add([]byte(magic))
	f.Fuzz(func(t *testing.T, data []byte) {
		s := scanner{in: bytes.NewReader(data), size: int64(len(data)), follows: true}
		for {
			if _, err := s.nextFrame(); err == io.EOF || err == ErrVersion {
				return
			} else if err != nil {
				t.Fatal(err)
			}
		}
	})
}

// Any payload under a right checksum either fails or gives records that
// encode and decode to themselves.
func FuzzPayload(f *testing.F) {
	data, ends := smallJournal(f)
	f.Add(data[headerSize:ends[0]])
	f.Add([]byte{0, 4, 0xC0, 0, 0, 0, 0, 0, 0})
	f.Add([]byte{0, 0, 0, 0, 0})
	f.Add([]byte{2, 0xFF, 0xFF, 0xFF, 0xFF, 0x0F})
	f.Add([]byte("\x00\x00\x02\x00\x00\x14\x14\x06client\x03cpu\x00\x00\x00\x00\x00\x00\xe0?\n\x00\x05start\x02{\x00")) // rows of no fields
	f.Fuzz(func(t *testing.T, payload []byte) {
		data := framed(payload)
		s := scanner{in: bytes.NewReader(data), size: int64(len(data)), follows: true}
		one, err := s.nextFrame()
		if err != nil {
			if err != ErrVersion && err != io.EOF {
				t.Fatal(err)
			}
			return
		}
		if isDamage(&one) {
			return
		}
		again := encode(one)
		second, damage := scan(t, again)
		if len(second) != 1 || len(damage) > 0 {
			t.Fatalf("decode what was encoded: %v, %v", second, damage)
		}
		// Bytes are compared, not values: NaN differs from itself.
		if d := cmp.Diff(again, encode(second[0])); d != "" {
			t.Fatal(d)
		}
	})
}
