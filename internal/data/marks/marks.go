// Package marks is what the records of a run cannot tell by themselves: what was
// planned of it and of each point, and how they ended. A journal has it as marks
// between its records, a finished run in marks.json. The types here are what is
// written, and nothing else: every one has a version.
package marks

import (
	"encoding/json"
	"errors"
	"fmt"

	"pitot/internal/data/result"
)

// Names of the marks.
const (
	NameRun      = "run"      // the run begins: [Head]
	NamePoint    = "point"    // a point begins: [Point]
	NameWindow   = "window"   // a point came to its end: [Window]; in a worker's own journal, its share did
	NameCrew     = "crew"     // who carries a point out together: [Crew]
	NameAlone    = "alone"    // what one request takes on an idle target: [Alone]
	NameCapacity = "capacity" // what a search found: [Capacity]
	NameEnd      = "end"      // the run came to its end: [End]
)

// Version is that of the types of this package. Head and Capacity are parts of
// run.json and have its schema instead.
const Version = 1

// Point holds the plan of a point. Times are nanoseconds since its load began.
type Point struct {
	Version int    `json:"version"`
	Began   string `json:"began"` // when its load did, by the clock of the client's machine: RFC 3339; "" in simulated time
	T0      int64  `json:"t0_ns"` // the window [T0, T1)
	T1      *int64 `json:"t1_ns"` // null: it ends with the count of its requests

	Load     Load    `json:"load"`
	SLO      string  `json:"slo"` // as written, "" for none
	GPUs     int     `json:"gpus"`
	GPUPrice float64 `json:"gpu_price_usd_per_hour"` // of a rented one
	Price    *Price  `json:"price"`                  // what more there is to say of it
	Stamps   string  `json:"stamps"`
	Planned  int     `json:"planned"` // requests due in the window by the schedule, 0 if not known
	Exact    bool    `json:"exact_output"`
	Requests int64   `json:"requests"` // after which the window ends, 0 if T1 says it
	Cold     bool    `json:"cold"`
	Seeded   bool    `json:"seeded"`
	Prompts  int     `json:"prompts"` // distinct ones, 0 for no end of them
	Stage    string  `json:"stage"`

	Residence  int64 `json:"residence_ns"`
	AutoWarmup bool  `json:"auto_warmup"`

	Alone []Questions `json:"questions_alone"` // null without questions

	Workers int `json:"workers"` // processes that carry the load out together, 0 for one

	Tokenizer *Tokenizer `json:"tokenizer"` // the user's, held against the server's; null where that is not known
}

// Tokenizer compares the tokens of a text by the user's tokenizer with those by the server.
type Tokenizer struct {
	Ours    int  `json:"ours"` // tokens
	Theirs  int  `json:"theirs"`
	Differ  int  `json:"differ"`
	IDs     bool `json:"ids"`               // their ids were compared, else how many they are
	Size    int  `json:"size"`              // ids there are in the user's file
	Highest int  `json:"highest_id"`        // of the server's
	Prompts bool `json:"prompts,omitempty"` // the prompts are ids that the user's file makes
}

// Questions holds the results of questions of a kind that were sent alone before the load.
type Questions struct {
	Kind     string `json:"kind"`
	Answered int    `json:"answered"`
	Wrong    int    `json:"wrong"`
	Why      string `json:"why"` // they are not asked under load
}

// Price holds the price of the target, as it was written.
type Price struct {
	GPU      string  `json:"gpu"`    // of one GPU and hour
	Tokens   string  `json:"tokens"` // of a million input and output tokens
	Discount float64 `json:"discount"`
	Listed   bool    `json:"listed"` // it is the list price of a GPU that is simulated
}

// Load holds the load of a point.
type Load struct {
	Loop        string   `json:"loop"`
	Rate        *float64 `json:"rate"`
	Arrival     string   `json:"arrival"`
	Concurrency *int     `json:"concurrency"`
	ThinkMS     *float64 `json:"think_ms"`
	MaxInFlight *int     `json:"max_in_flight"`

	Expected *Arrivals `json:"expected"`
	Turns    *float64  `json:"turns"`

	LongestTurns *float64 `json:"longest_turns"` // of the class whose conversations have most, where classes differ in that
	Retry        string   `json:"retry"`         // as --retry is written, "" for none

	RespectLimits bool `json:"respect_limits"` // requests are held back that the server has said it will refuse
}

// Arrivals holds what the arrival process of a load makes one expect.
type Arrivals struct {
	CV         *float64           `json:"cv"`
	Dispersion map[string]float64 `json:"dispersion"`
	Varies     bool               `json:"varies"`
	CycleS     float64            `json:"cycle_s"`
	ChangesS   []float64          `json:"changes_s"`
}

// Window describes how a point ended. Times are nanoseconds since its load began.
type Window struct {
	Version int           `json:"version"`
	T0      *int64        `json:"t0_ns"`    // where the window began, null: where it was planned to
	T1      int64         `json:"t1_ns"`    // the end of the window
	Ended   int64         `json:"ended_ns"` // the end of the point
	GaveUp  bool          `json:"gave_up"`
	Gone    *int64        `json:"gone_ns"` // since when the target refused every connection, null if it did not
	Until   *result.Until `json:"until"`   // of a window that was to end when a value is known well enough

	PlannedHits *float64 `json:"planned_hits"` // share of the prompts that an unlimited prefix cache would have, null: the workload does not tell
	Missing     []string `json:"missing"`      // pages of metrics that were given up, and why

	PrefixCache *PrefixCache `json:"prefix_cache"` // null: not known

	Workers []Worker `json:"workers"` // that carried the load out together; null: one process did

}

