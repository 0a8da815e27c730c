package clock

import (
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// early is the time by which a timerfd alarm wakes before its time. The rest is spun away:
// measured, the poller's wake-up takes 20–60 µs.
const early = 80 * time.Microsecond

// timerfdAlarm waits on a timerfd in the runtime's poller, which has
// microsecond grain where Go's own timers have a millisecond's.
type timerfdAlarm struct {
	f    *os.File
	fd   int
	tick chan struct{}
}

// NewAlarm gives the most precise alarm of this platform.
func NewAlarm() Alarm {
	fd, err := unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_NONBLOCK|unix.TFD_CLOEXEC)
	if err != nil {
		return TimerAlarm{Spin: time.Millisecond}
	}
	a := &timerfdAlarm{f: os.NewFile(uintptr(fd), "timerfd"), fd: fd, tick: make(chan struct{}, 1)}
	go a.read()
	return a
}

// read forwards expirations to tick until the file is closed.
func (a *timerfdAlarm) read() {
	var buf [8]byte
	for {
		if _, err := a.f.Read(buf[:]); err != nil {
			return
		}
		select {
		case a.tick <- struct{}{}:
		default:
		}
	}
}

// Wait implements [Alarm].
func (a *timerfdAlarm) Wait(until int64, wake <-chan struct{}) bool {
	for {
		at := until - int64(early)
		if Now() >= at {
			return spin(until, wake, false)
		}
		spec := unix.ItimerSpec{Value: unix.NsecToTimespec(at)}
		if err := unix.TimerfdSettime(a.fd, unix.TFD_TIMER_ABSTIME, &spec, nil); err != nil {
			return TimerAlarm{Spin: time.Millisecond}.Wait(until, wake)
		}
		select {
		case <-wake:
			return false
		case <-a.tick: // maybe of an earlier setting: look at the clock again
		}
	}
}

// Close implements [Alarm].
func (a *timerfdAlarm) Close() { a.f.Close() }
