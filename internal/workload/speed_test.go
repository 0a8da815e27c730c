package workload

import (
	"testing"
	"time"

	"pitot/internal/workload/arrival"
	"pitot/internal/workload/token"
)

// How fast requests are made on one core: due time, lengths and the text of the prompt.
// Words are drawn one by one, four from each number of the seed.
//
//	go test -run XXX -bench 'Requests|Start' ./internal/workload
func BenchmarkRequests(b *testing.B) {
	v := token.Universal()
	r := random(b, RandomConfig{Input: lengths(b, "lognormal(100,50)"), Output: lengths(b, "lognormal(128,64)")})
	law, err := arrival.ParseLaw("0.8*poisson + 0.2*on-off(5s,20s)", arrival.Files{})
	if err != nil {
		b.Fatal(err)
	}
	due, err := law.NewProcess(1000, 1, 0)
	if err != nil {
		b.Fatal(err)
	}
	var text []byte
	var i, tokens int64
	for b.Loop() {
		due.Next()
		q, err := r.At(i)
		if err != nil {
			b.Fatal(err)
		}
		text = q.AppendPrompt(text[:0], v)
		tokens += int64(q.Input)
		i++
	}
	b.ReportMetric(float64(i)/b.Elapsed().Seconds(), "requests/s")
	b.ReportMetric(float64(tokens)/b.Elapsed().Seconds(), "tokens/s")
}

// What it takes to begin a million requests: none of them is made before it is due.
func BenchmarkStartOfAMillion(b *testing.B) {
	begin := time.Now()
	n := 0
	for b.Loop() {
		r := random(b, RandomConfig{Input: lengths(b, "lognormal(100,50)"), Output: lengths(b, "lognormal(128,64)")})
		law, err := arrival.ParseLaw("poisson", arrival.Files{})
		if err != nil {
			b.Fatal(err)
		}
		due, err := law.NewProcess(1000, 1, 0)
		if err != nil {
			b.Fatal(err)
		}
		due.Next()
		for _, i := range []int64{0, 999_999} { // any is made alone
			if _, err := r.At(i); err != nil {
				b.Fatal(err)
			}
		}
		n++
	}
	b.ReportMetric(time.Since(begin).Seconds()*1e3/float64(n), "ms/start")
}
