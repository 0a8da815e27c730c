package result

import (
	"math"
	"slices"

	"pitot/internal/stats"
)

// Curve holds the joint results of the points of a sweep. Points are named by their index in the
// run.
type Curve struct {
	Over         string      `json:"over"`               // what Load is: "rate", "sessions" or "concurrency"
	Points       []int       `json:"points"`             // by load
	Knee         *Knee       `json:"knee"`               // null: there is none, see NoKnee
	NoKnee       Reason      `json:"no_knee,omitzero"`   // why there is no knee
	Saturation   *Saturation `json:"saturation"`         // null if no point reached it
	UnstableFrom *float64    `json:"unstable_from"`      // lowest load at which the backlog grew, null if at none
	LeftOut      int         `json:"left_out,omitempty"` // INVALID points that would change Knee, Saturation or UnstableFrom, and have no say
	Crossing     *Crossing   `json:"crossing,omitempty"` // where the loads stop to meet the SLO
	Pareto       Pareto      `json:"pareto"`
	Repeats      []Repeated  `json:"repeats,omitempty"` // loads that were measured more than once
}

// Stages of the two points that a cache is compared by: the same lengths, asked at the same
// times, with nothing shared, and with every shared prefix asked for before.
const (
	StageCold = "cold cache"
	StageWarm = "warm cache"
)

// StageCurve is the stage of a sweep's points, StageLight that of the load that a search begins
// with.
const (
	StageCurve = "curve"
	StageQuick = "quick" // the same in a first look, whose windows are short on purpose
	StageLight = "light"
)

// Crossing holds the results of a sweep's loads on the highest load at which the SLO holds.
type Crossing struct {
	SLO      string   `json:"slo"`
	AtLeast  *float64 `json:"at_least"`     // a load that was measured and is not above the capacity; null: none is known to be
	AtMost   *float64 `json:"at_most"`      // likewise, and not below it
	Level    float64  `json:"level"`        // with which both hold; each by itself is wrong half as often as that leaves
	Estimate *float64 `json:"estimate"`     // between the highest load that met it and the next, by the shares that violate it; null unless both bounds are known
	Binding  string   `json:"binding"`      // the limit that is reached first there
	Why      Reason   `json:"why,omitzero"` // what is missing for an estimate
}

// What the loads of a curve or a capacity are.
const (
	OverRate        = "rate"        // requests a second
	OverSessions    = "sessions"    // conversations that begin a second
	OverConcurrency = "concurrency" // users
	OverAgents      = "agents"      // users who hold one session after the other
)

// IsClosedLoop says that loads are numbers of users.
func IsClosedLoop(over string) bool { return over == OverConcurrency || over == OverAgents }

// LoadUnit returns the unit of loads, by the quantity that a curve or a capacity is over.
func LoadUnit(over string) string {
	switch over {
	case OverConcurrency:
		return "users"
	case OverAgents:
		return "agents"
	case OverSessions:
		return "conversations/s"
	}
	return "req/s"
}

// Over returns the quantity that varies among several loads like it.
func (l *Load) Over() string {
	switch {
	case l.Concurrency != nil:
		return OverConcurrency
	case l.Turns != nil:
		return OverSessions
	}
	return OverRate
}

// Repeated is a load that was measured more than once.
type Repeated struct {
	Load   float64               `json:"load"`
	Points []int                 `json:"points"`
	Median map[string]float64    `json:"median"`           // of a value over them, as "ttft_ms.p99"; of an even number the lower of the two in the middle. None where a point does not have it
	Spread map[string][2]float64 `json:"spread"`           // its least and most, over the points that have it
	Pooled map[string]Together   `json:"pooled,omitempty"` // percentiles over the requests of all points together, as "ttft_ms.p99"
	Met    map[Met]int           `json:"met,omitempty"`    // points by how the SLO came out
	Covers string                `json:"covers,omitempty"` // what the spread is a spread of
}

