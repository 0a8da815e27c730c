package report

import (
	"reflect"
	"testing"

	"pitot/internal/analysis/choose"
)

// Options that cost the same are named as such, and not as less likely to be the cheapest.
func TestTieInPrice(t *testing.T) {
	bf16 := choose.Option{Spec: "llama-3.1-8b@h100", Accelerator: "h100", Engine: "vllm", TensorParallel: 1, DType: "bf16", Capacity: 26, Engines: 1, GPUs: 1, PerHour: 3.99, Cheapest: .999}
	fp8 := bf16
	fp8.DType, fp8.Quantised, fp8.Capacity = "fp8", true, 35.9
	dearer := bf16
	dearer.Accelerator, dearer.PerHour, dearer.Cheapest = "b200", 5, .2
	got := howSure(&choose.Choice{Rate: 2, Options: []choose.Option{bf16, fp8, dearer}})
	want := []ChoiceFact{
		{"Cheapest?", []string{"over 99 % that no other option is cheaper", "not ruled out: 1 × b200 bf16 (20 %)"}},
		{"Same price", []string{"1 × h100 fp8 carries 35.9 req/s, but changes the model's answers"}},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	fp8.PerHour, bf16.PerHour, fp8.GPUs = 0, 0, 2 // prices that are not known: GPUs count
	if costsTheSame(&choose.Choice{Rate: 2}, &bf16, &fp8) || !costsTheSame(&choose.Choice{Rate: 2}, &bf16, &bf16) || costsTheSame(&choose.Choice{}, &bf16, &bf16) {
		t.Error("GPUs do not count where prices are not known, or a rate is wanted that is not")
	}
}
