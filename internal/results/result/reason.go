package result

import (
	"bytes"
	"encoding/json"

	"pitot/internal/stats"
)

// Reason is why a value is missing, withheld or undecided, or has no interval, or what to do about
// a check: a code, and the figures of its sentence. Package report makes the sentence. The zero
// Reason is none.
type Reason struct {
	Code ReasonCode `json:"code"`

	N      float64 `json:"n,omitempty"`      // how many there were
	Of     float64 `json:"of,omitempty"`     // of how many
	Needed float64 `json:"needed,omitempty"` // how many it takes
	Firm   float64 `json:"firm,omitempty"`   // from how many on a value is firm
	Share  float64 `json:"share,omitempty"`
	Low    float64 `json:"low,omitempty"`  // at least, in the unit of the code
	High   float64 `json:"high,omitempty"` // at most; 0 where it is not bounded
	// Seconds is a time, in seconds.
	Seconds      float64 `json:"seconds,omitempty"`
	RequestsPerS float64 `json:"requests_per_s,omitempty"` // that rate limits allow in the long run
	TokensPerS   float64 `json:"tokens_per_s,omitempty"`
	AloneN       float64 `json:"alone_n,omitempty"` // of AloneOf at one user
	AloneOf      float64 `json:"alone_of,omitempty"`
	Class        string  `json:"class,omitempty"` // of the requests that it is about
	Quote        string  `json:"quote,omitempty"` // words of a server or a user
	// Longer is the window that would decide.
	Longer Longer `json:"longer,omitzero"`
}

// Longer is the length of a window: of seconds, or of requests where the window counts them.
type Longer struct {
	Seconds  float64 `json:"seconds,omitempty"`
	Requests float64 `json:"requests,omitempty"`
}

// IsNone reports whether there is no reason.
func (r Reason) IsNone() bool { return r.Code == "" }

// Or returns r, or other where r is none.
func (r Reason) Or(other Reason) Reason {
	if r.IsNone() {
		return other
	}
	return r
}

// ReasonCode names a reason.
type ReasonCode string

// Reasons for and against a steady state.
const (
	WindowOpen        ReasonCode = "window_not_ended"
	WindowEmpty       ReasonCode = "window_empty"
	WindowTooShort    ReasonCode = "window_too_short" // of Seconds
	ServerWentAway    ReasonCode = "server_went_away"
	ClosedLoop        ReasonCode = "closed_loop"
	RateVaries        ReasonCode = "rate_varies"
	NothingAnswered   ReasonCode = "nothing_answered"
	QueueDrained      ReasonCode = "queue_drained"      // N requests on top of Of arrivals
	RiseMayBeChance   ReasonCode = "rise_may_be_chance" // by N of Of arrivals
	FewResidences     ReasonCode = "few_residence_times"
	FewSessionTimes   ReasonCode = "few_conversation_lengths"
	FewRequests       ReasonCode = "few_requests"
	FewBursts         ReasonCode = "few_bursts"
	LongAnswers       ReasonCode = "long_answers" // that take up to Seconds still fill the server
	QueueGrew         ReasonCode = "queue_grew"   // by Share of the arrivals; 0 where it is not known
	NotSettled        ReasonCode = "not_settled"
	LoadEndedEarly    ReasonCode = "load_ended_early"
	RunInterrupted    ReasonCode = "interrupted" // before its window had ended
	StoppedFirst      ReasonCode = "run_stopped_first"
	BudgetUsed        ReasonCode = "budget_used" // a window of Seconds is all of it
	RecordsUnreadable ReasonCode = "records_unreadable"
)

