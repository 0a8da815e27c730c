// Package foreign reads what other tools say of a run.
package foreign

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
)

// Claim is what another client said it measured. Times are milliseconds; nil
// is what it did not say.
type Claim struct {
	Tool      string
	Requests  *float64
	MeanTTFT  *float64
	P99TTFT   *float64
	MedianITL *float64
	P99ITL    *float64
	MeanTPOT  *float64
}

// ReadVLLM reads the result JSON of `vllm bench serve --save-result`, of the
// Python and of the Rust client.
func ReadVLLM(path string) (Claim, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return Claim{}, fmt.Errorf("read result: %w", err)
	}
	var r struct {
		Completed *float64 `json:"completed"`
		MeanTTFT  *float64 `json:"mean_ttft_ms"`
		P99TTFT   *float64 `json:"p99_ttft_ms"`
		MedianITL *float64 `json:"median_itl_ms"`
		P99ITL    *float64 `json:"p99_itl_ms"`
		MeanTPOT  *float64 `json:"mean_tpot_ms"`
	}
	if err := json.Unmarshal(data, &r); err != nil {
		return Claim{}, fmt.Errorf("read result %s: %w", path, err)
	}
	if r.MeanTTFT == nil {
		return Claim{}, fmt.Errorf("read result %s: %w", path, errNotVLLM)
	}
	return Claim{"vllm bench serve", r.Completed, r.MeanTTFT, r.P99TTFT, r.MedianITL, r.P99ITL, r.MeanTPOT}, nil
}

var errNotVLLM = errors.New("no mean_ttft_ms: not a result of vllm bench serve")
