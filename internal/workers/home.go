package workers

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"pitot/internal/results/record"
	"pitot/internal/results/rundir"
)

// Records come home over the bus, or from the files of workers beside this process. Both wait
// where this machine's disk does, for as long as it takes: so neither holds the mutex that reports
// are answered under. A worker that reports is told that it is heard, and goes on.

// ownFile is the journal of a worker beside this process, which is read where it is written.
type ownFile struct {
	file  *os.File
	short time.Time // since when it has less than was told of, zero while it has not
	torn  bool      // that could not be taken
}

// takeFrames takes a piece of a worker's journal. Pieces of one journal come in order, and again
// where the connection was lost: each is taken once. Whatever is no next piece of a worker's
// is dropped: a message that somebody else sends ends no run, and a worker whose own pieces
// do not come is lost in time.
func (c *Coordinator) takeFrames(subject, id string, frames []byte) {
	rank, err := strconv.Atoi(subject[strings.LastIndexByte(subject, '.')+1:])
	_, offset, _ := strings.Cut(id, "-")
	at, atErr := strconv.ParseInt(offset, 10, 64)
	c.home.Lock()
	defer c.home.Unlock()
	defer c.signalNews()
	c.mu.Lock()
	m := c.memberOfRank(rank)
	home := int64(0) // of its journal
	if m != nil {
		home = m.home
	}
	c.mu.Unlock()
	if err != nil || atErr != nil || m == nil || at != home || !record.AreFrames(frames) {
		return
	}
	if err := c.keepRecords(m, frames); err != nil {
		c.noteRecordError(fmt.Errorf("take records of a worker: %w", err))
	}
}

// keepRecords hands over what comes next of a worker's journal. Between two loads it is of no
// point. The caller holds c.home alone.
func (c *Coordinator) keepRecords(m *member, frames []byte) (err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if keep := c.with.Home; keep != nil {
		c.taking = true
		c.mu.Unlock()
		err = keep(frames)
		c.mu.Lock()
		c.taking = false
	}
	if err == nil {
		m.home += int64(len(frames))
	}
	return err
}

// noteRecordError notes that records cannot be taken.
func (c *Coordinator) noteRecordError(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.broken == nil {
		c.broken = err
	}
}

// bringHome brings what workers beside this process have written of their journals, as they tell
// of it, until it is stopped; stop waits for what is being taken.
func (c *Coordinator) bringHome(members []*member) (stop func()) {
	over, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for {
			c.bringAll(members)
			select {
			case <-over:
				return
			case <-c.told:
			}
		}
	}()
	return func() {
		close(over)
		<-ended
	}
}

// bringAll brings once what they have told of by now.
func (c *Coordinator) bringAll(members []*member) {
	type piece struct {
		*member
		upTo int64
		all  bool
	}
	var due []piece
	c.mu.Lock()
	for _, m := range members {
		if all := m.hasStopped(); m.lost == nil && !m.collected && (all || !m.own.torn && m.report.Written > m.home) {
			due = append(due, piece{m, m.report.Written, all})
		}
	}
	c.mu.Unlock()
	if len(due) == 0 {
		return
	}
	c.home.Lock()
	defer c.home.Unlock()
	news := false // a file that has less than was told of is none, and is looked at with the next report
	for _, p := range due {
		before := p.home
		var err error
		if p.all { // a full disk may have taken back what was told of as written
			c.collectFrames(p.member)
		} else if err = c.fetchJournal(p.member, p.upTo); err != nil {
			c.noteRecordError(fmt.Errorf("take records of worker %d: %w", p.rank, err))
		}
		news = news || p.all || err != nil || p.home > before
	}
	if news {
		c.signalNews()
	}
}

// hasStopped says that a worker writes no more. The caller holds the coordinator's mutex.
func (m *member) hasStopped() bool { return m.report.Error != "" || !m.ended.IsZero() }

// fetchJournal takes what a worker has written of its journal up to a byte, which is the end of a
// frame. The caller holds c.home.
func (c *Coordinator) fetchJournal(m *member, upTo int64) error {
	if m.own.torn {
		return nil
	}
	file, err := c.journal(m)
	for err == nil && m.home < upTo {
		var frames []byte
		if frames, err = record.ReadSealed(file, m.home, upTo, pieceSize); err != nil {
			if m.own.short.IsZero() {
				m.own.short = time.Now()
			}
			if time.Since(m.own.short) < homeTime {
				return nil // the next report may tell of a full disk
			}
		} else {
			m.own.short = time.Time{}
			err = c.keepRecords(m, frames)
		}
	}
	m.own.torn = err != nil // some of it may be here: it is not taken twice
	return err
}

// collectFrames takes what a worker that writes no more had written, whatever it told of: whole
// frames of its file. The caller holds c.home.
func (c *Coordinator) collectFrames(m *member) {
	file, err := c.journal(m)
	var is os.FileInfo
	if err == nil {
		is, err = file.Stat()
	}
	for err == nil && !m.own.torn && m.home < is.Size() {
		var frames []byte
		if frames, err = record.ReadSealed(file, m.home, is.Size(), 1); err == nil { // else it is torn there
			err = c.keepRecords(m, frames)
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	m.collected = true
}

// journal is the file of a worker of this machine. The caller holds c.home.
func (c *Coordinator) journal(m *member) (*os.File, error) {
	if m.own.file == nil {
		file, err := os.Open(filepath.Join(m.hello.Dir, rundir.Journal))
		if err != nil {
			return nil, err
		}
		c.mu.Lock()
		m.own.file = file
		c.mu.Unlock()
	}
	return m.own.file, nil
}
