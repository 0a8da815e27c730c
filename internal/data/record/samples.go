package record

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

// What the server tells of itself, as samples of source "server": when its
// process began, in seconds since 1970, before the load and after it.
const (
	SourceServer = "server"
	ProcessStart = "process_start_time_seconds"
)
