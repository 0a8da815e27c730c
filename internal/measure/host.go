package measure

import (
	"fmt"
	"slices"
	"strings"

	"pitot/internal/data/record"
	"pitot/internal/data/result"
)

// host is what the client's machine was busy with in the window, as the means of
// its samples.
type host struct {
	sums map[string]float64
	n    map[string]int
}

func (h *host) add(s *record.Sample) {
	if h.sums == nil {
		h.sums, h.n = map[string]float64{}, map[string]int{}
	}
	h.sums[s.Name] += s.Value
	h.n[s.Name]++
}

// mean of the samples of a name; ok is false without any.
func (h *host) mean(name string) (x float64, ok bool) {
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
func (h *host) check() (c result.Check, ok bool) {
	others, ok := h.mean(record.OthersShare)
	if !ok {
		return c, false
	}
	stolen, _ := h.mean(record.StolenShare)
	throttled, _ := h.mean(record.ThrottledShare)
	waited, told := h.mean(record.WaitedShare)
	c = result.Check{Name: "host", Status: pass, Value: fmt.Sprintf("other processes held %.0f %% of the cores", 100*others),
		Limit:  fmt.Sprintf("≤ %.0f %%, or tasks wait for a core ≤ %.0f %% of the time", 100*othersLimit, 100*waitedLimit),
		Advice: "Measure from a machine that does nothing else, nor serves the model."}
	if told {
		c.Value += fmt.Sprintf(", some task waited for one %.0f %% of the time", 100*waited)
	}
	if stolen >= .005 {
		c.Value += fmt.Sprintf(", the hypervisor took %.1f %%", 100*stolen)
	}
	if throttled >= .005 {
		c.Value += fmt.Sprintf(", the container's limit held this client back %.1f %%", 100*throttled)
	}
	switch {
	case throttled > heldBack:
		c.Status, c.Advice = flag, "Raise the container's limit on processors, or take it away."
	case told && others > othersLimit && waited > waitedLimit, !told && others > crowded, stolen > heldBack:
		c.Status = flag
	}
	return c, true
}

// blame names the host where it was busy as the cause of what a client that is
// short of processors looks like.
func blame(checks []result.Check) {
	at := slices.IndexFunc(checks, func(c result.Check) bool { return c.Name == "host" })
	if at < 0 || checks[at].Status == pass {
		return
	}
	for i := range checks {
		if slices.Contains([]string{"send lag", "arrivals", "merged chunks", "gc pauses"}, checks[i].Name) {
			checks[i].Advice = strings.ToUpper(checks[at].Value[:1]) + checks[at].Value[1:] + ": this client had to wait, see host."
		}
	}
}
