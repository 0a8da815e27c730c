package telemetry

import (
	"strconv"
	"strings"
)

// ParseNames reads names of signals, one a line: the signal, the series, and of the fields of
// [Name] where=, from=, rank= and nozero. A signal that ends in * is the sum and the count of a
// histogram. Lines that begin with # are comments.
func ParseNames(text string) (names []Name) {
	for line := range strings.Lines(text) {
		words := strings.Fields(line)
		if len(words) == 0 || strings.HasPrefix(line, "#") {
			continue
		}
		n := Name{Signal: Signal(words[0]), Series: words[1]}
		for _, option := range words[2:] {
			field, value, _ := strings.Cut(option, "=")
			switch field {
			case "where":
				n.Where = strings.ReplaceAll(value, ",", ", ")
			case "from":
				n.From = value
			case "rank":
				n.Rank, _ = strconv.Atoi(value)
			case "nozero":
				n.NoZero = true
			}
		}
		histogram, ok := strings.CutSuffix(words[0], "*")
		if !ok {
			names = append(names, n)
			continue
		}
		for _, part := range []string{"_sum", "_count"} {
			n.Signal, n.Series = Signal(histogram+part), words[1]+part
			names = append(names, n)
		}
	}
	return names
}
