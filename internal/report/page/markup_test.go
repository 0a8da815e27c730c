package page

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"html"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"pitot/internal/analysis/choose"
	"pitot/internal/experiment"
	"pitot/internal/report"
)

// Whatever a text is, a browser reads it as that text and nothing more, as content and as
// the value of an attribute.
func TestPutEscapes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		draw := rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{`"><script>`, `' onload='`, "</p>", "&amp;", "%s", "<!--", "]]>", "\x00", "\r\n", "{{.}}", "+", "`"}))
		text := strings.Join(rapid.SliceOf(draw).Draw(t, "text"), "")
		var d document
		d.writeMarkup(`<p title="%s">%s</p>`, text, text)
		page := d.String()
		value, ok := strings.CutPrefix(page, `<p title="`)
		value, content, closed := strings.Cut(value, `">`)
		content, ended := strings.CutSuffix(content, "</p>")
		// In double quotes only a quote ends a value, in content only "<" starts a tag, and
		// nothing else but a reference stands for another character.
		if !ok || !closed || !ended || strings.Contains(value, `"`) || strings.ContainsAny(content, "<\x00") {
			t.Fatalf("%q became %q", text, page)
		}
		want := strings.ReplaceAll(text, "\x00", "\uFFFD")
		if value, content = html.UnescapeString(value), html.UnescapeString(content); value != want || content != want {
			t.Fatalf("%q became %q and %q", want, value, content)
		}
	})
}

// All markup is a constant of the program, but for the page's own style and script: and it
// has as many places as it is given texts.
func TestMarkup(t *testing.T) {
	put := map[string]int{"writeMarkup": 0, "putNonEmpty": 0} // by method, where its markup is
	files, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	for _, file := range files {
		if !strings.HasSuffix(file.Name(), ".go") || strings.HasSuffix(file.Name(), "_test.go") {
			continue
		}
		set := token.NewFileSet()
		tree, err := parser.ParseFile(set, file.Name(), nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(tree, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			at := set.Position(call.Pos())
			if made, ok := call.Fun.(*ast.Ident); ok && made.Name == "markup" {
				if of, ok := call.Args[0].(*ast.Ident); at.Filename != "markup.go" && (!ok || !slices.Contains([]string{"css", "js", "data"}, of.Name)) {
					if _, literal := call.Args[0].(*ast.BasicLit); !literal {
						t.Errorf("%s: markup is made of what is no constant", at)
					}
				}
			}
			method, ok := call.Fun.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			if _, ok := put[method.Sel.Name]; !ok {
				return true
			}
			form, ok := call.Args[0].(*ast.BasicLit)
			if !ok { // a constant besides: the compiler takes no string for markup
				return true
			}
			text, err := strconv.Unquote(form.Value)
			if err != nil {
				t.Fatal(err)
			}
			if places := strings.Count(text, "%s"); places != len(call.Args)-1 {
				t.Errorf("%s: %d places for %d texts", at, places, len(call.Args)-1)
			}
			for i, part := range strings.Split(text, "%s")[1:] { // content, or within double quotes
				before := strings.Join(strings.Split(text, "%s")[:i+1], "")
				if inside := strings.LastIndex(before, "<") > strings.LastIndex(before, ">"); inside && strings.Count(before[strings.LastIndex(before, "<"):], `"`)%2 != 1 {
					t.Errorf("%s: a text stands in a tag outside quotes, before %q", at, part)
				}
			}
			seen++
			return true
		})
	}
	if seen < 50 {
		t.Errorf("%d places were looked at", seen)
	}
}

// The pages of choices and of decisions show hostile names as text.
func TestFurtherPagesEscape(t *testing.T) {
	const evil = `</script></style><script>alert(1)</script><img src=x onerror=alert(2)>"'` + "`${alert(3)}"
	table := report.Table{Head: []string{"", evil}, Rows: [][]string{{evil, evil}}}
	var choice, decision strings.Builder
	err := WriteChoice(&choice, report.ChoiceModel{Answer: evil, Facts: []report.ChoiceFact{{Values: []string{evil}}}, Legend: []string{evil}, Start: []string{evil}, Verify: []string{evil},
		Choice: &choose.Choice{Model: evil}}, []string{"pitot", evil})
	if err != nil {
		t.Fatal(err)
	}
	err = WriteDecision(&decision, report.DecisionModel{Word: evil, Headline: evil, Basis: []string{evil}, Of: &experiment.Record{Experiment: evil, Target: evil},
		Sections: []report.DecisionSection{{ID: "effects", Title: evil, Table: table, Brief: table, Lines: []string{evil}}, {Commands: []string{evil}}}})
	if err != nil {
		t.Fatal(err)
	}
	for _, page := range []fmt.Stringer{&choice, &decision} {
		escaped(t, page.String())
	}
}
