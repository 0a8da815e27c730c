package main

import (
	"pitot/bench/stat/queue"
	"pitot/internal/results/record"
)

// recorded are the jobs of a queue that arrive before a time, as records: a
// mean service is a second.
func recorded(q *queue.Queue, until float64) (rows []record.Row) {
	for j := q.Next(); j.Arrival < until; j = q.Next() {
		rows = append(rows, rowOf(j, int64(len(rows))))
	}
	return rows
}

// rowOf is a job as a record.
func rowOf(j queue.Job, id int64) record.Row {
	r := record.BlankRow()
	r.ID, r.Stream, r.Outcome, r.Status = id, true, record.OK, 200
	r.Due = int64(j.Arrival * 1e9)
	r.Eligible, r.Ready, r.Sent = r.Due, r.Due, r.Due
	r.FirstToken, r.LastToken = r.Due+int64(j.TTFT*1e9), max(int64(j.End*1e9), r.Due+int64(j.TTFT*1e9))
	r.FirstAnswer, r.Headers, r.Done = r.FirstToken, r.FirstToken, r.LastToken
	r.CompletionTokens, r.Chunks = 100, 100
	return r
}
