package result

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"pitot/internal/data/metric"
	v1 "pitot/internal/data/result/v1"
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

// What version 1 wrote is read, and is a run of this version.
func TestDecodeV1(t *testing.T) {
	dirs, err := filepath.Glob("../testdata/v1/*/run.json")
	expected, err2 := filepath.Glob("../testdata/v1/*.expected.json")
	paths := append(dirs, expected...)
	if err != nil || err2 != nil || len(paths) != 5 {
		t.Fatal(paths, err, err2)
	}
	old, now := contract(t, v1.JSONSchema()), contract(t, JSONSchema())
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := validate(t, old, data); err != nil {
			t.Errorf("%s is not of its own contract: %v", path, err)
		}
		run, err := Decode(data)
		if err != nil {
			t.Errorf("%s: %v", path, err)
			continue
		}
		again, err := json.Marshal(run)
		if err != nil {
			t.Fatal(err)
		}
		if err := validate(t, now, again); err != nil {
			t.Errorf("%s, converted: %v", path, err)
		}
	}
}

// fill gives every field below v a value.
func fill(v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem())
	case reflect.Struct:
		for i := range v.NumField() {
			fill(v.Field(i))
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(v.Index(0))
	case reflect.Array:
		for i := range v.Len() {
			fill(v.Index(i))
		}
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		value := reflect.New(v.Type().Elem()).Elem()
		fill(value)
		v.SetMapIndex(reflect.ValueOf("key").Convert(v.Type().Key()), value)
	case reflect.String:
		v.SetString("x")
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Float64:
		v.SetFloat(1)
	case reflect.Int, reflect.Int64:
		v.SetInt(1)
	case reflect.Uint64, reflect.Uint8:
		v.SetUint(1)
	default:
		panic(fmt.Sprint("no value for ", v.Type()))
	}
}

// empty names the fields below v that have no value.
func empty(at string, v reflect.Value) (out []string) {
	switch {
	case v.IsZero():
		return []string{at}
	case v.Type() == reflect.TypeFor[*metric.Metric](): // of the catalogue
		return nil
	case v.Type() == reflect.TypeFor[Distribution]() && v.Interface().(Distribution).Summary == nil: // one that version 1 did not have
		return nil
	case v.Kind() == reflect.Pointer:
		return empty(at, v.Elem())
	case v.Kind() == reflect.Struct:
		for i := range v.NumField() {
			out = append(out, empty(at+"."+v.Type().Field(i).Name, v.Field(i))...)
		}
	case v.Kind() == reflect.Slice:
		for i := range v.Len() {
			out = append(out, empty(fmt.Sprintf("%s[%d]", at, i), v.Index(i))...)
		}
		if v.Len() == 0 {
			out = append(out, at)
		}
	case v.Kind() == reflect.Map:
		for k, e := range v.Seq2() {
			out = append(out, empty(fmt.Sprintf("%s[%v]", at, k), e)...)
		}
		if v.Len() == 0 {
			out = append(out, at)
		}
	}
	return out
}

// The conversion leaves nothing behind: a version 1 run in which everything has
// a value gives one in which everything has.
func TestFromV1IsWhole(t *testing.T) {
	var old v1.Run
	fill(reflect.ValueOf(&old).Elem())
	if left := empty("v1", reflect.ValueOf(old)); len(left) > 0 {
		t.Fatal("not filled:", left)
	}
	old.Points[0].SLO.Limits[0].Spec, old.Points[0].SLO.Why = "p99 x", "p99 x: y" // as version 1 named the limit that decided
	run := FromV1(old)
	// What version 1 had not: its checks were words.
	since := []string{".ServerMissing", "run.Findings", ".LeftOut", ".Energy", ".Cost", ".Basis", ".Price", ".Discount", ".CachedUnknown", ".USDPerHour", ".USDPerMInput", ".USDPerMTokens", ".USDPerMCommon", ".USDPerRequest", ".USDPerGoodRequest", ".Electricity", "Cost.CI95", ".Bounds", ".SLO.Violations", ".SLO.Cluster", "Capacity.PerGPU", "Capacity.PerMW", ".Crossing", ".USDPerMGoodOutput", ".Forecast", ".Floor", ".Replay", ".Excluded", ".Counted", ".Window", ".Server", "run.Damage", "run.Unplanned", "run.Sent", ".Pooled", ".Checks[0].Value", ".Checks[0].Limit", ".Checks[0].Unit", ".Checks[0].Case", ".Checks[0].Detail", ".Load.Expected", ".Load.Turns", ".Load.LongestTurns", ".Load.Retry", ".Load.RespectLimits", ".Retries", ".RateLimits", ".Answers", ".OverTime", ".Sessions", ".PrefixCache", ".CacheEffect", ".Limits[0].Class", ".Classes[key].SLO", ".Trail[0].Due", "Capacity.Continued", ".Trail[0].Launch", ".Trail[0].Earlier", ".Trail[0].Seen", ".Trail[0].Carries", ".Trail[0].Cut", ".Verified.Lower", ".Verified.Errors", "Capacity.Unmet", ".Workers", ".Checks[0].Worker", ".Requests.LostWithWorker", ".Adaptations", ".SkippedEvents"}
	for _, field := range empty("run", reflect.ValueOf(run)) {
		if slices.ContainsFunc(since, func(s string) bool { return strings.HasSuffix(field, s) }) {
			continue
		}
		t.Errorf("%s comes out empty", field)
	}
	got := 0
	for _, d := range run.Points[0].Metrics.List {
		if d.Summary != nil {
			got++
		}
	}
	// All summaries, those of the service view among them, and the reasons.
	if had := reflect.TypeFor[v1.Metrics]().NumField() - 2 + reflect.TypeFor[v1.Service]().NumField(); got != had {
		t.Errorf("%d metrics of %d", got, had)
	}
}

func TestDecodeRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		data  string
		want  string
		newer bool
		known bool // the schema is what is wrong
	}{
		"newer":        {`{"schema": "pitot.run/v9", "points": 3}`, "pitot.run/v9", true, true},
		"other":        {`{"schema": "pitot.baseline/v1"}`, "pitot.baseline/v1", false, true},
		"none":         {`{}`, "names no schema", false, true},
		"cut":          {`{"schema": "pitot.run/v2", "points": [`, "unexpected end", false, false},
		"another type": {`{"schema": "pitot.run/v1", "points": 3}`, "points", false, false},
		"no document":  {`x`, "invalid character", false, false},
	} {
		run, err := Decode([]byte(c.data))
		var schema *SchemaError
		if run != nil || err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, %v", name, run, err)
		} else if known := errors.As(err, &schema); known != c.known || known && schema.Newer() != c.newer {
			t.Errorf("%s: %#v", name, err)
		}
	}
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte(`{"schema": "pitot.run/v1", "points": [{"slo": {"limits": [{}]}, "classes": {"a": {}}, "metrics": {"ttft_ms": {"n": 3}}}]}`))
	f.Add([]byte(`{"schema": "pitot.run/v2", "points": [{}]}`))
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
