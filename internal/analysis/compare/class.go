package compare

import (
	"maps"
	"slices"

	"pitot/internal/results/result"
)

// classFigures are the figures of each class of requests that every point of both sides has:
// what a comparison has of all requests, as far as a class has it. They are among all
// that is corrected for its number.
func classFigures(x, y *loadOfSide) (out []figure) {
	all := figuresAtLoad(catalogueOf(x, y), x.load)
	for _, name := range classesOf(x, y) {
		for _, f := range all {
			if f.of.HasPercentiles() && f.of.Instead == "" || f.name == failures {
				out = append(out, f.ofClass(name))
			}
		}
		out = append(out, figure{name: name + ": " + attained, class: name, more: true, share: true, of: nil, value: func(p *result.Point) value {
			c := p.Classes[name]
			if c.SLO == nil || c.SLO.Attained == nil {
				return value{why: noSLO}
			}
			return value{x: *c.SLO.Attained, of: int64(c.Requests.Due)}
		}})
	}
	return out
}

// ofClass is the figure of a class's requests alone.
func (f figure) ofClass(name string) figure {
	whole := f.value
	f.name, f.class = name+": "+f.name, name
	f.value = func(p *result.Point) value {
		c := p.Classes[name]
		return whole(&result.Point{Requests: c.Requests, Metrics: c.Metrics})
	}
	return f
}

// classesOf are the classes that every point of both sides has, in order.
func classesOf(all ...*loadOfSide) (names []string) {
	for i, p := range pointsOf(all...) {
		if i == 0 {
			names = slices.Sorted(maps.Keys(p.Classes))
		}
		names = slices.DeleteFunc(names, func(name string) bool { _, ok := p.Classes[name]; return !ok })
	}
	return names
}
