package deploy

import (
	"cmp"
	"fmt"
	"math"
	"time"

	"pitot/internal/say"
	"pitot/internal/sim/catalogue"
)

// Path is the kind of connection between the accelerators of a group.
type Path string

// The paths. A deployment's setting link names one.
const (
	Switched    Path = "nvlink" // NVLink, NVSwitch or another link of the accelerators' own
	PeerToPeer  Path = "p2p"    // PCIe, from card to card
	ThroughHost Path = "host"   // PCIe, through the host's memory
)

// An all-reduce by NCCL over PCIe is a ring: each of n cards sends 2(n−1) times the nth
// part of the message. It takes
//
//	launch + 2(n−1)·step + 2(n−1)/n·bytes ÷ (share · the link's bandwidth)
//
// with a step and a share for each path (SOURCES.md has their measurements).
const (
	ringLaunch    = 3.0  // µs
	peerStep      = 1.65 // µs
	peerShare     = 0.44
	hostStep      = 6.75 // µs
	hostShare     = 0.24
	pairLatency   = 5.0 // µs, of the engine's own kernel, which two cards with peer-to-peer transfers take
	pairShare     = 0.58
	switchedShare = 0.25 // of a link of the accelerators' own, the middle of those measured
	switchedDelay = 6.0  // µs, likewise
	switchedRise  = 0.9
)

// Path is the one that the deployment's collectives take, as its setting link says or else
// as its accelerators have it.
func (d *Deployment) Path() Path {
	return cmp.Or(d.link, usualPath(&d.Accelerator.Link))
}

// usualPath is the one that accelerators have by themselves.
func usualPath(link *catalogue.Link) Path {
	switch {
	case !link.PCIe():
		return Switched
	case link.PeerToPeer:
		return PeerToPeer
	}
	return ThroughHost
}

// setLink sets the path.
func (d *Deployment) setLink(v string) error {
	switch p := Path(v); p {
	case Switched, PeerToPeer, ThroughHost:
		d.link = p
		return nil
	}
	return say.Errorf("%q is no link", v).WithHint(say.KnownHint(v, []string{string(Switched), string(PeerToPeer), string(ThroughHost)}))
}

// checkPath refuses a link that the accelerator does not have.
func (d *Deployment) checkPath() error {
	a := &d.Accelerator
	bridge := a.Link.BridgeGBs > 0
	switch {
	case d.link == "" || d.link == Switched && !a.Link.PCIe():
	case !a.Link.PCIe():
		return say.Errorf("link is %s, and %s is linked by %s, not by PCIe", d.link, a.Name, a.Link.Kind).WithHint("leave link out")
	case d.link == Switched && !bridge:
		return say.Errorf("link is nvlink, and %s has no NVLink", a.Name).WithHint("take link=p2p for transfers from card to card, link=host for those through the host's memory")
	case d.link == Switched && d.expertSharers() > 2:
		return say.Errorf("link is nvlink, and a bridge joins two of %s, not %d", a.Name, int(d.expertSharers())).WithHint("take link=p2p or link=host: the slowest link of the group decides")
	}
	return nil
}

// pathNote says which path is assumed, "" where the deployment names it or nothing goes over PCIe.
func (d *Deployment) pathNote() string {
	a, n := &d.Accelerator, int(d.expertSharers())
	if d.link != "" || !a.Link.PCIe() || n < 2 {
		return ""
	}
	if d.Path() == ThroughHost {
		return fmt.Sprintf("all-reduces among %d×%s are assumed to go through the host's memory; link=p2p is for cards with peer-to-peer transfers", n, a.Name)
	}
	return fmt.Sprintf("all-reduces among %d×%s are assumed to go from card to card over PCIe; link=host is for machines without peer-to-peer transfers", n, a.Name)
}

