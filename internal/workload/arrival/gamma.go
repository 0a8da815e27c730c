package arrival

import (
	"fmt"
	"math"

	"pitot/internal/workload/seed"
)

// Shapes that a gamma process can have. Below the least nearly all requests
// come in one moment, above the most they are evenly spaced.
const (
	MinShape = 0.01
	MaxShape = 1000
)

// gamma keeps the time as poisson does.
type gamma struct {
	draws seed.Rand
	shape float64
	scale float64 // nanoseconds
	at    instant
}

// NewGamma is a renewal process whose gaps follow a gamma distribution of that
// shape with mean 1/rate: their coefficient of variation is 1/√shape. Shape 1
// is a Poisson process, though with other times than NewPoisson's; below 1
// requests come in bursts, above 1 more evenly. It is what vLLM calls
// burstiness.
func NewGamma(rate, shape float64, start uint64) (Process, error) {
	if err := checkRate(rate); err != nil {
		return nil, err
	}
	if !(shape >= MinShape && shape <= MaxShape) {
		return nil, fmt.Errorf("shape %g is out of range: want %g to %d", shape, MinShape, MaxShape)
	}
	return &gamma{draws: seed.Rand(seed.Mix(start)), shape: shape, scale: 1e9 / rate / shape}, nil
}

func (g *gamma) Next() int64 {
	return g.at.addGap(float64(g.draw() * g.scale))
}

func (g *gamma) uniform() float64 { return seed.Float(g.draws.Uint64()) }

// draw is Marsaglia and Tsang's method ("A simple method for generating gamma
// variables", ACM TOMS 26, 2000); below shape 1 by their remark that
// G(k) = G(k+1)·U^(1/k). The conversions keep the compiler from fusing a
// product with a sum, which would round differently on other processors.
func (g *gamma) draw() float64 {
	k, boost := g.shape, 1.0
	if k < 1 {
		boost = math.Pow(g.uniform(), 1/k)
		k++
	}
	d := k - 1./3
	c := 1 / math.Sqrt(9*d)
	for {
		x := math.Sqrt2 * math.Erfinv(float64(2*g.uniform())-1)
		v := 1 + float64(c*x)
		if v <= 0 {
			continue
		}
		v = v * v * v
		if math.Log(g.uniform()) < float64(x*x/2)+d-float64(d*v)+float64(d*math.Log(v)) {
			return d * v * boost
		}
	}
}
