package tools

import "pitot/internal/results/metric"

// Alike names the metric of Pitot that is defined as the tool defines its "ttft",
// "tpot" or "e2e", "" if Pitot has none: "service ttft" and "service e2e" count
// from when a request was sent, "tpot_n1" is (E2E − TTFT) / (tokens − 1). No tool
// has Pitot's ITL: they take gaps between events, or means of requests.
func (r *Result) Alike(name string) string {
	own := map[string]metric.Name{"ttft": metric.ServiceTTFT, "tpot": metric.TPOTn1, "e2e": metric.ServiceE2E}[name]
	if nameInTool(own, r.Tool) == "" {
		return ""
	}
	return string(own)
}

// nameInTool returns a tool's name for a metric of Pitot's. It returns "" if the tool has none that
// is defined alike.
func nameInTool(name metric.Name, tool string) string {
	if m := metric.All().Find(name); m != nil {
		return m.Elsewhere.NameIn(tool)
	}
	return ""
}
