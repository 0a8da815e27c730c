package record

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"path/filepath"

	"pitot/internal/results/rundir"
	"pitot/internal/userfile"
)

// Frames yields what the run directory dir holds, in the order in which it
// happened: from the journal if there is one, whether or not its process is
// still alive, else from the Parquet files.
//
// A frame cut short at the journal's end is what a killed process leaves
// and ends the frames without an error. Where the journal is damaged, frames go
// on behind the damage, and in its place stands a [DamageMark] for each point that
// it may be of. What cannot be read at all is yielded as one error and is the last.
//
// One frame is in memory at a time. Its slices are used again for the next
// one; its strings and a mark's data may be kept.
func Frames(dir string) iter.Seq2[Frame, error] {
	return func(yield func(Frame, error) bool) {
		frames := FramesSince(dir, 0)
		if !hasJournal(dir) {
			frames = parquetFrames(dir, chunkFields)
		}
		frames(yield)
	}
}

// FrameTimes yields what [Frames] does, but of the chunks of a finished run no more
// than whose they are, when they came and their tokens: that takes half the time
// to read. The other fields of a chunk are not to be used.
func FrameTimes(dir string) iter.Seq2[Frame, error] {
	if hasJournal(dir) {
		return FramesSince(dir, 0)
	}
	return parquetFrames(dir, timeFields())
}

// FramesSince yields the frames that the journal of dir has behind an offset, see
// [Journal.Offset].
func FramesSince(dir string, offset int64) iter.Seq2[Frame, error] {
	return journalFrames(filepath.Join(dir, rundir.Journal), offset, everything)
}

// Rows yields what [Frames] does without the chunks, which most of the time to read goes
// into. Of a finished run it yields the rows alone, those of requests.parquet, also where
// chunks.parquet is gone or damaged.
func Rows(dir string) iter.Seq2[Frame, error] {
	if hasJournal(dir) {
		return RowsSince(dir, 0)
	}
	return parquetRows(dir)
}

// RowsSince yields what [FramesSince] does without the chunks.
func RowsSince(dir string, offset int64) iter.Seq2[Frame, error] {
	return journalFrames(filepath.Join(dir, rundir.Journal), offset, allButChunks)
}

// Marks yields only the marks of what [Frames] does, without reading the
// records between them more than to check them.
func Marks(dir string) iter.Seq2[Mark, error] {
	return func(yield func(Mark, error) bool) {
		if !hasJournal(dir) {
			// Without the file of rows it is no run, whatever else is there.
			_, err := os.Stat(filepath.Join(dir, rundir.Requests))
			var marks []jsonMark
			if err == nil {
				marks, err = readMarks(filepath.Join(dir, rundir.Marks))
			}
			if err != nil {
				yield(Mark{}, fmt.Errorf("open records: %w", err))
				return
			}
			for i := range marks {
				if !yield(marks[i].toMark(), nil) {
					return
				}
			}
			return
		}
		for f, err := range journalFrames(filepath.Join(dir, rundir.Journal), 0, marksAlone) {
			if err != nil {
				yield(Mark{}, err)
				return
			}
			for _, m := range f.Marks {
				if !yield(m, nil) {
					return
				}
			}
		}
	}
}

func hasJournal(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, rundir.Journal))
	return !errors.Is(err, fs.ErrNotExist)
}

// journalFrames yields the frames of a journal from an offset on, or a part of each.
func journalFrames(path string, offset int64, part reading) iter.Seq2[Frame, error] {
	return func(yield func(Frame, error) bool) {
		file, err := userfile.Open(path)
		if err != nil {
			yield(Frame{}, fmt.Errorf("open journal: %w", err))
			return
		}
		defer file.Close()
		info, err := file.Stat()
		if err != nil {
			yield(Frame{}, fmt.Errorf("open journal: %w", err))
			return
		}
		s := scanner{in: file, size: info.Size(), offset: offset, follows: offset == 0}
		if offset == 0 { // where a journal begins probes may stand
			s.point = Probing
		}
		s.decoder.part = part
		for {
			frame, err := s.nextFrame()
			if err == io.EOF {
				return
			}
			if err != nil {
				yield(Frame{}, fmt.Errorf("read %s at byte %d: %w", path, s.offset, err))
				return
			}
			if !yield(frame, nil) {
				return
			}
		}
	}
}
