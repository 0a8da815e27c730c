package workers

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"pitot/internal/config"
)

// shape is what an object of Kubernetes may have, by the reference of its API: what stands
// behind a "!" it must have. "string", "int" and "bool" are values, "any" is whatever there is,
// a list is one of objects.
type shape map[string]any

var (
	metadata  = shape{"name": "string", "labels": "words"}
	keyRef    = shape{"!name": "string", "!key": "string", "optional": "bool"}
	resources = shape{"!requests": "any", "!limits": "any"}
	container = shape{
		"!name": "string", "!image": "string", "args": "strings",
		"env":          []shape{{"!name": "string", "!valueFrom": shape{"!secretKeyRef": keyRef}}},
		"ports":        []shape{{"!containerPort": "int"}},
		"resources":    resources,
		"volumeMounts": []shape{{"!name": "string", "!mountPath": "string"}},
	}
	pod = shape{
		"restartPolicy": "string", "!enableServiceLinks": "false", "terminationGracePeriodSeconds": "int", "securityContext": shape{"fsGroup": "int"},
		"topologySpreadConstraints": []shape{{"!maxSkew": "int", "!topologyKey": "string", "!whenUnsatisfiable": "string", "labelSelector": shape{"matchLabels": "words"}}},
		"!containers":               []shape{container},
		"volumes":                   []shape{{"!name": "string", "emptyDir": shape{"sizeLimit": "string"}, "configMap": shape{"!name": "string"}}},
	}
	template = shape{"metadata": shape{"labels": "words"}, "!spec": pod}
	kinds    = map[string]shape{
		"v1 ConfigMap":       {"!apiVersion": "string", "!kind": "string", "!metadata": metadata, "data": "words"},
		"v1 Service":         {"!apiVersion": "string", "!kind": "string", "!metadata": metadata, "!spec": shape{"!selector": "words", "!ports": []shape{{"name": "string", "!port": "int", "targetPort": "int"}}}},
		"apps/v1 Deployment": {"!apiVersion": "string", "!kind": "string", "!metadata": metadata, "!spec": shape{"replicas": "int", "!selector": shape{"!matchLabels": "words"}, "!template": template}},
		"batch/v1 Job": {"!apiVersion": "string", "!kind": "string", "!metadata": metadata, "!spec": shape{
			"completionMode": "string", "completions": "int", "parallelism": "int", "backoffLimit": "int", "backoffLimitPerIndex": "int", "!template": template,
		}},
	}
)

// holds says what of a value is not as its shape has it.
func holds(at string, s, v any) (wrong []string) {
	bad := func(what string) []string { return []string{fmt.Sprintf("%s: %s, and is %T", at, what, v)} }
	switch s := s.(type) {
	case shape:
		m, ok := v.(map[string]any)
		if !ok {
			return bad("an object is asked for")
		}
		for k := range m {
			if s[k] == nil && s["!"+k] == nil {
				wrong = append(wrong, at+"."+k+" is no field")
			}
		}
		for k, of := range s {
			name := strings.TrimPrefix(k, "!")
			x, has := m[name]
			switch {
			case has:
				wrong = append(wrong, holds(at+"."+name, of, x)...)
			case name != k:
				wrong = append(wrong, at+"."+name+" is missing")
			}
		}
	case []shape:
		list, ok := v.([]any)
		if !ok || len(list) == 0 {
			return bad("a list is asked for")
		}
		for i, x := range list {
			wrong = append(wrong, holds(fmt.Sprintf("%s[%d]", at, i), s[0], x)...)
		}
	case string:
		ok := true
		switch s {
		case "string":
			_, ok = v.(string)
		case "int":
			_, ok = v.(int)
		case "bool":
			_, ok = v.(bool)
		case "false":
			ok = v == false
		case "words":
			m, _ := v.(map[string]any)
			ok = len(m) > 0
			for _, x := range m {
				_, is := x.(string)
				ok = ok && is
			}
		case "strings":
			list, _ := v.([]any)
			ok = len(list) > 0
			for _, x := range list {
				_, is := x.(string)
				ok = ok && is
			}
		}
		if !ok {
			return bad(s + " is asked for")
		}
	}
	return wrong
}

// A manifest is what the API of Kubernetes takes: an Indexed Job with as many places as
// workers, none of which is tried again, and no secret anywhere.
func TestManifest(t *testing.T) {
	for _, nats := range []string{"", "tls://nats.example:4222"} {
		var b bytes.Buffer
		m := &config.Manifest{Workers: 32, Image: "registry.example/pitot:1", CPUs: 4, Name: "night", NATS: nats, KeyEnv: "OPENAI_API_KEY"}
		if err := WriteManifest(&b, m, []string{"run", "http://vllm:8000", "--slo", `ttft<1s, tpot<50ms @99%`}); err != nil {
			t.Fatal(err)
		}
		found := map[string]int{}
		for d := yaml.NewDecoder(&b); ; {
			var o map[string]any
			err := d.Decode(&o)
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			kind := fmt.Sprint(o["apiVersion"], " ", o["kind"])
			if found[kind]++; kinds[kind] == nil {
				t.Fatalf("%s is no kind", kind)
			}
			for _, w := range holds(kind, kinds[kind], o) {
				t.Error(w)
			}
			spec, _ := o["spec"].(map[string]any)
			if spec["completionMode"] == nil {
				continue
			}
			if spec["completions"] != 32 || spec["parallelism"] != 32 || spec["backoffLimitPerIndex"] != 0 || spec["completionMode"] != "Indexed" {
				t.Errorf("the job has %v", spec)
			}
			of := spec["template"].(map[string]any)["spec"].(map[string]any)
			r := of["containers"].([]any)[0].(map[string]any)["resources"].(map[string]any)
			if of["restartPolicy"] != "Never" || fmt.Sprint(r["requests"]) != fmt.Sprint(r["limits"]) || r["limits"].(map[string]any)["cpu"] != 4 {
				t.Errorf("the pods have %v", of)
			}
		}
		want := map[bool]int{true: 5, false: 2}[nats == ""]
		n := 0
		for _, k := range found {
			n += k
		}
		if n != want || found["batch/v1 Job"] != 2 {
			t.Errorf("with NATS at %q: %v", nats, found)
		}
	}
}
