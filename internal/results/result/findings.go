package result

import "pitot/internal/results/metric"

// FindingsVersion is that of the types of what limits a run. Findings of a later version
// are worked out again, not read.
const FindingsVersion = 2

// Findings say what limits a run, as it was worked out from its records: by rules that
// other versions of the program may have other ones of.
type Findings struct {
	Version    int             `json:"version"`
	By         string          `json:"by"`                   // version of the program whose rules they are
	Deployment string          `json:"deployment,omitempty"` // MODEL@GPU whose twins were asked, "" for none
	Brief      bool            `json:"brief"`                // few twins were asked, about few requests of the loads that do not meet the objective
	Points     []PointFindings `json:"points"`
	OverLoad   []Reign         `json:"over_load,omitempty"` // of several loads: what limits from which on
	Notes      []string        `json:"notes,omitempty"`
}

// PointFindings are those of one load.
type PointFindings struct {
	Point     int         `json:"point"` // its index in points
	Diagnoses []Diagnosis `json:"diagnoses"`
	WhyNone   string      `json:"why_none,omitempty"`
}

// Diagnosis names the limiting factor of one statistic of a metric.
type Diagnosis struct {
	Metric  metric.Name `json:"metric"`
	Of      string      `json:"of"` // "mean", "p50", "p90", "p95", "p99"
	ValueMS float64     `json:"value_ms"`
	AtTwice float64     `json:"at_twice_the_load,omitempty"` // factor on the statistic that twins expect of twice the load
	Parts   []Part      `json:"parts,omitempty"`             // of the mean time that the statistic is of
	Primary Finding     `json:"primary"`
	Also    []Finding   `json:"also,omitempty"` // others that bring at least half as much
}

// Finding is one cause with what speaks for it.
type Finding struct {
	Cause      string     `json:"cause"` // "not known" for none
	Claim      string     `json:"claim"`
	Confidence string     `json:"confidence,omitempty"` // "sure", "likely", "possible"; none of what is not known
	Gain       float64    `json:"gain"`                 // share of the statistic that would go if the cause were relieved
	Evidence   []Evidence `json:"evidence"`
	Excluded   []Excluded `json:"excluded,omitempty"`
	Untested   []Untested `json:"not_tested,omitempty"`
	Confirm    string     `json:"confirm"`
	Try        *Trial     `json:"try,omitempty"`
	Alike      bool       `json:"alike,omitempty"` // of one beside the first: it brings as much within chance
}

// Evidence is a number and where it was read.
type Evidence struct {
	Signal string  `json:"signal"`
	Value  float64 `json:"value"`
	Unit   string  `json:"unit"`
	From   string  `json:"from"`
}

// Excluded is a cause that is ruled out: a test that would have shown it bounds its share.
type Excluded struct {
	Cause    string     `json:"cause"`
	AtMost   float64    `json:"at_most,omitempty"` // share of the statistic
	Evidence []Evidence `json:"evidence,omitempty"`
	Because  string     `json:"because,omitempty"` // of version 1 alone
}

// Untested is a cause that is neither found nor ruled out.
type Untested struct {
	Cause  string   `json:"cause"`
	Lacks  []string `json:"lacks,omitempty"`   // signals that a test needs and that are not known
	AtMost float64  `json:"at_most,omitempty"` // else the share that tests leave to it
}

// Part is a part of the mean time that a statistic is of.
type Part struct {
	Name  string  `json:"part"`
	MS    float64 `json:"ms"`
	Share float64 `json:"share"`
}

// Trial is a setting to change, and by what share twins expect the statistic to fall.
type Trial struct {
	Knob           string  `json:"knob"`
	From           string  `json:"from,omitempty"`
	To             string  `json:"to,omitempty"`
	ExpectedGain   float64 `json:"expected_gain"` // 0: no twin was asked
	ChangesAnswers bool    `json:"changes_answers,omitempty"`
}

// Reign is a stretch of loads at which a statistic has one cause.
type Reign struct {
	Metric metric.Name `json:"metric"`
	Of     string      `json:"of"`
	Cause  string      `json:"cause"`
	From   string      `json:"from"` // "4.00 req/s"
	To     string      `json:"to"`
}
