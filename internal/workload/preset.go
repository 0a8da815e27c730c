package workload

import "pitot/internal/say"

// Preset is a workload with a name: what is asked in a task that many have. Its
// numbers never change under their name, so that it means the same load everywhere.
type Preset struct {
	Name, About   string
	Input, Output string  // lengths, as ParseLengths reads them
	Correlation   float64 // Spearman's, of the two
	Prefix        int     // tokens in front of every prompt
	PrefixShare   float64 // of the requests, that have the same in front
	// Of conversations, whose first request Input and Output are about; "" where requests
	// stand alone: requests, tokens that each further one adds, and the pause before it, as
	// settings are written; and tokens of the system prompt that all share.
	Turns, TurnInput, Think string
	SubAgents               string // that the steps of its conversations start, "" for none
	System                  int
	// SLO is the objective that it is judged by where none is given, a preset's name as
	// --slo takes it; "" for none.
	SLO string
	// Arrivals describes the times in the data. It is zero where they are not known.
	Arrivals DataArrivals
	Stresses string // what of a server it is hardest on
	Source   string // where the numbers come from
	From     string // the same in a word or two
}

// DataArrivals describes the arrivals of public data. Nothing uses it to send requests: a preset's
// requests come as --arrival says.
type DataArrivals struct {
	Rate       float64    // requests/s
	Dispersion [3]float64 // of counts in 1, 10 and 60 s
	Law        string     // that is near it at that rate, as --arrival takes it
}

// Where the numbers come from.
const (
	azure     = "Azure LLM inference trace 2023 (CC BY 4.0; Patel et al., Splitwise, ISCA 2024), "
	mooncake  = "Mooncake trace of FAST 2025 (Apache-2.0; Qin et al.), "
	serveGen  = "ServeGen (Apache-2.0; Xiang et al., arXiv 2505.09999), "
	mlperf    = "limits: MLPerf Inference rules, datacenter, server (mlcommons/inference_policies at ac93e89); lengths: "
	weka      = "Weka's sessions of coding agents (Apache-2.0; callanjfox/kv-cache-tester), 60 of 739, "
	agentPerf = "the shape that Artificial Analysis tells of AA-AgentPerf (prompts of 5k to 131k tokens, 27k on average; answers of 150 tokens, 2k at p95; tools take 1 s): the laws of it are "
	inference = "the fixed shapes of InferenceMAX v1"
	matrix    = "chosen here, to tell one cost from another: compare with "
	ours      = "chosen here; no public data of it is known"
)

