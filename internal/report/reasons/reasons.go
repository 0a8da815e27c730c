// Package reasons makes sentences of typed reasons: why a value is missing, withheld, undecided or
// without an interval, and what to do about a check. Rewording one changes this package and golden
// files alone.
package reasons

import (
	"fmt"
	"math"
	"strings"
	"time"

	"pitot/internal/data/result"
	"pitot/internal/say"
)

// Text returns the words of a reason, "" of none.
func Text(r result.Reason) string {
	if r.IsNone() {
		return ""
	}
	text, known := codeSentence(r)
	if !known { // a reason of a later program
		text = strings.ReplaceAll(string(r.Code), "_", " ")
	}
	if r.Class != "" {
		text = r.Class + ": " + text
	}
	return text
}

// codeSentence returns the sentence of a code, and whether there is one.
func codeSentence(r result.Reason) (text string, known bool) {
	count := func(x float64) string { return fmt.Sprintf("%.0f", x) }
	needs := func(what string) string {
		return fmt.Sprintf("%s %s; %s needed: %s", count(r.N), what, count(r.Needed), LongerFlag(r.Longer))
	}
	if text, ok := plain[r.Code]; ok {
		return text, true
	}
	if text, ok := advice[r.Code]; ok {
		return text, true
	}
	switch r.Code {
	case result.WindowTooShort:
		return fmt.Sprintf("the window of %.3g ms is too short for a rate", 1e3*r.Seconds), true
	case result.QueueDrained:
		return fmt.Sprintf("a queue that had formed before drained into the window, %.3g requests on top of %s arrivals: %s", r.N, count(r.Of), LongerFlag(r.Longer)), true
	case result.RiseMayBeChance:
		return fmt.Sprintf("a rise by %.3g of %s arrivals may be chance: %s", r.N, count(r.Of), LongerFlag(r.Longer)), true
	case result.LongAnswers:
		return fmt.Sprintf("answers that take up to %.3g s still fill the server: %s", r.Seconds, LongerFlag(r.Longer)), true
	case result.QueueGrew:
		if r.Share == 0 {
			return "the queue grew", true
		}
		return fmt.Sprintf("the queue grew: %.2g %% of the arrivals were left over", 100*r.Share), true
	case result.FewResidences:
		if r.N == 1 {
			return needs("residence time"), true
		}
		return needs("residence times"), true
	case result.SlowQueue:
		return "the queue changes too slowly for this window: " + needs("times its memory"), true
	case result.FewSessionTimes:
		return "turns of a conversation are alike: " + needs("times a conversation's length"), true
	case result.FewRequests:
		return needs("requests"), true
	case result.FewBursts:
		if r.N == 1 {
			return "about " + needs("burst"), true
		}
		return "about " + needs("bursts"), true
	case result.FewShown:
		text := fmt.Sprintf("n = %s, shown from %s on", count(r.N), count(r.Needed))
		if r.Firm > 0 {
			text += " and firm from " + count(r.Firm)
		}
		return text, true
	case result.FewIndependent:
		return fmt.Sprintf("its samples say as much as %s independent ones: too few", count(r.N)), true
	case result.SomeCensored:
		if r.N == 0 {
			return "some were not followed to their end", true
		}
		return fmt.Sprintf("%s of %s were not followed to their end", count(r.N), count(r.Of)), true
	case result.ChunkTokensUnknown:
		return fmt.Sprintf("the tokens in a chunk are not known for %s of %s streams: see icl and stall", count(r.N), count(r.Of)), true
	case result.FewLoads:
		return fmt.Sprintf("fewer than %s loads in balance", count(r.Needed)), true
	case result.KneesDiffer:
		return fmt.Sprintf("the methods differ: %s by power, %s by Kneedle", loadText(r.Low), loadText(r.High)), true
	case result.MetAboveMissed:
		return fmt.Sprintf("at %s the SLO was clearly met and at %s, which is no more, clearly not: more load does not always violate it more", loadText(r.Low), loadText(r.High)), true
	case result.NoneSurelyAbove:
		return fmt.Sprintf("no load is surely above the capacity: at %s there are too few violations, or too few bursts of them, to be sure; measure it longer, or higher loads", loadText(r.Low)), true
	case result.NoneSurelyBelow:
		return fmt.Sprintf("no load is surely below the capacity: that takes %s at a load that hardly violates it, or a lighter one", say.Plural(int(r.Needed), "request")), true
	case result.LoadsContradict:
		return fmt.Sprintf("the loads between %s and %s contradict each other: measure longer windows", loadText(r.Low), loadText(r.High)), true
	case result.BudgetUsed:
		return fmt.Sprintf("a window of %s is all of --max-duration", roundToMillisecond(r.Seconds)), true
	case result.CutAtInterrupt, result.CutAtLostWorker, result.CutAtEither:
		return fmt.Sprintf("%s of %s requests were under way when %s", count(r.N), count(r.Of), stops[r.Code]), true
	case result.ClassUnknown:
		return fmt.Sprintf("of %s requests it is not known which class they are of", count(r.N)), true
	case result.WithinJoint:
		return fmt.Sprintf("%s of %s requests ended well within every joint limit", count(r.N), count(r.Of)), true
	case result.AtMostWithinJoint:
		return fmt.Sprintf("at most %s of %s requests ended well within every joint limit", count(r.N), count(r.Of)), true
	case result.FewForClaim:
		return fmt.Sprintf("%s requests are too few for the claim, it needs %s", count(r.N), count(r.Needed)), true
	case result.FewGapsForClaim:
		return fmt.Sprintf("%s gaps are too few for the claim, it needs %s", count(r.N), count(r.Needed)), true
	case result.LostCountAsOver:
		return fmt.Sprintf("%s of %s requests count as over because they failed, were cut or were not sent", count(r.N), count(r.Of)), true
	case result.MergedReadsLeave:
		return "merged reads leave it " + betweenText(r), true
	case result.UnknownTokensLeave:
		return "streams whose tokens are not known leave it " + betweenText(r), true
	case result.WrongAnswers:
		text := fmt.Sprintf("%s of %s, at least %s", count(r.N), say.Plural(int(r.Of), "answer"), say.PercentNear(r.Low, r.Share))
		if r.AloneOf > 0 {
			text += fmt.Sprintf("; and %s of %s at one user: it is not the load", count(r.AloneN), count(r.AloneOf))
		}
		return text, true
	case result.WrongUndecided:
		text := fmt.Sprintf("%s of %s: anything from %s to %s", count(r.N), say.Plural(int(r.Of), "answer"), say.PercentNear(r.Low, r.Share), say.PercentNear(r.High, r.Share))
		switch {
		case r.Needed == 0:
		case r.N == 0:
			text += fmt.Sprintf("; %s without a wrong one would tell", count(r.Needed))
		default:
			text += fmt.Sprintf("; about %s would tell at this share", say.Count(int64(r.Needed)))
		}
		return text, true
	case result.OtherGPUCount:
		return fmt.Sprintf("%s GPUs tell of their power, and the target has %s", count(r.N), count(r.Of)), true
	case result.EnergyInexact:
		return fmt.Sprintf("the energy is known to ±%.0f %% only: it was told too rarely", 100*r.Share), true
	case result.FewLaunches:
		if r.N == r.Of {
			return fmt.Sprintf("%s launches a side, verdicts from %s on", count(r.N), count(r.Needed)), true
		}
		return fmt.Sprintf("%s against %s launches, verdicts from %s a side on", count(r.N), count(r.Of), count(r.Needed)), true
	case result.OneLaunchOf:
		return "one launch of " + r.Quote, true
	case result.SittingFailed:
		return "failed: " + r.Quote, true
	case result.ExperimentAccepted:
		return fmt.Sprintf("no other configuration can carry %s more (%s confidence); %s", say.Percent(r.Share), say.Percent(r.Low), launchesText(r)), true
	case result.ExperimentNoneLeft:
		return "every configuration was given up; " + launchesText(r), true
	case result.ExperimentNotOver:
		return "it is not over; " + launchesText(r), true
	case result.RouteAnswersAs:
		return r.Quote + " answers as its servers do", true
	case result.IDsCountDifferent:
		return fmt.Sprintf("the server counts %s tokens for each of them, and %s besides", say.Exact(r.N), say.Exact(r.Of)), true
	case result.PromptFailed:
		return fmt.Sprintf("a prompt of %s words failed: %s", count(r.N), r.Quote), true
	case result.CountNotByPrompt:
		return fmt.Sprintf("the server's count of prompt tokens does not follow the prompt: %s for %s words, %s for %s", count(r.Low), count(r.N), count(r.High), count(r.Of)), true
	case result.WordsCountMore:
		return fmt.Sprintf("the tokenizer makes %s tokens of %s of its words", count(r.N), count(r.Of)), true
	case result.NotModelsTokenizer:
		return fmt.Sprintf("the tokenizer is not that of the served model: of prompts of %s and %s of its tokens the server counts %s and %s", count(r.N), count(r.Of), count(r.Low), count(r.High)), true
	case result.AdviseLonger:
		if r.Longer == (result.Longer{}) {
			return "Measure longer with --duration.", true
		}
		return "Measure longer: " + LongerFlag(r.Longer) + ".", true
	case result.AdviseLessThanLimits:
		return "The server's limits shaped this load: its arrivals are not those that were planned. Ask for less than they allow" + allowedText(r) + ".", true
	case result.AdviseWaitedForLimits:
		return "Requests waited for the server's rate limits (--respect-limits): ask for less than they allow" + allowedText(r) + ".", true
	case result.AdviseRefusedByLimits:
		text := "The server refused " + say.Plural(int(r.N), "request") + " for its rate limits (429)"
		if r.Seconds > 0 {
			text += ", with a Retry-After of up to " + say.Seconds(r.Seconds)
		}
		return text + ": ask for less than they allow" + allowedText(r) + ".", true
	case result.SearchStopped:
		return "the search was stopped: " + r.Quote, true
	case result.TargetFailed:
		return "the target failed at a load of " + loadText(r.Low), true
	case result.WindowsInvalid:
		share := "most"
		if r.N == r.Of {
			share = "all"
		}
		return fmt.Sprintf("%s windows from %s on were INVALID: they say nothing of the target", share, loadText(r.Low)), true
	case result.LooksInvalid:
		return fmt.Sprintf("all windows at %s, where a bound was to be verified, were INVALID", loadText(r.Low)), true
	case result.LookInvalid:
		return fmt.Sprintf("undecided: all windows at %s were INVALID", loadText(r.Low)), true
	case result.BudgetInBracket:
		text := fmt.Sprintf("the budget ended while the limit was being bracketed: a bound takes %s at one load", say.Plural(int(r.Needed), "request"))
		if r.Seconds > 0 {
			text += fmt.Sprintf(", at %s about %s", loadText(r.Low), say.RoundedTime(r.Seconds))
		}
		return text, true
	case result.MetAtMostLoad:
		return fmt.Sprintf("the limits hold at the highest load allowed, %s: the capacity is not below it", loadText(r.Low)), true
	case result.MissedAtLightest:
		if r.Low == 0 {
			return "the limits do not hold even at the lightest load", true
		}
		return fmt.Sprintf("the limits do not hold at %s, the lightest load that the budget pays", loadText(r.Low)), true
	case result.MissedAtAnyLoad:
		return fmt.Sprintf("the limits are violated too often however low the load: by %.3g %% of %s at up to %s",
			100*r.N/r.Of, say.Plural(int(r.Of), "request"), loadText(r.Low)), true
	case result.QueueBeforeLimit:
		return fmt.Sprintf("the queue grows from about %s on, before the limits are reached: beyond, they hold only for as long as the load does not last", loadText(r.Low)), true
	case result.LooksFailed:
		return fmt.Sprintf("%s looks at the lower limit failed", count(r.N)), true
	case result.LookQueueGrew:
		return fmt.Sprintf("undecided: the queue grows at %s, so that the limits hold only for as long as the load does not last", loadText(r.Low)), true
	case result.LookMissed:
		return "the limits do not hold at " + loadText(r.Low), true
	case result.LookWithoutBursts:
		return fmt.Sprintf("undecided: none of %s violated at %s, but they may come in bursts: it takes about %s of which none does",
			say.Plural(int(r.N), "request"), loadText(r.Low), say.Count(int(r.Needed))), true
	case result.LookBursty:
		text := fmt.Sprintf("undecided: violations come in bursts, and %s at %s are too few to tell", say.Plural(int(r.N), "request"), loadText(r.Low))
		if r.Needed > 0 {
			text += fmt.Sprintf(": it takes about %s of which as many violate", say.Count(int(r.Needed)))
		}
		return text, true
	case result.LookUnanswered:
		return fmt.Sprintf("no request that came due in the window at %s was answered before the budget ended", loadText(r.Low)), true
	case result.LookUnpaid:
		return fmt.Sprintf("the budget is too small to verify a load: it takes %s at least", say.Plural(int(r.Needed), "request")), true
	case result.LookInterrupted:
		return fmt.Sprintf("interrupted when %s at %s had ended: it takes %s at least to tell", say.Plural(int(r.N), "request"), loadText(r.Low), say.Count(int(r.Needed))), true
	case result.ArrivalsTurnSlowly:
		short := "no window had"
		if r.N == 0 {
			short = "the budget has no time for"
		}
		return fmt.Sprintf("the arrivals take turns about every %s, and %s the %s such cycles that a bound rests on: it takes about %s in all, an estimate %s",
			say.RoundedTime(r.Seconds), short, count(r.Needed), say.RoundedTime(r.Low), say.RoundedTime(r.High)), true
	case result.PowerRarelyRead:
		return fmt.Sprintf("power was told %s times within the window: its error is not known", count(r.N)), true
	}
	return "", false
}

