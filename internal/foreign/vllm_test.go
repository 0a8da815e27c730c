package foreign

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

func TestReadVLLM(t *testing.T) {
	write := func(text string) string {
		path := filepath.Join(t.TempDir(), "r.json")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	c, err := ReadVLLM(write(`{"completed": 100, "mean_ttft_ms": 52.1, "p99_ttft_ms": 71.0, "median_itl_ms": 10.0, "p99_itl_ms": 12.5, "mean_tpot_ms": 10.1, "request_rate": "inf"}`))
	if err != nil || *c.Requests != 100 || *c.MeanTTFT != 52.1 || *c.P99ITL != 12.5 {
		t.Errorf("got %+v, %v", c, err)
	}
	if _, err := ReadVLLM(write(`{"a":1}`)); !errors.Is(err, errNotVLLM) {
		t.Errorf("another JSON: %v", err)
	}
	if _, err := ReadVLLM(write(`{`)); err == nil {
		t.Error("broken JSON is no error")
	}
	if _, err := ReadVLLM("nowhere.json"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("missing file: %v", err)
	}
}
