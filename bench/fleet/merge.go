package main

import (
	"fmt"
	"log"
	"os"
	"path/filepath"
	"strings"
	"time"

	"pitot/internal/results/record"
	"pitot/internal/results/rundir"
)

// pieceSize is that of the pieces in which a worker sends its journal.
const pieceSize = 256 << 10

// mergeJournals makes the journals of so many workers with so many chunks together, in answers of
// 100, and then merges them as the coordinator of a load does: piece by piece, one worker after
// the other, each frame read, checked and written to the run's journal. Only that is timed; the
// bus that lies between in earnest has a benchmark of its own.
func mergeJournals(dir string, workers int, chunks int64) {
	const answer = 100
	var from []string
	for rank := range workers {
		own := filepath.Join(dir, fmt.Sprint("worker", rank))
		if err := os.Mkdir(own, 0o755); err != nil {
			log.Fatal(err)
		}
		from = append(from, own)
		makeJournal(own, int32(rank), chunks/int64(workers)/answer, answer)
	}
	began, cpu := time.Now(), spent()
	home := filepath.Join(dir, "home")
	if err := os.Mkdir(home, 0o755); err != nil {
		log.Fatal(err)
	}
	j, err := record.Create(home)
	if err != nil {
		log.Fatal(err)
	}
	files, at, left := make([]*os.File, workers), make([]int64, workers), workers
	for i, own := range from {
		if files[i], err = os.Open(filepath.Join(own, rundir.Journal)); err != nil {
			log.Fatal(err)
		}
	}
	var bytes, merged int64
	for left > 0 {
		left = 0
		for i, f := range files {
			is, err := f.Stat()
			if err != nil {
				log.Fatal(err)
			}
			frames, err := record.ReadSealed(f, at[i], is.Size(), pieceSize)
			if err != nil {
				log.Fatal(err)
			}
			if frames == nil {
				continue
			}
			left++
			at[i], bytes = at[i]+int64(len(frames)), bytes+int64(len(frames))
			if err := j.TakeCarried(frames, 0, func(_ []record.Row, chunks int64) { merged += chunks }); err != nil {
				log.Fatal(err)
			}
		}
	}
	if err := j.Close(); err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%d workers, %d chunks, journals of %.2f GB: merged in %.1f s (%.1f s of a processor), peak memory %d MB\n",
		workers, merged, float64(bytes)/1e9, time.Since(began).Seconds(), (spent() - cpu).Seconds(), highWater()>>20)
}

// makeJournal writes that of a worker.
func makeJournal(dir string, rank int32, answers, length int64) {
	j, err := record.Create(dir)
	if err != nil {
		log.Fatal(err)
	}
	j.SetWorker(rank)
	j.SetPoint(0)
	const streams = 200
	for first := int64(0); first < answers; first += streams {
		for k := range length { // streams take turns, as they do
			for id := first; id < min(first+streams, answers); id++ {
				t := first*1e6 + k*10e6 + id%streams*50e3
				j.Chunk(record.Chunk{Request: id, T: t, Earliest: t, Tokens: 1, Bytes: 4})
			}
		}
		for id := first; id < min(first+streams, answers); id++ {
			r := record.BlankRow()
			r.ID, r.Due, r.Sent, r.Outcome, r.Stream, r.Chunks = id, first*1e6, first*1e6, record.OK, true, int32(length)
			r.FirstToken, r.LastToken, r.Done = first*1e6, first*1e6+length*10e6, first*1e6+length*10e6
			j.Done(&r)
		}
		if err := j.Flush(); err != nil {
			log.Fatal(err)
		}
	}
	if err := j.Close(); err != nil {
		log.Fatal(err)
	}
}

// highWater is the most memory that this process had, in bytes; making the journals had less.
func highWater() (n int64) {
	status, _ := os.ReadFile("/proc/self/status")
	for line := range strings.Lines(string(status)) {
		if v, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			_, _ = fmt.Sscan(v, &n)
		}
	}
	return n << 10
}
