package local

import (
	"context"
	"errors"
	"io/fs"
	"math"
	"path"
	"strconv"
	"strings"
	"time"

	"pitot/internal/clock"
	"pitot/internal/telemetry"
	"pitot/internal/telemetry/scrape"
)

// AMD reads AMD's GPUs from the kernel, in files that the driver amdgpu has for each
// (docs.kernel.org/gpu/amdgpu/thermal.html). No tool runs for it: amd-smi and rocm-smi start a
// Python for each answer.
type AMD struct {
	files fs.FS // /sys
	cards []string
}

// amdFile is one of a card's files.
type amdFile struct {
	signal telemetry.Signal
	scale  float64
	names  []string // the first that is there, under the card's device or its hwmon
}

var amdFiles = []amdFile{
	{telemetry.GPUPower, 1e-6, []string{"hwmon/*/power1_average", "hwmon/*/power1_input"}},
	{telemetry.GPUPowerLimit, 1e-6, []string{"hwmon/*/power1_cap"}},
	{telemetry.GPUActive, 0.01, []string{"gpu_busy_percent"}},
	{telemetry.GPUMemoryActive, 0.01, []string{"mem_busy_percent"}},
	{telemetry.GPUMemory, 1, []string{"mem_info_vram_used"}},
	{telemetry.GPUMemoryTotal, 1, []string{"mem_info_vram_total"}},
	{telemetry.GPUClock, 1e-6, []string{"hwmon/*/freq1_input"}},
	{telemetry.GPUMemoryClock, 1e-6, []string{"hwmon/*/freq2_input"}},
	{telemetry.GPUTemperature, 1e-3, []string{"hwmon/*/temp2_input", "hwmon/*/temp1_input"}}, // the junction, else the edge
}

const amdVendor = "0x1002"

// FindAMD finds the cards; nil where there are none that tell of their power.
func FindAMD(files fs.FS) *AMD {
	devices, _ := fs.Glob(files, "class/drm/card[0-9]*/device/vendor") // malformed alone is an error
	a := &AMD{files: files}
	for _, v := range devices {
		vendor, err := fs.ReadFile(files, v)
		dir := path.Dir(v)
		if err != nil || strings.TrimSpace(string(vendor)) != amdVendor || strings.Contains(path.Base(path.Dir(dir)), "-") { // card0-DP-1 is a plug
			continue
		}
		if _, ok := readNumber(files, dir, amdFiles[0].names); ok {
			a.cards = append(a.cards, dir)
		}
	}
	if len(a.cards) == 0 {
		return nil
	}
	return a
}

// readNumber reads the first of some files that is there.
func readNumber(files fs.FS, dir string, names []string) (float64, bool) {
	for _, name := range names {
		found, _ := fs.Glob(files, path.Join(dir, name))
		if len(found) == 0 {
			continue
		}
		data, err := fs.ReadFile(files, found[0])
		if err != nil {
			continue
		}
		x, err := strconv.ParseFloat(strings.TrimSpace(string(data)), 64)
		if err == nil && x >= 0 && !math.IsInf(x, 0) && !math.IsNaN(x) {
			return x, true
		}
	}
	return 0, false
}

// Tell reads the files of all cards.
func (a *AMD) Tell(context.Context) (scrape.Asked, error) {
	begin := clock.Now()
	var all []gpu
	for _, card := range a.cards {
		one := gpu{}
		for _, f := range amdFiles {
			if x, ok := readNumber(a.files, card, f.names); ok {
				one[f.signal] = x * f.scale
			}
		}
		all = append(all, one)
	}
	end := clock.Now()
	reading := combineGPUs(SourceAMD, all)
	asked := scrape.Asked{Reading: reading, At: begin + (end-begin)/2, Took: time.Duration(end - begin), Work: time.Duration(end - begin)}
	if _, ok := reading.Values[telemetry.GPUPower]; !ok {
		return asked, errors.New("a card no longer reports its power")
	}
	return asked, nil
}

// Close has nothing to end.
func (a *AMD) Close() {}
