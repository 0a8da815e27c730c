package slo

// Preset is an objective with a name.
type Preset struct{ Name, Spec, Source string }

// Presets lists them, the one to begin with first.
func Presets() []Preset {
	const (
		mlperf    = "MLPerf Inference rules, datacenter, "
		agents    = "the shape of Artificial Analysis' AA-AgentPerf of June 2026: tokens/s of each agent, first tokens within 15 s; Pitot adds the share of 95 %"
		distserve = "Zhong et al., DistServe, OSDI 2024, table 1: "
	)
	return []Preset{
		{"chat", "p99 ttft<200ms, p99 tpot<50ms", "a chat that responds at once and faster than people read"},
		{"mlperf-llama2-70b", "p99 ttft<2s, p99 tpot<200ms", mlperf + "server"},
		{"mlperf-llama2-70b-interactive", "p99 ttft<450ms, p99 tpot<40ms", mlperf + "interactive"},
		{"mlperf-mixtral-8x7b", "p99 ttft<2s, p99 tpot<200ms", mlperf + "server"},
		{"mlperf-llama3.1-8b", "p99 ttft<2s, p99 tpot<100ms", mlperf + "server"},
		{"mlperf-llama3.1-8b-interactive", "p99 ttft<500ms, p99 tpot<30ms", mlperf + "interactive"},
		{"mlperf-llama3.1-405b", "p99 ttft<6s, p99 tpot<175ms", mlperf + "server"},
		{"mlperf-llama3.1-405b-interactive", "p99 ttft<4500ms, p99 tpot<80ms", mlperf + "interactive"},
		{"mlperf-deepseek-r1", "p99 ttft<2s, p99 tpot<80ms", mlperf + "server"},
		{"mlperf-deepseek-r1-interactive", "p99 ttft<1500ms, p99 tpot<15ms", mlperf + "interactive"},
		{"mlperf-gpt-oss-120b", "p99 ttft<3s, p99 tpot<80ms", mlperf + "server"},
		{"mlperf-gpt-oss-120b-interactive", "p99 ttft<2s, p99 tpot<20ms", mlperf + "interactive; its mlperf.conf says 15 ms"},
		{"agents-20", "p95 ttft<15s, p95 tpot<50ms", agents},
		{"agents-60", "p95 ttft<15s, p95 tpot<16.6ms", agents},
		{"agents-180", "p95 ttft<15s, p95 tpot<5.5ms", agents},
		{"distserve-chat-13b", "ttft<250ms, tpot<100ms @90%", distserve + "chatbot, OPT-13B"},
		{"distserve-chat-66b", "ttft<2500ms, tpot<150ms @90%", distserve + "chatbot, OPT-66B"},
		{"distserve-code-66b", "ttft<125ms, tpot<200ms @90%", distserve + "code completion, OPT-66B"},
		{"distserve-summary-66b", "ttft<15s, tpot<150ms @90%", distserve + "summarization, OPT-66B"},
	}
}

func presetNames() (names []string) {
	for _, p := range Presets() {
		names = append(names, p.Name)
	}
	return names
}

// findPreset gives the objective of a name.
func findPreset(name string) (spec string, ok bool) {
	for _, p := range Presets() {
		if p.Name == name {
			return p.Spec, true
		}
	}
	return "", false
}
