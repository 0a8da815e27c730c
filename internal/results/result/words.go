package result

// Words of the contract that are one of a few.

// Verdict says whether the measurement can be trusted.
type Verdict string

const (
	Valid          Verdict = "VALID"
	ValidWithFlags Verdict = "VALID WITH FLAGS"
	Invalid        Verdict = "INVALID"
)

// Met says how an objective or one of its limits came out.
type Met string

const (
	Yes       Met = "yes"
	No        Met = "no"
	Undecided Met = "undecided" // too few samples for the claim, or none that are certain
)

// Outcome is the verdict on the server, not on the instrument.
type Outcome string

const (
	OK       Outcome = "ok"
	Degraded Outcome = "degraded" // 1 % of the requests or more were not answered
	Unstable Outcome = "unstable" // its queue grew for as long as the load lasted
	Failing  Outcome = "failing"  // half of the requests or more were not answered
)

// Status is the result of a check.
type Status string

const (
	Pass Status = "pass"
	Flag Status = "flag"
	Fail Status = "fail" // of the instrument itself: the measurement is invalid
)
