package workers

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"pitot/internal/results/marks"
	"pitot/internal/results/rundir"
)

// Left implements [session.Crew]: the worker is asked for its journal piece by piece, each when the
// one before is here. It may not have noticed yet that its coordinator died, or be connecting
// again.
func (c *Coordinator) Left(ctx context.Context, who marks.Crew, rank int) (dir string, err error) {
	if c.where == "" {
		return "", errors.New("it is of another machine")
	}
	if dir, err = os.MkdirTemp(c.dir, "left-"); err != nil {
		return "", err
	}
	file, err := os.Create(filepath.Join(dir, rundir.Journal))
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	size := int64(0) // of all, as the last piece tells
	for here := int64(0); ; {
		piece, err := c.pieceLeft(ctx, who, rank, here)
		if err != nil && here > 0 {
			return "", fmt.Errorf("it stopped after %d of %d bytes: %w", here, size, err)
		}
		if err != nil {
			return "", err
		}
		size = piece.Size
		if _, err := file.Write(piece.Frames); err != nil {
			return "", err
		}
		if here += int64(len(piece.Frames)); here >= size {
			return dir, nil
		}
		if len(piece.Frames) == 0 {
			return "", fmt.Errorf("its journal ends at byte %d of %d", here, size)
		}
	}
}

// pieceLeft asks for the piece from a byte on. Each has the time in which a worker notices that
// its coordinator died, or connects again.
func (c *Coordinator) pieceLeft(ctx context.Context, who marks.Crew, rank int, from int64) (left, error) {
	ctx, cancel := context.WithTimeout(ctx, c.late+endTime)
	defer cancel()
	return c.askLeft(ctx, who, rank, leftFrom{From: from})
}

// Collected implements [session.Crew].
func (c *Coordinator) Collected(who marks.Crew, rank int) {
	if c.where == "" {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), tellTime)
	defer cancel()
	_, _ = c.askLeft(ctx, who, rank, leftFrom{Here: true}) // one that does not hear it waits in vain
}

// Forget implements [session.Crew].
func (c *Coordinator) Forget(who marks.Crew) {
	if c.where == "" || c.server != nil || c.kept == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), endTime)
	defer cancel()
	_ = c.kept.Forget(ctx, runID(who.Run).streamName()) // a server that is gone has deleted or will keep it
}

// askLeft asks until there is an answer.
func (c *Coordinator) askLeft(ctx context.Context, who marks.Crew, rank int, q leftFrom) (left, error) {
	for {
		once, cancel := context.WithTimeout(ctx, tellTime)
		answer, err := c.conn.Ask(once, runID(who.Run).leftSubject(rank), encode(q))
		cancel()
		if err == nil {
			piece, err := decode[left](answer)
			if err == nil && piece.Error != "" {
				err = errors.New(piece.Error)
			}
			return piece, err
		}
		select {
		case <-ctx.Done():
			return left{}, errors.New("it does not answer")
		case <-time.After(100 * time.Millisecond):
		}
	}
}