// Together is a percentile over the requests of several points of one load.
type Together struct {
	Value float64 `json:"value"`
	N     int64   `json:"n"`             // requests
	Few   bool    `json:"few,omitempty"` // it rests on few of them
}

// Knee is the load from which more of it buys little throughput for much
// latency.
type Knee struct {
	Load      float64             `json:"load"`
	Resampled *[2]float64         `json:"resampled"` // range of 95 % of the knees of loads drawn again from those measured; of no level: it need not hold the knee of longer windows
	Method    string              `json:"method"`
	Others    map[string]*float64 `json:"others"` // what other methods say
}

// Saturation is the most that the target served.
type Saturation struct {
	Load             float64  `json:"load"` // of the point that did
	RequestsPerS     float64  `json:"requests_per_s"`
	OutputTokensPerS *float64 `json:"output_tokens_per_s"`
	// CI95 is of RequestsPerS, over time blocks of the second half of the
	// point's window; null where the tokens are not known.
	CI95 *[2]float64 `json:"ci95,omitempty"`
}

// Pareto are the points that no other is better than in both respects.
type Pareto struct {
	UserSpeed []int `json:"user_speed"` // tokens per second of one user, against output tokens per second of all
	TTFT      []int `json:"ttft"`       // median TTFT, against output tokens per second
}

// Capacity is the highest load at which an objective holds.
type Capacity struct {
	Over     string      `json:"over"`     // "rate", "sessions", "concurrency" or "agents"
	SLO      string      `json:"slo"`      // as written
	Load     *float64    `json:"load"`     // the load to quote: it was measured for long and passed
	Estimate *float64    `json:"estimate"` // where the fitted share of violations reaches what the objective allows
	CI95     *[2]float64 `json:"ci95"`     // of Estimate
	Lower    *float64    `json:"lower"`    // one-sided 95 % limit
	Covers   string      `json:"covers"`   // what the interval is an interval of
	Verified *Verified   `json:"verified"`
	// PerGPU and PerMW are Load by the GPUs and by the megawatts that they drew at it, where
	// it is a number of users or of agents and these are known.
	PerGPU *float64 `json:"per_gpu,omitempty"`
	PerMW  *float64 `json:"per_mw,omitempty"`
	// USDPerMGoodOutput is the cost of a million output tokens within the objective at Load.
	USDPerMGoodOutput *float64  `json:"usd_per_m_good_output,omitempty"`
	Cost              *Quoted   `json:"cost,omitempty"` // what Load costs, with headroom and without
	Forecast          *Forecast `json:"forecast,omitempty"`
	// Bracket is the load that was verified, or a higher one that windows which were counted show
	// to be within, and one above the capacity: Bounds says how sure they are.
	Bracket *[2]*float64 `json:"bracket"`
	Bounds  *Bounds      `json:"bounds,omitempty"`
	// Likely is, without an estimate, a load that seemed to meet the objective and one that seemed
	// to miss it. No test says so.
	Likely  *[2]float64 `json:"likely,omitempty"`
	Carried *Carried    `json:"carried,omitempty"` // what the server carries, where its queue grows before a limit is violated
	Floor   *Floor      `json:"floor,omitempty"`   // why no load meets the objective
	Unmet   *Floor      `json:"unmet,omitempty"`   // why none did so far, by the lightest loads, where that is less sure than a floor
	// NotEmptiedS is for how many seconds the search waited after an overload for a server that was
	// still not empty then: what it measured next may wait for requests of the overload.
	NotEmptiedS *float64        `json:"not_emptied_s,omitempty"`
	Continued   *Continued      `json:"continued,omitempty"` // what it went on with
	Binding     string          `json:"binding"`             // the limit that is reached first
	Limits      []CapacityLimit `json:"limits"`
	Requests    int             `json:"requests"` // measured in all
	Seconds     float64         `json:"seconds"`
	Unfinished  bool            `json:"unfinished,omitempty"` // the search was interrupted, stopped or killed: --resume goes on with it
	Why         Reason          `json:"why,omitzero"`         // why there is no load, or no more than a bracket
	// Enough are budgets that would give an estimate: of virtual time where the target is
	// simulated.
	Enough []BudgetFor     `json:"enough,omitempty"`
	Trail  []CapacityProbe `json:"trail"`
}

