package fleet

import (
	"bufio"
	"fmt"
	"os"
	"strings"
	"testing"
)

// The decisions that vLLM's own client took (testdata/record.py), one by one.
func TestScoreAsRecorded(t *testing.T) {
	file, err := os.Open("testdata/decisions.txt")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	var c client
	var open []int
	clients, decisions, line := 1, 0, 0
	for lines := bufio.NewScanner(file); lines.Scan(); {
		line++
		what, rest, _ := strings.Cut(lines.Text(), " ")
		n := func(to ...any) {
			if _, err := fmt.Sscan(rest, to...); err != nil {
				t.Fatalf("line %d: %v", line, err)
			}
		}
		switch what {
		case "new":
			var engines, index int
			n(&engines, &clients, &index)
			c = client{from: engines * index / clients, inFlight: make([]int, engines), counts: make([]counts, engines)}
			open = open[:0]
			for i := range engines {
				open = append(open, i)
			}
		case "told":
			for i, of := range strings.Fields(rest) {
				if _, err := fmt.Sscanf(of, "%d,%d,%g", &c.counts[i].waiting, &c.counts[i].running, &c.counts[i].kv); err != nil {
					t.Fatalf("line %d: %v", line, err)
				}
			}
		case "ended":
			var i int
			n(&i)
			c.inFlight[i]--
		case "sent":
			var want int
			n(&want)
			got := c.choose(clients, open)
			if got != want {
				t.Fatalf("line %d, decision %d: engine %d, vLLM took %d", line, decisions, got, want)
			}
			c.inFlight[got]++
			decisions++
		}
	}
	if decisions < 1000 {
		t.Errorf("%d decisions", decisions)
	}
}