// Worker is one of several processes that carried a load out.
type Worker struct {
	Rank         int    `json:"rank"`
	Host         string `json:"host"`
	CPUs         int    `json:"cpus"`
	Ahead        int64  `json:"ahead_ns"` // of the coordinator's clock was its own
	AheadBound   int64  `json:"ahead_bound_ns"`
	ClockSteps   int    `json:"clock_steps"`
	JournalBytes int64  `json:"journal_bytes"`
	Lost         *Lost  `json:"lost"` // null: it was there to the end
}

// Crew lists the workers that carry a point out together, by rank, and where each keeps its
// journal. If the coordinator dies, the journal is found there.
type Crew struct {
	Version int      `json:"version"`
	Run     string   `json:"run"` // what the run is called on the bus
	Workers []Member `json:"workers"`
}

// Member is a worker as it stands when the load begins, and where it keeps its journal.
type Member struct {
	Host       string `json:"host"`
	Dir        string `json:"dir"`
	CPUs       int    `json:"cpus"`
	Ahead      int64  `json:"ahead_ns"`
	AheadBound int64  `json:"ahead_bound_ns"`
}

// Lost describes a worker that was lost.
type Lost struct {
	At    int64  `json:"at_ns"` // when it was last heard of
	Why   string `json:"why"`
	Early bool   `json:"early"` // the window did not end there, being too short
}

// PrefixCache holds the expected hits of the server's prefix cache among the prompts of the window,
// and the actual ones.
type PrefixCache struct {
	All       bool        `json:"all"` // not only the first requests were looked at
	BlockSize int         `json:"block_size"`
	Assumed   bool        `json:"assumed"` // the size of blocks is not known
	Tokens    int         `json:"tokens"`  // that it holds, 0: not known
	Off       bool        `json:"off"`
	Asked     int         `json:"asked_before"`
	Mode      string      `json:"mode"`
	Parts     []CachePart `json:"parts"`
}

// CachePart is of the requests that were due from a time on, until the next part begins.
// Figures are tokens of their prompts.
type CachePart struct {
	From     int64 `json:"from_ns"`
	Requests int   `json:"requests"`
	Prompt   int64 `json:"prompt"`
	Expected int64 `json:"expected"`
	Late     int64 `json:"late"`
	Endless  int64 `json:"endless"`
	Served   int64 `json:"served"`
	Told     int   `json:"told"` // requests of which the server said it
}

// Alone holds the time that one request takes on an idle target, measured at the beginning of a
// search.
type Alone struct {
	Version int   `json:"version"`
	Took    int64 `json:"took_ns"`
}

// End describes how the run ended.
type End struct {
	Version     int    `json:"version"`
	Ended       string `json:"ended"` // RFC 3339
	Interrupted bool   `json:"interrupted"`
}

// ErrVersion says that a mark has another version than the one that is read.
var ErrVersion = errors.New("another version of pitot wrote it")

// encode writes a type of this package.
func encode(v any) []byte {
	data, err := json.Marshal(v)
	if err != nil {
		panic(err) // numbers and strings always marshal; a load is finite
	}
	return data
}

// Encode gives the data of the mark.
func (p Point) Encode() []byte { p.Version = Version; return encode(p) }

// Encode gives the data of the mark.
func (w Window) Encode() []byte { w.Version = Version; return encode(w) }

// Encode gives the data of the mark.
func (c Crew) Encode() []byte { c.Version = Version; return encode(c) }

// Encode gives the data of the mark.
func (a Alone) Encode() []byte { a.Version = Version; return encode(a) }

// Encode gives the data of the mark.
func (e End) Encode() []byte { e.Version = Version; return encode(e) }

// decode reads the data of a mark.
func decode[T any](name string, data []byte) (out T, err error) {
	var head struct {
		Version int `json:"version"`
	}
	err = json.Unmarshal(data, &head)
	if err == nil && head.Version != Version { // before the fields, which may have other types there
		err = ErrVersion
	}
	if err == nil {
		err = json.Unmarshal(data, &out)
	}
	if err != nil {
		return out, fmt.Errorf("decode mark %s: %w", name, err)
	}
	return out, nil
}

// DecodePoint reads what was planned of a point.
func DecodePoint(data []byte) (Point, error) { return decode[Point](NamePoint, data) }

// DecodeWindow reads how a point ended.
func DecodeWindow(data []byte) (Window, error) { return decode[Window](NameWindow, data) }

// DecodeCrew reads who carries a point out.
func DecodeCrew(data []byte) (Crew, error) { return decode[Crew](NameCrew, data) }

// DecodeAlone reads what one request takes.
func DecodeAlone(data []byte) (Alone, error) { return decode[Alone](NameAlone, data) }

// DecodeEnd reads how the run ended.
func DecodeEnd(data []byte) (End, error) { return decode[End](NameEnd, data) }

// EncodeHead gives the data of the mark with which a run begins: a run.json
// without points.
func EncodeHead(run *result.Run) []byte { return encode(run) }

// EncodeCapacity gives the data of the mark of what a search found: a run.json
// with nothing else.
func EncodeCapacity(c *result.Capacity) []byte {
	return encode(struct {
		Schema   string           `json:"schema"`
		Capacity *result.Capacity `json:"capacity"`
	}{result.Schema, c})
}

// DecodeRun reads the head of a run or what a search found.
func DecodeRun(data []byte) (*result.Run, error) {
	run, err := result.Decode(data)
	var schema *result.SchemaError
	if errors.As(err, &schema) {
		err = ErrVersion
	}
	if err != nil {
		return nil, fmt.Errorf("decode mark %s: %w", NameRun, err)
	}
	return run, nil
}
