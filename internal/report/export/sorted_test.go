package export

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"pitot/internal/metrics"
	"pitot/internal/results/record"
	"pitot/internal/results/spill"
)

// cells is what the table has of requests.
func cells(t *testing.T, g gathering, run func(*gathering, func(*cohort, *request) error)) (rows [][]any) {
	t.Helper()
	list := requestColumns()
	run(&g, func(c *cohort, q *request) error {
		row := make([]any, len(list))
		for i := range list {
			row[i] = list[i].of(c, q)
		}
		rows = append(rows, row)
		return nil
	})
	return rows
}

// Requests that are put aside are the same, and in the same order, as those that
// stay in memory.
func TestPutAsideIsTheSame(t *testing.T) {
	run, dir := sampleRun(t)
	gathered := func(store *spill.Store) [][]any {
		return cells(t, gathering{everything: true, store: store}, func(g *gathering, take func(*cohort, *request) error) {
			for c, err := range g.readPoints(run, dir) {
				if err != nil {
					t.Fatal(err)
				}
				for q := range c.inOrderSent {
					if err := take(c, q); err != nil {
						t.Fatal(err)
					}
				}
			}
		})
	}
	store := spill.NewSized(t.TempDir(), 0, 256)
	defer store.Close()
	want, got := gathered(spill.New(t.TempDir(), 1<<30)), gathered(store)
	if d := cmp.Diff(want, got); d != "" || len(want) < 3 {
		t.Errorf("%d rows\n%s", len(want), d)
	}
}

// What is put aside of a request comes back, into one that held another.
func TestRequestCodec(t *testing.T) {
	codec := requestCodec()
	gatherer := metrics.NewGatherer(nil)
	r := rand.New(rand.NewPCG(1, 1))
	list := requestColumns()
	run, dir := sampleRun(t)
	var c *cohort
	for c = range readCohorts(run, dir, false) {
		break
	}
	word := func() string { return strings.Repeat("é", r.IntN(4)*r.IntN(100)) }
	stamp := func() int64 { return r.Int64N(1<<uint(1+r.IntN(50))) - 1 }
	var got request
	for range 2000 {
		row := record.BlankRow()
		row.ID, row.Due, row.Sent, row.FirstToken, row.LastToken, row.Done = stamp(), stamp(), stamp(), stamp(), stamp(), stamp()
		row.CompletionTokens, row.PromptTokens, row.Stream = int32(stamp()%1000), int32(stamp()%1000), r.IntN(2) == 0
		row.Outcome, row.Class, row.Error, row.Detail, row.Finish = record.Outcome(r.IntN(4)), word(), word(), word(), word()
		var stream metrics.Stream
		for range r.IntN(3) {
			gatherer.Chunk(&stream, &record.Chunk{T: stamp(), Tokens: 1})
		}
		q := request{
			measured: gatherer.Request(&stream, &row), id: row.ID, due: row.Due, eligible: stamp(), ready: stamp(), sent: row.Sent,
			first: row.FirstToken, last: row.LastToken, done: row.Done, inputPlanned: 7, input: -1, cached: 3, events: int32(stream.Count), status: 200,
			session: stamp(), turn: int32(r.IntN(9)), turns: 9, history: int32(r.IntN(900)) - 1, follows: r.IntN(2) == 0,
			outcome: row.Outcome, stream: row.Stream, class: row.Class, finish: row.Finish, errorClass: row.Error, detail: row.Detail,
		}
		data := codec.Append(nil, &q)
		if n := codec.Decode(append(data, 1, 2, 3), &got); n != len(data) || n > codec.Most {
			t.Fatalf("%d bytes of %d, at most %d", n, len(data), codec.Most)
		}
		for i := range list {
			if want, has := list[i].of(c, &q), list[i].of(c, &got); want != has {
				t.Errorf("%s: %v, not %v", list[i].name, has, want)
			}
		}
		if got.turns != q.turns || got.follows != q.follows {
			t.Errorf("turns %d and follows %v, not %d and %v", got.turns, got.follows, q.turns, q.follows)
		}
		for n := range data { // cut short anywhere it is told
			var cut request
			if codec.Decode(data[:n:n], &cut) != 0 {
				t.Fatalf("%d of %d bytes make a request", n, len(data))
			}
		}
	}
}
