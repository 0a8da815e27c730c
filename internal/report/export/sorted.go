package export

import (
	"encoding/binary"

	"pitot/internal/metrics"
	"pitot/internal/results/record"
	"pitot/internal/results/spill"
)

// A table has every request of a run, in the order in which they were sent, which
// is not the order of the records; other tools' files have those of the window. So
// they are sorted, within a budget of memory.

// sortMemory is the number of bytes of requests that stay in memory. The rest goes to a file.
const sortMemory = 64 << 20

// longestWord bounds what is put aside of a string. Those of records are shorter.
const longestWord = 1 << 13

// requestCodec returns the codec that stores requests in a file.
func requestCodec() spill.Codec[request] {
	measured := metrics.RequestCodec()
	return spill.Codec[request]{
		Key: func(q *request) (int64, int64) { return q.sentOrDue(), q.id },
		Append: func(to []byte, q *request) []byte {
			to = measured.Append(to, &q.measured)
			for _, x := range q.stampPointers() {
				to = binary.AppendVarint(to, *x)
			}
			for _, x := range q.countPointers() {
				to = binary.AppendVarint(to, int64(*x))
			}
			kind := int64(q.outcome) << 2
			if q.stream {
				kind |= 1
			}
			if q.follows {
				kind |= 2
			}
			to = binary.AppendVarint(to, kind)
			for _, s := range q.textPointers() {
				word := (*s)[:min(len(*s), longestWord)]
				to = append(binary.AppendUvarint(to, uint64(len(word))), word...)
			}
			return to
		},
		Decode: func(from []byte, q *request) int {
			at := measured.Decode(from, &q.measured)
			if at <= 0 {
				return 0
			}
			good := true
			number := func() int64 {
				x, n := binary.Varint(from[at:])
				good = good && n > 0
				at += max(n, 0)
				return x
			}
			for _, x := range q.stampPointers() {
				*x = number()
			}
			for _, x := range q.countPointers() {
				*x = int32(number())
			}
			kind := number()
			q.outcome, q.stream, q.follows = record.Outcome(kind>>2), kind&1 != 0, kind&2 != 0
			for _, s := range q.textPointers() {
				length, n := binary.Uvarint(from[at:])
				if n <= 0 || length > uint64(len(from)-at-n) {
					return 0
				}
				at += n
				word := from[at : at+int(length)]
				at += int(length)
				if *s != string(word) { // most are those of the request before
					*s = string(word)
				}
			}
			if !good {
				return 0
			}
			return at
		},
		Most: measured.Most + 20*binary.MaxVarintLen64 + 4*(longestWord+binary.MaxVarintLen32),
	}
}

func (q *request) stampPointers() [11]*int64 {
	return [...]*int64{&q.id, &q.due, &q.eligible, &q.ready, &q.sent, &q.first, &q.last, &q.done, &q.from, &q.to, &q.session}
}

func (q *request) countPointers() [8]*int32 {
	return [...]*int32{&q.inputPlanned, &q.input, &q.cached, &q.events, &q.status, &q.turn, &q.turns, &q.history}
}

func (q *request) textPointers() [4]*string {
	return [...]*string{&q.class, &q.finish, &q.errorClass, &q.detail}
}
