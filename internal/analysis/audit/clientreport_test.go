package audit

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// What a client says is found below the directory it was given, among files
// that say nothing.
func TestReportIn(t *testing.T) {
	c := &Checker{ReadReport: func(path string) (claim ClientReport, err error) {
		data, err := os.ReadFile(path)
		if err == nil {
			err = json.Unmarshal(data, &claim)
		}
		if err == nil && claim.Tool == "" {
			err = errors.New("no result")
		}
		return claim, err
	}}
	dir := t.TempDir()
	if c.reportIn(dir) != nil {
		t.Error("a report in an empty directory")
	}
	for name, text := range map[string]string{
		"a/server_metrics_export.json":  `{"metrics":[]}`,
		"a/profile_export_aiperf.json":  `{"Tool":"aiperf","Requests":7,"MeanTTFT":51.5}`,
		"a/z.json":                      `{`,
		"a/profile_export_console.text": `TTFT 5`,
	} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	got := c.reportIn(dir)
	if got == nil || got.Tool != "aiperf" || *got.Requests != 7 || *got.MeanTTFT != 51.5 || got.P99ITL != nil {
		t.Errorf("%+v", got)
	}
}
