// Package marks holds the data of marks: what the records of a run do not contain. These are the
// plan of the run and of each point, and how they ended. A journal has marks between its records,
// a finished run has them in marks.json.
package marks

import (
	"encoding/json"
	"errors"
	"fmt"

	"pitot/internal/results/result"
)

// Names of the marks.
const (
	NameRun      = "run"      // the run begins: see [EncodeHead]
	NamePoint    = "point"    // a point begins: its metrics.Setup
	NameWindow   = "window"   // a point came to its end: [Window]; in a worker's own journal, its share did
	NameCrew     = "crew"     // who carries a point out together: [Crew]
	NameAlone    = "alone"    // what one request takes on an idle target: [Alone]
	NameCapacity = "capacity" // what a search found: see [EncodeCapacity]
	NameEnd      = "end"      // the run came to its end: [End]
)

// Version is that of the marks' data. Head and capacity are parts of run.json and have its schema
// instead.
const Version = 1

// Window describes how a point ended. Times are nanoseconds since its load began.
type Window struct {
	T0     *int64        `json:"t0_ns"`    // where the window began, null: where it was planned to
	T1     int64         `json:"t1_ns"`    // the end of the window
	Ended  int64         `json:"ended_ns"` // the end of the point
	GaveUp bool          `json:"gave_up"`
	Gone   *int64        `json:"gone_ns"` // since when the target refused every connection, null if it did not
	Until  *result.Until `json:"until"`   // of a window that was to end when a value is known well enough

	PlannedHits *float64 `json:"planned_hits"` // share of the prompts that an unlimited prefix cache would have, null: the workload does not tell
	Missing     []string `json:"missing"`      // pages of metrics that were given up, and why

	PrefixCache *PrefixCache `json:"prefix_cache"` // null: not known

	Workers []result.Worker `json:"workers"` // that carried the load out together, without what their records say; null: one process did
}

// Crew lists the workers that carry a point out together, by rank, and where each keeps its
// journal. If the coordinator dies, the journal is found there.
type Crew struct {
	Run     string   `json:"run"` // what the run is called on the bus
	Workers []Member `json:"workers"`
}

// Member is a worker as it stands when the load begins, and where it keeps its journal.
type Member struct {
	result.Worker
	Dir string `json:"dir"`
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
	Expected int64 `json:"expected"` // where a prompt can be found from when its prefill begins
	Late     int64 `json:"late"`     // where it can be found only after its first token
	Endless  int64 `json:"endless"`  // of a cache that forgets nothing
	Served   int64 `json:"served"`   // as the server reports
	Told     int   `json:"told"`     // requests for which the server reports it
}

// Alone holds the time that one request takes on an idle target, measured at the beginning of a
// search.
type Alone struct {
	Took int64 `json:"took_ns"`
}

// End describes how the run ended.
type End struct {
	Ended       string `json:"ended"` // RFC 3339
	Interrupted bool   `json:"interrupted"`
}

// ErrVersion says that a mark has another version than the one that is read.
var ErrVersion = errors.New("another version of pitot wrote it")

// encode writes a type that always marshals.
func encode(v any) []byte {
	data, err := json.Marshal(v)
	if err != nil {
		panic(err) // numbers and strings always marshal; a load is finite
	}
	return data
}

// Encode returns the data of a mark: the fields of a struct after the version.
func Encode(mark any) []byte {
	return append(fmt.Appendf(nil, `{"version":%d,`, Version), encode(mark)[1:]...)
}

// Decode reads the data of the named mark into a struct. What the data lacks keeps its value.
func Decode(name string, data []byte, mark any) error {
	var head struct {
		Version int `json:"version"`
	}
	err := json.Unmarshal(data, &head)
	if err == nil && head.Version != Version { // before the fields, which may have other types there
		err = ErrVersion
	}
	if err == nil {
		err = json.Unmarshal(data, mark)
	}
	if err != nil {
		return fmt.Errorf("decode mark %s: %w", name, err)
	}
	return nil
}

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
