package main

import (
	"fmt"
	"maps"
	"slices"

	"pitot/internal/analysis/explain"
)

// truth is the set of true causes.
func (o *Outcome) truth() (set []explain.Cause) {
	most := 0.0
	for _, g := range o.Gains {
		most = max(most, g)
	}
	for _, cause := range causes {
		if g := o.Gains[cause]; g >= explain.Least && g >= most/2 {
			set = append(set, cause)
		}
	}
	return set
}

// tally counts claims.
type tally struct {
	points, claims, right, sure, sureWrong int
	of, found                              map[explain.Cause]int // points of which it is a cause; of these, named
	named                                  map[[2]explain.Cause]int
	knobs, better                          int
	several, both                          int // points with several causes; of these, two of them named
	level                                  map[explain.Confidence][2]int
	ruledOut, twoOut, falsely              int // causes ruled out; figures with two of them; of them those that are truly active
	out                                    map[explain.Cause][2]int
	active                                 map[explain.Cause]int // figures of which each is a part
}

func newTally() *tally {
	return &tally{of: map[explain.Cause]int{}, found: map[explain.Cause]int{}, named: map[[2]explain.Cause]int{}, level: map[explain.Confidence][2]int{}, out: map[explain.Cause][2]int{}, active: map[explain.Cause]int{}}
}

// add takes one diagnosis in, and says whether its claim was wrong.
func (t *tally) add(o *Outcome, c *explain.Case) (explain.Diagnosis, bool) {
	d := explain.Diagnose(c)
	truth := o.truth()
	t.points++
	p := &d.Primary
	for cause, gain := range o.Gains {
		if gain > active {
			t.active[cause]++
		}
	}
	for _, e := range p.Excluded {
		n := t.out[e.Cause]
		n[0]++
		if t.ruledOut++; o.Gains[e.Cause] > active {
			t.falsely++
			n[1]++
		}
		t.out[e.Cause] = n
	}
	if len(p.Excluded) >= 2 {
		t.twoOut++
	}
	right := slices.Contains(truth, p.Cause)
	right = right || p.Cause == explain.Steps && slices.ContainsFunc(truth, func(c explain.Cause) bool {
		return slices.Contains([]explain.Cause{explain.Compute, explain.Bandwidth, explain.Host, explain.Links, explain.Throttling}, c)
	})
	claimed := p.Cause != explain.Unknown
	if claimed {
		t.claims++
		l := t.level[p.Confidence]
		l[0]++
		if right {
			t.right++
			l[1]++
		}
		t.level[p.Confidence] = l
		if p.Confidence == explain.Sure {
			t.sure++
			if !right {
				t.sureWrong++
			}
		}
	}
	if len(truth) > 1 {
		t.several++
		n := 0
		for _, f := range append([]explain.Finding{*p}, d.Also...) {
			if slices.Contains(truth, f.Cause) {
				n++
			}
		}
		if n > 1 {
			t.both++
		}
	}
	leading := explain.Unknown
	most := 0.0
	for _, cause := range truth {
		if g := o.Gains[cause]; g > most {
			leading, most = cause, g
		}
	}
	t.of[leading]++
	if right || leading == explain.Unknown && !claimed {
		t.found[leading]++
	}
	t.named[[2]explain.Cause{leading, p.Cause}]++
	if p.Try != nil && claimed {
		if g, ok := o.Knobs[p.Try.Knob+"="+p.Try.To]; ok {
			t.knobs++
			if g > 0 {
				t.better++
			}
		}
	}
	return d, claimed && !right
}

func share(a, b int) string {
	if b == 0 {
		return "   –"
	}
	return fmt.Sprintf("%3.0f %%", 100*float64(a)/float64(b))
}

// active is the share that a cause brings, relieved, from which on it is falsely ruled out.
const active = explain.Least

// arms are what a diagnosis may know.
var arms = []struct {
	name        string
	told, twins bool
}{{"with telemetry and twins", true, true}, {"with telemetry, and no deployment is stated", true, false}, {"the client alone", false, false}}

