package client

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"pitot/internal/results/record"
)

// addresses are hosts in virtual time: each answers after its delay, with the
// error if it has one.
type addresses struct {
	after map[string]time.Duration // never, if not in it
	fails map[string]error

	mu    sync.Mutex
	tried []string // address and when, in milliseconds
	begun time.Time
	open  int // connections that nobody has closed
}

// closing counts its close.
type closing struct {
	net.Conn
	of *addresses
}

func (c closing) Close() error {
	c.of.mu.Lock()
	c.of.open--
	c.of.mu.Unlock()
	return nil
}

func (a *addresses) dial(ctx context.Context, _, addr string) (net.Conn, error) {
	host, _, _ := net.SplitHostPort(addr)
	a.mu.Lock()
	a.tried = append(a.tried, fmt.Sprintf("%s@%d", host, time.Since(a.begun).Milliseconds()))
	a.mu.Unlock()
	after, answers := a.after[host]
	if !answers {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-time.After(after):
	}
	if err := a.fails[host]; err != nil {
		return nil, err
	}
	a.mu.Lock()
	a.open++
	a.mu.Unlock()
	return closing{of: a}, nil
}

// connected dials a name that stands for the hosts; ips are in the order of
// the resolver, which takes 70 ms.
func connected(a *addresses, timeout time.Duration, ips ...string) (tm Times, err error) {
	a.begun = time.Now()
	d := &Dialer{Endpoint: Endpoint{Addr: "name.invalid:80"}, Timeout: timeout, Dial: a.dial,
		lookup: func(context.Context, string) (out []netip.Addr, err error) {
			time.Sleep(70 * time.Millisecond)
			for _, ip := range ips {
				out = append(out, netip.MustParseAddr(ip))
			}
			return out, nil
		}}
	c, err := d.Connect(context.Background())
	if err != nil {
		return tm, err
	}
	defer c.Abort()
	return c.Times, nil
}

func TestAddressesAreRaced(t *testing.T) {
	const ms = time.Millisecond
	refused := syscall.ECONNREFUSED
	for name, c := range map[string]struct {
		ips     []string
		after   map[string]time.Duration
		fails   map[string]error
		connect time.Duration
		tried   string
	}{
		"the first answers": {[]string{"::1", "10.0.0.1"}, map[string]time.Duration{"::1": 20 * ms, "10.0.0.1": 20 * ms}, nil, 20 * ms, "::1@70"},
		"IPv6 is a black hole": {[]string{"::1", "::2", "10.0.0.1"}, map[string]time.Duration{"10.0.0.1": 20 * ms}, nil,
			attemptDelay + 20*ms, "::1@70 10.0.0.1@320"},
		"both families have dead hosts": {[]string{"10.0.0.1", "10.0.0.2", "::1"}, map[string]time.Duration{"10.0.0.2": 5 * ms}, nil,
			2*attemptDelay + 5*ms, "10.0.0.1@70 ::1@320 10.0.0.2@570"},
		"a refusal goes on at once": {[]string{"::1", "10.0.0.1"}, map[string]time.Duration{"::1": 1 * ms, "10.0.0.1": 3 * ms}, map[string]error{"::1": refused},
			4 * ms, "::1@70 10.0.0.1@71"},
		"the slow first is overtaken": {[]string{"::1", "10.0.0.1"}, map[string]time.Duration{"::1": 400 * ms, "10.0.0.1": 10 * ms}, nil,
			attemptDelay + 10*ms, "::1@70 10.0.0.1@320"},
		"the slow first still wins": {[]string{"::1", "10.0.0.1"}, map[string]time.Duration{"::1": 300 * ms, "10.0.0.1": 90 * ms}, nil,
			300 * ms, "::1@70 10.0.0.1@320"},
		"a mapped address is IPv4": {[]string{"::ffff:10.0.0.1"}, map[string]time.Duration{"10.0.0.1": ms}, nil, ms, "10.0.0.1@70"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a := &addresses{after: c.after, fails: c.fails}
				times, err := connected(a, 10*time.Second, c.ips...)
				if err != nil || times.DNS != int64(70*ms) || times.Connect != int64(c.connect) {
					t.Errorf("%v; DNS %v, connect %v, want %v", err, time.Duration(times.DNS), time.Duration(times.Connect), c.connect)
				}
				if got := strings.Join(a.tried, " "); got != c.tried {
					t.Errorf("tried %s, want %s", got, c.tried)
				}
				synctest.Wait()
				if a.open != 0 {
					t.Errorf("%d connections are left open", a.open)
				}
			})
		})
	}
}

func TestNoAddressAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, err := connected(&addresses{}, 3*time.Second, "::1", "10.0.0.1")
		wantClass(t, err, record.ErrTimeout)

		a := &addresses{after: map[string]time.Duration{"::1": 0, "10.0.0.1": time.Millisecond},
			fails: map[string]error{"::1": syscall.ENETUNREACH, "10.0.0.1": syscall.ECONNREFUSED}}
		_, err = connected(a, 3*time.Second, "::1", "10.0.0.1")
		wantClass(t, err, record.ErrConnect)
		if !errors.Is(err, syscall.ECONNREFUSED) {
			t.Errorf("%v hides that the host which could be reached refused", err)
		}
		_, err = connected(&addresses{}, time.Second)
		wantClass(t, err, record.ErrConnect)
	})
}

// No address is lost or tried twice, and those of a family keep their order.
func TestInterleaved(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var in []netip.Addr
		for i, four := range rapid.SliceOfN(rapid.Bool(), 0, 8).Draw(t, "families") {
			if four {
				in = append(in, netip.AddrFrom4([4]byte{10, 0, 0, byte(i)}))
			} else {
				in = append(in, netip.AddrFrom16([16]byte{0: 0xfd, 15: byte(i)}))
			}
		}
		out := interleaveFamilies(in)
		family := func(l []netip.Addr, four bool) []netip.Addr {
			return slices.DeleteFunc(slices.Clone(l), func(a netip.Addr) bool { return a.Is4() != four })
		}
		four, six := family(in, true), family(in, false)
		if !slices.Equal(four, family(out, true)) || !slices.Equal(six, family(out, false)) || len(out) != len(in) {
			t.Fatalf("%v became %v", in, out)
		}
		for i := range out {
			if i == 0 && out[0] != in[0] || i > 0 && i < 2*min(len(four), len(six)) && out[i].Is4() == out[i-1].Is4() {
				t.Fatalf("%v: the families do not take turns in %v", in, out)
			}
		}
	})
}
