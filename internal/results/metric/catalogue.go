package metric

// Names of metrics that the program itself looks for.
const (
	TTFT           Name = "ttft"
	ServiceTTFT    Name = "service ttft"
	TTFA           Name = "ttfa"
	TPOT           Name = "tpot"
	TPOTn1         Name = "tpot_n1"
	ITL            Name = "itl"
	ICL            Name = "icl"
	Stall          Name = "stall"
	E2E            Name = "e2e"
	ServiceE2E     Name = "service e2e"
	Generation     Name = "generation"
	Lag            Name = "lag"
	Held           Name = "held"
	Connect        Name = "connect"
	InputTokens    Name = "input tokens"
	OutputTokens   Name = "output tokens"
	CachedTokens   Name = "cached tokens"
	TokensPerChunk Name = "tokens per chunk"
	PrefillRate    Name = "prefill rate"
	DecodeRate     Name = "decode rate"
	OfferedRate    Name = "due"
	RequestRate    Name = "req/s"
	RequestsPerMin Name = "rpm"
	InputsRate     Name = "inputs/s"
	InputRate      Name = "input tok/s"
	OutputRate     Name = "output tok/s"
	CommonRate     Name = "common tok/s"
	CommonSpeed    Name = "common speed"
	CommonCost     Name = "common cost"
	Goodput        Name = "goodput"
	GoodOutputRate Name = "good tok/s"
	Attained       Name = "attained"
	CachedShare    Name = "cached share"

	ExpectedCachedShare Name = "expected cached share"
	Errors              Name = "errors"
	Wrong               Name = "wrong"
	Differing           Name = "differing"
	OutputCost          Name = "cost"
	GoodOutputCost      Name = "good cost"
	InputCost           Name = "input cost"
	TokenCost           Name = "blended cost"
	RequestCost         Name = "request cost"
	OutputEnergy        Name = "energy"
	GoodEnergy          Name = "good energy"
	PowerRate           Name = "tok/s by power"
	Capacity            Name = "capacity"
)

