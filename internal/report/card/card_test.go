package card

import (
	"bytes"
	"crypto/sha256"
	"encoding/xml"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"io"
	"maps"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode"

	"pitot/internal/report"
	"pitot/internal/report/reporttest"
	"pitot/internal/results/result"
)

// shown are runs with something to see on their cards.
func shown() map[string]*result.Run {
	all := map[string]*result.Run{"sweep": reporttest.SweepRun(), "search": searchRun()}
	for _, name := range []string{"classes", "errors", "intervals", "invalid", "not-streaming", "repeats", "slo-met", "slo-undecided", "unstable", "withheld"} {
		all[name] = reporttest.Runs()[name]
	}
	return all
}

// searchRun is a search that verified a load.
func searchRun() *result.Run {
	run := reporttest.SweepRun()
	load, most, estimate := 8.4, 47.5, 20.
	run.Curve, run.Capacity = nil, &result.Capacity{Over: result.OverRate, SLO: "p99 ttft<200ms", Load: &load, Estimate: &estimate,
		CI95: &[2]float64{12, 30}, Bracket: &[2]*float64{&load, &most}, Bounds: &result.Bounds{Level: .95}, Covers: "this launch only",
		Verified: &result.Verified{Load: load, Requests: 12_000, Violations: 14, Upper: .002, Allowed: .01, Passed: true}, Requests: 100_000, Seconds: 6000}
	return run
}

func cardOf(run *result.Run) *Card {
	m := report.Build(run, "runs/one")
	return New(&m)
}

func written(t testing.TB, c *Card, name string) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := c.Write(&b, name); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// Golden files hold the cards of some runs.
func TestGolden(t *testing.T) {
	for name, run := range shown() {
		t.Run(name, func(t *testing.T) {
			c := cardOf(run)
			for _, ending := range []string{".svg", ".md"} {
				reporttest.SameAsGolden(t, filepath.Join("testdata", name+ending), string(written(t, c, "card"+ending)))
			}
			sum := sha256.Sum256(decoded(t, written(t, c, "card.png")).Pix)
			reporttest.SameAsGolden(t, filepath.Join("testdata", name+".png.sha256"), fmt.Sprintf("%x\n", sum))
			if dir := os.Getenv("CARDS"); dir != "" { // to look at them
				for _, ending := range []string{".svg", ".png", ".dark.png"} {
					if err := os.WriteFile(filepath.Join(dir, name+ending), written(t, c, "card"+ending), 0o644); err != nil {
						t.Error(err)
					}
				}
			}
		})
	}
}

