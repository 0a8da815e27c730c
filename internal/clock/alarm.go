package clock

import (
	"math"
	"runtime"
	"time"
)

// Alarm wakes its one user at an absolute time, or earlier when something is
// there to do. It is the pacer of every load.
type Alarm interface {
	// Wait returns true when until has come, and false as soon as wake is
	// readable (it takes what was sent).
	Wait(until int64, wake <-chan struct{}) bool
	Close()
}

// TimerAlarm is an Alarm over Go's timers: portable, and usable in virtual
// time. The runtime's poller waits in whole milliseconds, so with Spin > 0 it
// asks to be woken that much earlier and yields until the time has come.
type TimerAlarm struct{ Spin time.Duration }

// Wait implements [Alarm].
func (a TimerAlarm) Wait(until int64, wake <-chan struct{}) bool {
	if d := timeUntil(until, Now()) - a.Spin; d > 0 {
		t := time.NewTimer(d)
		defer t.Stop()
		select {
		case <-wake:
			return false
		case <-t.C:
		}
	}
	return spin(until, wake, true)
}

// timeUntil returns the duration until a time. Virtual clocks may stand before 0, so the difference
// to a time that never comes can overflow.
func timeUntil(until, now int64) time.Duration {
	if d := until - now; d > 0 || until < now {
		return time.Duration(d)
	}
	if until == now {
		return 0
	}
	return math.MaxInt64
}

// Close implements [Alarm].
func (TimerAlarm) Close() {}

// spin waits out the last microseconds.
func spin(until int64, wake <-chan struct{}, yield bool) bool {
	for {
		select {
		case <-wake:
			return false
		default:
		}
		if Now() >= until {
			return true
		}
		if yield {
			runtime.Gosched()
		}
	}
}