// ringReduce is the constants of an all-reduce by NCCL over a link of so many 10⁹ bytes/s in each
// direction.
func ringReduce(n int, step, gbs float64) catalogue.Reduce {
	steps := 2 * float64(max(n-1, 1))
	return catalogue.Reduce{Latency: ringLaunch + steps*step, GBs: max(gbs, 0.1) * float64(n) / steps, Growth: 1}
}

// reduceConstants gives the constants of all-reduces in a group of n. vLLM and SGLang take a kernel
// of their own on NVLink and for two cards with peer-to-peer transfers, NCCL otherwise. Measured
// constants hold for the path that the accelerator has by itself, and are NCCL's for more than two
// cards on PCIe.
func (d *Deployment) reduceConstants(measured *catalogue.Kernels, n int) catalogue.Reduce {
	link, path := &d.Accelerator.Link, d.Path()
	r, ok := ofGroup(measured.Reduce, n)
	own := path == Switched || n <= 2 // a kernel of the engine's own is there
	switch {
	case path == ThroughHost:
		return ringReduce(n, hostStep, hostShare*link.GBs)
	case path == PeerToPeer && own && d.withoutCustomReduce:
		return ringReduce(n, peerStep, pairShare*link.GBs)
	case path == Switched && link.PCIe():
		r = catalogue.Reduce{Latency: switchedDelay, GBs: switchedShare * link.BridgeGBs, Growth: switchedRise}
	case ok:
	case path == PeerToPeer && own:
		return catalogue.Reduce{Latency: pairLatency, GBs: pairShare * link.GBs, Growth: 1}
	case path == PeerToPeer:
		return ringReduce(n, peerStep, peerShare*link.GBs)
	default:
		r = catalogue.Reduce{Latency: switchedDelay, GBs: switchedShare * max(link.BandwidthAmong(n), 1), Growth: switchedRise}
	}
	if path == Switched && d.withoutCustomReduce {
		r.Latency = max(r.Latency, ringReduce(n, peerStep, 1).Latency)
	}
	return r
}

// exchangeConstants gives the constants of what engines that divide experts exchange in a layer,
// all-gather and reduce-scatter by NCCL, which is vLLM's default; where they were not measured,
// an all-reduce among as many, with its latency twice: it is made of the same two.
func (d *Deployment) exchangeConstants(measured *catalogue.Kernels) catalogue.Reduce {
	if r, ok := ofGroup(measured.Exchange, d.GPUs()); ok && d.Path() != ThroughHost {
		return r
	}
	r := d.reduceConstants(measured, d.GPUs())
	r.Latency *= 2
	return r
}

// ofGroup gives the constants of the next larger group that was measured, those of a machine
// for larger ones.
func ofGroup(measured map[int]catalogue.Reduce, n int) (r catalogue.Reduce, ok bool) {
	for size := min(n, catalogue.Machine); size <= catalogue.Machine; size++ {
		if r, ok := measured[size]; ok {
			return r, true
		}
	}
	return r, false
}

// passing is the time model of the messages between accelerators. n is the number of messages in a
// step, and floor the seconds of each. message is the seconds of 16 MiB, and share a token's part
// of 16 MiB. growth is the power by which the time grows up to 16 MiB. large is the seconds of each
// further 16 MiB.
type passing struct{ n, floor, message, share, growth, large float64 }

// newPassing is that of n messages in a step by their constants, of which a deployment may set two.
func newPassing(n float64, latency time.Duration, gbs, hidden float64, r *catalogue.Reduce) passing {
	p := passing{n: n, floor: latency.Seconds(), message: catalogue.Message / (gbs * 1e9), share: 2 * hidden / catalogue.Message, growth: r.Growth}
	p.large = p.message
	if r.Large > 0 {
		p.large *= r.GBs / r.Large
	}
	return p
}

// secondsFor returns the seconds that the messages of a step with the given number of tokens take.
func (p *passing) secondsFor(tokens float64) float64 {
	if p.n == 0 {
		return 0
	}
	size := tokens * p.share
	return p.n * (p.floor + p.message*math.Pow(min(size, 1), p.growth) + p.large*max(size-1, 0))
}
