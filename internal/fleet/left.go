package fleet

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"pitot/internal/data/marks"
	"pitot/internal/data/rundir"
)

// Left implements [run.Crew]: the worker is asked for its journal piece by piece, each when the
// one before is here. It may not have noticed yet that its coordinator died, or be connecting
// again.
func (c *Coordinator) Left(ctx context.Context, who marks.Crew, rank int) (dir string, err error) {
	if c.where == "" {
		return "", errors.New("it is of another machine")
	}
	ctx, cancel := context.WithTimeout(ctx, c.late+endTime)
	defer cancel()
	if dir, err = os.MkdirTemp(c.dir, "left-"); err != nil {
		return "", err
	}
	file, err := os.Create(filepath.Join(dir, rundir.Journal))
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	for at := int64(0); ; {
		piece, err := c.askLeft(ctx, who, rank, leftFrom{From: at})
		if err != nil {
			return "", err
		}
		if _, err := file.Write(piece.Frames); err != nil {
			return "", err
		}
		if at += int64(len(piece.Frames)); at >= piece.Size {
			return dir, nil
		}
		if len(piece.Frames) == 0 {
			return "", fmt.Errorf("its journal ends at byte %d of %d", at, piece.Size)
		}
	}
}

// Collected implements [run.Crew].
func (c *Coordinator) Collected(who marks.Crew, rank int) {
	if c.where == "" {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), tellTime)
	defer cancel()
	_, _ = c.askLeft(ctx, who, rank, leftFrom{Here: true}) // one that does not hear it waits in vain
	if c.server == nil && rank == 0 {
		_ = c.conn.Forget(ctx, runID(who.Run).stream())
	}
}

// askLeft asks until there is an answer.
func (c *Coordinator) askLeft(ctx context.Context, who marks.Crew, rank int, q leftFrom) (left, error) {
	for {
		once, cancel := context.WithTimeout(ctx, tellTime)
		answer, err := c.conn.Ask(once, runID(who.Run).left(rank), encode(q))
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
