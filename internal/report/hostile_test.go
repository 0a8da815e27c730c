package report

import (
	"fmt"
	"io"
	"reflect"
	"strings"
	"testing"
	"unicode"

	"pitot/internal/report/reporttest"
	"pitot/internal/results/result"
)

// hostileText tries to control a terminal, to be HTML, a link and an image in Markdown, and to
// turn the direction of text.
const hostileText = "x\x1b]0;PWN\x07\x1b[8m\u009b31m\u202e<script>alert(1)</script><img src=x onerror=y>[a](javascript:b)![c](d)`e`"

// fillTexts sets every string in a value to a hostile text.
func fillTexts(v reflect.Value) {
	switch v.Kind() {
	case reflect.String:
		if v.CanSet() {
			v.SetString(hostileText)
		}
	case reflect.Pointer:
		if !v.IsNil() {
			fillTexts(v.Elem())
		}
	case reflect.Struct:
		if strings.HasSuffix(v.Type().PkgPath(), "results/metric") { // the catalogue is the program's own
			return
		}
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				fillTexts(v.Field(i))
			}
		}
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			return
		}
		for i := range v.Len() {
			fillTexts(v.Index(i))
		}
	case reflect.Map:
		for _, k := range v.MapKeys() {
			x := reflect.New(v.Type().Elem()).Elem()
			x.Set(v.MapIndex(k))
			fillTexts(x)
			v.SetMapIndex(k, x)
			if k.Kind() == reflect.String {
				v.SetMapIndex(reflect.ValueOf(hostileText).Convert(k.Type()), x)
			}
		}
	}
}

// Comparisons neither.
func TestHostileComparison(t *testing.T) {
	for name, c := range reporttest.Comparisons(t) {
		words := c.Verdicts
		fillTexts(reflect.ValueOf(c).Elem())
		c.Verdicts = words
		checkHarmless(t, name, BuildComparison(c))
	}
}

// Whatever stands in a run.json, it neither controls a terminal nor becomes markup.
func TestHostileRun(t *testing.T) {
	for name, run := range reporttest.Runs() {
		fillTexts(reflect.ValueOf(run).Elem())
		for i := range run.Points { // what code decides on stays as it was, but for one
			run.Points[i].Verdict = result.Verdict(hostileText)
		}
		checkHarmless(t, name, Build(run, hostileText))
	}
}

// checkHarmless writes a model in both formats, and looks for controls and markup.
func checkHarmless(t *testing.T, name string, m interface {
	WriteTerminal(w io.Writer, s Style) error
	WriteMarkdown(w io.Writer) error
}) {
	t.Helper()
	var terminal, markdown strings.Builder
	if err := m.WriteTerminal(&terminal, Style{}); err != nil {
		t.Fatal(err)
	}
	if err := m.WriteMarkdown(&markdown); err != nil {
		t.Fatal(err)
	}
	for format, text := range map[string]string{"terminal": terminal.String(), "Markdown": markdown.String()} {
		if i := strings.IndexFunc(text, func(r rune) bool { return r != '\n' && !unicode.IsPrint(r) }); i >= 0 {
			t.Errorf("%s, %s: a control character: %q", name, format, around(text, i))
		}
	}
	for _, markup := range []string{"<script", "<img", "[a](", "![c]("} {
		if i := strings.Index(markdown.String(), markup); i >= 0 {
			t.Errorf("%s: %s in Markdown: %q", name, markup, around(markdown.String(), i))
		}
	}
}

func around(s string, i int) string { return fmt.Sprint(s[max(0, i-60):min(len(s), i+40)]) }
