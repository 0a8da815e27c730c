package client

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"syscall"
	"time"
)

// attemptDelay is the time that a connection attempt runs before the next address is tried in
// parallel (RFC 8305 section 5 and 8: 250 ms recommended).
const attemptDelay = 250 * time.Millisecond

// raceConnect connects to the first of several addresses that answers, as RFC 8305
// ("Happy Eyeballs Version 2") has it without its history of past connections:
// the families take turns, the next attempt starts when one has failed or when
// attemptDelay has passed, and all of them share ctx. An address that never
// answers thus costs a quarter of a second, not the timeout. If all fail, the
// last error to come is given that says more than that an address is of no use
// on this machine.
func raceConnect(ctx context.Context, addrs []netip.Addr, connect func(context.Context, netip.Addr) (net.Conn, error)) (net.Conn, error) {
	addrs = interleaveFamilies(addrs)
	if len(addrs) == 0 {
		return nil, errors.New("no address")
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // ends the attempts that are no longer needed
	type attempt struct {
		c   net.Conn
		err error
	}
	ended := make(chan attempt)
	next := time.NewTimer(attemptDelay)
	defer next.Stop()
	running := 0
	var why error
	start := func() {
		if len(addrs) == 0 {
			return
		}
		addr := addrs[0]
		addrs = addrs[1:]
		running++
		next.Reset(attemptDelay)
		go func() {
			c, err := connect(ctx, addr)
			select {
			case ended <- attempt{c, err}:
			case <-ctx.Done(): // another attempt won, or the dial was cancelled
				if c != nil {
					c.Close()
				}
			}
		}()
	}
	start()
	for {
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-next.C:
			start()
		case a := <-ended:
			if a.err == nil {
				return a.c, nil
			}
			if why == nil || !errors.Is(a.err, syscall.EADDRNOTAVAIL) { // mostly a family this machine has not
				why = a.err
			}
			running--
			start()
			if running == 0 {
				return nil, why
			}
		}
	}
}

// interleaveFamilies puts addresses of the two families in turn, beginning with that
// of the first: the resolver has sorted them by preference (RFC 6724), and a
// network on which one family is dead is left after one attempt.
func interleaveFamilies(addrs []netip.Addr) []netip.Addr {
	var families [2][]netip.Addr
	for _, a := range addrs {
		i := 0
		if a.Unmap().Is4() != addrs[0].Unmap().Is4() {
			i = 1
		}
		families[i] = append(families[i], a.Unmap())
	}
	out := make([]netip.Addr, 0, len(addrs))
	for i := range addrs {
		for _, f := range families {
			if i < len(f) {
				out = append(out, f[i])
			}
		}
	}
	return out
}
