package metric

// Signal is something a server tells of itself in its metrics: how it is asked for,
// and the metric that follows from the samples before, during and after a load.
//
// To add one, add an entry to signals.
type Signal struct {
	*Metric        // of a [Server]; nil for what is only recorded
	Tells   string // what that is, and what it is used for

	From    Source
	Per     Source // of a [Ratio]
	Combine Combine
	Scale   float64 // from the engine's unit to the metric's, 0 for 1
}

// Source is a series of a server's metrics.
type Source struct {
	Record string   // the name of its samples in the records, of source "server"
	Series []string // what engines call it, in Prometheus' text format: the first that is there
	Across Across   // how one value comes of several, of replicas behind one address
}

// Combine is how the samples of a point become one value.
type Combine uint8

const (
	Recorded Combine = iota // not at all
	Growth                  // of a counter: what it grew by
	Ratio                   // of two counters: what one grew by for each that the other grew by
	Average                 // of a gauge, over its samples within the window
	Most                    // the largest of those
	Least                   // the smallest
)

// String is the word for it.
func (c Combine) String() string {
	return [...]string{"recorded", "growth", "ratio", "average", "most", "least"}[c]
}

// Across is how one value comes of the series of one name.
type Across uint8

const (
	Sum Across = iota
	Highest
	Lowest
)

// String is the word for it.
func (a Across) String() string { return [...]string{"sum", "highest", "lowest"}[a] }

// ProcessStart is when a server's process began, in seconds since 1970.
const ProcessStart = "process_start_time_seconds"

// RequestsServed counts the requests that a server ended, whoever sent them.
const RequestsServed = "requests_served"

// signals are in the order in which they are shown.
var signals = []Signal{
	{
		Tells: "when its process began, else when the first of its counters was made; it tells a restart",
		From:  Source{ProcessStart, []string{ProcessStart}, Lowest},
	},
	{
		Tells: "how many requests it ended, whoever sent them; it tells other traffic",
		From:  Source{RequestsServed, []string{"vllm:request_success_total", "sglang:num_requests_total", "tgi_request_success"}, Sum},
	},
	{
		Metric: &Metric{Name: "server queue", Key: "server.queue_ms", Label: "server queue", Help: "how long a request waited in the server to be scheduled, on average",
			Of: Server, Unit: Milliseconds, Better: Lower, Show: Row},
		From:    Source{"queue_s_sum", []string{"vllm:request_queue_time_seconds_sum", "sglang:queue_time_seconds_sum", "tgi_request_queue_duration_sum"}, Sum},
		Per:     Source{"queue_s_count", []string{"vllm:request_queue_time_seconds_count", "sglang:queue_time_seconds_count", "tgi_request_queue_duration_count"}, Sum},
		Combine: Ratio, Scale: 1e3,
	},
	{
		Metric: &Metric{Name: "prefix hits", Key: "server.prefix_hit_share", Label: "prefix cache hits", Help: "share of the tokens looked up in the prefix cache that were there",
			Of: Server, Unit: Share, Better: Higher, Show: Row},
		From:    Source{"prefix_cache_hits", []string{"vllm:prefix_cache_hits_total", "vllm:gpu_prefix_cache_hits_total"}, Sum},
		Per:     Source{"prefix_cache_queries", []string{"vllm:prefix_cache_queries_total", "vllm:gpu_prefix_cache_queries_total"}, Sum},
		Combine: Ratio,
	},
}

// Signals are what servers are asked for.
func Signals() []Signal { return append([]Signal(nil), signals...) }

// Sources are the series that they take.
func (s *Signal) Sources() []Source {
	if s.Combine == Ratio {
		return []Source{s.From, s.Per}
	}
	return []Source{s.From}
}
