package record

import (
	"io"
	"math"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"

	"pitot/internal/results/rundir"
)

const benchChunks = 1_000_000

type nowhere struct{ io.Writer }

func (nowhere) Sync() error                         { return nil }
func (nowhere) Close() error                        { return nil }
func (nowhere) Truncate(int64) error                { return nil }
func (nowhere) Seek(at int64, _ int) (int64, error) { return at, nil }
func (nowhere) ReadAt([]byte, int64) (int, error)   { return 0, io.EOF }
func (nowhere) Stat() (os.FileInfo, error)          { return sized(math.MaxInt64), nil }

func BenchmarkChunk(b *testing.B) {
	j := newJournal(nowhere{io.Discard}, "")
	defer j.Close()
	b.ReportAllocs()
	t := int64(0)
	for i := 0; b.Loop(); i++ {
		t += 50_000
		j.Chunk(Chunk{Request: int64(i*7919) % 1000, T: t, Earliest: t, Tokens: 1, Bytes: 4})
	}
}

func BenchmarkChunkParallel(b *testing.B) {
	j := newJournal(nowhere{io.Discard}, "")
	defer j.Close()
	var id atomic.Int64
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		request, t := id.Add(1), int64(0)
		for pb.Next() {
			t += 50_000
			j.Chunk(Chunk{Request: request, T: t, Earliest: t, Tokens: 1, Bytes: 4})
		}
	})
}

func BenchmarkDone(b *testing.B) {
	j := newJournal(nowhere{io.Discard}, "")
	defer j.Close()
	b.ReportAllocs()
	row := Row{Session: Unset, Due: 1e9, Sent: 1e9, FirstToken: 2e9, LastToken: 3e9, Done: 3e9, Finish: "stop"}
	for b.Loop() {
		row.ID++
		j.Done(&row)
	}
}

// benchJournal writes a run of a million chunks to a journal.
func benchJournal(b *testing.B) (dir string, size int64) {
	b.Helper()
	dir = b.TempDir()
	j, err := Create(dir)
	if err != nil {
		b.Fatal(err)
	}
	for f := range run(1, benchChunks/100, 100, 20_000) {
		for _, c := range f.Chunks {
			j.Chunk(c)
		}
		for i := range f.Rows {
			j.Done(&f.Rows[i])
		}
	}
	if err := j.Close(); err != nil {
		b.Fatal(err)
	}
	info, err := os.Stat(filepath.Join(dir, rundir.Journal))
	if err != nil {
		b.Fatal(err)
	}
	return dir, info.Size()
}

func perChunk(b *testing.B, size int64) {
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/benchChunks, "ns/chunk")
	b.ReportMetric(float64(size)/benchChunks, "B/chunk")
}

func drainFrames(b *testing.B, dir string) {
	n := 0
	for f, err := range Frames(dir) {
		if err != nil {
			b.Fatal(err)
		}
		n += len(f.Chunks)
	}
	if n != benchChunks {
		b.Fatalf("%d chunks", n)
	}
}

func BenchmarkFramesOfJournal(b *testing.B) {
	dir, size := benchJournal(b)
	b.ReportAllocs()
	for b.Loop() {
		drainFrames(b, dir)
	}
	perChunk(b, size)
}

func BenchmarkWriteParquet(b *testing.B) {
	dir, _ := benchJournal(b)
	out := b.TempDir()
	b.ReportAllocs()
	for b.Loop() {
		if err := WriteParquet(out, Frames(dir)); err != nil {
			b.Fatal(err)
		}
	}
	info, err := os.Stat(filepath.Join(out, rundir.Chunks))
	if err != nil {
		b.Fatal(err)
	}
	perChunk(b, info.Size())
}

func BenchmarkFramesOfParquet(b *testing.B) {
	dir, _ := benchJournal(b)
	if err := Finish(dir, Frames(dir), func(Frame) {}); err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		drainFrames(b, dir)
	}
	perChunk(b, 0)
}
