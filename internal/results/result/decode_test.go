package result

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

func contract(t *testing.T, text string) *jsonschema.Schema {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	if err := c.AddResource("run.json", doc); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile("run.json")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func validate(t *testing.T, s *jsonschema.Schema, data []byte) error {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(strings.NewReader(string(data)))
	if err != nil {
		t.Fatal(err)
	}
	return s.Validate(doc)
}

// Every stored run is read, and is of the contract.
func TestStoredRuns(t *testing.T) {
	stored := contract(t, jsonSchema(t))
	var paths []string
	for _, pattern := range []string{"../testdata/*/run.json", "../testdata/*.expected.json", "../../analysis/predict/testdata/*/run.json"} {
		found, err := filepath.Glob(pattern)
		if err != nil || len(found) == 0 {
			t.Fatal(pattern, err)
		}
		paths = append(paths, found...)
	}
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := validate(t, stored, data); err != nil {
			t.Errorf("%s: %v", path, err)
		}
		if _, err := Decode(data); err != nil {
			t.Errorf("%s: %v", path, err)
		}
	}
}

func TestDecodeRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		data  string
		want  string
		known bool // the schema is what is wrong
	}{
		"another version": {`{"schema": "pitot.run/v9", "points": 3}`, "it has schema pitot.run/v9; this pitot reads pitot.run/v1", true},
		"other":           {`{"schema": "pitot.baseline/v1"}`, "pitot.baseline/v1", true},
		"none":            {`{}`, "names no schema", true},
		"cut":             {`{"schema": "pitot.run/v1", "points": [`, "unexpected end", false},
		"another type":    {`{"schema": "pitot.run/v1", "points": 3}`, "points", false},
		"no document":     {`x`, "invalid character", false},
	} {
		run, err := Decode([]byte(c.data))
		var schema *SchemaError
		if run != nil || err == nil || !strings.Contains(err.Error(), c.want) || errors.As(err, &schema) != c.known {
			t.Errorf("%s: %v, %v", name, run, err)
		}
	}
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte(`{"schema": "pitot.run/v1", "points": [{"slo": {"limits": [{}]}, "classes": {"a": {}}, "metrics": {"ttft_ms": {"n": 3}}}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		run, err := Decode(data)
		if (run == nil) == (err == nil) {
			t.Errorf("%v, %v", run, err)
		}
		if run != nil && run.Schema != Schema {
			t.Errorf("schema %q", run.Schema)
		}
	})
}
