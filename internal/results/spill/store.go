// Package spill keeps what is taken in piece by piece and read again, in memory
// while a budget lasts and beyond it in a file: a [Column] of values in the order
// in which they came, a [Sorted] sequence of records, [Numbers] with their order
// statistics and moments. What comes of them is the same whatever the budget.
//
// The file has no name where the system allows that, and goes with the process
// however it ends.
package spill

import (
	"fmt"
	"os"
	"sync"
)

// blockBytes is the size of a piece that is kept in memory or written.
const blockBytes = 256 << 10

// leastBlock is more than any value takes.
const leastBlock = 256

// A Store is a budget of memory and the file behind it. It is safe for
// concurrent use; what is kept in it is not. A nil store has no end of memory.
type Store struct {
	dir   string
	limit int64 // bytes in memory
	block int   // bytes of a piece

	mu   sync.Mutex
	kept int64
	file *os.File
	end  int64   // of the file
	free []int64 // pieces of the file that are not used any more
	full bool    // nothing more can be written
	err  error
}

// New gives a store that keeps so many bytes in memory and the rest in a file in
// dir, or where the system keeps its temporary files if none can be made there.
// In addition to the budget each column that is being filled takes up to a piece of 256
// KiB. If nothing can be written, everything stays in memory.
func New(dir string, limit int64) *Store { return NewSized(dir, limit, blockBytes) }

// NewSized is [New] with another size of the pieces, at least 256 bytes: tests of
// those who keep something in a store need little data to fill several.
func NewSized(dir string, limit int64, block int) *Store {
	return &Store{dir: dir, limit: limit, block: max(block, leastBlock)}
}

// NewScratch is a store like this one, with a budget and a file of its own, for what
// is kept only for a while.
func (s *Store) NewScratch() *Store {
	if s == nil {
		return nil
	}
	return NewSized(s.dir, s.limit, s.block)
}

// Err says that what was written could not be read again: what was computed
// since is wrong.
func (s *Store) Err() error {
	if s == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}

// Close gives up everything in the store.
func (s *Store) Close() error {
	if s == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.file == nil {
		return nil
	}
	err := s.file.Close()
	s.file, s.free, s.end = nil, nil, 0
	return err
}

// pieceValues returns the number of values of a size in a piece.
func (s *Store) pieceValues(size int) int { return s.pieceBytes() / size }

// pieceBytes is the size of a piece.
func (s *Store) pieceBytes() int {
	if s == nil {
		return blockBytes
	}
	return s.block
}

// reserveBytes takes bytes of the budget; false says that there are not so many left.
func (s *Store) reserveBytes(bytes int) bool {
	if s == nil {
		return true
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.kept+int64(bytes) > s.limit && !s.full {
		return false
	}
	s.kept += int64(bytes)
	return true
}

// releaseBytes gives bytes of the budget back.
func (s *Store) releaseBytes(bytes int) {
	if s == nil {
		return
	}
	s.mu.Lock()
	s.kept -= int64(bytes)
	s.mu.Unlock()
}

// write brings a piece, or less, to the file; ok is false if it cannot.
func (s *Store) write(p []byte) (at int64, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.full {
		return 0, false
	}
	if s.file == nil {
		file, err := nameless(s.dir)
		if err != nil {
			if file, err = nameless(os.TempDir()); err != nil {
				s.full = true
				return 0, false
			}
		}
		s.file = file
	}
	at = s.end
	if n := len(s.free); n > 0 {
		at = s.free[n-1]
	}
	if _, err := s.file.WriteAt(p, at); err != nil { // no room, for one
		s.full = true
		return 0, false
	}
	if n := len(s.free); n > 0 {
		s.free = s.free[:n-1]
	} else {
		s.end += int64(s.block)
	}
	return at, true
}

// read fills p with what was written at a place; what cannot be read is zero,
// and an error that [Store.Err] tells.
func (s *Store) read(p []byte, at int64) {
	s.mu.Lock()
	file := s.file
	s.mu.Unlock()
	err := os.ErrClosed
	if file != nil {
		_, err = file.ReadAt(p, at)
	}
	if err == nil {
		return
	}
	clear(p)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err == nil {
		s.err = fmt.Errorf("read temporary file: %w", err)
	}
}

// forget lets a piece of the file be written over.
func (s *Store) forget(at int64) {
	s.mu.Lock()
	s.free = append(s.free, at)
	s.mu.Unlock()
}

// temporary is the file's name until it is removed.
const temporary = ".pitot-*.tmp"
