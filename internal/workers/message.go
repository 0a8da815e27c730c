// Package workers has a load carried out by several processes, as one run: a coordinator, which
// is the session, and workers, each of which computes the whole schedule and sends its share.
// No request crosses the bus between them: what does is the task, the start, a few words a
// second, and the journals of workers on other machines.
package workers

import (
	"encoding/json"
	"fmt"
	"time"

	"pitot/internal/session"
)

// protocol is the version of the messages. Coordinator and workers are of one build, so there
// is no older one to understand.
const protocol = 1

// Subjects. Those of a run begin with its id, so that a worker hears of no other.
const joining = "pitot.join"

func (id runID) reportSubject() string          { return string("pitot." + id + ".report") }
func (id runID) wordSubject() string            { return string("pitot." + id + ".word") }
func (id runID) endSubject() string             { return string("pitot." + id + ".end") }
func (id runID) prepareSubject(rank int) string { return fmt.Sprintf("pitot.%s.prepare.%d", id, rank) }
func (id runID) beginSubject(rank int) string   { return fmt.Sprintf("pitot.%s.begin.%d", id, rank) }
func (id runID) journalSubject(rank int) string { return fmt.Sprintf("pitot.%s.journal.%d", id, rank) }
func (id runID) journalSubjects() string        { return fmt.Sprintf("pitot.%s.journal.*", id) }
func (id runID) leftSubject(rank int) string    { return fmt.Sprintf("pitot.%s.left.%d", id, rank) }
func (id runID) streamName() string             { return "pitot-" + string(id) }

// runID is the name of a run on the bus.
type runID string

// hello is a worker's request to join.
type hello struct {
	Protocol int    `json:"protocol"`
	Build    string `json:"build"`
	Nonce    string `json:"nonce"` // drawn once: who asks again is no other worker
	Host     string `json:"host"`
	Dir      string `json:"dir"` // of its journal
	PID      int    `json:"pid"`
	CPUs     int    `json:"cpus"`
	Rank     *int   `json:"rank,omitempty"` // that it has to have, as its place in a job says
}

// welcome is the answer.
type welcome struct {
	Refused string `json:"refused,omitempty"`
	Run     runID  `json:"run"`
	Rank    int    `json:"rank"`
	Of      int    `json:"of"`     // workers
	Keep    bool   `json:"keep"`   // its journal, for a coordinator that goes on with the run if this one dies
	Beside  bool   `json:"beside"` // its journal is read where it writes it
}

// ending says that the run has ended.
type ending struct {
	Home    []int64 `json:"home"`              // bytes of each worker's journal that came home
	GaveUp  string  `json:"gave_up,omitempty"` // why nothing was measured
	Stopped bool    `json:"stopped,omitempty"` // by the user
}

// leftFrom asks a worker whose coordinator died for its journal.
type leftFrom struct {
	From int64 `json:"from"`
	Here bool  `json:"here"` // all of it is, and the worker may end
}

// left is a piece of it.
type left struct {
	Size   int64  `json:"size"` // of all
	Frames []byte `json:"frames"`
	Error  string `json:"error,omitempty"`
}

// sharing asks a worker to make its share of a load ready.
type sharing struct {
	Load int64        `json:"load"` // counts the coordinator's loads: two sessions may both have a point 0
	Task session.Task `json:"task"`
}

// prepared answers it.
type prepared struct {
	Error string `json:"error,omitempty"`
	Hint  string `json:"hint,omitempty"`
}

// start is when a load begins, on the coordinator's clock.
type start struct {
	Origin int64 `json:"origin"`
}

// report is a worker's report, sent each second and when there is news.
type report struct {
	Rank    int             `json:"rank"`
	Nonce   string          `json:"nonce"`  // its own, as in hello: two may have been given one place
	Number  int64           `json:"number"` // counts reports: one may overtake another
	Load    int64           `json:"load"`   // that it is of, see [sharing]
	Status  *session.Status `json:"status,omitempty"`
	Looks   []look          `json:"looks,omitempty"` // of which it was asked whether to give up
	Asks    *window         `json:"asks,omitempty"`  // it is through with this window
	Ended   *session.Ended  `json:"ended,omitempty"`
	Error   string          `json:"error,omitempty"` // its share could not be carried out
	Bytes   int64           `json:"bytes"`           // of its journal, that what it tells rests on
	Written int64           `json:"written"`         // of its journal's file, where that is read there: the end of a frame
	Ahead   int64           `json:"ahead_ns"`        // of the coordinator's clock
	Bound   int64           `json:"ahead_bound_ns"`
	Steps   int             `json:"clock_steps"`

	CPU time.Duration `json:"cpu_ns"` // that it has used
}

// window is one, with the end it has.
type window struct{ T0, T1 int64 }

// look holds the data for the decision whether to give up.
type look struct {
	Elapsed  int64     `json:"elapsed_ns"`
	UnderWay []float64 `json:"under_way"`
}

// word holds the decisions for all workers, as far as they are made. It is the answer to a report,
// and is sent when it changes.
type word struct {
	Clock  int64 `json:"clock"` // the coordinator's, 0 in one that is no answer
	Load   int64 `json:"load"`  // see [sharing]
	End    int64 `json:"end"`   // of the window, 0 where nothing is decided
	Final  bool  `json:"final"` // it is not made longer
	Stop   bool  `json:"stop"`
	GaveUp bool  `json:"gave_up"`
	Taken  bool  `json:"taken,omitempty"` // the asker's place is another worker's
	Cut    int64 `json:"cut"`             // where the window ends since a worker was lost, 0 for none that was

	Others time.Duration `json:"others_ns"` // processor time of the run's other processes on the asker's machine
}

// encode writes a message. What messages are made of can always be written.
func encode(m any) []byte {
	b, err := json.Marshal(m)
	if err != nil {
		panic(err)
	}
	return b
}

func decode[M any](b []byte) (m M, err error) {
	if err = json.Unmarshal(b, &m); err != nil {
		err = fmt.Errorf("read message: %w", err)
	}
	return m, err
}
