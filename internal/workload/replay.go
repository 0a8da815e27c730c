package workload

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"pitot/internal/workload/plain"
	"pitot/internal/workload/seed"
	"pitot/internal/workload/token"
)

// ReplayConfig says how the requests of a trace are asked.
type ReplayConfig struct {
	Seed uint64 // of the lengths of answers that rows do not say
	// Nonce draws the words. A block of a nonce is the same words wherever its id stands.
	Nonce  uint64
	Output Lengths // for rows that say none; zero leaves it to the server

	Calibration Calibration
}

// Streams of a nonce, beside those of [Random].
const (
	streamBlock = 0x626c6f636b + iota
	streamPass
)

// Replay asks the requests of a trace, in the order of their times, with generated words:
// prompts of the recorded lengths that share what the ids of their blocks say, and answers of
// the recorded lengths. From the beginning again at its end, with other words. It is safe for
// concurrent use.
//
// A block has as many tokens as fit most rows, the last of a prompt what remains. What the
// ids of a row leave over is the row's own; ids for which there are no tokens left are left
// out. An answer of no tokens, as of a request that failed, is asked for one.
type Replay struct {
	rows   *Rows
	config ReplayConfig
	first  int64 // row that item 0 asks
}

// NewReplay makes the workload.
func (r *Rows) NewReplay(c ReplayConfig) (*Replay, error) {
	if err := r.checkReplayable(); err != nil {
		return nil, err
	}
	return &Replay{rows: r, config: c}, nil
}

// Begin says which row item 0 asks: where due times begin in the middle of a trace.
func (r *Replay) Begin(row int64) { r.first = row }

// Requests returns the number of requests before they begin again.
func (r *Replay) Requests() int { return r.rows.requests() }

// MeanTurns returns the mean number of requests for each request that comes at a time of its own.
// These are that request and those that follow it in its session.
func (r *Replay) MeanTurns() float64 { return float64(r.Requests()) / float64(r.rows.Len()) }

// Source gives the requests as a load asks them: a [Sessions] where rows follow others.
func (r *Replay) Source() Source {
	if len(r.rows.turns) == 0 {
		return r
	}
	return SessionReplay{r}
}

// SessionReplay asks the rows of a trace of which some follow others, as AIPerf writes sessions:
// those come a time behind the answer to the row before them in their session. Each row is a whole
// request. A request that is not answered ends its session.
type SessionReplay struct{ *Replay }

// At implements [Source]. Item TurnItem(i, k) is the k-th row behind the i-th that has a time.
func (r SessionReplay) At(item int64) (Request, error) {
	i, turn := SplitItem(item)
	q, err := r.Replay.At(i)
	if err != nil {
		return q, err
	}
	n := r.rows.Len()
	number, nonce := (i+r.first)%n, seed.At(r.config.Nonce, streamPass, uint64((i+r.first)/n))
	list := r.rows.turnsOf(number)
	if int(turn) > len(list) {
		return Request{}, fmt.Errorf("trace %s: no turn %d of session %d", r.rows.path, turn, i)
	}
	if turn > 0 {
		k := list[turn-1]
		if err := r.rows.turnAt(k, func(x *row) { r.fillRequest(&q, x, nonce, n+int64(k)) }); err != nil {
			return Request{}, err
		}
	}
	q.ID, q.Session, q.Turn, q.Turns = item, i, turn, int32(1+len(list))
	return q, nil
}

// Follow implements [Sessions].
func (r SessionReplay) Follow(item int64, answered bool) []Next {
	i, turn := SplitItem(item)
	list := r.rows.turnsOf((i + r.first) % r.rows.Len())
	if !answered || int(turn) >= len(list) {
		return nil
	}
	return []Next{{Item: TurnItem(i, turn+1), After: time.Duration(r.rows.turns[list[turn]].due)}}
}

// At gives the i-th request.
func (r *Replay) At(i int64) (Request, error) {
	if i < 0 {
		return Request{}, fmt.Errorf("trace %s: no request %d", r.rows.path, i)
	}
	n := r.rows.Len()
	number, nonce := (i+r.first)%n, seed.At(r.config.Nonce, streamPass, uint64((i+r.first)/n))
	q := Request{ID: i, Session: Unknown}
	err := r.rows.readRow(number, func(x *row) { r.fillRequest(&q, x, nonce, number) })
	return q, err
}

// fillRequest makes the request of a row.
func (r *Replay) fillRequest(q *Request, x *row, nonce uint64, i int64) {
	c := r.config.Calibration
	words := c.wordsAtLeastOne(int(x.input))
	inside := c.withOverhead(0) // the template's tokens belong to the prompt as a whole
	segments := make([]Segment, 0, len(x.blocks)+1)
	left := words
	for _, id := range x.blocks {
		size := r.rows.block
		if r.rows.form.name == ragPulseForm {
			size = r.rows.parts[id]
		}
		size = min(inside.wordsForTokens(size), left)
		if size <= 0 {
			continue
		}
		segments = append(segments, WordSegment(nonce, streamBlock, uint64(id), size))
		left -= size
	}
	if left > 0 {
		segments = append(segments, WordSegment(nonce, streamContent, uint64(i), left))
	}
	q.Messages = []Message{NewMessage("user", segments...)}
	q.Input = c.tokensForWords(words)
	switch {
	case x.output != Unknown:
		q.Output = max(int(x.output), 1)
	default:
		q.Output = r.config.Output.Draw(seed.At(r.config.Seed, streamOutput, uint64(i)))
	}
	q.Exact = q.Output != Unknown
}

// Describe describes the workload when it is rendered with v.
func (r *Replay) Describe(v *token.Vocabulary) Description {
	d := r.rows.describeTrace()
	d.Output = r.config.Output.String()
	d.Vocabulary, d.Calibration = DescribeVocabulary(v), r.config.Calibration.ifKnown()
	return d
}

// partFiles are where RAGPulse says how many tokens a component has, and the key of its id.
var partFiles = []struct{ pattern, key string }{
	{"*sys_prompt*.jsonl", "sys_prompt_id"}, {"*passages*.jsonl", "passage_id"}, {"*history*.jsonl", "history_id"},
	{"*web_search*.jsonl", "web_search_id"}, {"*user_input*.jsonl", "user_input_id"},
}

// readParts reads the lengths of components beside a trace, as far as they are there.
func readParts(dir string) (map[int64]int, error) {
	parts := map[int64]int{}
	for k, f := range partFiles {
		names, err := filepath.Glob(filepath.Join(dir, f.pattern))
		if err != nil || len(names) == 0 {
			continue
		}
		file, err := plain.Open(names[0])
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", names[0], err)
		}
		lines := json.NewDecoder(file.Text())
		for lines.More() {
			var o map[string]int64
			if lines.Decode(&o) != nil {
				break // what cannot be read has no length: the row's own words stand there
			}
			if n := o["token_length"]; n > 0 && n <= MaxLength {
				parts[o[f.key]+int64(k+1)<<component] = int(n)
			}
		}
		if err := file.Close(); err != nil && !os.IsNotExist(err) {
			return nil, err
		}
	}
	return parts, nil
}
