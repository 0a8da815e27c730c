package prom

import (
	"slices"
	"strconv"
	"strings"
)

// Layout lists the families of a page by the section that they are in, and the limits of their
// histograms' buckets.
type Layout struct {
	Buckets  map[string][]float64
	sections map[string][]layoutFamily
}

// layoutFamily is a family of a [Layout].
type layoutFamily struct {
	kind, name, help string
	buckets          string // of a histogram: the name of its limits
	series           []layoutSeries
}

// layoutSeries is a series of a family: what its value is, and its labels.
type layoutSeries struct {
	value  string // a number, or what a [Source] calls it
	labels []string
}

// Source holds the numbers that a section's series show, by their names. A series whose name it
// does not have is left out.
type Source struct {
	Labels     []string // name, value, …: these replace those of the layout
	Values     map[string]float64
	Histograms map[string]*Histogram
}

// ParseLayout reads a layout of our own:
//
//	buckets NAME LIMIT …
//	[SECTION]
//	gauge FAMILY HELP
//		VALUE LABEL=VALUE …
//	histogram/BUCKETS FAMILY HELP
//		VALUE LABEL=VALUE …
func ParseLayout(text string) *Layout {
	l := &Layout{Buckets: map[string][]float64{}, sections: map[string][]layoutFamily{}}
	section := ""
	for line := range strings.Lines(text) {
		words := strings.Fields(line)
		all := l.sections[section]
		switch {
		case len(words) == 0:
		case line[0] == '\t':
			f, t := &all[len(all)-1], layoutSeries{value: words[0]}
			for _, label := range words[1:] {
				name, value, _ := strings.Cut(label, "=")
				t.labels = append(t.labels, name, value)
			}
			f.series = append(f.series, t)
		case line[0] == '[':
			section = strings.Trim(line, "[]\n")
		case words[0] == "buckets":
			for _, word := range words[2:] {
				limit, _ := strconv.ParseFloat(word, 64)
				l.Buckets[words[1]] = append(l.Buckets[words[1]], limit)
			}
		default:
			kind, buckets, _ := strings.Cut(words[0], "/")
			l.sections[section] = append(all, layoutFamily{kind, words[1], strings.Join(words[2:], " "), buckets, nil})
		}
	}
	return l
}

// WriteSection writes the families of a section, each series of all sources one after the other.
func (p *Page) WriteSection(l *Layout, section string, sources ...Source) {
	for _, f := range l.sections[section] {
		var all []Series
		var spread []Distribution
		for _, t := range f.series {
			number, err := strconv.ParseFloat(t.value, 64)
			for _, source := range sources {
				labels := slices.Concat(t.labels, source.Labels)
				if h := source.Histograms[t.value]; h != nil {
					spread = append(spread, Distribution{Histogram: h, Labels: labels})
				} else if value, known := source.Values[t.value]; known {
					all = append(all, Series{Value: value, Labels: labels})
				} else if err == nil {
					all = append(all, Series{Value: number, Labels: labels})
				}
			}
		}
		switch f.kind {
		case "gauge":
			p.WriteGauge(f.name, f.help, all...)
		case "counter":
			p.WriteCounter(f.name, f.help, all...)
		default:
			p.WriteHistogram(f.name, f.help, l.Buckets[f.buckets], spread...)
		}
	}
}
