package choose

import (
	"slices"
	"testing"
)

// Of deployments that cost the same, those with published weights come before quantized ones.
func TestEqualPrices(t *testing.T) {
	option := func(dtype string, price, capacity float64) Option {
		return Option{DType: dtype, Engines: 1, Capacity: capacity, candidate: &Candidate{EngineShape: EngineShape{TensorParallel: 1, Offer: Offer{USDPerHour: price}}}}
	}
	r := race{wanted: &Wanted{Rate: 5}, choice: &Choice{Options: []Option{option("fp8", 2, 20), option("bf16", 2, 10), option("bf16", 3, 40), option("fp8", 1, 6)}}}
	r.sort()
	var got []string
	for _, o := range r.choice.Options {
		got = append(got, o.DType)
	}
	if want := []string{"fp8", "bf16", "fp8", "bf16"}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}
