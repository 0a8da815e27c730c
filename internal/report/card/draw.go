package card

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"pitot/internal/report"
	"pitot/internal/results/result"
	"pitot/internal/say"
)

// Size of a card. Shown at half of it, texts have 10 pixels or more.
const (
	width, height = 1200, 630
	margin        = 48
	smallest      = 20 // size of text
)

// point is a place on a card.
type point struct{ x, y float64 }

// canvas takes the parts of a card. A text begins at its point, on its base line.
type canvas interface {
	rect(x, y, w, h, radius float64, p paint)
	line(points []point, width float64, p paint)
	dot(at point, radius float64, p paint)
	text(at point, f face, size float64, p paint, text string)
}

// drawing is a card on its canvas.
type drawing struct {
	canvas
	*Card
}

// draw draws the card.
func (c *Card) draw(on canvas) {
	d := drawing{on, c}
	on.rect(0, 0, width, height, 0, paper)
	left := d.drawBadges()
	on.text(point{margin, 70}, bold, 30, ink, fitText(bold, 30, left-margin-24, c.Subject))
	setup := fitText(regular, 22, width-2*margin, strings.Join(c.Setup, " · "))
	on.text(point{margin, 104}, regular, 22, soft, setup)

	bottom, floor := d.drawHeadline(), d.drawFoot()
	on.rect(margin, bottom, width-2*margin, 1.5, 0, rule)
	on.rect(margin, floor, width-2*margin, 1.5, 0, rule)
	d.drawNumbers(bottom, floor)
	d.drawCurve(640, bottom+38, width-margin-640, floor-bottom-48)
}

// note writes small secondary text in a width.
func (d *drawing) note(x, y, w float64, text string) {
	d.text(point{x, y}, regular, smallest, soft, fitText(regular, smallest, w, text))
}

// drawBadges draws the badges from the right, and returns where they begin.
func (d *drawing) drawBadges() float64 {
	right := float64(width - margin)
	for i := len(d.Badges) - 1; i >= 0; i-- {
		b := d.Badges[i]
		w := textWidth(bold, smallest, b.Text) + 28
		d.rect(right-w, 40, w, 38, 8, b.Paint)
		d.rect(right-w+2, 42, w-4, 34, 6, paper)
		d.canvas.text(point{right - w + 14, 66}, bold, smallest, b.Paint, b.Text)
		right -= w + 12
	}
	return right
}

// drawHeadline draws the headline and what it rests on, and returns where they end.
func (d *drawing) drawHeadline() float64 {
	const x, space = margin + 22, width - 2*margin - 22
	size := 44.
	for size > 36 && textWidth(bold, size, d.Headline) > space {
		size -= 2
	}
	lines := wrapText(bold, size, space, 2, d.Headline)
	top := 128.
	y := top + size*.86
	for _, l := range lines {
		d.text(point{x, y}, bold, size, ink, l)
		y += size * 1.16
	}
	y += 38 - size*1.16
	most := 3 - len(lines)
	if d.SLO == "" {
		most++
	}
	below := wrapText(regular, smallest, space, most, d.Basis)
	if d.SLO != "" {
		below = append(below, fitText(regular, smallest, space, "SLO: "+d.SLO))
	}
	for _, l := range below {
		d.text(point{x, y}, regular, smallest, soft, l)
		y += 27
	}
	y += 27 - 38 + 8
	d.rect(margin, top, 6, y-top, 3, d.Tone)
	return y + 16
}

// drawNumbers draws the numbers two by two.
func (d *drawing) drawNumbers(top, bottom float64) {
	const column = 284
	high := (bottom - top) / 2
	spread := d.widestInterval()
	for i, n := range d.Numbers {
		x, y := margin+float64(i%2)*column, top+float64(i/2)*high+(high-98)/2
		d.note(x, y+14, column-20, n.Name)
		value := fitText(bold, 42, column-90, n.Value)
		d.text(point{x, y + 55}, bold, 42, ink, value)
		end := textWidth(bold, 42, value) + 8
		unit := fitText(regular, 22, column-20-end, n.Unit)
		d.text(point{x + end, y + 55}, regular, 22, soft, unit)
		if n.CI95 != nil {
			d.drawInterval(x, y+70, column-40, n, spread)
		}
		d.note(x, y+97, column-20, n.Note)
	}
}