// loadText returns a load with the digits that tell it from another.
func loadText(x float64) string { return say.Significant(x, 4) }

// allowedText returns what rate limits let through in the long run, as far as it is known.
func allowedText(r result.Reason) string {
	var parts []string
	if r.RequestsPerS > 0 {
		parts = append(parts, "at most about "+say.Quantity(r.RequestsPerS)+" requests a second")
	}
	if r.TokensPerS > 0 {
		parts = append(parts, "at most about "+say.Quantity(r.TokensPerS)+" tokens a second")
	}
	if len(parts) == 0 {
		return ""
	}
	return ", " + strings.Join(parts, " and ")
}

func launchesText(r result.Reason) string {
	return fmt.Sprintf("%.0f of %.0f launches of each configuration are measured", r.N, r.Of)
}

func betweenText(r result.Reason) string {
	if r.High == 0 {
		return fmt.Sprintf("anywhere above %.3g ms", r.Low)
	}
	return fmt.Sprintf("between %.3g and %.3g ms", r.Low, r.High)
}

var stops = map[result.ReasonCode]string{
	result.CutAtInterrupt:  "the run was stopped",
	result.CutAtLostWorker: "their worker was lost",
	result.CutAtEither:     "the run was stopped or with a worker that was lost",
}

// plain are the sentences without figures.
var plain = map[result.ReasonCode]string{
	result.WindowOpen:        "the window has not ended",
	result.WindowEmpty:       "the window is empty",
	result.ServerWentAway:    "the server went away",
	result.ClosedLoop:        "a closed loop: its users bound what is in flight",
	result.RateVaries:        "the rate changes with time, as was asked: there is no steady state",
	result.NothingAnswered:   "nothing was answered in a window",
	result.NotSettled:        "the load had not settled",
	result.LoadEndedEarly:    "the load was ended early",
	result.RunInterrupted:    "it was interrupted before its window had ended",
	result.StoppedFirst:      "the run was stopped first",
	result.RecordsUnreadable: "the records cannot be read",

	result.OutputNotCounted:  "the output tokens of some answers were not counted",
	result.InputNotCounted:   "the input tokens of some requests were not counted",
	result.FailedNotCounted:  "a lower bound: output of requests that did not end well was not counted",
	result.CountedByClient:   "the server reported no usage: tokens are those that --tokenizer counts",
	result.BoundWentAway:     "a lower bound: the server went away",
	result.BoundEndedEarly:   "a lower bound: the load was ended early",
	result.ValueUnknown:      "not known",
	result.NoSLO:             "no SLO given",
	result.NoPrice:           "no price was given",
	result.NoneAnswered:      "no request was answered",
	result.NothingDue:        "nothing came due",
	result.SearchOnly:        "of a search alone",
	result.NotMeasured:       "not measured",
	result.ServerDidNotSay:   "the server did not tell",
	result.NotInBaseline:     "not kept by the pitot that saved this baseline",
	result.PowerUnknown:      "no power was told",
	result.EnergyUnknown:     "no energy was told",
	result.OutputTokensBlind: "the output tokens are not known",

	result.PromptsNotCounted: "the server does not report how many tokens a prompt has",
	result.IDsNotCounted:     "the server does not report how many tokens a prompt of token ids has",
	result.FewPlainWords:     "the tokenizer has too few plain words that are one token each",
	result.NoProbe:           "nothing was requested before the load",

	result.SittingDone:        "done",
	result.SittingInterrupted: "interrupted",
	result.SittingBudget:      "the budget was spent",
	result.SittingWaits:       "a launch is to be made by hand",
	result.ExperimentMeasured: "all launches that were planned are measured",

	result.OneLaunchEach:    "one launch each",
	result.RealButSmall:     "a real difference, and smaller than matters",
	result.AlikeFewLaunches: "no difference found: the same in every launch, of too few launches to test by",
	result.AlikeFewRequests: "no difference found: the same in every launch, of too few requests to test by",
	result.LaunchesAlike:    "no two launches of a side differ: are they launches?",
	result.OtherInstrument:  "measured by another instrument",
	result.ErrorUnknown:     "the error of another instrument is not known",
	result.ValuesAlike:      "every launch of a side has the same value",
	result.RunsHaveNone:     "the runs have none of their own",
	result.OutOfRange:       "it is out of all range",
	result.FewPairs:         "few pairs",

	result.SearchInterrupted:     "the search was interrupted",
	result.SearchKilled:          "the search was killed before its end: the same command with --resume goes on",
	result.BudgetTooSmall:        "the budget is too small for an estimate",
	result.SimulatedTooLittle:    "what a few seconds simulate is too little for an estimate",
	result.BudgetBeforeLook:      "the budget ended before a look at the lower limit passed",
	result.MetAtEveryLoad:        "the limits hold at every load tried",
	result.CarriedUnknown:        "the queue grows before a limit is violated, and what the server carries is not known",
	result.LongWindowMissed:      "the short windows violated no limit, and a longer one did",
	result.NoCurveOfLoad:         "violations follow no curve of the load",
	result.NoLoadVerified:        "no load near the limit was verified",
	result.CurveUndetermined:     "the shares determine no curve",
	result.CountsOutOfRange:      "a load or a count is out of range",
	result.FewerThanThreeLoads:   "fewer than three loads",
	result.NoViolationFitted:     "no violation at any load that is fitted",
	result.AllViolateFitted:      "every request violates at each load that is fitted",
	result.ViolationsNotRising:   "violations do not rise with the load",
	result.ViolationsHardlyRise:  "violations hardly rise with the load",
	result.ShareOutOfRange:       "no share of violations between 0 and 1 is asked for",
	result.FloorMayReachLimit:    "what violates at any load may be all that may violate",
	result.EstimateOutsideLoads:  "the estimate lies outside the loads measured",
	result.IntervalTooWide:       "the interval would reach over more than a factor of ten",
	result.IntervalWithoutEnd:    "the interval would have no upper end",
	result.FewBurstsOfViolations: "violations came in too few bursts",

	result.NoBend:        "the curve does not bend enough",
	result.NoneMissed:    "no load missed it: measure higher ones",
	result.NoneMissedYet: "no load missed it: --resume goes on to higher ones",
	result.NoneMet:       "no load met it: measure lighter ones",

	result.OneLoad:         "one run has too few of the bursts that make it",
	result.GapsDepend:      "gaps of one request depend on each other: TPOT has an interval",
	result.FewSamples:      "too few samples for an interval",
	result.EndedByLook:     "the window was ended by a look at it",
	result.ValueIsZero:     "it is 0",
	result.SeveralAnswers:  "requests have several answers: see tpot",
	result.NoneEndedWell:   "no request ended well or was cut",
	result.TokensUncounted: "the server did not count these tokens",
	result.OneArrival:      "no answer came in two arrivals or more",
	result.OneToken:        "no answer has more counted tokens than its first event",
	result.NoStamps:        "no request has the stamps",
	result.RequestsDiffer:  "the requests themselves were longer at some times than at others",
	result.FewInBlocks:     "there are too few requests in each block",

	result.NotStreaming:       "not streaming",
	result.TokensMerged:       "tokens came several at a time: limit icl or stall instead",
	result.PercentileCensored: "the percentile falls among streams that were not followed to their end",
	result.NoAnswerTells:      "no answer tells",
	result.WrongAtOneUser:     "no answer tells: they are wrong already at one user",
}

