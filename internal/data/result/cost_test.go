package result

import (
	"math"
	"testing"
)

func TestCost(t *testing.T) {
	// Two GPUs of 1.80 $/h cost a dollar in 1,000 seconds, and make 5 million tokens
	// meanwhile.
	if usd := USDOfGPUs(2, 1.8, 1000); math.Abs(usd-1) > 1e-12 {
		t.Errorf("%g $", usd)
	}
	if usd, ok := USDPerMillion(2, 1.8, 5000); !ok || math.Abs(usd-.2) > 1e-12 {
		t.Errorf("%g $ a million, %v", usd, ok)
	}
	for _, c := range []struct {
		gpus        int
		price, rate float64
	}{{0, 1, 1}, {1, 0, 1}, {1, 1, 0}, {1, 1, math.NaN()}} {
		if usd, ok := USDPerMillion(c.gpus, c.price, c.rate); ok || usd != 0 {
			t.Errorf("%+v: %g", c, usd)
		}
	}
}
