package metrics

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"pitot/internal/results/record"
)

// What is shown of an error class is what was said of its first request in
// the schedule, in whichever order the requests ended; of the cohort alone.
func TestErrorExamples(t *testing.T) {
	failure := func(id, due int64, class, detail string) record.Frame {
		f := failed(id, due, 1, class)
		f.Rows[0].Detail = detail
		return f
	}
	frames := []record.Frame{
		failure(0, -50, record.ServerError(500), "in the warm-up"),
		failure(3, 300, record.ServerError(500), "third"),
		failure(2, 200, record.ServerError(500), "second"),
		failure(1, 100, record.ServerError(500), ""),
		failure(4, 400, record.ErrReset, ""),
	}
	got := fold(window(1), frames...).Point().Requests
	if d := cmp.Diff(map[string]string{record.ServerError(500): "second"}, got.ErrorExamples); d != "" {
		t.Error(d)
	}
	if got.Errors[record.ServerError(500)] != 3 || got.Errors[record.ErrReset] != 1 {
		t.Errorf("%v", got.Errors)
	}
	if p := fold(window(1), failed(1, 100, 1, record.ErrInterrupted), failed(2, 200, 1, record.ErrInterrupted)).Point(); p.Outcome != "ok" {
		t.Errorf("the user's interruption makes the server %s", p.Outcome)
	}
	if clean := fold(window(1), failed(1, 5000, 1, record.ServerError(500))).Point().Requests; clean.ErrorExamples != nil {
		t.Errorf("%v", clean.ErrorExamples)
	}
}

// A server that makes up a finish reason for each answer fills neither memory nor
// run.json.
func TestFinishReasonsAreBounded(t *testing.T) {
	var frames []record.Frame
	for id := range int64(1000) {
		f := answer{id: id, due: id, stamps: []int64{id + 1, id + 2}, usage: 2}.frame()
		f.Rows[0].Finish = fmt.Sprintf("reason %d", id%500)
		frames = append(frames, f)
	}
	got := fold(window(1), frames...).Point().Requests
	n := 0
	for _, k := range got.Finish {
		n += k
	}
	if len(got.Finish) != mostReasons+1 || got.Finish["reason 7"] != 2 || got.Finish[otherReasons] != 800 || n != got.OK {
		t.Errorf("%d reasons, %d others, %d of %d answers", len(got.Finish), got.Finish[otherReasons], n, got.OK)
	}
}
