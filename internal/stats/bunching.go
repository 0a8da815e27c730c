package stats

import (
	"iter"
	"math"
)

// Bunching describes how unevenly the requests of a closed loop come.
type Bunching struct {
	CV    float64 // of the number of requests in an eighth of a cycle
	Limit float64 // from where on users are in step
}

// InStep says that users ask together, again and again.
func (b Bunching) InStep() bool { return b.CV > b.Limit }

const (
	// cycleParts is into how many parts a cycle is divided: enough to see a crowd
	// that begins within a quarter of it.
	cycleParts = 8
	// leastUsers is the smallest number of users, and leastCycles the smallest number of cycles.
	leastUsers, leastCycles = 8, 3

	// A squared CV is no chance from bunchLimit on, and of few users from
	// randomPhases ÷ users on, or from what independent requests have once in
	// 1,000 times.
	//
	// Users who begin at random times and keep the distances for ever, the worst
	// that is still no lock-step, have users × CV² of about χ² with 7 degrees of
	// freedom: above 14 in one of 20.
	bunchLimit, randomPhases, chanceBunch = .35, 14, .001
)

// JudgeBunching distinguishes users in step from others by the n times at which they asked
// within [from, to), in order. A cycle is what a user needs for a request and its pause, by
// the mean. It is divided into eight parts, and the requests in each part of each
// cycle of the window are counted: users who keep apart give parts of about the
// same number, users in step crowded parts and empty ones. What it takes no
// exception to are bunches that are short compared with a cycle: requests that a server
// takes into one step end together, and their users ask together.
//
// ok is false for fewer than 8 users, and where a window has fewer than 3 cycles.
// `go run ./bench/stat -only lockstep` shows false alarms and power.
func JudgeBunching(times iter.Seq[int64], n int64, from, to int64, users int) (b Bunching, ok bool) {
	cycles := float64(n) / float64(users)
	if users < leastUsers || cycles < leastCycles {
		return b, false
	}
	parts := int(cycleParts * cycles)
	width := float64(to-from) / (cycleParts * cycles)
	var total Total // of the requests in each part
	at, inPart := -1, 0
	close := func(before int) {
		for ; at < before; at++ {
			if at >= 0 {
				total.Add(float64(inPart))
			}
			inPart = 0
		}
	}
	for t := range times {
		i := int(float64(t-from) / width)
		if i >= parts {
			break
		}
		close(i)
		inPart++
	}
	close(parts)
	df := float64(parts - 1)
	independent := cycleParts * ChiSquaredQuantile(1-chanceBunch, df) / df
	b.CV = math.Sqrt(total.Squares()/df) / total.Mean()
	b.Limit = math.Sqrt(max(bunchLimit, max(randomPhases, independent)/float64(users)))
	return b, true
}

// ChiSquaredQuantile is about the p-quantile of χ² with df degrees of freedom
// (Wilson and Hilferty, Proceedings of the National Academy of Sciences 17, 1931).
func ChiSquaredQuantile(p, df float64) float64 {
	c := 2 / (9 * df)
	x := 1 - c + NormalQuantile(p)*math.Sqrt(c)
	return df * x * x * x
}
