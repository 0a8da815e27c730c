package telemetry

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// Every series of a page is read as the Python client's own parser reads it.
func TestParserAgainstReference(t *testing.T) {
	for _, name := range []string{"vllm-0.32", "odd", "open"} {
		var got []string
		page, err := os.ReadFile(filepath.Join("testdata", name+".prom"))
		if err != nil {
			t.Fatal(err)
		}
		eachSeriesLine(page, func(series, rest []byte) {
			of, x, ok := parseSeries(rest, nil)
			if !ok {
				t.Errorf("%s: %s%s cannot be read", name, series, rest)
			}
			got = append(got, canonical(string(series), of, x))
		})
		data, err := os.ReadFile(filepath.Join("testdata", name+".series.json"))
		if err != nil {
			t.Fatal(err)
		}
		var want []string
		for s := bufio.NewScanner(bytes.NewReader(data)); s.Scan(); {
			var series string
			var of map[string]string
			var value string
			if err := json.Unmarshal(s.Bytes(), &[]any{&series, &of, &value}); err != nil {
				t.Fatal(err)
			}
			var list labels
			for k, v := range of {
				list = append(list, label{k, v})
			}
			x, err := strconv.ParseFloat(value, 64)
			if err != nil {
				t.Fatal(err)
			}
			want = append(want, canonical(series, list, x))
		}
		slices.Sort(got)
		slices.Sort(want)
		if len(want) == 0 || !slices.Equal(got, want) {
			for i := range min(len(got), len(want)) {
				if got[i] != want[i] {
					t.Errorf("%s: %s, the reference has %s", name, got[i], want[i])
					break
				}
			}
			t.Errorf("%s: %d series, the reference has %d", name, len(got), len(want))
		}
	}
}

func canonical(series string, of labels, x float64) string {
	slices.SortFunc(of, func(a, b label) int { return strings.Compare(a.name, b.name) })
	return fmt.Sprintf("%s %q %v", series, of, x)
}