// Forecast holds a search's forecast of its own result. The search made it when the capacity was
// roughly known and before the fitted loads were measured.
type Forecast struct {
	Requests  int      `json:"requests"`   // that the budget was to pay
	HalfWidth *float64 `json:"half_width"` // of the 95 % interval, relative to the estimate; null: bounds alone
}

// BudgetFor is a budget that would give an estimate with an interval of a half-width.
type BudgetFor struct {
	HalfWidth float64 `json:"half_width,omitempty"` // of the 95 % interval, relative to the estimate; 0: a load that is verified is decided
	Requests  int     `json:"requests,omitempty"`
	Seconds   float64 `json:"seconds,omitempty"` // 0 where it is not known
}

// Carried is the number of requests a second that a server carries. It has an interval over time
// blocks of a window in which more came.
type Carried struct {
	RequestsPerS float64    `json:"requests_per_s"`
	CI95         [2]float64 `json:"ci95"`
}

// Bounds holds the certainty of the two ends of a bracket.
type Bounds struct {
	Level float64 `json:"level"` // with which both hold; each by itself is wrong half as often as that leaves
	// Fitted says that the upper one is the end of the estimate's interval; else it is a
	// load that was measured.
	Fitted bool `json:"fitted,omitempty"`
}

// Floor is a share of violations that was found however low the load.
type Floor struct {
	Spec       string  `json:"spec"` // the limit
	Load       float64 `json:"load"` // up to which loads were taken together
	Requests   int     `json:"requests"`
	Violations int     `json:"violations"`
	Errors     int     `json:"errors"` // of the violations, requests that were not answered well
	Lower      float64 `json:"lower"`  // one-sided lower limit of the violating share
	Allowed    float64 `json:"allowed"`
	// Confidence that more violate it than may, where that is less than a floor takes.
	Confidence float64 `json:"confidence,omitempty"`
}

// CapacityLimit is one limit by itself.
type CapacityLimit struct {
	Spec     string      `json:"spec"`
	Allowed  float64     `json:"allowed"` // share of requests that may violate it
	Estimate *float64    `json:"estimate"`
	CI95     *[2]float64 `json:"ci95"`
	Why      Reason      `json:"why,omitzero"`

	Curve *FittedCurve `json:"curve,omitempty"` // that the estimate is read from, near it
}

// FittedCurve is the fitted share of requests that violate a limit:
// Floor + (1 − Floor)/(1 + exp(−A − B·ln(load/Centre))).
type FittedCurve struct {
	A      float64 `json:"a"`
	B      float64 `json:"b"`
	Centre float64 `json:"centre"`
	Floor  float64 `json:"floor"`
}

// ShareAt returns the fitted share at a load.
func (c *FittedCurve) ShareAt(load float64) float64 {
	return c.Floor + (1-c.Floor)/(1+math.Exp(-c.A-c.B*math.Log(load/c.Centre)))
}

// Verified is a load that was measured once more, by itself.
type Verified struct {
	Load       float64 `json:"load"`
	Requests   int     `json:"requests"`
	Violations int     `json:"violations"`
	Errors     int     `json:"errors,omitempty"` // of its requests that did not end well: they violate every limit
	Upper      float64 `json:"upper"`            // one-sided upper limit of the violating share
	Lower      float64 `json:"lower,omitempty"`  // one-sided lower limit, of a load that was refuted
	Allowed    float64 `json:"allowed"`
	Passed     bool    `json:"passed"`
	Refuted    bool    `json:"refuted"` // neither: undecided
	Attempts   int     `json:"attempts"`
}