// widestInterval returns the largest relative distance of a number from an end of its interval, and
// at least a quarter: all have one scale, on which a good interval is short.
func (c *Card) widestInterval() (most float64) {
	most = .25
	for _, n := range c.Numbers {
		if n.CI95 != nil && n.At > 0 {
			most = max(most, n.CI95[1]/n.At-1, 1-n.CI95[0]/n.At)
		}
	}
	return most
}

// drawInterval draws a number with its interval as a bar.
func (d *drawing) drawInterval(x, y, w float64, n report.Number, spread float64) {
	if n.At <= 0 {
		return
	}
	at := func(v float64) float64 { return x + w/2*(1+(v/n.At-1)/spread) }
	lo, hi := at(n.CI95[0]), at(n.CI95[1])
	d.rect(lo, y-1.5, hi-lo, 3, 0, accent)
	d.rect(lo-1.5, y-6, 3, 12, 0, accent)
	d.rect(hi-1.5, y-6, 3, 12, 0, accent)
	d.dot(point{at(n.At), y}, 6, accent)
}

// drawFoot draws what the measurement is worth and how to repeat it, and returns where they begin.
func (d *drawing) drawFoot() float64 {
	command := wrapText(mono, smallest, width-2*margin-28, 2, d.Command)
	y := 610 - 26*float64(max(len(command)-1, 0))
	for i, l := range command {
		d.text(point{margin + 28, y + 26*float64(i)}, mono, smallest, ink, l)
	}
	if len(command) > 0 {
		d.text(point{margin, y}, mono, smallest, soft, "$")
		y -= 30
	}
	color := map[result.Verdict]paint{result.Valid: ink, result.ValidWithFlags: warn}[d.Verdict]
	if color == paper {
		color = bad
	}
	by := fitText(regular, smallest, 400, d.Made)
	made := textWidth(regular, smallest, by)
	d.text(point{width - margin - made, y}, regular, smallest, soft, by)
	verdict, rest := string(d.Verdict), strings.TrimPrefix(d.Measurement, string(d.Verdict))
	d.text(point{margin, y}, regular, smallest, soft, d.Rated)
	x := margin + textWidth(regular, smallest, d.Rated+" ")
	d.text(point{x, y}, bold, smallest, color, verdict)
	x += textWidth(bold, smallest, verdict)
	d.note(x, y, width-margin-made-24-x, rest)
	return y - 32
}

// scale maps values to places.
type scale struct {
	from, to   float64 // values
	start, end float64 // places
	log        bool
}

// at returns the place of a value.
func (s scale) at(v float64) float64 {
	from, to := s.from, s.to
	if s.log {
		v, from, to = math.Log(v), math.Log(from), math.Log(to)
	}
	return s.start + (v-from)/(to-from)*(s.end-s.start)
}

// ticks returns round values on a scale.
func (s scale) ticks(most int) (list []float64) {
	if s.log {
		for power := math.Floor(math.Log10(s.from)); power <= math.Log10(s.to); power++ {
			for _, m := range []float64{1, 2, 5} {
				if v := m * math.Pow(10, power); v >= s.from && v <= s.to {
					list = append(list, v)
				}
			}
		}
		for len(list) > most {
			for i := range (len(list) + 1) / 2 {
				list[i] = list[2*i]
			}
			list = list[:(len(list)+1)/2]
		}
		return list
	}
	step := math.Pow(10, math.Floor(math.Log10(s.to-s.from)))
	for _, m := range []float64{.1, .2, .5, 1, 2, 5} {
		if (s.to-s.from)/(step*m) <= float64(most) {
			step *= m
			break
		}
	}
	for i := math.Ceil(s.from / step); i*step <= s.to*(1+1e-9); i++ {
		list = append(list, i*step)
	}
	return list
}

