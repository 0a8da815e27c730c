package validity

import (
	"slices"

	"pitot/internal/results/record"
	"pitot/internal/results/result"
)

// host holds the load on the client's machine in the window, as the means of its samples.
type host struct {
	sums map[string]float64
	n    map[string]int
}

func (h *host) addSample(s *record.Sample) {
	if h.sums == nil {
		h.sums, h.n = map[string]float64{}, map[string]int{}
	}
	h.sums[s.Name] += s.Value
	h.n[s.Name]++
}

// sampleMean of the samples of a name; ok is false without any.
func (h *host) sampleMean(name string) (x float64, ok bool) {
	if h.n[name] == 0 {
		return 0, false
	}
	return h.sums[name] / float64(h.n[name]), true
}

const (
	// A machine is busy with something else when others have this share of its
	// cores while tasks wait for one for that share of the time. Either alone does
	// no harm: a core may be free for the client, or it waits for itself.
	othersLimit, waitedLimit = .2, .2
	// crowded is the share of others from which on the machine is busy where how
	// long tasks wait is not known.
	crowded = .6
	// heldBack is the share of the time from which on a hypervisor or a
	// container's limit blurs a millisecond.
	heldBack = .02
)

// checkHost flags a client whose machine was busy with something else. ok is
// false where the system does not tell.
func (h *host) checkHost() (c result.Check, ok bool) {
	others, ok := h.sampleMean(record.OthersShare)
	if !ok {
		return c, false
	}
	stolen, _ := h.sampleMean(record.StolenShare)
	throttled, _ := h.sampleMean(record.ThrottledShare)
	waited, known := h.sampleMean(record.WaitedShare)
	c = result.NewCheck(result.CheckHost, others, othersLimit).WithDetail(map[string]float64{"stolen": stolen, "throttled": throttled})
	if known {
		c.Detail["waited"] = waited
	}
	switch {
	case throttled > heldBack:
		c.Status, c.Case = result.Flag, result.CaseThrottled
	case known && others > othersLimit && waited > waitedLimit, !known && others > crowded, stolen > heldBack:
		c.Status = result.Flag
	}
	return c, true
}

// blameHost names the host where it was busy as the cause of what a client that is
// short of processors looks like. Chunks that share a read are its doing only where
// the client was late elsewhere too: servers and gateways that send in bursts merge them as well.
func blameHost(checks []result.Check) {
	at := slices.IndexFunc(checks, func(c result.Check) bool { return c.Name == result.CheckHost })
	if at < 0 || checks[at].Status == result.Pass {
		return
	}
	late := false
	for i := range checks {
		if slices.Contains([]string{result.CheckSendLag, result.CheckArrivals, result.CheckPauses}, checks[i].Name) {
			checks[i].Case = result.CaseHost
			late = late || checks[i].Status != result.Pass
		}
	}
	if at := slices.IndexFunc(checks, func(c result.Check) bool { return c.Name == result.CheckMerged }); late && at >= 0 {
		checks[at].Case = result.CaseHost
	}
}
