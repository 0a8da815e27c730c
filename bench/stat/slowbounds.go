package main

import (
	"fmt"

	"pitot/bench/stat/queue"
)

// turning are systems whose arrivals have rates that take turns, from seconds to an hour where a
// service takes one. Nothing was chosen on them: of how many turns a window is that a bound rests
// on follows from its blocks. Their capacities are from `-only truth-slow -reps 2000000, about ±2.5
// %`.
func turning() []system {
	return []system{
		queued{servers: 16, law: inTurns(1, 5, 0, 20), ttft: 1}.system("on-off, 25 s", 2.623, .01),
		queued{servers: 16, law: inTurns(.5, 60, 4, 10), ttft: 1}.system("70 s", 3.282, .01),
		queued{servers: 32, law: inTurns(.7, 600, 2.5, 120), ttft: 2}.system("12 min", 12.11, .01),
		queued{servers: 16, law: inTurns(.9, 1800, 1.2, 1800), ttft: 1}.system("1 h", 11.04, .01),
		queued{servers: 8, law: inTurns(.95, 3000, 1.5, 300), ttft: 2}.system("55 min, rare", 4.615, .01),
	}
}

// inTurns is a law whose rates take turns: each with its time.
func inTurns(of ...float64) queue.Law {
	law := queue.Law{Services: 1, Arrivals: 1}
	mean, total := 0., 0.
	for i := 0; i < len(of); i += 2 {
		mean, total = mean+of[i]*of[i+1], total+of[i+1]
	}
	for i := 0; i < len(of); i += 2 {
		law.Turns = append(law.Turns, queue.Turn{Rate: of[i] * total / mean, Time: of[i+1]})
	}
	return law
}

func slowBounds() table {
	t := boundsOf("bounds-slow", turning(), 10_000, 100_000, 1_000_000, ofWork)
	t.about = fmt.Sprintf("Arrivals whose rates take turns (a load counts the mean one), of queues whose services take a second. %s", t.about)
	return t
}

func slowTruth() table { return truthOf("truth-slow", turning()) }
