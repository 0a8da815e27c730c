package workload

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"hash/crc32"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"sync"

	"pitot/internal/results/spill"
	"pitot/internal/say"
	"pitot/internal/workload/plain"
)

// Rows is a trace on disk, its rows in the order of their times. Where they lie takes 24
// bytes a row, in memory up to rowsInMemory and in a file beyond; they are read when they are
// asked for. It is safe for concurrent use.
type Rows struct {
	path   string
	sha256 string
	form   rowForm
	count  *Trace // without columns
	tokens struct {
		input, output int64 // sums
		none, unsaid  int   // rows that say nothing of prompts, of answers
	}
	block int           // tokens of a block
	parts map[int64]int // tokens of RAGPulse's components, by id

	turns []place         // rows that follow another in its session: due is how long behind its answer
	next  map[int64]int32 // which of them follows the row at an offset

	mu     sync.Mutex
	file   *plain.File
	store  *spill.Store
	places *spill.Column[place]
	raw    []byte
	ahead  []place // from the first-th on
	first  int64
}

// place is where a row lies.
type place struct {
	due, offset int64
	length, sum uint32 // bytes, and their CRC-32C: a file may change under a run
}

const (
	rowsInMemory = 16 << 20
	placesAhead  = 1024
	mostTurns    = 4_000_000 // further turns of sessions, which are kept in memory
)

var lastRows lastFile[*Rows]

// OpenRows opens a trace: it is read once, and not again while it is the last that was opened
// and has not changed.
func OpenRows(path string) (*Rows, error) {
	return lastRows.open(path, func() (*Rows, error) { return openRows(path) })
}

func openRows(path string) (*Rows, error) {
	file, err := plain.Open(path)
	if err != nil {
		return nil, openError(path, true, err)
	}
	r := &Rows{path: path, file: file, store: spill.New("", rowsInMemory)}
	if err := r.indexRows(); err != nil {
		return nil, errors.Join(&FileError{Path: path, Trace: true, Err: err}, file.Close(), r.store.Close())
	}
	return r, nil
}

// indexRows reads all of it once.
func (r *Rows) indexRows() (err error) {
	head := make([]byte, headBytes)
	n, err := r.file.ReadAt(head, r.file.TextStart())
	if err != nil && err != io.EOF {
		return err
	}
	if r.form, err = rowFormOf(newHead(r.path, head[:n])); err != nil {
		return err
	}
	r.places = spill.NewColumn[place](r.store)
	var sizes blockSizes
	last, unsorted := int64(0), 0
	hash := sha256.New()
	latest := map[string]int64{} // offset of the last row of a session
	r.next = map[int64]int32{}
	r.count, err = scanRows(io.TeeReader(r.file.Text(), hash), r.path, func(q *row, offset int64, raw []byte) error {
		at := place{q.at, r.file.TextStart() + offset, uint32(len(raw)), crc32.Checksum(raw, castagnoli)}
		switch {
		case q.follows && len(r.turns) == mostTurns:
			return say.Errorf("over %s rows that follow others in their sessions", say.Count(mostTurns))
		case q.follows:
			at.due = q.after
			r.next[latest[q.client]] = int32(len(r.turns))
			r.turns = append(r.turns, at)
		default:
			if q.at < last {
				unsorted++
			}
			last = q.at
			r.places.Append(at)
		}
		if q.client != "" && (q.follows || len(latest) < mostSessions) {
			latest[q.client] = at.offset
		}
		if r.tokens.input += int64(max(q.input, 0)); q.input == Unknown {
			r.tokens.none++
		}
		if r.tokens.output += int64(max(q.output, 0)); q.output == Unknown {
			r.tokens.unsaid++
		}
		sizes.add(q.blocks, int(q.input))
		return nil
	})
	if err != nil {
		return err
	}
	if err := r.store.Err(); err != nil {
		return err
	}
	r.sha256 = hex.EncodeToString(hash.Sum(nil))
	if r.block = r.form.block; r.block == 0 && r.form.name != ragPulseForm {
		r.block, _ = sizes.best()
	}
	if r.count.Unsorted = unsorted; unsorted > 0 && r.form.unit != "" {
		r.sortByTime()
	}
	if r.form.name == ragPulseForm {
		if r.parts, err = readParts(filepath.Dir(r.path)); err != nil {
			return err
		}
	}
	return r.store.Err()
}

// sortByTime puts rows in the order of their times; equal ones stay as they stood.
func (r *Rows) sortByTime() {
	sorted := spill.NewSorted(r.store.NewScratch(), spill.Codec[place]{
		Key:    func(p *place) (int64, int64) { return p.due, p.offset },
		Append: appendPlace, Decode: decodePlace, Most: placeBytes,
	})
	defer sorted.Free()
	for p := range r.places.All() {
		sorted.Add(&p)
	}
	r.places.Free()
	r.places = spill.NewColumn[place](r.store)
	for p := range sorted.All() {
		r.places.Append(*p)
	}
}

