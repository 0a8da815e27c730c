// Package metric is the catalogue of metrics: what each is called, what has one
// value of it, its unit, which way is better, and where it appears. run.json and
// its schema, reports, tables, comparisons, --slo and --until follow it.
//
// To add a metric, add an entry to [All] and, in package measure, the function that
// takes it from a request, from gaps or from the window. One that the server tells is
// an entry of [FromSignals].
package metric

import "strings"

// Name is the user's name of a metric in --slo, --until and comparisons: "ttft".
type Name string

// IsPooled says that a metric of the catalogue is of gaps: no request has one value
// of it.
func (n Name) IsPooled() bool {
	m := all.Find(n)
	return m != nil && m.Of == Gap
}

// NeedsStreaming says that only answers that are streamed have this metric of the
// catalogue.
func (n Name) NeedsStreaming() bool {
	m := all.Find(n)
	return m != nil && m.Stream
}

// Metric is one entry of the catalogue.
type Metric struct {
	Name  Name
	Also  []Name // other names that users write it by
	Key   string // in run.json, and with _ for . in tables: "ttft_ms"; "service.ttft_ms" lies in an object of its own, rates in throughput
	Label string // in reports: "TTFT"
	Help  string // its definition in a phrase, for the schema and the documents

	Of     Of
	Unit   Unit
	Better Better

	Stream   bool // only an answer that is streamed has it
	FromDue  bool // it counts from when a request was due, so a queue that grows is all in it
	Steady   bool // it stands for a load only in a steady state, and is withheld without one
	Client   bool // it is about the client, not the server
	PerToken bool // it is counted in tokens, which two tokenizers count differently

	Limit     bool      // --slo can limit it; of requests, --until can watch it
	Show      Show      // where a report has it
	Unlike    Name      // its row is left out where it says the same as this metric
	Under     string    // what its row is called that stands under that metric's
	Instead   Name      // its row stands only where this metric is missing or has a reservation, and it is compared where that is missing
	Elsewhere Elsewhere // what other tools call it
	Exposed   string    // what it is called in OpenMetrics, between pitot_ and _seconds, if not by its name
	Compared  []string  // the statistics of it that every comparison tests and a summary of repeats shows: "p50"; of a window [Value]
}

// Of is the thing that has one value of a metric.
type Of uint8

const (
	Request Of = iota
	Gap        // between two arrivals of a stream: pooled over all requests
	Window     // of a point: a rate or a share
	Search     // for a capacity
	Server     // of a point, reported by the server
)

// String is the word for it.
func (o Of) String() string { return [...]string{"request", "gap", "window", "search", "server"}[o] }

// Unit is the unit that a metric is counted in.
type Unit string

const (
	Milliseconds  Unit = "ms"
	Tokens        Unit = "tokens"
	TokensPerS    Unit = "tok/s"
	RequestsPerS  Unit = "req/s"
	RequestsPerM  Unit = "req/min"
	InputsPerS    Unit = "inputs/s"
	Share         Unit = "share" // of 1
	USDPerMTokens Unit = "$ per M tokens"
	Count         Unit = "count" // of events
	Watts         Unit = "W"
	Joules        Unit = "J"
	Megahertz     Unit = "MHz"
	Celsius       Unit = "°C"

	USDPerRequest   Unit = "$ per request"
	JoulesPerToken  Unit = "J per token"
	TokensPerSPerMW Unit = "tok/s per MW"
)

// Better says which way is better.
type Better uint8

const (
	Neither Better = iota
	Lower
	Higher
)

// String is the word for it.
func (b Better) String() string { return [...]string{"", "lower", "higher"}[b] }

// Show is where a report has a metric.
type Show uint8

const (
	Data     Show = iota // only run.json and tables of data
	Row                  // a row in the table of a point, and its distribution
	Headline             // besides: the first figures, the table of loads and the curves
)

// FieldName is the metric's name in the object of run.json that it lies in: "ttft_ms" of
// "service.ttft_ms".
func (m *Metric) FieldName() string { return m.Key[strings.LastIndexByte(m.Key, '.')+1:] }

// ColumnName is the metric's name in tables of data: "service_ttft_ms".
func (m *Metric) ColumnName() string { return strings.ReplaceAll(m.Key, ".", "_") }

// HasSingleValue says that a point has one value of the metric.
func (m *Metric) HasSingleValue() bool { return m.Of == Window || m.Of == Server }

// IsFurther says that it is a metric of the window, or of the server, that run.json has
// no field of its own for: it lies in the object of that name.
func (m *Metric) IsFurther() bool {
	return strings.HasPrefix(m.Key, "window.") || strings.HasPrefix(m.Key, "server.")
}

// HasPercentiles says that the metric has percentiles, in a point's metrics.
func (m *Metric) HasPercentiles() bool { return m.Of == Request || m.Of == Gap }

// Elsewhere holds the names that other tools give a metric in their results, where they define it
// alike. A name is "" where a tool has none.
type Elsewhere struct{ VLLM, SGLang, AIPerf, GuideLLM string }

// Names of the tools, as results say them.
const (
	VLLM     = "vllm bench serve"
	SGLang   = "sglang bench_serving"
	AIPerf   = "aiperf"
	GuideLLM = "guidellm"
)

// NameIn returns the metric's name in a tool's results.
func (e Elsewhere) NameIn(tool string) string {
	switch tool {
	case VLLM:
		return e.VLLM
	case SGLang:
		return e.SGLang
	case AIPerf:
		return e.AIPerf
	case GuideLLM:
		return e.GuideLLM
	}
	return ""
}

// Catalogue is a list of metrics, in the order in which they are shown.
type Catalogue []*Metric

// Find gives the metric of a name, nil if there is none.
func (c Catalogue) Find(name Name) *Metric {
	for _, m := range c {
		if m.Name == name {
			return m
		}
	}
	return nil
}

// ByKey gives the metric of a key in run.json, nil if there is none.
func (c Catalogue) ByKey(key string) *Metric {
	for _, m := range c {
		if m.Key == key {
			return m
		}
	}
	return nil
}

// Filter are the metrics for which a condition holds.
func (c Catalogue) Filter(is func(*Metric) bool) (out Catalogue) {
	for _, m := range c {
		if is(m) {
			out = append(out, m)
		}
	}
	return out
}

// WithPercentiles are those that have percentiles.
func (c Catalogue) WithPercentiles() Catalogue { return c.Filter((*Metric).HasPercentiles) }

// ID is the metric's name as one word.
func (m *Metric) ID() string {
	return strings.Map(func(r rune) rune {
		if r == ' ' || r == '/' {
			return '-'
		}
		return r
	}, string(m.Name))
}

// NewUnknown stands for a metric that this catalogue does not have, of a run that a
// later program measured: its name is its key, and it is not known which way
// is better.
func NewUnknown(key string) *Metric {
	m := &Metric{Key: key, Name: Name(key), Label: key, Unit: Tokens}
	if m.IsFurther() {
		m.Of, m.Label, m.Unit = Window, m.FieldName(), ""
		if strings.HasPrefix(key, "server.") {
			m.Of = Server
		}
	}
	switch {
	case strings.HasSuffix(key, "_ms"):
		m.Unit = Milliseconds
	case strings.HasSuffix(key, "_tokens_per_s"):
		m.Unit = TokensPerS
	}
	return m
}
