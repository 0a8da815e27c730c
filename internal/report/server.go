package report

import (
	"fmt"
	"strings"

	"pitot/internal/results/metric"
	"pitot/internal/results/result"
	"pitot/internal/say"
)

// addServer says what servers and GPUs told of themselves: what the batch was like, what
// TTFT is made of, what the prefix cache and the GPUs did. A figure that is not known is
// left out.
func (m *PointModel) addServer(run *result.Run, p *result.Point) {
	all := run.Metrics()
	value := func(name metric.Name) (float64, bool) {
		d := all.Find(name)
		if d == nil {
			return 0, false
		}
		x, ok := p.Server[d.FieldName()]
		return x, ok
	}
	amount := func(name metric.Name) string {
		x, ok := value(name)
		if !ok {
			return ""
		}
		if all.Find(name).Unit == metric.Count {
			return say.Decimal(x, 1)
		}
		return formatterFor(all.Find(name).Unit)(x)
	}
	with := func(before string, name metric.Name, after string) string {
		if s := amount(name); s != "" {
			return before + s + after
		}
		return ""
	}
	line := func(label string, parts ...string) { m.Server = addLine(m.Server, label, parts) }
	most := func(name, most metric.Name, word string) string {
		if amount(name) == "" {
			return ""
		}
		return amount(name) + word + with(" (max ", most, ")")
	}
	preemptions := with("", metric.ServerPreemptions, " preemptions")
	switch x, ok := value(metric.ServerPreemptions); {
	case ok && x < .5:
		preemptions = ""
	case ok:
		preemptions = say.Plural(int(x+.5), "preemption")
	}
	kv := most(metric.ServerKVUse, metric.ServerKVUseMost, "")
	if kv != "" {
		kv = "KV cache full to " + kv
	}
	line("Server", most(metric.ServerRunning, metric.ServerRunningMost, " running"),
		most(metric.ServerWaiting, metric.ServerWaitingMost, " waiting"), kv, preemptions, with("", metric.ServerStepTokens, " tokens a step"))
	queue, prefill, front := amount(metric.ServerQueue), amount(metric.ServerPrefill), amount(metric.ServerFront)
	switch {
	case front != "":
		while := ""
		if ttft := p.Metrics.SummaryOf(metric.TTFT); ttft != nil && !ttft.NoSteadyState().IsNone() {
			while = ", while the queue grew"
		}
		line("Mean TTFT", fmt.Sprintf("%s ms = %s network and API server + %s queue + %s prefill%s", amount(metric.ServerClientTTFT), front, queue, prefill, while))
	case queue != "":
		scope := "Server queue"
		if _, sampled := value(metric.ServerSamples); !sampled { // it was asked before the load and after it alone
			scope = "Whole load"
		}
		line(scope, "server queue "+queue+" ms on average", with("prefill ", metric.ServerPrefill, " ms"))
	}
	naive := ""
	if s := p.Metrics.SummaryOf(metric.PrefillRate); s != nil && s.Mean != nil {
		naive = " (" + say.Quantity(*s.Mean) + " by TTFT)"
	}
	hits := with("prefix cache hits ", metric.ServerHits, with(", ", metric.ServerPlannedHits, " planned"))
	if figures, _ := CacheText(p.PrefixCache); figures != "" {
		hits = "" // it has a line of its own
	}
	line("Prefill", with("", metric.ServerPrefillRate, " tok/s without the queue"+naive), hits, with("accepted drafts ", metric.ServerAccepted, ""))
	cores := func(name metric.Name, of string) string {
		x, ok := value(name)
		if !ok {
			return ""
		}
		return say.Quantity(x) + " cores" + of
	}
	if n, ok := value(metric.ServerProcesses); ok {
		of := " in " + say.Plural(int(n+.5), "process")
		all, one := cores(metric.ServerAllCPU, of), cores(metric.ServerCPU, " the one that answers")
		if n < 1.5 {
			one = ""
		}
		line("Server CPU", all, one)
	}
	line("GPUs", with("busy ", metric.GPUActive, ""), with("matrix units ", metric.GPUTensor, ""), with("memory ", metric.GPUMemory, ""),
		with("", metric.GPUPower, " W"), with("", metric.GPUEnergy, " J"), with("", metric.GPUClock, " MHz"), with("", metric.GPUHeat, " °C"))
	if x, ok := value(metric.ServerForeign); ok && x > .01 {
		line("Other load", say.Percent(x)+" of the tokens that the server counted were not from this run")
	}
	var others []string // of a catalogue that has more
	for _, d := range all {
		if x, ok := p.Server[d.FieldName()]; ok && d.Of == metric.Server && d.Show != metric.Data && !strings.HasPrefix(string(d.Name), "server ") && d.Name != metric.ServerHits {
			text := d.Label + " " + formatterFor(d.Unit)(x)
			if d.Unit != metric.Share && d.Unit != metric.Count {
				text += " " + string(d.Unit)
			}
			others = append(others, text)
		}
	}
	line("Other", others...)
	m.addCache(p)
}

// TTFTPart is a part of the mean TTFT, in milliseconds.
type TTFTPart struct {
	Name string
	MS   float64
}

// MeanTTFT returns the parts of a point's mean TTFT in their order, nil where the server does not
// report them.
func MeanTTFT(p *result.Point) (parts []TTFTPart) {
	for _, part := range []struct {
		name   string
		metric metric.Name
	}{{"network and API server", metric.ServerFront}, {"queue", metric.ServerQueue}, {"prefill", metric.ServerPrefill}} {
		d := metric.All().Find(part.metric)
		if d == nil {
			return nil
		}
		x, ok := p.Server[d.FieldName()]
		if !ok {
			return nil
		}
		parts = append(parts, TTFTPart{part.name, x})
	}
	return parts
}