// Len returns the number of requests.
func (r *Rows) Len() int64 { return r.places.Len() }

// requests returns the number of rows, those that follow others included.
func (r *Rows) requests() int { return int(r.Len()) + len(r.turns) }

// HasTimes says that rows have times.
func (r *Rows) HasTimes() bool { return r.form.unit != "" }

// MeanLengths are the mean lengths of prompts and answers, in tokens, where all rows say them.
func (r *Rows) MeanLengths() (input, output float64, ok bool) {
	n := float64(r.requests())
	return float64(r.tokens.input) / n, float64(r.tokens.output) / n, r.tokens.none == 0 && r.tokens.unsaid == 0
}

// placeOf is where the i-th row lies.
func (r *Rows) placeOf(i int64) place {
	if k := i - r.first; k < 0 || k >= int64(len(r.ahead)) {
		n := min(placesAhead, r.places.Len()-i)
		if r.ahead == nil {
			r.ahead = make([]place, placesAhead)
		}
		r.ahead = r.ahead[:n]
		r.places.ReadAt(r.ahead, i)
		r.first = i
	}
	return r.ahead[i-r.first]
}

// readRow reads the i-th row; use is called before it is read over.
func (r *Rows) readRow(i int64, use func(q *row)) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.readAt(r.placeOf(i), use)
}

// turnAt reads the k-th of the rows that follow others.
func (r *Rows) turnAt(k int32, use func(q *row)) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.readAt(r.turns[k], use)
}

func (r *Rows) readAt(p place, use func(q *row)) error {
	r.raw = slices.Grow(r.raw[:0], int(p.length))[:p.length]
	if _, err := r.file.ReadAt(r.raw, p.offset); err != nil {
		return &FileError{Path: r.path, Trace: true, Err: err}
	}
	q := row{input: Unknown, output: Unknown}
	if crc32.Checksum(r.raw, castagnoli) != p.sum || r.form.parse(r.raw, &q) != "" {
		return &FileError{Path: r.path, Trace: true, Err: errChanged}
	}
	use(&q)
	return r.store.Err()
}

// turnsOf gives the rows that follow the i-th in its session, in their order.
func (r *Rows) turnsOf(i int64) (list []int32) {
	if len(r.turns) == 0 {
		return nil
	}
	r.mu.Lock()
	at := r.placeOf(i).offset
	r.mu.Unlock()
	for k, ok := r.next[at]; ok; k, ok = r.next[r.turns[k].offset] {
		list = append(list, k)
	}
	return list
}

// Times reads due times from the i-th row on, in nanoseconds, in order.
func (r *Rows) Times(to []int64, i int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	var some [placesAhead]place
	for len(to) > 0 {
		n := min(len(to), len(some))
		r.places.ReadAt(some[:n], i)
		for k := range n {
			to[k] = some[k].due
		}
		to, i = to[n:], i+int64(n)
	}
}

// checkReplayable says why the requests of a trace cannot be asked, nil where they can.
func (r *Rows) checkReplayable() error {
	switch n := r.requests(); {
	case r.tokens.none == n:
		return say.Errorf("%s has times and no lengths of prompts", r.path).WithHint("its times alone: --arrival 'trace(" + r.path + ")' with --input and --output")
	case r.tokens.none > 0:
		return say.Errorf("%d of the %d rows of %s do not say how long the prompt is", r.tokens.none, n, r.path).WithHint("give each an input_length, or leave those rows out")
	}
	return nil
}

// describeTrace describes the requests of a trace.
func (r *Rows) describeTrace() Description {
	return Description{Kind: "trace", File: &FileDescription{
		Name: r.path, SHA256: r.sha256, Format: r.form.name, Records: r.count.Records,
		Requests: r.requests(), Skipped: maps.Clone(r.count.Rejected), BlockTokens: r.block,
	}}
}

// placeBytes are those of a place on disk.
const placeBytes = 24

func appendPlace(to []byte, p *place) []byte {
	to = binary.LittleEndian.AppendUint64(to, uint64(p.due))
	to = binary.LittleEndian.AppendUint64(to, uint64(p.offset))
	to = binary.LittleEndian.AppendUint32(to, p.length)
	return binary.LittleEndian.AppendUint32(to, p.sum)
}

func decodePlace(from []byte, p *place) int {
	if len(from) < placeBytes {
		return 0
	}
	p.due, p.offset = int64(binary.LittleEndian.Uint64(from)), int64(binary.LittleEndian.Uint64(from[8:]))
	p.length, p.sum = binary.LittleEndian.Uint32(from[16:]), binary.LittleEndian.Uint32(from[20:])
	return placeBytes
}