// decoded returns the pixels of a PNG.
func decoded(t testing.TB, data []byte) *image.RGBA {
	t.Helper()
	picture, err := png.Decode(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	return picture.(*image.RGBA) // it has no transparency
}

// A PNG has the size that previews expect, the paper of its theme and the tone of its headline.
func TestPNG(t *testing.T) {
	for name, theme := range map[string]*theme{"card.png": &light, "card.dark.png": &dark} {
		picture := decoded(t, written(t, cardOf(reporttest.Runs()["slo-met"]), name))
		if picture.Bounds() != image.Rect(0, 0, 1200, 630) {
			t.Errorf("%s: %v", name, picture.Bounds())
		}
		for at, p := range map[image.Point]paint{{X: 3, Y: 3}: paper, {X: 1196, Y: 626}: paper, {X: margin + 3, Y: 140}: good} {
			want := color.RGBA{uint8(theme[p] >> 16), uint8(theme[p] >> 8), uint8(theme[p]), 255}
			if got := picture.RGBAAt(at.X, at.Y); got != want {
				t.Errorf("%s at %v: %v, want %v", name, at, got, want)
			}
		}
	}
}

// An outline that is drawn covers its area.
func TestFillCoversItsArea(t *testing.T) {
	p := &picture{theme: &theme{ink: 0xffffff}, pixels: make([]byte, width*height*3)}
	p.dot(point{100.3, 100.7}, 20, ink)
	sum := 0.
	for i := 0; i < len(p.pixels); i += 3 {
		sum += float64(p.pixels[i]) / 255
	}
	if want := math.Pi * 400; math.Abs(sum-want) > 10 {
		t.Errorf("a dot of radius 20 covers %.1f pixels, want %.1f", sum, want)
	}
}

// Every text has a contrast of 4.5 to 1 on the paper.
func TestContrast(t *testing.T) {
	luminance := func(rgb uint32) float64 {
		channel := func(v uint32) float64 {
			if x := float64(v&255) / 255; x > 0.04045 {
				return math.Pow((x+0.055)/1.055, 2.4)
			} else {
				return x / 12.92
			}
		}
		return 0.2126*channel(rgb>>16) + 0.7152*channel(rgb>>8) + 0.0722*channel(rgb)
	}
	for name, theme := range map[string]theme{"light": light, "dark": dark} {
		for _, p := range []paint{ink, soft, accent, good, warn, bad} {
			for _, behind := range []paint{paper, band} {
				a, b := luminance(theme[p]), luminance(theme[behind])
				if ratio := (max(a, b) + .05) / (min(a, b) + .05); ratio < 4.5 {
					t.Errorf("%s: %s on %s has a contrast of %.2f", name, paintName[p], paintName[behind], ratio)
				}
			}
		}
	}
}

// recorder is a canvas that notes its texts.
type recorder struct {
	svg
	texts []placed
}

type placed struct {
	at   point
	face face
	size float64
	text string
}

func (r *recorder) text(at point, f face, size float64, p paint, text string) {
	r.texts = append(r.texts, placed{at, f, size, text})
}

// checkCard fails where a text lies outside of the card, is too small or has control characters, or
// where a file is not well-formed.
func checkCard(t testing.TB, c *Card) {
	t.Helper()
	var r recorder
	c.draw(&r)
	for _, x := range r.texts {
		right := x.at.x + textWidth(x.face, x.size, x.text)
		if x.at.x < margin-1 || right > width-margin+1 || x.at.y > height-16 || x.at.y < x.size {
			t.Errorf("%q lies outside, from %.0f to %.0f at %.0f", x.text, x.at.x, right, x.at.y)
		}
		if x.size < smallest {
			t.Errorf("%q has a size of %.0f", x.text, x.size)
		}
		if strings.ContainsFunc(x.text, func(c rune) bool { return !unicode.IsPrint(c) }) {
			t.Errorf("%q has control characters", x.text)
		}
	}
	for i, a := range r.texts { // no two texts overlap
		for _, b := range r.texts[i+1:] {
			apart := a.at.x+textWidth(a.face, a.size, a.text) <= b.at.x+.5 || b.at.x+textWidth(b.face, b.size, b.text) <= a.at.x+.5 ||
				a.at.y+.22*a.size <= b.at.y-.75*b.size || b.at.y+.22*b.size <= a.at.y-.75*a.size
			if !apart && a.text != "" && b.text != "" {
				t.Errorf("%q at %.0f,%.0f overlaps %q at %.0f,%.0f", a.text, a.at.x, a.at.y, b.text, b.at.x, b.at.y)
			}
		}
	}
	data := written(t, c, "card.svg")
	elements := xml.NewDecoder(bytes.NewReader(data))
	for {
		token, err := elements.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatalf("%v in %s", err, data)
		}
		if start, ok := token.(xml.StartElement); ok && !slices.Contains([]string{"svg", "title", "desc", "style", "rect", "polyline", "circle", "text"}, start.Name.Local) {
			t.Errorf("element %s", start.Name.Local)
		}
	}
	if bad := regexp.MustCompile(`NaN|Inf|https?:|url\(|@import`).Find(bytes.ReplaceAll(data, []byte("http://www.w3.org/2000/svg"), nil)); bad != nil && !strings.Contains(c.plainText(), string(bad)) {
		t.Errorf("the SVG has %q", bad)
	}
	written(t, c, "card.md")
}

