package result

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
)

func TestIndent(t *testing.T) {
	type of struct {
		Why   *Reason  `json:"why,omitempty"`
		All   []Reason `json:"all"`
		After string   `json:"after"`
	}
	v := of{Why: &Reason{Code: FewRequests, N: 3, Class: "a {b}\n}"}, All: []Reason{{Code: FewRequests}, {Code: FewRequests, N: 1}}, After: "{\n\"code\": "}
	data, err := Indent(v)
	if err != nil {
		t.Fatal(err)
	}
	var back of
	if err := json.Unmarshal(data, &back); err != nil || !reflect.DeepEqual(back, v) {
		t.Errorf("%v, %+v from\n%s", err, back, data)
	}
	if n := strings.Count(string(data), "\n"); n != 8 {
		t.Errorf("%d lines:\n%s", n, data)
	}
}