// axisOver returns a scale that holds some values, logarithmic where they lie far apart.
func axisOver(values []float64, start, end float64) scale {
	lo, hi := math.Inf(1), 0.
	for _, v := range values {
		if v > 0 {
			lo, hi = min(lo, v), max(hi, v)
		}
	}
	if hi == 0 {
		return scale{0, 1, start, end, false}
	}
	if hi/lo > 20 {
		return scale{lo / 1.2, hi * 1.2, start, end, true}
	}
	return scale{0, hi * 1.12, start, end, false}
}

// drawCurve draws the curve in a rectangle.
func (d *drawing) drawCurve(x, y, w, h float64) {
	c := &d.Curve
	title := cmp.Or(c.Title, c.Absent)
	if slices.ContainsFunc(c.Dots, func(dot Dot) bool { return dot.Few }) {
		title += " · hollow: few samples"
	}
	d.note(x, y, w, title)
	if len(c.Dots) == 0 {
		if c.Title != "" {
			d.note(x, y+40, w, c.Absent)
		}
		return
	}
	var xs, ys []float64
	for _, dot := range c.Dots {
		xs, ys = append(xs, dot.X), append(ys, dot.Y)
		if dot.CI95 != nil {
			ys = append(ys, dot.CI95[1])
		}
	}
	ys = append(ys, c.Limit)
	xs = append(xs, c.Mark)
	if c.Band != nil {
		xs = append(xs, c.Band[0], c.Band[1])
	}
	left, right, top, bottom := x+70, x+w-8, y+20, y+h-30
	across, up := axisOver(xs, left, right), axisOver(ys, bottom, top)
	if c.Labels != nil {
		across = scale{-.4, float64(len(c.Labels)) - .6, left, right, false}
	}
	if b := c.Band; b != nil {
		d.rect(across.at(b[0]), top, across.at(b[1])-across.at(b[0]), bottom-top, 0, band)
	}
	for _, v := range up.ticks(4) {
		text := say.Significant(v, 4)
		d.rect(left, up.at(v)-.5, right-left, 1, 0, rule)
		d.note(left-10-textWidth(regular, smallest, text), up.at(v)+7, w, text)
	}
	for i, label := range c.Labels {
		d.note(across.at(float64(i))-textWidth(regular, smallest, label)/2, bottom+28, w, label)
	}
	if c.Labels == nil {
		d.drawLoads(across, bottom)
	}
	if c.Mark > 0 {
		at := across.at(c.Mark)
		d.rect(at-1, top, 2, bottom-top, 0, good)
		name := textWidth(bold, smallest, c.Name)
		y := top + 18
		if c.Limit > 0 && math.Abs(up.at(c.Limit)-y) < 40 { // it would lie on the limit
			y = bottom - 10
		}
		beside := at - name - 8
		if beside < left {
			beside = min(at+8, right-name)
		}
		d.text(point{beside, y}, bold, smallest, good, c.Name)
	}
	var line []point
	for _, dot := range c.Dots {
		line = append(line, point{across.at(dot.X), up.at(dot.Y)})
	}
	d.line(line, 3, accent)
	if c.Limit > 0 {
		at := up.at(c.Limit)
		for from := left; from < right; from += 14 {
			d.rect(from, at-1.25, min(8, right-from), 2.5, 0, bad)
		}
		name := "limit " + say.Exact(c.Limit) + " ms"
		d.text(point{left + 6, at - 9}, bold, smallest, bad, name)
	}
	for i, dot := range c.Dots {
		if dot.CI95 != nil {
			high, low := up.at(dot.CI95[1]), up.at(dot.CI95[0])
			d.rect(line[i].x-1.5, high, 3, low-high, 0, accent)
		}
		d.dot(line[i], 7, accent)
		if dot.Few {
			d.dot(line[i], 4, paper)
		}
	}
}

// drawLoads draws the loads below a curve.
func (d *drawing) drawLoads(across scale, bottom float64) {
	unit := textWidth(regular, smallest, d.Curve.XUnit)
	d.text(point{across.end - unit, bottom + 28}, regular, smallest, soft, d.Curve.XUnit)
	for _, v := range across.ticks(5) {
		text := say.Significant(v, 4)
		w := textWidth(regular, smallest, text)
		if at := across.at(v) - w/2; at+w < across.end-unit-12 {
			d.text(point{at, bottom + 28}, regular, smallest, soft, text)
		}
	}
}