// Reasons of a throughput that is missing or a lower bound.
const (
	OutputNotCounted  ReasonCode = "output_tokens_not_counted"
	InputNotCounted   ReasonCode = "input_tokens_not_counted"
	FailedNotCounted  ReasonCode = "output_of_failed_not_counted"
	CountedByClient   ReasonCode = "counted_by_tokenizer"
	BoundWentAway     ReasonCode = "lower_bound_server_went_away"
	BoundEndedEarly   ReasonCode = "lower_bound_load_ended_early"
	ValueUnknown      ReasonCode = "not_known"
	NoSLO             ReasonCode = "no_slo"
	NoPrice           ReasonCode = "no_price"
	NoneAnswered      ReasonCode = "none_answered"
	NothingDue        ReasonCode = "nothing_due"
	SearchOnly        ReasonCode = "of_a_search_alone"
	NotMeasured       ReasonCode = "not_measured"
	ServerDidNotSay   ReasonCode = "not_reported_by_server"
	NotInBaseline     ReasonCode = "not_in_baseline"
	PowerUnknown      ReasonCode = "power_not_reported"
	EnergyUnknown     ReasonCode = "energy_not_reported"
	EnergyInexact     ReasonCode = "energy_inexact"    // to ± Share
	PowerRarelyRead   ReasonCode = "power_rarely_read" // N times within the window
	OtherGPUCount     ReasonCode = "other_gpu_count"   // N report their power, and the target has Of
	OutputTokensBlind ReasonCode = "output_tokens_not_known"
)

// Reasons of a distribution's value or interval that is missing.
const (
	OneLoad            ReasonCode = "one_load"
	SlowQueue          ReasonCode = "slow_queue" // the window is N times as long as it remembers, and Needed are needed
	GapsDepend         ReasonCode = "gaps_depend"
	FewSamples         ReasonCode = "few_samples"
	FewShown           ReasonCode = "few_values"                     // N, shown from Needed on and firm from Firm
	FewIndependent     ReasonCode = "few_independent_samples"        // as much as N
	SomeCensored       ReasonCode = "some_not_followed_to_their_end" // N of Of; none where it is not said
	EndedByLook        ReasonCode = "ended_by_a_look"
	SeveralAnswers     ReasonCode = "several_answers"
	NoneEndedWell      ReasonCode = "none_ended_well_or_was_cut"
	TokensUncounted    ReasonCode = "tokens_not_counted_by_server"
	OneArrival         ReasonCode = "no_answer_in_two_arrivals"
	OneToken           ReasonCode = "no_answer_of_several_tokens"
	NoStamps           ReasonCode = "no_stamps"
	ChunkTokensUnknown ReasonCode = "tokens_of_chunks_not_known" // N of Of streams
	RequestsDiffer     ReasonCode = "requests_differ_by_time"    // their lengths do
	FewInBlocks        ReasonCode = "few_requests_in_blocks"
	ValueIsZero        ReasonCode = "value_is_zero"
)

// Reasons of a curve that has no knee, or no load at which its SLO is reached.
const (
	FewLoads        ReasonCode = "few_loads"        // in balance; it takes Needed
	NoBend          ReasonCode = "no_bend"          //
	KneesDiffer     ReasonCode = "knees_differ"     // Low by power and High by Kneedle
	MetAboveMissed  ReasonCode = "met_above_missed" // met at Low, missed at High, which is no more
	NoneMissed      ReasonCode = "no_load_missed"
	NoneMissedYet   ReasonCode = "no_load_missed_yet" // by a run that can be resumed
	NoneMet         ReasonCode = "no_load_met"
	NoneSurelyAbove ReasonCode = "no_load_surely_above" // Low may be
	NoneSurelyBelow ReasonCode = "no_load_surely_below" // that takes Needed requests
	LoadsContradict ReasonCode = "loads_contradict"     // those from Low to High
)