// Presets lists them, the one to begin with first. Quantiles are the values of that rank
// in the named data, of all its requests.
func Presets() []Preset {
	const all = 1.0 // requests share the prefix
	return []Preset{
		{Name: "chat", About: "a chat's turns, each with its history", Stresses: "both prompts and answers",
			Input:    "quantiles(0:2,1:29,5:181,10:207,25:396,50:1020,75:1189,90:2735,95:4083,99:4142,99.9:6212,100:14050)",
			Output:   "quantiles(0:7,1:16,5:41,10:54,25:85,50:129,75:395,90:424,95:451,99:601,99.9:954,100:1000)",
			Arrivals: DataArrivals{5.53, [3]float64{1.39, 3.87, 16.4}, "mmpp(5:300s,3:200s)"},
			From:     "Azure 2023", Source: azure + "conversation: 19,366 requests"},
		{Name: "code-completion", About: "code to go on with: much to read, little to write", Stresses: "prompts: TTFT",
			Input:    "quantiles(0:3,1:17,5:75,10:147,25:578,50:1469,75:2745,90:5194,95:7315,99:7436,99.9:7437,100:7437)",
			Output:   "quantiles(0:6,1:6,5:6,10:7,25:9,50:13,75:24,90:55,95:90,99:252,99.9:831,100:1899)",
			Arrivals: DataArrivals{2.57, [3]float64{13.2, 71.9, 167}, "on-off(10s,45s)"},
			From:     "Azure 2023", Source: azure + "code: 8,819 requests"},
		{Name: "rag", About: "questions over passages that a search found, behind a system prompt", Stresses: "prompts; the prefix cache",
			Input:  "quantiles(0:28,1:28,5:31,10:86,25:1730,50:2115,75:2413,90:2935,95:3401,99:4415,99.9:5410,100:6688)",
			Output: "quantiles(0:7,1:36,5:66,10:83,25:131,50:234,75:385,90:563,95:670,99:891,99.9:1183,100:2183)",
			Prefix: 1024, PrefixShare: all,
			From: "RAGPulse", Source: "RAGPulse (MIT; Wang et al., arXiv 2511.12979): 7,106 requests; 1,024 tokens of the system prompt are taken as common to all, as the shortest requests have it"},
		{Name: "summarization", About: "papers up to 4k, and what is in them", Stresses: "prompts: compute",
			Input:  "quantiles(0:1,1:73,5:747,10:1242,25:1986,50:2730,75:3370,90:3702,95:3813,99:3934,99.9:4012,100:4054)",
			Output: "quantiles(0:5,1:36,5:60,10:78,25:115,50:167,75:242,90:372,95:737,99:3273,99.9:3845,100:4056)",
			From:   "arXiv, Vidur", Source: "arXiv summarization in Vidur (MIT; Agrawal et al., MLSys 2024): 28,257 requests by Llama 2's tokenizer"},
		{Name: "long-context", About: "chats over whole documents, to 126k tokens", Stresses: "KV cache and attention",
			Input:  "quantiles(0:891,1:894,5:901,10:964,25:2306,50:6909,75:15368,90:27367,95:39552,99:85401,99.9:121301,100:126195)",
			Output: "quantiles(0:1,1:3,5:10,10:24,25:156,50:350,75:472,90:597,95:698,99:1120,99.9:2000,100:2000)",
			From:   "Mooncake", Source: mooncake + "conversation: 12,031 requests; what they share is left out"},
		{Name: "tools-and-documents", About: "agents' steps and documents, mixed", Stresses: "KV cache; mixed lengths",
			Input:  "quantiles(0:13,1:16,5:22,10:30,25:277,50:11587,75:23175,90:38615,95:49009,99:66458,99.9:191374,100:191378)",
			Output: "quantiles(0:1,1:2,5:2,10:4,25:11,50:69,75:250,90:389,95:519,99:769,99.9:825,100:893)",
			From:   "Mooncake", Source: mooncake + "synthetic: 3,993 requests; what they share is left out"},
		{Name: "reasoning", About: "short questions, long thought", Stresses: "decoding; KV cache that grows",
			Input:  "quantiles(0:9,1:9,5:13,10:18,25:41,50:208,75:482,90:2092,95:6714,99:23423,99.9:33783,100:33783)",
			Output: "quantiles(0:100,1:141,5:225,10:287,25:427,50:792,75:1499,90:3432,95:5701,99:12607,99.9:20833,100:32768)",
			From:   "ServeGen", Source: serveGen + "deepseek-r1: 73 clients, weighted by their rates; its longest answers are 32,768"},
		{Name: "api-many-clients", About: "an API that many programs call", Stresses: "TTFT, the API server",
			Input:  "quantiles(0:1,1:60,5:64,10:74,25:262,50:601,75:1073,90:2371,95:2404,99:5452,99.9:12730,100:12730)",
			Output: "quantiles(0:1,1:1,5:1,10:1,25:8,50:53,75:208,90:461,95:539,99:872,99.9:1595,100:1595)",
			From:   "ServeGen", Source: serveGen + "m-large: clients weighted by their rates, up to the 99.9th percentile"},
		{Name: "agentic-coding", About: "coding agents: many steps, each behind all that was said", Stresses: "the prefix cache; KV cache",
			Input:  "quantiles(0:477,5:487,10:502,25:1685,50:3539,75:4555,90:6318,95:10739,99:23089,100:23089)",
			Output: "quantiles(0:36,5:86,10:99,25:132,50:182,75:314,90:629,95:1017,99:3560,100:6531)",
			Turns:  "quantiles(0:1,5:1,10:3,25:6,50:15,75:34,90:38,95:50,99:71,100:71)", System: 14526,
			TurnInput: "quantiles(0:1,5:1,10:1,25:31,50:257,75:1143,90:3389,95:7410,99:16230,100:29058)", Think: "lognormal(16s,19s)",
			SubAgents: "share(0.75%), agents(quantiles(0:1,20:3,100:3)), steps(quantiles(0:1,15:2,30:4,45:9,60:11,80:13,100:18)), system(11150), input(quantiles(0:25,25:650,50:2541,75:6256,90:9314,100:11124))",
			From:      "Weka", Source: weka + "32 that begin below 40k tokens: 670 requests as far as prompt and answer stay within 64k; tools and system prompt are one text of their mean length; pauses over 60 s are cut to it, and are of a lognormal law with their mean and standard deviation; five steps start 13 sub-agents"},
		{Name: "agents", About: "agents that call tools, up to 60 steps", Stresses: "the prefix cache; decoding",
			Input: "lognormal(1000,500)", Output: "quantiles(0:20,50:150,95:2000,100:8000)",
			Turns: "uniform(10,60)", System: 4096, TurnInput: "lognormal(550,800)", Think: "lognormal(1.65s,2.16s)",
			From: "AA-AgentPerf", Source: agentPerf + ours},
		{Name: "classification", About: "one token of answer", Input: "lognormal(500,400)", Output: "1",
			Stresses: "prompts alone: TTFT is E2E", From: "Pitot", Source: ours},
		{Name: "translation", About: "texts, and as long again in another language", Input: "lognormal(400,350)", Output: "lognormal(420,370)", Correlation: .95,
			Stresses: "both; long with long", From: "Pitot", Source: ours},
		{Name: "batch", About: "work that nobody waits for", Input: "lognormal(800,600)", Output: "lognormal(400,300)",
			Stresses: "throughput", From: "Pitot", Source: ours},

		{Name: "mlperf-llama2-70b", About: "MLPerf's questions and answers, with its limits", Input: "lognormal(300,180)", Output: "lognormal(294,180)",
			SLO: "mlperf-llama2-70b", Stresses: "both; its limits", From: "MLPerf",
			Source: mlperf + "answers of OpenOrca have 294.45 tokens on average there (24,576 samples); prompts, and how both spread, are chosen here"},
		{Name: "mlperf-llama3.1-8b", About: "MLPerf's news to sum up, with its limits", Input: "lognormal(800,400)", Output: "128",
			SLO: "mlperf-llama3.1-8b", Stresses: "prompts; its limits", From: "MLPerf",
			Source: mlperf + "answers to CNN-DailyMail have at most 128 tokens there (13,368 samples); prompts are chosen here"},
		{Name: "mlperf-llama3.1-405b", About: "MLPerf's long documents, with its limits", Input: "lognormal(9400,7000)", Output: "lognormal(685,500)",
			SLO: "mlperf-llama3.1-405b", Stresses: "prompts; its limits", From: "MLPerf",
			Source: mlperf + "answers have 684.68 tokens on average there (8,313 samples); prompts, and how both spread, are chosen here"},

		{Name: "matrix-a", About: "short prompt, short answer", Input: "256", Output: "128",
			Stresses: "overheads", From: "Pitot", Source: "chosen here, as what the others are compared with: one user"},
		{Name: "matrix-b", About: "long prompt, short answer", Input: "2048", Output: "128",
			Stresses: "the cost of prompts", From: "Pitot", Source: matrix + "matrix-a, at one user"},
		{Name: "matrix-c", About: "short prompt, long answer", Input: "256", Output: "1024",
			Stresses: "decoding", From: "Pitot", Source: matrix + "matrix-a, at one user"},
		{Name: "matrix-d", About: "long prompt, long answer", Input: "2048", Output: "1024",
			Stresses: "batching: prompts in the way", From: "Pitot", Source: matrix + "8 users, then saturation"},
		{Name: "matrix-e", About: "a common prefix, warm", Input: "1024", Output: "256", Prefix: 3072, PrefixShare: all,
			Stresses: "the prefix cache", From: "Pitot", Source: matrix + "matrix-e-cold, at 16 users"},
		{Name: "matrix-e-cold", About: "the same lengths, nothing in common", Input: "1024", Output: "256", Prefix: 3072,
			Stresses: "the cost of prompts", From: "Pitot", Source: matrix + "matrix-e, at 16 users"},

		{Name: "1k1k", About: "1k in, 1k out", Input: "1024", Output: "1024", Stresses: "balanced", From: "InferenceMAX", Source: inference},
		{Name: "1k8k", About: "1k in, 8k out", Input: "1024", Output: "8192", Stresses: "decoding", From: "InferenceMAX", Source: inference},
		{Name: "8k1k", About: "8k in, 1k out", Input: "8192", Output: "1024", Stresses: "prompts", From: "InferenceMAX", Source: inference},
		{Name: "1k64k", About: "1k in, 64k out", Input: "1024", Output: "65536", Stresses: "KV cache that grows", From: "Pitot", Source: "long thought; " + ours},
	}
}

// PresetNamed gives the preset of that name.
func PresetNamed(name string) (Preset, bool) {
	for _, p := range Presets() {
		if p.Name == name {
			return p, true
		}
	}
	return Preset{}, false
}

// PresetNames lists their names.
func PresetNames() (names []string) {
	for _, p := range Presets() {
		names = append(names, p.Name)
	}
	return names
}

// UnknownPreset is the error for a name that no preset has.
func UnknownPreset(name string) error {
	if name == "matrix-f" { // the row of the matrix that nobody else can know
		return say.Errorf("row F of the matrix is your own production, and has no numbers here").WithHint("make a profile of your logs, pitot workload profile LOG… -o profile.yaml, and ask it with --workload profile.yaml")
	}
	return say.Errorf("unknown workload %.60q", name).WithHint(say.KnownHint(name, PresetNames()))
}
