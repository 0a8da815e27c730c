package deploy

import (
	"testing"
	"time"
)

// Engines that come and go are told in words, with the time in which none is left.
func TestChanges(t *testing.T) {
	d, err := Parse("llama-3.1-8b@2xh100?data_parallel_size=2&replica_events=30s:die:0,31s:drain:1,60s:add:0")
	if err != nil {
		t.Fatal(err)
	}
	const want = "engine 0 died at 30 s, engine 1 was drained at 31 s, engine 0 came back at 1 min, no engine took requests from 31 s to 1 min"
	if told, first := d.DescribeChanges(); told != want || first != 30*time.Second {
		t.Errorf("%q, first at %v", told, first)
	}
	if d, err = Parse("llama-3.1-8b@2xh100?data_parallel_size=2"); err != nil {
		t.Fatal(err)
	}
	if told, first := d.DescribeChanges(); told != "" || first != 0 {
		t.Errorf("%q, first at %v, where all stay", told, first)
	}
}
