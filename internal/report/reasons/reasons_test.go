package reasons

import (
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strconv"
	"strings"
	"testing"

	"pitot/internal/results/result"
)

// Every reason that the program knows has words of its own.
func TestEveryReasonHasWords(t *testing.T) {
	n := 0
	for _, name := range []string{"reason", "advice", "adaptation"} {
		file, err := parser.ParseFile(token.NewFileSet(), "../../results/result/"+name+".go", nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(x ast.Node) bool {
			spec, ok := x.(*ast.ValueSpec)
			if !ok {
				return true
			}
			if t, ok := spec.Type.(*ast.Ident); !ok || t.Name != "ReasonCode" {
				return true
			}
			n++
			code, err := strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value)
			if err != nil {
				t.Fatal(err)
			}
			if text, known := codeSentence(result.Reason{Code: result.ReasonCode(code), N: 3, Of: 4, Needed: 5}); !known || text == "" {
				t.Errorf("%s has no words", code)
			}
			return true
		})
	}
	if n < 50 {
		t.Errorf("%d codes", n)
	}
}

func TestText(t *testing.T) {
	for want, r := range map[string]result.Reason{
		"": {},
		"the run covers 25 request lifetimes and needs 30: --duration 1m20s": {Code: result.FewResidences, N: 25, Needed: 30, Longer: result.Longer{Seconds: 80}},
		"the run covers 1 request lifetime and needs 30: --requests 450":     {Code: result.FewResidences, N: 1, Needed: 30, Longer: result.Longer{Requests: 450}},
		"the queue changes too slowly for a run this short: --duration 12m":  {Code: result.SlowQueue, N: 31, Needed: 70, Longer: result.Longer{Seconds: 720}},
		"chat: not streaming":                          {Code: result.NotStreaming, Class: "chat"},
		"n = 50, shown from 100 on and firm from 1000": {Code: result.FewShown, N: 50, Needed: 100, Firm: 1000},
		"merged reads leave it anywhere above 12.3 ms": {Code: result.MergedReadsLeave, Low: 12.34},
		"a window of 1.001s is all of --max-duration":  {Code: result.BudgetUsed, Seconds: 1.001},
		"a window of 4.35s is all of --max-duration":   {Code: result.BudgetUsed, Seconds: 4.35},
		"about 9 bursts; 20 needed: --duration 1.001s": {Code: result.FewBursts, N: 9, Needed: 20, Longer: result.Longer{Seconds: 1.001}},
		"of a later program":                           {Code: "of_a_later_program"},
	} {
		if got := Text(r); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// What texts.json stands a figure in for is a figure, in a format that there is.
func TestPlaces(t *testing.T) {
	figures := strings.Fields("n of needed firm share low high seconds alone_n alone_of longer ms percent rate several differ quote allowed")
	for _, list := range []map[result.ReasonCode]string{texts().Reasons, texts().Advice} {
		for code, text := range list {
			for _, place := range placeholder.FindAllStringSubmatch(text, -1) {
				if _, known := formats[place[2]]; !known && place[2] != "near" || !slices.Contains(figures, place[1]) {
					t.Errorf("%s: %s", code, place[0])
				}
			}
			for _, part := range optionalPart.FindAllStringSubmatch(text, -1) {
				for _, name := range strings.Fields(part[1]) {
					if !slices.Contains(figures, strings.TrimPrefix(name, "!")) {
						t.Errorf("%s: %s", code, part[0])
					}
				}
			}
		}
	}
	for code, text := range texts().Adaptations {
		for _, place := range placeholder.FindAllStringSubmatch(text, -1) {
			if !slices.Contains([]string{"{value}", "{of}", "{why}"}, place[0]) {
				t.Errorf("%s: %s", code, place[0])
			}
		}
	}
}