func TestCardsFit(t *testing.T) {
	all := reporttest.Runs()
	maps.Copy(all, shown())
	for name, run := range all {
		t.Run(name, func(t *testing.T) { checkCard(t, cardOf(run)) })
	}
}

// hostileRun is a run in which all names are a text.
func hostileRun(text string, size float64) *result.Run {
	run := searchRun()
	run.Target.Model, run.Target.Spec = text, text
	run.Target.Server = map[string]string{"engine": text, "version": text, "accelerator": text, "dtype": text}
	run.Command = []string{"pitot", "find", text}
	run.Pitot.Version, run.Started = text, text
	run.Capacity.SLO, run.Capacity.Binding = text, text
	*run.Capacity.Load = size
	for i := range run.Points {
		p := &run.Points[i]
		if p.Load.Rate != nil && i == 0 {
			*p.Load.Rate = size
		}
		p.Requests.Errors = map[string]int{text: 3}
		if p.Throughput.OutputTokensPerS != nil {
			*p.Throughput.OutputTokensPerS = size
		}
	}
	return run
}

var hostileTexts = []string{
	"", "<script>alert(1)</script>", "]]>&quot;'\"--><text>", "a\x00b\x1b[31m\r\nc\u202e\u200bd", strings.Repeat("longmodelname", 200), strings.Repeat("many words ", 300),
	"模型 Ü 🚀 \xff\xfe", "| **x** ```\n# y `", "$(rm -rf ~)",
}

// Hostile texts and extreme numbers stay within the card.
func TestHostileTexts(t *testing.T) {
	for i, text := range hostileTexts {
		t.Run(strconv.Itoa(i), func(t *testing.T) {
			for _, size := range []float64{0, 1e-12, 12.5, 1e15, math.MaxFloat64} {
				checkCard(t, cardOf(hostileRun(text, size)))
			}
			decoded(t, written(t, cardOf(hostileRun(text, 1e15)), "card.png"))
		})
	}
}

func FuzzCard(f *testing.F) {
	for _, text := range hostileTexts {
		f.Add(text, 21.3)
	}
	f.Fuzz(func(t *testing.T, text string, size float64) { checkCard(t, cardOf(hostileRun(text, size))) })
}

// What is not known, withheld or INVALID has no number, and what has no valid interval no bar.
func TestWithheldNumbersStayWithheld(t *testing.T) {
	for name, run := range reporttest.Runs() {
		c := cardOf(run)
		for _, n := range c.Numbers {
			if strings.HasPrefix(n.Value, "~") && n.CI95 != nil {
				t.Errorf("%s: %s rests on few samples and has a bar", name, n.Name)
			}
			if run.Verdict == result.Invalid && (n.Value != "–" || n.CI95 != nil) {
				t.Errorf("%s: INVALID, and %s is %s", name, n.Name, n.Value)
			}
		}
		if run.Verdict == result.Invalid && (len(c.Curve.Dots) > 0 || len(c.Badges) == 0 || c.Badges[0].Paint != bad) {
			t.Errorf("%s: INVALID, with %d dots and badges %v", name, len(c.Curve.Dots), c.Badges)
		}
		if (c.Tone == good) && (run.Points[0].SLO == nil || run.Points[0].SLO.Met != result.Yes || run.Points[0].SLO.Near) {
			t.Errorf("%s is green", name)
		}
	}
}

// Simulations say that they are ones.
func TestSimulationsSayIt(t *testing.T) {
	run := reporttest.Runs()["slo-met"]
	run.Target.Kind = "sim"
	for _, name := range []string{"card.svg", "card.md"} {
		if text := string(written(t, cardOf(run), name)); !strings.Contains(text, "Simulation, not measured") {
			t.Errorf("%s does not say that it is a simulation:\n%s", name, text)
		}
	}
}
