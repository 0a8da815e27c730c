package compare

import (
	"strings"

	"pitot/internal/results/metric"
)

// counterOf is the file of --tokenizer that counted the answers of all runs of all sides, ""
// where some were not counted or by another.
func counterOf(sides ...Side) (counter string) {
	sum := func(of string) string { _, sum, _ := strings.Cut(of, "SHA-256 "); return sum }
	for _, s := range sides {
		for _, r := range s.Runs {
			of := r.Run.Target.Server["tokenizer"]
			if of == "" || counter != "" && sum(of) != sum(counter) {
				return ""
			}
			counter = of
		}
		if len(s.Others) > 0 {
			return ""
		}
	}
	return counter
}

// commonFigures are those that servers of unlike tokenizers are compared by.
func commonFigures() (list []figure) {
	for _, name := range []metric.Name{metric.CommonRate, metric.CommonSpeed} {
		list = append(list, windowFigure(metric.All().Find(name)))
	}
	return list
}
