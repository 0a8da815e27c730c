package clock

import (
	"io"
	"slices"
	"strings"
	"testing"
	"time"
)

// What a scout saw arrive keeps its time, though more came before it was read.
func TestScoutKeepsTheFirstArrival(t *testing.T) {
	late, _, writes := connected(t)
	other, _, nudge := connected(t)
	scout := NewScout()
	defer scout.Close()
	late.Scouted(scout)
	other.Scouted(scout)
	late.Expect()

	before := Now()
	_, _ = io.WriteString(writes, "first ")
	sent := Now()
	// Another reader runs; it looks.
	_, _ = io.WriteString(nudge, "x")
	other.Run(make([]byte, 8), func([]byte, int64, bool, bool, error) bool { return false })
	time.Sleep(5 * time.Millisecond)
	second := Now()
	_, _ = io.WriteString(writes, "second")
	time.Sleep(5 * time.Millisecond)

	type piece struct {
		text         string
		at           int64
		kernel, more bool
	}
	var got []piece
	late.Run(make([]byte, 64), func(b []byte, at int64, kernel, more bool, err error) bool {
		got = append(got, piece{string(b), at, kernel, more})
		return string(b) != "second"
	})
	if len(got) != 2 || got[0].text != "first " || got[1].text != "second" || !got[0].kernel || got[0].more || got[1].more {
		t.Fatalf("%+v", got)
	}
	if at := got[0].at; at < before-slack || at > sent+slack {
		t.Errorf("the first arrived %v after it was sent", time.Duration(at-sent))
	}
	if got[1].at < second-slack {
		t.Errorf("the second arrived %v before it was sent", time.Duration(second-got[1].at))
	}
}

// A read may be shorter than what was seen, and may stop within it.
func TestScoutShortReads(t *testing.T) {
	r, _, writes := connected(t)
	scout := NewScout()
	defer scout.Close()
	r.Scouted(scout)
	r.Expect()
	for _, s := range []string{"abc", "defgh", "ij"} {
		_, _ = io.WriteString(writes, s)
		time.Sleep(time.Millisecond)
		scout.look()
	}
	_, _ = io.WriteString(writes, "k")
	time.Sleep(time.Millisecond)
	got := ""
	var times []int64
	r.Run(make([]byte, 4), func(b []byte, at int64, _, _ bool, _ error) bool {
		got += string(b) + "|"
		times = append(times, at)
		return !strings.Contains(got, "k")
	})
	if got != "abc|d|efgh|ij|k|" && got != "abc|d|efgh|ijk|" {
		t.Errorf("%q", got)
	}
	if !slices.IsSorted(times) {
		t.Errorf("%v", times)
	}
}