// Reasons of an objective's verdict.
const (
	CutAtInterrupt     ReasonCode = "cut_at_interrupt" // N of Of requests
	CutAtEither        ReasonCode = "cut_at_interrupt_or_lost_worker"
	CutAtLostWorker    ReasonCode = "cut_at_lost_worker"
	ClassUnknown       ReasonCode = "class_not_known" // of N requests
	NotStreaming       ReasonCode = "not_streaming"
	WithinJoint        ReasonCode = "within_joint_limits" // N of Of requests
	AtMostWithinJoint  ReasonCode = "at_most_within_joint_limits"
	FewForClaim        ReasonCode = "few_requests_for_claim" // N; it takes Needed
	FewGapsForClaim    ReasonCode = "few_gaps_for_claim"
	LostCountAsOver    ReasonCode = "lost_count_as_over" // N of Of requests
	TokensMerged       ReasonCode = "tokens_merged"
	PercentileCensored ReasonCode = "percentile_not_followed_to_its_end"
	MergedReadsLeave   ReasonCode = "merged_reads_leave_open" // between Low and High ms
	UnknownTokensLeave ReasonCode = "unknown_tokens_leave_open"
	NoAnswerTells      ReasonCode = "no_answer_tells"
	WrongAtOneUser     ReasonCode = "wrong_at_one_user"
	WrongAnswers       ReasonCode = "wrong_answers"
	WrongUndecided     ReasonCode = "wrong_answers_undecided"
)

// Why a search has no estimate of a capacity, or no load that it verified. Low is a load.
const (
	SearchInterrupted     ReasonCode = "search_interrupted"
	SearchStopped         ReasonCode = "search_stopped" // by Quote
	SearchKilled          ReasonCode = "search_killed"
	TargetFailed          ReasonCode = "target_failed"           // at Low
	WindowsInvalid        ReasonCode = "windows_invalid"         // N of Of from Low on
	LooksInvalid          ReasonCode = "looks_invalid"           // at Low
	BudgetTooSmall        ReasonCode = "budget_too_small"        // for an estimate
	SimulatedTooLittle    ReasonCode = "simulated_too_little"    // without a budget, for an estimate
	BudgetInBracket       ReasonCode = "budget_ended_in_bracket" // a bound takes Needed requests, at Low in Seconds
	BudgetBeforeLook      ReasonCode = "budget_ended_before_look"
	MetAtEveryLoad        ReasonCode = "met_at_every_load"
	MetAtMostLoad         ReasonCode = "met_at_highest_load_allowed" // Low
	MissedAtLightest      ReasonCode = "missed_at_lightest_load"     // Low, 0 where the budget would pay a lighter one
	MissedAtAnyLoad       ReasonCode = "missed_at_any_load"          // by N of Of requests at up to Low
	QueueBeforeLimit      ReasonCode = "queue_grows_before_limit"    // from Low on
	CarriedUnknown        ReasonCode = "carried_rate_not_known"      //
	LongWindowMissed      ReasonCode = "long_window_missed"          // and short ones did not
	NoCurveOfLoad         ReasonCode = "violations_follow_no_curve"  //
	NoLoadVerified        ReasonCode = "no_load_verified"            //
	LooksFailed           ReasonCode = "looks_failed"                // N of them
	LookInvalid           ReasonCode = "look_invalid"                // at Low
	LookQueueGrew         ReasonCode = "look_queue_grew"             // at Low
	LookMissed            ReasonCode = "look_missed"                 // at Low
	LookBursty            ReasonCode = "look_has_few_bursts"         // N requests at Low, it takes Needed, of which as many violate; budget of Seconds
	LookWithoutBursts     ReasonCode = "look_without_violations"     // likewise, of which none does
	LookUnanswered        ReasonCode = "look_unanswered"             // at Low
	LookUnpaid            ReasonCode = "budget_too_small_for_look"   // it takes Needed requests
	LookInterrupted       ReasonCode = "look_interrupted"            // of N requests at Low, it takes Needed
	ArrivalsTurnSlowly    ReasonCode = "arrivals_turn_slowly"        // in Seconds; N windows had Needed such cycles; a bound takes Low seconds, an estimate High
	CurveUndetermined                = ReasonCode(stats.NoCurve)
	CountsOutOfRange                 = ReasonCode(stats.CountOutOfRange)
	FewerThanThreeLoads              = ReasonCode(stats.FewerLoads)
	NoViolationFitted                = ReasonCode(stats.NoViolation)
	AllViolateFitted                 = ReasonCode(stats.AllViolate)
	ViolationsNotRising              = ReasonCode(stats.NotRising)
	ViolationsHardlyRise             = ReasonCode(stats.HardlyRising)
	ShareOutOfRange                  = ReasonCode(stats.ShareOutOfRange)
	FloorMayReachLimit               = ReasonCode(stats.FloorAtLimit)
	EstimateOutsideLoads             = ReasonCode(stats.OutsideLoads)
	IntervalTooWide                  = ReasonCode(stats.TooWide)
	IntervalWithoutEnd               = ReasonCode(stats.NoUpperEnd)
	FewBurstsOfViolations            = ReasonCode(stats.TooFewBursts)
)

