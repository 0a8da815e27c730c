package target

import (
	"context"
	"net"
	"slices"
	"time"

	"pitot/internal/client"
	"pitot/internal/telemetry/local"
)

// IsLocal says whether a target is on this machine, and so has a part of its processor. One whose
// name cannot be looked up is taken to be.
func (t *Target) IsLocal() bool { return t.Kind != "http" || isLocalEndpoint(&t.Dialer.Endpoint) }

// IsLocal is [Target.IsLocal] of a server that is not open.
func IsLocal(spec string) bool {
	e, _, err := client.ParseTarget(spec)
	return err != nil || isLocalEndpoint(&e)
}

// lookupTime is the timeout of a host name lookup.
const lookupTime = 2 * time.Second

func isLocalEndpoint(e *client.Endpoint) bool {
	addr := e.Addr
	if e.Proxy != nil {
		addr = e.Proxy.Host
	}
	if e.Unix || local.IsThisMachine(addr) {
		return true
	}
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return true
	}
	ctx, cancel := context.WithTimeout(context.Background(), lookupTime)
	defer cancel()
	addrs, err := net.DefaultResolver.LookupHost(ctx, host) // an address is its own
	return err != nil || slices.ContainsFunc(addrs, func(a string) bool { return local.IsThisMachine(net.JoinHostPort(a, port)) })
}
