package clock

import (
	"math"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	_ "pitot/internal/rapidtest" // the same draws each time
)

func TestNowNeverGoesBack(t *testing.T) {
	last := Now()
	for range 100_000 {
		now := Now()
		if now < last {
			t.Fatalf("%d after %d", now, last)
		}
		last = now
	}
}

// Of and Now count on one clock.
func TestOf(t *testing.T) {
	a := Now()
	b := FromTime(time.Now())
	c := Now()
	if a > b || b > c {
		t.Errorf("%d, %d, %d", a, b, c)
	}
	now := time.Now()
	if d := FromTime(now.Add(time.Second)) - FromTime(now); d != int64(time.Second) {
		t.Errorf("a second is %d ns", d)
	}
}

func TestFromWall(t *testing.T) {
	now := time.Now()
	for _, c := range []struct {
		name string
		age  time.Duration
		ok   bool
		want time.Duration // age of the result
	}{
		{"now", 0, true, 0},
		{"a moment ago", 1500 * time.Nanosecond, true, 1500 * time.Nanosecond},
		{"a while ago", 29 * time.Second, true, 29 * time.Second},
		{"too old: the clock was stepped forward", 31 * time.Second, false, 0},
		{"the clocks' grain", -20 * time.Microsecond, true, 0}, // nothing arrives after it was read
		{"future: the clock was stepped back", -time.Millisecond, false, 0},
		{"far future", -24 * time.Hour, false, 0},
	} {
		mono, ok := FromWall(now, now.UnixNano()-int64(c.age))
		if ok != c.ok {
			t.Errorf("%s: ok is %v", c.name, ok)
		}
		if ok && FromTime(now)-mono != int64(c.want) {
			t.Errorf("%s: %v old, want %v", c.name, time.Duration(FromTime(now)-mono), c.want)
		}
	}
}

// Whatever a stamp says, the result is never after the reading.
func TestFromWallAnyStamp(t *testing.T) {
	now := time.Now()
	rapid.Check(t, func(t *rapid.T) {
		stamp := rapid.Int64Range(0, math.MaxInt64).Draw(t, "stamp")
		if rapid.Bool().Draw(t, "near") {
			stamp = now.UnixNano() + rapid.Int64Range(-40e9, 40e9).Draw(t, "by")
		}
		mono, ok := FromWall(now, stamp)
		if ok && (mono > FromTime(now) || mono < FromTime(now)-int64(maxKernelAge)) {
			t.Fatalf("stamp %d gives %d at %d", stamp, mono, FromTime(now))
		}
	})
}

func TestTimerAlarm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, wake := TimerAlarm{}, make(chan struct{}, 1)
		begin := Now()
		if !a.Wait(begin+12345, wake) || Now() != begin+12345 {
			t.Errorf("woke %d ns after the begin", Now()-begin)
		}
		if !a.Wait(begin, wake) || Now() != begin+12345 {
			t.Error("a time that is past takes time")
		}
		go func() {
			time.Sleep(50 * time.Nanosecond)
			wake <- struct{}{}
		}()
		if a.Wait(math.MaxInt64, wake) || Now() != begin+12395 {
			t.Errorf("woken after %d ns", Now()-begin)
		}
		wake <- struct{}{}
		if a.Wait(Now(), wake) {
			t.Error("something was there to do")
		}
		if !a.Wait(Now(), wake) {
			t.Error("the wake-up was not taken")
		}
		if !a.Wait(Now()+7, nil) {
			t.Error("nothing could have woken it")
		}
	})
}

func TestLeft(t *testing.T) {
	for _, c := range []struct {
		until, now int64
		want       time.Duration
	}{
		{5, 3, 2}, {3, 5, -2}, {4, 4, 0}, {math.MaxInt64, 10, math.MaxInt64 - 10}, {math.MaxInt64, -10, math.MaxInt64},
	} {
		if got := timeUntil(c.until, c.now); got != c.want {
			t.Errorf("left(%d, %d) = %d, want %d", c.until, c.now, got, c.want)
		}
	}
}

// Every alarm of this platform keeps its word: not before the time, and at
// once when there is something to do.
func TestAlarm(t *testing.T) {
	for name, a := range map[string]Alarm{"best": NewAlarm(), "timer": TimerAlarm{Spin: time.Millisecond}} {
		t.Run(name, func(t *testing.T) {
			defer a.Close()
			wake := make(chan struct{}, 1)
			for _, d := range []time.Duration{0, time.Microsecond, 79 * time.Microsecond, 81 * time.Microsecond, 300 * time.Microsecond, 3 * time.Millisecond} {
				until := Now() + int64(d)
				if !a.Wait(until, wake) {
					t.Errorf("%v: woken by nothing", d)
				}
				if now := Now(); now < until {
					t.Errorf("%v: %v early", d, time.Duration(until-now))
				}
			}
			// A setting that was not waited out says nothing about the next.
			for range 3 {
				time.AfterFunc(200*time.Microsecond, func() { wake <- struct{}{} })
				if a.Wait(Now()+int64(time.Hour), wake) {
					t.Error("it did not notice the wake-up")
				}
				wake <- struct{}{}
				if a.Wait(Now()+int64(500*time.Microsecond), wake) {
					t.Error("it did not take the wake-up that was there")
				}
				until := Now() + int64(2*time.Millisecond)
				if !a.Wait(until, wake) || Now() < until {
					t.Error("it woke early")
				}
			}
			go func() { wake <- struct{}{} }()
			if a.Wait(math.MaxInt64, wake) {
				t.Error("never has come")
			}
		})
	}
}

// BenchmarkAlarm says how late an alarm is that is set every millisecond.
func BenchmarkAlarm(b *testing.B) {
	for name, a := range map[string]Alarm{"best": NewAlarm(), "timer": TimerAlarm{Spin: time.Millisecond}} {
		b.Run(name, func(b *testing.B) {
			late := make([]int64, 0, b.N)
			until := Now()
			for b.Loop() {
				until = max(until+int64(time.Millisecond), Now())
				a.Wait(until, nil)
				late = append(late, Now()-until)
			}
			report(b, late)
		})
		a.Close()
	}
}