// all is the catalogue. Entries are never changed.
var all = Catalogue{
	// Of an answer: what its user sees.
	{Name: TTFT, Key: "ttft_ms", Label: "TTFT", Help: "time to first token: from due to the first visible token",
		Unit: Milliseconds, Better: Lower, Stream: true, FromDue: true, Steady: true, Limit: true, Show: Headline, Compared: []string{"p50", "p99"}, Exposed: "time_to_first_token"},
	{Name: ServiceTTFT, Key: "service.ttft_ms", Label: "TTFT from sent", Help: "the same from when the request was sent",
		Unit: Milliseconds, Better: Lower, Stream: true, Steady: true, Show: Row, Unlike: TTFT, Under: "from sent", Elsewhere: Elsewhere{"ttft_ms", "ttft_ms", "time_to_first_token", "time_to_first_token_ms"}},
	{Name: TTFA, Key: "ttfa_ms", Label: "TTFA", Help: "time to first answer: from due to the first token that is no reasoning",
		Unit: Milliseconds, Better: Lower, Stream: true, FromDue: true, Steady: true, Limit: true, Show: Row, Unlike: TTFT},
	{Name: TPOT, Key: "tpot_ms", Label: "TPOT", Help: "time per output token: (last token − first token) / (visible tokens − those of the first arrival)",
		Unit: Milliseconds, PerToken: true, Better: Lower, Stream: true, Steady: true, Limit: true, Show: Headline, Compared: []string{"p50", "p99"}, Exposed: "time_per_output_token"},
	{Name: TPOTn1, Key: "tpot_n1_ms", Label: "TPOT n−1", Help: "(last token − first token) / (visible tokens − 1): what other tools call TPOT; none where requests have several answers",
		Unit: Milliseconds, PerToken: true, Better: Lower, Stream: true, Steady: true, Elsewhere: Elsewhere{"tpot_ms", "tpot_ms", "inter_token_latency", ""}},
	{Name: ITL, Key: "itl_ms", Label: "ITL", Help: "inter-token latency: gaps between arrivals, divided by the tokens that came and counted for each; pooled over the streams whose tokens per event are known",
		Of: Gap, Unit: Milliseconds, PerToken: true, Better: Lower, Stream: true, Steady: true, Limit: true, Show: Row, Compared: []string{"p99"}},
	{Name: ICL, Key: "icl_ms", Label: "ICL", Help: "inter-chunk latency: gaps between the arrivals of a stream, pooled over all streams",
		Of: Gap, Unit: Milliseconds, Better: Lower, Stream: true, Steady: true, Limit: true, Show: Row, Instead: ITL, Compared: []string{"p99"}, Exposed: "inter_event"},
	{Name: Stall, Key: "stall_ms", Label: "stall", Help: "a request's longest gap between arrivals",
		Unit: Milliseconds, Better: Lower, Stream: true, Steady: true, Limit: true, Show: Row, Compared: []string{"p99"}},
	{Name: E2E, Key: "e2e_ms", Label: "E2E", Help: "end-to-end latency: from due to the last token, or to the end of an answer that is not streamed",
		Unit: Milliseconds, Better: Lower, FromDue: true, Steady: true, Limit: true, Show: Headline, Compared: []string{"p50", "p99"}, Exposed: "e2e_request_latency"},
	{Name: ServiceE2E, Key: "service.e2e_ms", Label: "E2E from sent", Help: "the same from when the request was sent",
		Unit: Milliseconds, Better: Lower, Steady: true, Show: Row, Unlike: E2E, Under: "from sent", Elsewhere: Elsewhere{"e2el_ms", "e2e_latency_ms", "request_latency", "request_latency"}},
	{Name: Generation, Key: "generation_ms", Label: "generation", Help: "from the first token to the last",
		Unit: Milliseconds, Better: Lower, Stream: true, Steady: true, Limit: true},

	// Of a request before its answer: the client and the way to the server.
	{Name: Lag, Key: "lag_ms", Label: "send lag", Help: "from the connection being there to just before the first byte was written: the instrument's own delay",
		Unit: Milliseconds, Better: Lower, Client: true},
	{Name: Held, Key: "held_ms", Label: "held", Help: "from due to a slot or turn being free",
		Unit: Milliseconds, Better: Lower, Steady: true, Client: true},
	{Name: Connect, Key: "connect_ms", Label: "connect", Help: "from a slot being free to a connection being there",
		Unit: Milliseconds, Better: Lower, Client: true},

	// Of its size and speed.
	{Name: InputTokens, Key: "input_tokens", Label: "input tokens", Help: "tokens of the prompt, by the server's count, else as planned", Unit: Tokens, PerToken: true},
	{Name: OutputTokens, Key: "output_tokens", Label: "output tokens", Help: "tokens of the answer, by the server's count, else by the events'", Unit: Tokens, PerToken: true},
	{Name: CachedTokens, Key: "cached_tokens", Label: "cached tokens", Help: "tokens of the prompt that came from the server's prefix cache", Unit: Tokens, PerToken: true},
	{Name: TokensPerChunk, Key: "tokens_per_chunk", Label: "tokens per event", Help: "visible tokens of an answer by its events", Unit: Tokens, PerToken: true, Stream: true},
	{Name: PrefillRate, Key: "prefill_tokens_per_s", Label: "prefill rate", Help: "uncached prompt tokens by the TTFT from sent",
		Unit: TokensPerS, PerToken: true, Better: Higher, Stream: true, Steady: true},
	{Name: DecodeRate, Key: "decode_tokens_per_s", Label: "decode rate", Help: "1 / TPOT: how fast one user's answer comes",
		Unit: TokensPerS, PerToken: true, Better: Higher, Stream: true, Steady: true},

	// Of a window.
	{Name: OfferedRate, Key: "due_per_s", Label: "came due", Help: "requests that came due: the load that was offered", Of: Window, Unit: RequestsPerS, Show: Row},
	{Name: RequestRate, Key: "requests_per_s", Label: "throughput", Help: "answers that ended in the window", Of: Window, Unit: RequestsPerS, Better: Higher, Also: []Name{"requests/s"}, Compared: []string{Value}, Show: Headline},
	{Name: RequestsPerMin, Key: "rpm", Label: "throughput", Help: "the same a minute", Of: Window, Unit: RequestsPerM, Better: Higher},
	{Name: InputsRate, Key: "window.inputs_per_s", Label: "inputs", Help: "texts whose vector or score came in the window: requests a second, times the texts of each", Of: Window, Unit: InputsPerS, Better: Higher, Show: Data},
	{Name: InputRate, Key: "input_tokens_per_s", Label: "input", Help: "prompt tokens, by when the first token of their answer came", Of: Window, Unit: TokensPerS, PerToken: true, Better: Higher},
	{Name: OutputRate, Key: "output_tokens_per_s", Label: "output", Help: "output tokens that came in the window", Of: Window, Unit: TokensPerS, PerToken: true, Better: Higher, Also: []Name{"tok/s", "throughput"}, Compared: []string{Value}, Show: Headline},
	{Name: CommonRate, Key: "window.common_tokens_per_s", Label: "output by --tokenizer", Help: "output tokens that came in the window as --tokenizer counts their text: one counter for servers of any tokenizer; without reasoning that is not shown", Of: Window, Unit: TokensPerS, Better: Higher, Show: Row},
	{Name: CommonSpeed, Key: "window.common_speed", Label: "speed by --tokenizer", Help: "of the answers that ended in the window, such tokens behind the first event by the time from first token to last, all together: how fast one user's answer comes", Of: Window, Unit: TokensPerS, Better: Higher, Stream: true, Show: Data},
	{Name: Goodput, Key: "goodput.requests_per_s", Label: "goodput", Help: "requests of those due that were within the SLO", Of: Window, Unit: RequestsPerS, Better: Higher, Compared: []string{Value}, Show: Headline},
	{Name: GoodOutputRate, Key: "goodput.output_tokens_per_s", Label: "good output", Help: "output tokens of those requests", Of: Window, Unit: TokensPerS, PerToken: true, Better: Higher},
	{Name: Attained, Key: "slo.attained", Label: "in SLO", Help: "share of all due that ended well within every limit", Of: Window, Unit: Share, Better: Higher, Compared: []string{Value}, Show: Row},
	{Name: Errors, Key: "errors", Label: "errors", Help: "share of all due that did not end well: 1 − requests.ok / requests.due", Of: Window, Unit: Share, Better: Lower, Limit: true, Also: []Name{"error rate"}, Compared: []string{Value}},
	{Name: Wrong, Key: "window.wrong_share", Label: "wrong answers", Help: "share of the answered questions whose answer is wrong, of the kinds that are answered right at one user: --check-answers", Of: Window, Unit: Share, Better: Lower, Limit: true, Compared: []string{Value}, Show: Row},
	{Name: Differing, Key: "window.differing_share", Label: "greedy answers that differ", Help: "share of the greedy answers that differ from that of the same prompt alone: --check-answers", Of: Window, Unit: Share, Better: Lower, Show: Row},
	{Name: CachedShare, Key: "window.cached_share", Label: "prompt tokens cached", Help: "share of the tokens of answered prompts that came from the server's prefix cache, by the usage of the answers; an answer without the field counts as 0 where others have it", Of: Window, Unit: Share, Better: Higher, Show: Row},
	{Name: ExpectedCachedShare, Key: "window.expected_cached_share", Label: "expected from the cache", Help: "share of the tokens of answered prompts that a cache of that block size and capacity has, by what requests share and when they came", Of: Window, Unit: Share, Show: Data},
	{Name: OutputCost, Key: "cost.usd_per_m_output", Label: "cost", Help: "dollars for a million output tokens", Of: Window, Unit: USDPerMTokens, PerToken: true, Better: Lower},
	{Name: GoodOutputCost, Key: "cost.usd_per_m_good_output", Label: "cost within the SLO", Help: "dollars for a million output tokens of requests within the SLO", Of: Window, Unit: USDPerMTokens, PerToken: true, Better: Lower},
	{Name: InputCost, Key: "cost.usd_per_m_input", Label: "cost of input", Help: "dollars for a million input tokens: all that is paid, by them", Of: Window, Unit: USDPerMTokens, PerToken: true, Better: Lower},
	{Name: TokenCost, Key: "cost.usd_per_m_tokens", Label: "blended cost", Help: "dollars for a million tokens, input and output together", Of: Window, Unit: USDPerMTokens, PerToken: true, Better: Lower},
	{Name: CommonCost, Key: "cost.usd_per_m_common", Label: "cost by --tokenizer", Help: "dollars for a million output tokens as --tokenizer counts them: comparable between tokenizers", Of: Window, Unit: USDPerMTokens, Better: Lower},
	{Name: RequestCost, Key: "cost.usd_per_request", Label: "cost of a request", Help: "dollars for a request that was answered", Of: Window, Unit: USDPerRequest, Better: Lower},
	{Name: OutputEnergy, Key: "energy.joules_per_output_token", Label: "energy", Help: "joules of the GPUs for an output token", Of: Window, Unit: JoulesPerToken, PerToken: true, Better: Lower},
	{Name: GoodEnergy, Key: "energy.joules_per_good_token", Label: "energy within the SLO", Help: "joules of the GPUs for an output token of requests within the SLO", Of: Window, Unit: JoulesPerToken, PerToken: true, Better: Lower},
	{Name: PowerRate, Key: "energy.output_tokens_per_s_per_mw", Label: "output by power", Help: "output tokens a second by a megawatt of the GPUs' power", Of: Window, Unit: TokensPerSPerMW, PerToken: true, Better: Higher},
	{Name: Capacity, Key: "capacity.load", Label: "capacity", Help: "the highest load at which the SLO holds", Of: Search, Unit: RequestsPerS, Better: Higher},
}

// All is the catalogue, in the order in which metrics are shown.
func All() Catalogue {
	list := append(Catalogue(nil), all...)
	for i := range signals {
		if m := signals[i].Metric; m != nil {
			list = append(list, m)
		}
	}
	return list
}
