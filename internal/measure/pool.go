package measure

import (
	"maps"
	"math"

	"pitot/internal/data/result"
	"pitot/internal/stat"
)

// Pooled is what the other loads of a run tell of the intervals at one load: a
// run's own over-dispersion is small just when it met no slow period, and such
// a run is the one that is wrong.
type Pooled struct {
	Phi map[string]float64 // of being above a percentile: "ttft_ms.p99"
	Why result.Reason      // there is none, because; "" for a single load
}

const (
	// pooledShare is how much of the highest throughput a load may have for its
	// percentiles to have intervals. Beyond, violations come in bursts so rare
	// that no single window shows how rare.
	pooledShare = .6
	// neighbouring loads differ by no more than this factor.
	neighbouring = 2.001
)

// Why a load of several has no interval.
var (
	nearSaturation = result.Reason{Code: result.NearSaturation}
	unsaturated    = result.Reason{Code: result.SaturationBlind}
	noNeighbour    = result.Reason{Code: result.NoNeighbour}
)

// Pool gives for each point of a run what its neighbours' over-dispersions
// amount to: the largest of those at the same load, at the next below and at
// the next above. The one above, or a repeat, must have one: dispersion grows
// with load.
func Pool(points []result.Point) []Pooled {
	pooled := make([]Pooled, len(points))
	if len(points) < 2 {
		return pooled
	}
	top, saturated := 0., false
	for i := range points {
		top = max(top, served(&points[i]))
		saturated = saturated || points[i].Stability == stat.Unstable
	}
	for i := range points {
		p := &points[i]
		if served(p) > pooledShare*top {
			if pooled[i].Why = nearSaturation; !saturated {
				pooled[i].Why = unsaturated
			}
			continue
		}
		pooled[i].Phi, pooled[i].Why = map[string]float64{}, noNeighbour
		above := map[string]bool{}
		for _, q := range neighbours(points, i) {
			for name, phi := range dispersions(&q.Metrics) {
				pooled[i].Phi[name] = stat.PooledOverdispersion(pooled[i].Phi[name], phi)
				above[name] = above[name] || q.Load.Value() >= p.Load.Value()
			}
		}
		maps.DeleteFunc(pooled[i].Phi, func(name string, _ float64) bool { return !above[name] })
	}
	return pooled
}

// neighbours are the points at the load of one, and those at the next load
// below and above it, as far as these are near.
func neighbours(points []result.Point, at int) (near []*result.Point) {
	load := points[at].Load.Value()
	below, above := 0., math.Inf(1)
	for i := range points {
		switch x := points[i].Load.Value(); {
		case x < load && x*neighbouring >= load:
			below = max(below, x)
		case x > load && x <= load*neighbouring:
			above = min(above, x)
		}
	}
	for i := range points {
		if x := points[i].Load.Value(); i != at && (x == load || x == below || x == above) {
			near = append(near, &points[i])
		}
	}
	return near
}

func served(p *result.Point) float64 {
	if p.Throughput.RequestsPerS == nil {
		return 0
	}
	return *p.Throughput.RequestsPerS
}

// dispersions are a point's own.
func dispersions(m *result.Metrics) map[string]float64 {
	all := map[string]float64{}
	for _, d := range m.List {
		if d.Summary == nil {
			continue
		}
		for percentile, phi := range d.Phi {
			all[d.Key+"."+percentile] = phi
		}
	}
	return all
}

// Pool takes what the other loads of the run tell; [Fold.Point] then uses it.
func (f *Fold) Pool(p Pooled) { f.setup.Pooled = p }
