package capacity

import "math"

// Sessions describes a load where requests follow one another. In an open loop each arrival begins
// a session; in a closed one each user holds one after the other. The zero value means that
// requests stand alone.
//
// The requests of a session are alike, and the number of open sessions changes only as slowly as
// they end. The fit rests on how much whole windows differ, so it has warm-ups of sessions'
// lengths. Bounds rest on the blocks of a window. So they have blocks of whole sessions, in windows
// that last several of them. Where too few requests violate to show how alike they are, bounds
// count all requests of a session as one.
type Sessions struct {
	Turns   float64 // requests of one, on average
	Cluster float64 // requests of the session that a request is of, on average: E[turns²]/E[turns]
	Pause   float64 // seconds of pauses in one on average; of a user, and behind it
	Even    bool    // these pauses are alike, so that who asks together does so again
}

const (
	// sessionWarmup is the length of a whole warm-up in session lengths. Few sessions that all
	// begin at once are in step any more after it.
	sessionWarmup = 5
	// sessionLook is the length, in session lengths, of a window that bounds rest on.
	sessionLook = 5
	// sessionMain is the least length, in session lengths, of a window that is fitted.
	sessionMain = 2
	// telling is the number of violations that show by themselves how they cluster.
	telling = 20
)

// turnsPerLoad returns the number of requests that come of what a load counts.
func (c *FindConfig) turnsPerLoad() float64 { return max(1, c.Sessions.Turns) }

// MemoryTime is for how long what a load does hangs on what was there before, in units of which
// a whole warm-up has [Warmup]: as long as a request takes; where requests follow one
// another, a part of how long a session lasts.
func (c *FindConfig) MemoryTime(residence float64) float64 {
	if c.Sessions.Turns == 0 {
		return residence
	}
	return c.sessionSeconds(residence) * sessionWarmup / Warmup
}

// sessionSeconds returns the length of a session whose requests have the given residence time, in
// seconds.
func (c *FindConfig) sessionSeconds(residence float64) float64 {
	return c.turnsPerLoad()*residence + c.Sessions.Pause
}

// hasEvenPauses says that conversations come by themselves and pause alike. Users of a closed loop
// begin one after the other.
func (c *FindConfig) hasEvenPauses() bool {
	return !c.Closed && c.Sessions.Turns > 0 && c.Sessions.Even
}

// burstSpan is the part of a whole warm-up, in seconds, whose requests come all at once at its end,
// where requests take so long: as many as are under way by then, all of which ask as after a pause
// of the server. Where pauses between turns are alike a load that is not carried goes on in waves,
// each the echo of the one before it; by itself it would come to that too, but only when by chance
// enough ask at a time, which may take longer than a window lasts. Where pauses differ there is no
// echo, and so no burst: of conversations of t turns what is left of one is over before the window
// only where less than 4t/(1+4t) of the server is used.
func (c *FindConfig) burstSpan(residence float64) [2]float64 {
	if !c.hasEvenPauses() {
		return [2]float64{}
	}
	lasts := c.sessionSeconds(residence)
	return [2]float64{lasts * (1 - 1/c.turnsPerLoad()), lasts}
}

// Rate is the requests a second of a load whose requests take so long.
func (c *FindConfig) Rate(load, residence float64) float64 {
	if c.Closed {
		return load * c.turnsPerLoad() / c.sessionSeconds(residence)
	}
	return load * c.turnsPerLoad()
}

// memoryAt is [FindConfig.MemoryTime] at a load.
func (f *search) memoryAt(load float64) float64 { return f.cfg.MemoryTime(f.residenceAt(load)) }

// wholeSessions returns the number of requests that come in the least time of a window that bounds
// rest on.
func (f *search) wholeSessions(load float64) int {
	if f.cfg.Sessions.Turns == 0 || !(load > 0) {
		return 0
	}
	return int(math.Ceil(sessionLook * f.cfg.sessionSeconds(f.residenceAt(load)) * f.requestRate(load)))
}

// leastMain returns the smallest number of requests of each of the loads that are fitted.
func (f *search) leastMain() int {
	return max(leastMain, f.wholeSessions(f.centred)*sessionMain/sessionLook, f.inCycles(cyclesMain, f.centred))
}

// assumedClustering returns the least assumed clustering of violations. Where too few violate to
// show it, it is that of all requests of a session.
func (s *Seen) assumedClustering(claim int) float64 {
	if s.violationCount(claim) >= telling {
		return 1
	}
	return max(1, s.Cluster)
}

// assumedClustering is the same before a load is looked at.
func (f *search) assumedClustering() float64 { return max(1, f.cfg.Sessions.Cluster) }
