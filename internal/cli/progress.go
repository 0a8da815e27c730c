package cli

import (
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"golang.org/x/term"

	"pitot/internal/report"
	"pitot/internal/say"
	"pitot/internal/session"
)

// The rules of the live view: it shows the state of the run and never needs to be
// watched. On a terminal it is a few lines that are written over; anywhere
// else it is a plain line every ten seconds. It goes to standard error, so
// that standard output holds the result alone.

// isTerminal says whether lines can be written over on w.
func isTerminal(w io.Writer, getenv func(string) string) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd())) && getenv("TERM") != "dumb"
}

// wantsColor says whether w shows colours, and the user wants them (no-color.org).
func wantsColor(w io.Writer, getenv func(string) string) bool {
	return isTerminal(w, getenv) && getenv("NO_COLOR") == ""
}

// styleOf returns the style of a report for w.
func (e *Env) styleOf(w io.Writer) report.Style {
	return report.Style{Color: wantsColor(w, e.Getenv), Width: columnsOf(w), Full: e.Display.Full}
}

// columnsOf returns the width of the terminal w, 0 if it is none.
func columnsOf(w io.Writer) int {
	if f, ok := w.(*os.File); ok {
		if n, _, err := term.GetSize(int(f.Fd())); err == nil {
			return n
		}
	}
	return 0
}

// progress writes the live view.
type progress struct {
	w     io.Writer
	quiet bool
	live  bool
	color bool
	width func() int // of the terminal
	now   func() time.Time

	mu    sync.Mutex
	about string        // what is being measured, of several; "" for nothing to say
	left  time.Duration // of the budget as its load begins, 0 for none
	lines int           // of the view on the screen
	next  time.Time
	last  session.Status
	rate  float64 // chunks per second, lately

	ttft, tpot history
}

// history is the medians of the last stretches of a load, for a sparkline.
type history struct {
	values []time.Duration
	next   time.Duration // of the load, when the next value is taken
}

const (
	sparkWidth = 30
	sparkEvery = time.Second
)

// addValue adds a value once in a while. Its time is that of the load.
func (h *history) addValue(at, value time.Duration) {
	if at < h.next-sparkEvery { // another load
		*h = history{}
	}
	if value <= 0 || at < h.next {
		return
	}
	h.next = at + sparkEvery
	h.values = append(h.values, value)
	h.values = h.values[max(0, len(h.values)-sparkWidth):]
}

// sparkline draws the values as blocks from none to the highest, "" for less than two.
func (h *history) sparkline() string {
	if len(h.values) < 2 {
		return ""
	}
	blocks, most := []rune("▁▂▃▄▅▆▇█"), slices.Max(h.values)
	var b strings.Builder
	for _, v := range h.values {
		b.WriteRune(blocks[min(int(float64(v)/float64(most)*float64(len(blocks))), len(blocks)-1)])
	}
	return b.String()
}

const (
	plainEvery   = 10 * time.Second
	waitingEvery = 30 * time.Second // for a server to start
	barWidth     = 30
	smoothing    = 0.3 // weight of the latest quarter of a second
)

func newProgress(w io.Writer, quiet bool, getenv func(string) string) *progress {
	p := &progress{w: w, quiet: quiet, live: isTerminal(w, getenv), color: wantsColor(w, getenv), now: time.Now}
	p.width = func() int {
		if n := columnsOf(w); n > 0 {
			return n
		}
		return 80
	}
	p.next = p.now().Add(plainEvery)
	return p
}

// ShowLine implements [session.Progress].
func (p *progress) ShowLine(line string) {
	if !p.quiet {
		fmt.Fprintln(p, line)
	}
}

// About implements [session.View].
func (p *progress) About(line string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.about, p.left = line, 0
}

// Left implements [session.View].
func (p *progress) Left(budget float64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.left = time.Duration(budget * float64(time.Second))
}

// aboutText returns the subject of the measurement. It adds the part of the budget that is left so
// far into its load.
func (p *progress) aboutText(s session.Status) string {
	if p.left == 0 {
		return p.about
	}
	return p.about + " · " + max(0, p.left-s.At).Round(time.Second).String() + " left"
}

