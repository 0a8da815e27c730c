package client

import (
	"context"
	"time"

	"pitot/internal/client/api"
)

// Poller asks the same questions again and again, on a connection of its own that it
// keeps while the server does: what a server tells of itself while it is measured. It is
// not safe for concurrent use.
type Poller struct {
	Dialer  *Dialer
	Headers []api.Header
	Secret  string // what an answer's text must not repeat, one a line
	Most    int64  // bytes of an answer

	conn *Conn
	used time.Time
}

// idle is the time that a connection is kept between two requests: uvicorn closes those that were
// idle for 5 s.
const idle = 3 * time.Second

// Get asks for a path. A connection that turns out to be closed before anything came
// back is made again, once.
func (p *Poller) Get(ctx context.Context, path string) (Answer, error) {
	if p.conn != nil && time.Since(p.used) < idle {
		a, err := p.getOnce(ctx, path)
		if err == nil || a.Status != 0 || ctx.Err() != nil {
			return a, err
		}
	}
	p.Close()
	c, err := p.Dialer.Connect(ctx)
	if err != nil {
		return Answer{}, err
	}
	p.conn = c
	return p.getOnce(ctx, path)
}

// getOnce does it on the connection there is, and keeps it if it can carry another question.
func (p *Poller) getOnce(ctx context.Context, path string) (Answer, error) {
	a, keep, err := p.Dialer.exchangeOnce(ctx, p.conn, "GET", path, p.Headers, nil, p.Secret, p.Most)
	p.used = time.Now()
	if !keep {
		p.Close()
	}
	return a, err
}

// Close ends the connection.
func (p *Poller) Close() {
	if p.conn != nil {
		p.conn.Abort()
		p.conn = nil
	}
}
