package session

import (
	"errors"
	"math"
	"strings"
	"testing"

	"pitot/internal/workload"
)

// texts is a source of prompts.
type texts []string

func (t texts) At(i int64) (workload.Request, error) {
	if t[i] == "" {
		return workload.Request{}, errors.New("gone")
	}
	return workload.Request{Messages: []workload.Message{{Role: "user", Segments: []workload.Segment{{Text: t[i]}}}}}, nil
}

// What prompts share with earlier ones counts, from their begin on and nowhere else.
func TestRepeated(t *testing.T) {
	a, b := strings.Repeat("abcdefg ", 100), strings.Repeat("hijklmn ", 100)
	for _, c := range []struct {
		name string
		of   texts
		want float64
	}{
		{"none", texts{a, b}, 0},
		{"the same again", texts{a, a}, 0.5},
		{"one of two begins, behind the first", texts{a + b, a + a, b + a}, 1. / 6},
		{"a stretch within is no begin", texts{a, b + a}, 0},
		{"many of one begin", texts{a + "1", a + "2", a + "3", a + "4"}, 0.75},
	} {
		got := repeatedShare(c.of, int64(len(c.of)))
		if got == nil || math.Abs(*got-c.want) > 0.06 {
			t.Errorf("%s: %v, want %.2f", c.name, got, c.want)
		}
	}
	if got := repeatedShare(texts{a, ""}, 2); got != nil {
		t.Errorf("a file that is gone tells %v", *got)
	}
	if got := repeatedShare(texts{}, 0); got != nil {
		t.Errorf("no request tells %v", *got)
	}
}