// Write puts whole lines above the view, quiet or not.
func (p *progress) Write(lines []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.clear()
	return p.w.Write(lines)
}

// Line shows a line of what is under way, in place of the one before it.
func (p *progress) Line(text string) { p.showLines(plainEvery, text) }

// Waiting implements [experiment.Waiter].
func (p *progress) Waiting(what, log string) {
	if log == "" {
		p.showLines(waitingEvery, what)
	} else {
		p.showLines(waitingEvery, what, log)
	}
}

// showLines shows lines in place of those before; elsewhere than on a terminal one line, and as
// often as that.
func (p *progress) showLines(every time.Duration, lines ...string) {
	if p.quiet {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.live {
		p.clear()
		for _, l := range lines {
			fmt.Fprintln(p.w, cutTo(l, p.width()-1))
		}
		p.lines = len(lines)
		return
	}
	if now := p.now(); !now.Before(p.next) {
		p.next = now.Add(every)
		fmt.Fprintln(p.w, strings.Join(lines, ": "))
	}
}

// Update implements [session.Progress].
func (p *progress) Update(s session.Status) {
	if p.quiet {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	span := (s.At - p.last.At).Seconds()
	switch now := float64(s.Chunks-p.last.Chunks) / span; {
	case span <= 0 || s.Chunks < p.last.Chunks: // a new point
		p.rate = 0
	case p.rate == 0:
		p.rate = now
	default:
		p.rate += smoothing * (now - p.rate)
	}
	p.last = s
	p.ttft.addValue(s.At, s.TTFT)
	p.tpot.addValue(s.At, s.TPOT)
	if p.live {
		p.draw(s)
		return
	}
	if now := p.now(); !now.Before(p.next) {
		p.next = now.Add(plainEvery)
		head := s.Phase + phaseText(s)
		if p.about != "" {
			head = p.aboutText(s) + " · " + head
		}
		fmt.Fprintln(p.w, strings.Join(append([]string{head}, append(countsText(s), mediansText(s)...)...), ", "))
	}
}

// phaseText says how far a phase has come, in words that follow its name.
func phaseText(s session.Status) string {
	switch {
	case s.Phase == "priming":
		return ""
	case s.Phase == "warm-up":
		if s.T0 > mostWarmup { // of a window that begins when users have made some requests
			return " " + clockTime(s.At)
		}
		return " " + clockTime(s.At) + " of " + clockTime(s.T0)
	case s.T1 < 0:
		return " " + clockTime(s.At-s.T0)
	case s.Phase == "measuring":
		return " " + clockTime(s.At-s.T0) + " of " + clockTime(s.T1-s.T0)
	}
	return " for " + clockTime(s.At-s.T1)
}

// mostWarmup is longer than any warm-up whose end is known.
const mostWarmup = 1000 * time.Hour

// clockTime is a time to the second: 7 s, 1:05 min, 2:00:00 h.
func clockTime(d time.Duration) string {
	n := int(max(d, 0) / time.Second)
	switch {
	case n < 100:
		return fmt.Sprintf("%d s", n)
	case n < 3600:
		return fmt.Sprintf("%d:%02d min", n/60, n%60)
	}
	return fmt.Sprintf("%d:%02d:%02d h", n/3600, n/60%60, n%60)
}

// phaseShare returns the share of a phase that is over, negative if that is not known.
func phaseShare(s session.Status) float64 {
	switch {
	case s.Phase == "warm-up" && s.T0 > 0 && s.T0 <= mostWarmup:
		return s.At.Seconds() / s.T0.Seconds()
	case s.Phase == "measuring" && s.T1 > s.T0:
		return (s.At - s.T0).Seconds() / (s.T1 - s.T0).Seconds()
	case s.Phase == "finishing":
		return 1
	}
	return -1
}

func countsText(s session.Status) []string {
	out := []string{say.Count(s.Sent) + " sent", say.Count(s.OK) + " answered"}
	if s.Failed > 0 {
		out = append(out, describeFailures(s))
	}
	out = append(out, say.Count(s.InFlight)+" in flight")
	if s.Held > 0 {
		out = append(out, say.Count(s.Held)+" held back")
	}
	if s.Waiting != nil {
		out = append(out, say.Quantity(*s.Waiting)+" waiting in the server")
	}
	if s.KVUse != nil {
		out = append(out, "KV cache "+say.Percent(*s.KVUse))
	}
	return out
}

func describeFailures(s session.Status) string { return say.Count(s.Failed) + " failed" }

func mediansText(s session.Status) (out []string) {
	if s.TTFT > 0 {
		out = append(out, "TTFT p50 "+millisText(s.TTFT, 1))
	}
	if s.TPOT > 0 {
		out = append(out, "TPOT p50 "+millisText(s.TPOT, 2))
	}
	return out
}

// millisText writes a time in milliseconds, from a second on without decimals.
func millisText(d time.Duration, decimals int) string {
	if ms := d.Seconds() * 1e3; ms < 999.5 {
		return strconv.FormatFloat(ms, 'f', decimals, 64) + " ms"
	}
	return say.Count(d.Round(time.Millisecond).Milliseconds()) + " ms"
}

// draw writes the view over the last one, at one go so that it does not
// flicker.
func (p *progress) draw(s session.Status) {
	head := fmt.Sprintf("%-10s", s.Phase)
	if x := phaseShare(s); x >= 0 {
		n := min(int(x*barWidth+.5), barWidth)
		head += " " + strings.Repeat("━", n) + strings.Repeat("─", barWidth-n)
	}
	var view []string
	if p.about != "" {
		view = append(view, p.aboutText(s))
	}
	if s.Phase == "measuring" && s.T1 > s.T0 {
		head += " " + clockTime(s.T1-s.At) + " left"
	} else {
		head += phaseText(s)
	}
	view = append(view, head)
	if s.Phase != "priming" {
		view = append(view, indent+strings.Join(append(countsText(s), say.Count(int64(math.Round(p.rate)))+" chunks/s"), " · "))
		for _, m := range []struct {
			name     string
			value    time.Duration
			decimals int
			of       *history
		}{{"TTFT p50", s.TTFT, 1, &p.ttft}, {"TPOT p50", s.TPOT, 2, &p.tpot}} {
			if m.value > 0 {
				view = append(view, strings.TrimRight(fmt.Sprintf("%s%-9s %9s  %s", indent, m.name, millisText(m.value, m.decimals), m.of.sparkline()), " "))
			}
		}
	}
	var b strings.Builder
	if p.lines > 0 {
		fmt.Fprintf(&b, "\r\x1b[%dA", p.lines) // \r: a terminal echoes ^C
	}
	width := p.width() - 1 // some terminals go on to the next line when one is full
	for _, l := range view {
		l = cutTo(l, width)
		if failed := describeFailures(s); strings.HasPrefix(l, indent) && p.color && s.Failed > 0 {
			l = strings.Replace(l, failed, "\x1b[31m"+failed+"\x1b[0m", 1)
		}
		b.WriteString(l + "\x1b[K\n")
	}
	if p.lines > len(view) {
		b.WriteString("\x1b[J")
	}
	p.lines = len(view)
	_, _ = io.WriteString(p.w, b.String())
}

const indent = "           "

// cutTo leaves out the last parts of a line that has no room for them.
func cutTo(s string, width int) string {
	for utf8.RuneCountInString(s) > width {
		i := strings.LastIndex(s, " · ")
		if i < 0 {
			return string([]rune(s)[:max(width, 0)])
		}
		s = s[:i]
	}
	return s
}

// clear erases the view.
func (p *progress) clear() {
	if p.lines > 0 {
		fmt.Fprintf(p.w, "\r\x1b[%dA\x1b[J", p.lines)
		p.lines = 0
	}
}

func (p *progress) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.clear()
}