// report prints the tables.
func report(results []*Result, verbose bool) {
	for _, arm := range arms {
		name := arm.name
		all, by := newTally(), map[string]*tally{}
		for _, r := range results {
			for i := range r.Of {
				o := &r.Of[i]
				c := &explain.Case{Symptom: o.Symptom, Value: o.Value, Facts: r.facts(o.Symptom, arm.told)}
				if arm.twins {
					c.Twin = o.Twin
				}
				key := o.Symptom.String()
				if by[key] == nil {
					by[key] = newTally()
				}
				by[key].add(o, c)
				d, wrong := all.add(o, c)
				if verbose {
					for _, e := range d.Primary.Excluded {
						if o.Gains[e.Cause] > active {
							fmt.Printf("%4d %-11s %-11s ruled out %s, truly %.2f: %+v %s\n", r.Number, r.Kind, o.Symptom, e.Cause, o.Gains[e.Cause], e, r.Load)
						}
					}
				}
				if wrong && verbose {
					off := -1.0
					if c.Twin != nil {
						off = c.Twin.Off
					}
					fmt.Printf("%4d %-11s %-11s claimed %s (%s, %.2f, truly %.2f), true %v, twins off %.2f\n", r.Number, r.Kind, o.Symptom, d.Primary.Cause, d.Primary.Confidence, d.Primary.Gain, o.Gains[d.Primary.Cause], gainsOf(o), off)
				}
			}
		}
		fmt.Printf("\n%s: %d cases\n\n%-12s %7s %8s %8s %6s %6s %12s\n", name, len(results), "", "points", "claimed", "right", "sure", "wrong", "knob better")
		line := func(name string, t *tally) {
			fmt.Printf("%-12s %7d %8s %8s %6d %6d %12s of %d\n", name, t.points, share(t.claims, t.points), share(t.right, t.claims), t.sure, t.sureWrong, share(t.better, t.knobs), t.knobs)
		}
		for _, s := range symptoms {
			if t := by[s.String()]; t != nil {
				line(s.String(), t)
			}
		}
		line("all", all)
		fmt.Printf("\nruled out: %d lines, %.1f of a figure, at least two of %s; false: %d (%.2f %%)\n", all.ruledOut, float64(all.ruledOut)/float64(all.points), share(all.twoOut, all.points), all.falsely, 100*float64(all.falsely)/float64(max(all.ruledOut, 1)))
		for _, cause := range causes {
			if n := all.out[cause]; n[0] > 0 {
				fmt.Printf("  %-24s %5d lines, %d false of the %d where it is active\n", cause, n[0], n[1], all.active[cause])
			}
		}
		fmt.Println()
		for _, l := range []explain.Confidence{explain.Sure, explain.Likely, explain.Possible} {
			fmt.Printf("%-9s %4d, %s right\n", l, all.level[l][0], share(all.level[l][1], all.level[l][0]))
		}
		fmt.Printf("%d points have several causes; of %s of them two are named\n", all.several, share(all.both, all.several))
		fmt.Printf("\n%-24s %6s %7s   claimed as\n", "leading cause", "points", "recall")
		sum, n := 0.0, 0
		for _, cause := range append(slices.Clone(causes), explain.Unknown) {
			if all.of[cause] == 0 {
				continue
			}
			label := string(cause)
			if cause == explain.Unknown {
				label = "none"
			} else {
				sum += float64(all.found[cause]) / float64(all.of[cause])
				n++
			}
			fmt.Printf("%-24s %6d %7s  ", label, all.of[cause], share(all.found[cause], all.of[cause]))
			as := map[explain.Cause]int{}
			for pair, count := range all.named {
				if pair[0] == cause {
					as[pair[1]] += count
				}
			}
			names := slices.SortedFunc(maps.Keys(as), func(a, b explain.Cause) int { return as[b] - as[a] })
			for _, name := range names {
				fmt.Printf(" %s %d;", name, as[name])
			}
			fmt.Println()
		}
		if n > 0 {
			fmt.Printf("macro recall %.0f %%\n", 100*sum/float64(n))
		}
	}
}

// gainsOf are the true causes with what each brings.
func gainsOf(o *Outcome) (list []string) {
	for _, cause := range o.truth() {
		list = append(list, fmt.Sprintf("%s %.2f", cause, o.Gains[cause]))
	}
	return list
}
