package record

import (
	"iter"

	"pitot/internal/results/rundir"
)

// Names under which the instrument reports on itself, as samples of source
// "client": the share of the available cores used over the last second, for
// how many seconds of it the collector paused everything, a step of the wall
// clock, records that could not be written.
const (
	SourceClient = "client"
	CPUShare     = "cpu_share"
	Pause        = "gc_pause_s"
	ClockStep    = "clock_step"
	RecordErrors = LostMark // a mark says it too
)

// What the client's machine was busy with over the last second, as samples of
// source "host": the share of all cores that other processes used, and that the
// hypervisor gave to other guests; tasks that run or wait for a core; the share of
// the time that some task waited for one (pressure stall information); and the
// share of this process's time that a limit of its container kept it from running.
const (
	SourceHost     = "host"
	OthersShare    = "others_share"
	StolenShare    = "stolen_share"
	Runnable       = "runnable"
	WaitedShare    = "waited_share"
	ThrottledShare = "throttled_share"
)

// SourceServer is of what the server tells of itself, before the load and after it,
// under the names that the table of signals in room results/metric has.
const SourceServer = "server"

// Samples yields the samples alone of what [Frames] does.
func Samples(dir string) iter.Seq2[Sample, error] {
	return func(yield func(Sample, error) bool) {
		if hasJournal(dir) {
			for f, err := range FramesSince(dir, 0) {
				if err != nil {
					yield(Sample{}, err)
					return
				}
				for _, s := range f.Samples {
					if !yield(s, nil) {
						return
					}
				}
			}
			return
		}
		samples, err := openLines(dir, rundir.Telemetry, sampleFields)
		if err != nil {
			yield(Sample{}, err)
			return
		}
		defer samples.close()
		for {
			s, err := samples.peek()
			if err != nil {
				yield(Sample{}, err)
				return
			}
			if s == nil || !yield(s.Sample, nil) {
				return
			}
			samples.dropRow()
		}
	}
}