// SufficientBudgets returns the budgets that would give an estimate, "" where none is known.
// virtual says that their time is simulated.
func SufficientBudgets(list []result.BudgetFor, virtual bool) string {
	var parts []string
	for i, b := range list {
		s := fmt.Sprintf("±%.0f %% with %s", 100*b.HalfWidth, say.Plural(b.Requests/1000*1000, "request"))
		switch about := map[bool]string{true: "about "}[i == 0]; {
		case b.Seconds > 0 && b.HalfWidth == 0:
			s = "--budget " + say.RoundedTime(b.Seconds) + " would decide it"
		case b.Seconds > 0:
			s = fmt.Sprintf("±%.0f %% in %s%s", 100*b.HalfWidth, about, say.RoundedTime(b.Seconds))
		}
		parts = append(parts, s)
	}
	text := strings.Join(parts, ", ")
	if virtual && text != "" {
		text = "with --budget, of virtual time: " + text
	}
	return text
}

// ShortageText returns what a reason has too few of, without what would give more: "62 residence
// times; 100 needed".
func ShortageText(r result.Reason) string {
	return strings.TrimSuffix(Text(r), ": "+LongerFlag(r.Longer))
}

// LongerFlag returns the flag of a window of a length.
func LongerFlag(l result.Longer) string {
	if l.Requests > 0 {
		return fmt.Sprintf("--requests %.0f", l.Requests)
	}
	text := roundToMillisecond(l.Seconds).String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return "--duration " + text
}

// roundToMillisecond returns seconds to the millisecond, which floating point does not hold exactly.
func roundToMillisecond(seconds float64) time.Duration {
	return time.Duration(math.Round(1e3*seconds)) * time.Millisecond
}
