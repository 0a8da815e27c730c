// Ratchet counts what makes the program larger and harder to read, and compares each figure with
// its limit in bench/ratchet/limits.json. It fails where a figure is worse than its limit.
//
//	go run ./bench/ratchet           print all figures, and check them
//	go run ./bench/ratchet -update   tighten the limits of figures that are better now
//	go run ./bench/ratchet -build    print the processor time of a cold build, which has no limit
//
// A limit is rounded to three digits, so that a small fix needs no other limit. -update never
// loosens one: that is done by hand, in the commit that needs it.
package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

const limitsPath = "bench/ratchet/limits.json"

// figure is one number, and in which direction it is better.
type figure struct {
	name   string
	value  float64
	higher bool // more is better
}

func main() {
	log.SetFlags(0)
	update := flag.Bool("update", false, "tighten the limits of figures that are better now, and add those of new figures")
	build := flag.Bool("build", false, "print the processor time of a cold build instead, which takes minutes")
	flag.Parse()
	if *build {
		if err := coldBuild(os.Stdout); err != nil {
			log.Fatal(err)
		}
		return
	}
	figures, err := countAll(".")
	if err != nil {
		log.Fatal(err)
	}
	limits, err := readLimits(limitsPath)
	if err != nil {
		log.Fatal(err)
	}
	worse := compare(os.Stdout, figures, limits, *update)
	if *update {
		if err := writeLimits(limitsPath, tightened(figures, limits)); err != nil {
			log.Fatal(err)
		}
	}
	if len(worse) > 0 {
		log.Fatalf("worse than %s allows:\n  %s", limitsPath, strings.Join(worse, "\n  "))
	}
}

// readLimits reads the limits, by the names of their figures.
func readLimits(path string) (map[string]float64, error) {
	text, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return map[string]float64{}, nil
	}
	if err != nil {
		return nil, err
	}
	var limits map[string]float64
	if err := json.Unmarshal(text, &limits); err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	return limits, nil
}

// writeLimits writes them, sorted by name.
func writeLimits(path string, limits map[string]float64) error {
	text, err := json.MarshalIndent(limits, "", "\t")
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(text, '\n'), 0o644)
}

// limit returns the limit that a figure has after -update: the value with three digits, rounded
// to the side where it is no better.
func (f figure) limit() float64 {
	if f.value == 0 {
		return 0
	}
	digits := 2 - int(math.Floor(math.Log10(math.Abs(f.value))))
	if digits <= 0 {
		unit := math.Pow10(-digits)
		return roundTo(f.value/unit, f.higher) * unit
	}
	unit := math.Pow10(digits)
	return roundTo(f.value*unit, f.higher) / unit
}

// roundTo rounds down or up, but keeps a value that floating point missed by little.
func roundTo(x float64, down bool) float64 {
	if near := math.Round(x); math.Abs(x-near) < 1e-9 {
		return near
	}
	if down {
		return math.Floor(x)
	}
	return math.Ceil(x)
}

// worseThan reports whether a figure is on the wrong side of a limit.
func (f figure) worseThan(limit float64) bool {
	if f.higher {
		return f.value < limit
	}
	return f.value > limit
}

// compare prints all figures with their limits, and returns a line for each that fails. Figures
// without a limit, and limits without a figure, fail unless the limits are being updated.
func compare(w io.Writer, figures []figure, limits map[string]float64, update bool) (worse []string) {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	defer table.Flush()
	known := map[string]bool{}
	for _, f := range figures {
		known[f.name] = true
		limit, has := limits[f.name]
		note := ""
		switch {
		case !has:
			note = "has no limit"
			if !update {
				worse = append(worse, fmt.Sprintf("%s: %s, and it has no limit: -update", f.name, number(f.value)))
			}
		case f.worseThan(limit):
			note = "WORSE"
			worse = append(worse, fmt.Sprintf("%s: %s, the limit is %s", f.name, number(f.value), number(limit)))
		case f.limit() != limit:
			note = "better: -update"
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t %s\n", f.name, number(f.value), number(limit), note)
	}
	for name := range limits {
		if !known[name] && !update {
			worse = append(worse, name+": there is no such figure any more: -update")
		}
	}
	slices.Sort(worse)
	return worse
}

// tightened returns the limits after -update.
func tightened(figures []figure, limits map[string]float64) map[string]float64 {
	out := map[string]float64{}
	for _, f := range figures {
		old, has := limits[f.name]
		out[f.name] = f.limit()
		if has && f.worseThan(old) {
			out[f.name] = old
		}
	}
	return out
}

// number formats a figure with commas.
func number(x float64) string {
	if x != math.Trunc(x) {
		return fmt.Sprintf("%.4g", x)
	}
	s := fmt.Sprintf("%.0f", x)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// coldBuild builds the program with an empty build cache.
func coldBuild(w io.Writer) error {
	dir, err := os.MkdirTemp("", "ratchet-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	program := filepath.Join(dir, "pitot")
	build := exec.Command("go", "build", "-trimpath", "-ldflags=-s -w", "-o", program, "./cmd/pitot")
	build.Env = append(os.Environ(), "CGO_ENABLED=0", "GOCACHE="+filepath.Join(dir, "cache"))
	build.Stderr = os.Stderr
	begin := time.Now()
	if err := build.Run(); err != nil {
		return fmt.Errorf("build the program: %w", err)
	}
	is, err := os.Stat(program)
	if err != nil {
		return err
	}
	spent := build.ProcessState.UserTime() + build.ProcessState.SystemTime()
	fmt.Fprintf(w, "cold build: %.0f s of processors, %.0f s by the clock; %s bytes\n", spent.Seconds(), time.Since(begin).Seconds(), number(float64(is.Size())))
	return nil
}

// sortedBy returns the figures of a map, each name after a prefix.
func sortedBy(prefix string, values map[string]float64) (out []figure) {
	for name, value := range values {
		out = append(out, figure{name: prefix + name, value: value})
	}
	slices.SortFunc(out, func(a, b figure) int { return cmp.Compare(a.name, b.name) })
	return out
}
