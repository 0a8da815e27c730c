//go:build !linux

package clock

import "time"

// NewAlarm gives the most precise alarm of this platform.
func NewAlarm() Alarm { return TimerAlarm{Spin: time.Millisecond} }
