package tools

// Alike names the metric of Pitot that is defined as the tool defines its "ttft",
// "tpot" or "e2e", "" if Pitot has none: "service ttft" and "service e2e" count
// from when a request was sent, "tpot_n1" is (E2E − TTFT) / (tokens − 1). No tool
// has Pitot's ITL: they take gaps between events, or means of requests.
func (r *Result) Alike(name string) string {
	switch {
	case name == "ttft", name == "e2e":
		return "service " + name
	case name == "tpot" && r.Tool != "guidellm": // whose TPOT includes TTFT
		return "tpot_n1"
	}
	return ""
}
