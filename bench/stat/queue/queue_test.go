package queue

import (
	"math"
	"testing"
)

// The mean wait of M/G/1 is ρ(1+CV²)/(2(1−ρ)) mean services
// (Pollaczek-Khinchine): 1 at ρ = 0.5 with CV 1.
func TestMeanWaitOfOneServer(t *testing.T) {
	q := New(1, 0.5, 1)
	const n = 2_000_000
	var wait float64
	for range n {
		j := q.Next()
		wait += j.Start - j.Arrival
	}
	if wait /= n; math.Abs(wait-1) > 0.02 {
		t.Errorf("mean wait %.4f, want 1", wait)
	}
}

// Little's law: requests in flight = rate × residence time, to the edges.
func TestLittle(t *testing.T) {
	const warmup, window = 100, 4000
	var inFlight float64
	for _, x := range New(32, 0.8, 2).InFlight(warmup, window, 7) {
		inFlight += x / 7
	}
	q := New(32, 0.8, 2) // the same jobs again
	var residence float64
	for j := q.Next(); j.Arrival < warmup+window; j = q.Next() {
		if j.Arrival >= warmup {
			residence += j.End - j.Arrival
		}
	}
	if l := residence / window; math.Abs(inFlight/l-1) > 0.005 {
		t.Errorf("in flight %.3f, rate × residence %.3f", inFlight, l)
	}
}

// Never more jobs in service than servers, and none waits while one is free.
func TestServersAreShared(t *testing.T) {
	q := New(3, 0.9, 3)
	var ends []float64
	for range 10_000 {
		j := q.Next()
		busy := 0
		for _, end := range ends {
			if end > j.Start {
				busy++
			}
		}
		if busy > 2 || busy < 2 && j.Start > j.Arrival {
			t.Fatalf("%d of 3 servers are busy as a job starts that waited %.3f", busy, j.Start-j.Arrival)
		}
		ends = append(ends, j.End)
	}
}

func BenchmarkNext(b *testing.B) {
	q := New(32, 0.9, 1)
	for b.Loop() {
		q.Next()
	}
}
