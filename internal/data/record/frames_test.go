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
	"testing"

	"pitot/internal/data/rundir"

	"github.com/google/go-cmp/cmp"
)

// smallJournal gives the bytes of a journal of three frames and where each
// one ends.
func smallJournal(t testing.TB) (data []byte, ends []int) {
	t.Helper()
	d := &disk{room: 1 << 20}
	j := newJournal(d)
	for p := range int32(3) {
		j.SetPoint(p)
		j.Mark(Mark{Point: p, Name: "start", Data: []byte(`{}`)})
		j.Chunk(Chunk{Request: 0, T: 1000, Earliest: 900, Tokens: 3, Bytes: 12, Choice: 1, Kind: Reasoning})
		j.Chunk(Chunk{Request: 1, T: 1500, Earliest: 1500, Tokens: 1, Bytes: 4})
		j.Sample(Sample{Point: p, T: 10, Source: "client", Name: "cpu", Value: 0.5})
		j.Done(&Row{ID: 0, Session: Unset, Due: 5, Finish: "stop", Outcome: Cut})
		if err := j.Flush(); err != nil {
			t.Fatal(err)
		}
		ends = append(ends, d.len())
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	return d.data.Bytes(), ends
}

// scan decodes a journal from memory: the number of sound frames and what
// ended them.
func scan(data []byte) (frames int, err error) {
	s := scanner{in: bytes.NewReader(data), size: int64(len(data))}
	for {
		if _, err := s.next(); err != nil {
			return frames, err
		}
		frames++
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
		if got, err := scan(data[:n]); got != want || err != io.EOF {
			t.Fatalf("cut at byte %d: %d frames, %v; want %d and a plain end", n, got, err, want)
		}
	}
}

func TestFlippedAnywhere(t *testing.T) {
	data, ends := smallJournal(t)
	for i := range data {
		before := 0
		for _, end := range ends {
			if end <= i {
				before++
			}
		}
		bad := bytes.Clone(data)
		bad[i] ^= 0x10
		if got, err := scan(bad); got != before || err != ErrCorrupt {
			t.Fatalf("byte %d damaged: %d frames, %v; want %d and ErrCorrupt", i, got, err, before)
		}
	}
}

func TestFramesOfDamagedJournal(t *testing.T) {
	dir := t.TempDir()
	data, ends := smallJournal(t)
	data[ends[0]+20] ^= 1
	if err := os.WriteFile(filepath.Join(dir, rundir.Journal), data, 0o644); err != nil {
		t.Fatal(err)
	}
	good, bad := 0, 0
	for _, err := range Frames(dir) {
		if err == nil {
			good++
			continue
		}
		bad++
		if !errors.Is(err, ErrCorrupt) {
			t.Error(err)
		}
	}
	if good != 1 || bad != 1 {
		t.Errorf("%d frames and %d errors, want one of each", good, bad)
	}
	if err := Finish(dir, Frames(dir), func(Frame) {}); !errors.Is(err, ErrCorrupt) {
		t.Errorf("Finish: %v", err)
	}
	entries, _ := os.ReadDir(dir)
	if len(entries) != 1 || entries[0].Name() != rundir.Journal {
		t.Errorf("a failed Finish left %v", entries)
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
	frame := make([]byte, frameHeader, frameHeader+len(payload))
	copy(frame, frameMagic)
	binary.LittleEndian.PutUint32(frame[4:], uint32(len(payload)))
	binary.LittleEndian.PutUint32(frame[8:], crc32.Checksum(payload, castagnoli))
	binary.LittleEndian.PutUint32(frame[12:], crc32.Checksum(frame[:12], castagnoli))
	return append(frame, payload...)
}

// encode writes a frame's records as the journal does.
func encode(f Frame) []byte {
	b := batch{point: f.Point}
	for _, c := range f.Chunks {
		b.chunk(c)
	}
	for i := range f.Rows {
		b.row(&f.Rows[i])
	}
	for _, s := range f.Samples {
		b.sample(s)
	}
	for _, m := range f.Marks {
		b.mark(m)
	}
	return b.appendTo(nil)
}

func FuzzScan(f *testing.F) {
	data, ends := smallJournal(f)
	f.Add(data)
	f.Add(data[:ends[1]-3])
	f.Add([]byte{})
	f.Add([]byte(frameMagic))
	f.Fuzz(func(t *testing.T, data []byte) {
		if _, err := scan(data); err != io.EOF && err != ErrCorrupt {
			t.Fatal(err)
		}
	})
}

// Any payload under a right checksum either fails or gives records that
// encode and decode to themselves.
func FuzzPayload(f *testing.F) {
	data, ends := smallJournal(f)
	f.Add(data[frameHeader:ends[0]])
	f.Add([]byte{0, 4, 0xC0, 0, 0, 0, 0, 0, 0})
	f.Add([]byte{0, 0, 0, 0, 0})
	f.Add([]byte{2, 0xFF, 0xFF, 0xFF, 0xFF, 0x0F})
	f.Fuzz(func(t *testing.T, payload []byte) {
		data := framed(payload)
		s := scanner{in: bytes.NewReader(data), size: int64(len(data))}
		first, err := s.next()
		if err != nil {
			if err != ErrCorrupt {
				t.Fatal(err)
			}
			return
		}
		again := encode(first)
		s2 := scanner{in: bytes.NewReader(again), size: int64(len(again))}
		second, err := s2.next()
		if err != nil {
			t.Fatalf("decode what was encoded: %v", err)
		}
		// Bytes are compared, not values: NaN differs from itself.
		if d := cmp.Diff(again, encode(second)); d != "" {
			t.Fatal(d)
		}
	})
}
