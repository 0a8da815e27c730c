package audit

import (
	"os"
	"path/filepath"
	"testing"
)

// What a client says is found below the directory it was given, among files
// that say nothing.
func TestClaimIn(t *testing.T) {
	dir := t.TempDir()
	if claimIn(dir) != nil {
		t.Error("a claim in an empty directory")
	}
	for name, text := range map[string]string{
		"a/server_metrics_export.json":  `{"aiperf_version":"0.13.0","metrics":[]}`,
		"a/profile_export_aiperf.json":  `{"aiperf_version":"0.13.0","request_count":{"unit":"requests","avg":7},"time_to_first_token":{"unit":"ms","avg":51.5,"p99":60}}`,
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
	c := claimIn(dir)
	if c == nil || c.Tool != "aiperf" || *c.Requests != 7 || *c.MeanTTFT != 51.5 || *c.P99TTFT != 60 || c.P99ITL != nil {
		t.Errorf("%+v", c)
	}
}