// ExcludesPoint says that a point was INVALID and that nothing rests on it: the search has an
// answer that others carry, or its load was measured again and that counts. A search that claims
// nothing, and has no other window at a load, stands and falls with it. A window that was under way
// when the search was interrupted is in no trail, or cut short there, and nothing rests on the
// whole of it where others stand.
func (c *Capacity) ExcludesPoint(point int) bool {
	claims := c.Load != nil || c.Estimate != nil || c.Bounds != nil || c.Floor != nil
	for i := range c.Trail {
		if p := &c.Trail[i]; p.Point == point && p.Excluded {
			return claims || slices.ContainsFunc(c.Trail, func(o CapacityProbe) bool { return o.Load == p.Load && !o.Excluded && o.Requests > 0 })
		}
	}
	if slices.ContainsFunc(c.Trail, func(p CapacityProbe) bool { return p.Point == point && !p.Cut }) {
		return false
	}
	return claims || slices.ContainsFunc(c.Trail, func(o CapacityProbe) bool { return !o.Excluded && o.Requests > 0 })
}

// Asked is the load that was asked about, nil where one was searched for: a search begins with a
// light load, or goes on with another.
func (c *Capacity) Asked() *float64 {
	searched := func(p CapacityProbe) bool { return p.Stage == StageLight }
	if c.Continued != nil || len(c.Trail) == 0 || slices.ContainsFunc(c.Trail, searched) {
		return nil
	}
	return &c.Trail[0].Load
}

// AskedMet reports whether the load that was asked about meets the SLO, Undecided where that is not
// known. An upper bound that is that very load leaves it open.
func (c *Capacity) AskedMet() Met {
	asked, v := c.Asked(), c.Verified
	switch {
	case asked == nil:
		return Undecided
	case c.Floor != nil, v != nil && v.Refuted, c.Bracket != nil && c.Bracket[1] != nil && *c.Bracket[1] < *asked:
		return No
	case v != nil && v.Passed:
		return Yes
	}
	return Undecided
}

// RestsOn says that what the search found rests on a point.
func (c *Capacity) RestsOn(point int) bool {
	return c != nil && slices.ContainsFunc(c.Trail, func(p CapacityProbe) bool { return p.Point == point && p.Carries })
}

// CapacityProbe is one point of the search.
type CapacityProbe struct {
	Point      int             `json:"point"` // index in the run, −1 for one that is not there
	Stage      string          `json:"stage"`
	Load       float64         `json:"load"`
	Requests   int             `json:"requests"`
	Violations []int           `json:"violations"`    // of each limit
	Due        []int           `json:"due,omitempty"` // requests that each limit is about, where they are not all
	Stability  stats.Stability `json:"stability"`
	Excluded   bool            `json:"excluded,omitempty"` // the point was INVALID: nothing rests on it
	Cut        bool            `json:"cut,omitempty"`      // it was interrupted: the figures here are of its requests that had time to end
	Carries    bool            `json:"carries,omitempty"`  // what the search found rests on it
	Counted    bool            `json:"counted,omitempty"`  // of a simulated target: its violations were counted and nothing was recorded
	Launch     int             `json:"launch,omitempty"`   // which of the starts of the server that a search went on over, from 0
	Earlier    bool            `json:"earlier,omitempty"`  // of the run that this one went on with
	Seen       *Counts         `json:"seen,omitempty"`     // what a later search needs of it, where its violations were counted
}

// Counts holds what a search also needs to know of a window to continue from it.
type Counts struct {
	Blocks      [][]int `json:"blocks"` // violations of each limit in equal consecutive blocks
	Errors      int     `json:"errors"`
	ResidenceMS float64 `json:"residence_ms"`      // mean, 0 where it is not known
	Cluster     float64 `json:"cluster,omitempty"` // requests of the session that one of them is of, where they follow one another
}

// Continued describes the runs that a search continued.
type Continued struct {
	Run      string  `json:"run"`      // directory, as it was named
	Launches int     `json:"launches"` // starts of the server that were measured, this one included
	Restart  bool    `json:"restart"`  // this search measured another start of it
	KnownBy  string  `json:"known_by"` // how that is known, or why it is taken to be so
	Requests int     `json:"requests"` // that earlier searches measured
	Seconds  float64 `json:"seconds"`
}