// Why a sitting or a server of an experiment ended.
const (
	SittingDone        ReasonCode = "sitting_done"
	SittingInterrupted ReasonCode = "sitting_interrupted"
	SittingBudget      ReasonCode = "sitting_budget_spent"
	SittingFailed      ReasonCode = "sitting_failed" // with Quote
	SittingWaits       ReasonCode = "sitting_waits_for_launch_by_hand"
)

// Why an experiment is over, or that it is not: N of Of launches of each configuration are
// measured.
const (
	ExperimentAccepted ReasonCode = "experiment_accepted" // another carries at most Share more, at a confidence of Low
	ExperimentNoneLeft ReasonCode = "experiment_none_left"
	ExperimentMeasured ReasonCode = "experiment_measured"
	ExperimentNotOver  ReasonCode = "experiment_not_over"
)

// Why a comparison has no verdict on a metric, or no interval.
const (
	OneLaunchEach    ReasonCode = "one_launch_each"
	FewLaunches      ReasonCode = "few_launches" // N against Of; it takes Needed
	RealButSmall     ReasonCode = "real_and_smaller_than_matters"
	AlikeFewLaunches ReasonCode = "same_in_few_launches"
	AlikeFewRequests ReasonCode = "same_in_few_requests"
	LaunchesAlike    ReasonCode = "launches_do_not_differ"
	OtherInstrument  ReasonCode = "other_instrument"
	ErrorUnknown     ReasonCode = "error_of_other_instrument_unknown"
	ValuesAlike      ReasonCode = "every_launch_has_the_same_value"
	OneLaunchOf      ReasonCode = "one_launch_of_side" // Quote
	RunsHaveNone     ReasonCode = "runs_have_no_interval"
	OutOfRange       ReasonCode = "out_of_range"
	FewPairs         ReasonCode = "few_pairs"
)

// Indent returns v as JSON that is indented, with each [Reason] on one line, as every metric may
// have several.
func Indent(v any) ([]byte, error) {
	data, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return nil, err
	}
	out := make([]byte, 0, len(data)+1)
	var end []byte // the line that closes the reason, as far as it is known before a comma
	for line := range bytes.Lines(append(data, '\n')) {
		words := bytes.TrimLeft(line, " ")
		switch {
		case end != nil:
			out = append(out, ' ')
			if bytes.HasPrefix(line, end) {
				end = nil
				out = append(out, words...)
			} else {
				out = append(out, bytes.TrimRight(words, "\n")...)
			}
		case bytes.HasPrefix(words, []byte(`"code": `)) && bytes.HasSuffix(out, []byte("{\n")):
			out[len(out)-1] = ' '
			out = append(out, bytes.TrimRight(words, "\n")...)
			end = append(bytes.Repeat([]byte(" "), len(line)-len(words)-2), '}')
		default:
			out = append(out, line...)
		}
	}
	return out, nil
}
