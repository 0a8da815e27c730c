// Package local asks the machine that a server runs on, where no exporter tells of it:
// nvidia-smi and the kernel's files of AMD's GPUs for power, activity, clocks and
// temperature, and /proc for the processor time of the server's processes. What it tells
// goes the way of a page of metrics: a [scrape.Teller] for each.
package local

import (
	"net"
	"slices"

	"pitot/internal/telemetry"
)

// Names of the sources in the records.
const (
	SourceNVIDIA = "nvidia-smi"
	SourceAMD    = "amdgpu"
	SourceProc   = "proc"
)

// IsThisMachine says whether an address (host:port) is of this machine: a loopback, or one of the
// addresses that it has itself.
func IsThisMachine(address string) bool {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return false
	}
	if host == "localhost" {
		return true
	}
	ip := net.ParseIP(host)
	if ip == nil {
		return false // a name is nobody's word for where it is
	}
	if ip.IsLoopback() {
		return true
	}
	own, _ := net.InterfaceAddrs()
	return slices.ContainsFunc(own, func(a net.Addr) bool {
		n, ok := a.(*net.IPNet)
		return ok && n.IP.Equal(ip)
	})
}

// gpu holds the values of one GPU.
type gpu map[telemetry.Signal]float64

// combineGPUs returns the values of several GPUs as one reading. A value that one of them lacks is
// left out entirely: a sum over some would pass for that of all.
func combineGPUs(source string, all []gpu) telemetry.Reading {
	r := telemetry.Reading{Sources: []string{source}, Values: map[telemetry.Signal]float64{telemetry.GPUs: float64(len(all))}}
	for _, d := range telemetry.AllSignals() {
		var values []float64
		for _, one := range all {
			if x, ok := one[d.Signal]; ok {
				values = append(values, x)
			}
		}
		if len(values) != len(all) {
			continue
		}
		if x, ok := telemetry.CombineSources(d.Signal, values); ok {
			r.Values[d.Signal] = x
		}
	}
	return r
}
