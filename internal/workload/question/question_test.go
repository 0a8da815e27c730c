package question

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"pitot/internal/say"
	"pitot/internal/sim/serve/lm"
	"pitot/internal/workload"
)

func TestShares(t *testing.T) {
	for text, want := range map[string]string{
		"5%": "5%", " 0.5% ": "0.5%", "numbers=5%,json=1%": "numbers=5%,json=1%", "JSON=1%, numbers = 5%": "numbers=5%,json=1%", "greedy=2.5%": "greedy=2.5%",
	} {
		s, err := ParseShares(text)
		if err != nil || s.String() != want {
			t.Errorf("%q: %q, %v", text, s, err)
		}
	}
	for text, want := range map[string]string{
		"5": "5%, or shares of kinds", "0%": "at most 50%", "51%": "at most 50%", "numbers=30%,echo=30%": "come to 60 %", "number=5%": "did you mean numbers?",
		"numbers=5%,numbers=1%": "given twice", "5%,echo=1%": "beside a share", "echo=1%,5%": "of no kind", "": "is no share", "NaN%": "is no share", "json=": "is no share",
	} {
		_, err := ParseShares(text)
		var e *say.Error
		if !errors.As(err, &e) || !strings.Contains(e.Msg+"; "+e.Hint, want) {
			t.Errorf("%q: %v %q does not say %q", text, err, say.HintOf(err), want)
		}
	}
	all := func(Kind) bool { return true }
	of, err := UsualShares().Of(all)
	if err != nil || math.Abs(of[Tool]-.05/6) > 1e-12 {
		t.Errorf("%v, %v", of, err)
	}
	plain := func(k Kind) bool { return !k.NeedsChat() }
	if of, err = UsualShares().Of(plain); err != nil || of[Tool] != 0 || math.Abs(of[Greedy]-.05/4) > 1e-12 {
		t.Errorf("%v, %v", of, err)
	}
	if s, _ := ParseShares("json=1%"); s.Asks() {
		if _, err := s.Of(plain); err == nil {
			t.Error("an object is asked of a target without chats")
		}
	}
}

func FuzzParseShares(f *testing.F) {
	for _, s := range []string{"5%", "numbers=5%,json=1%", "echo=1e1%", "=%", ",", "greedy=0x1p-3%", "tool=50%,5%"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		s, err := ParseShares(text)
		if err != nil {
			return
		}
		again, err := ParseShares(s.String())
		if err != nil || again.String() != s.String() || s.TotalShare() <= 0 || s.TotalShare() > most+1e-9 {
			t.Fatalf("%q: %q, then %q, %v", text, s, again, err)
		}
	})
}

// A right answer is right however a model puts it, and any other is wrong.
func TestRight(t *testing.T) {
	b := NewBank(7, 0)
	for number := range 40 {
		q := b.Ask(Numbers, number)
		n := q.value
		if written := inWords(n); !strings.Contains(q.Request.Messages[0].Segments[0].Text, written) {
			t.Fatalf("%d is not %q", n, written)
		}
		for text, want := range map[string]bool{
			fmt.Sprint(n): true, fmt.Sprintf("It is %d,%03d.", n/1000, n%1000): true, fmt.Sprintf("1%d", n): false, fmt.Sprint(n + 1): false, "": false, fmt.Sprintf("%d0", n): false,
			fmt.Sprintf("%d %d", n, n): true, fmt.Sprintf("%d, %d", n, n): true, fmt.Sprintf("%d.00", n): true, fmt.Sprintf("1. %d", n): true, fmt.Sprintf("%d. 8", n): true,
			fmt.Sprintf("%d.5", n): false, fmt.Sprintf("0.%d", n): false, fmt.Sprintf("12,%03d,%03d", n/1000, n%1000): false, fmt.Sprintf("%d,%03d.00 km", n/1000, n%1000): true,
		} {
			if q.IsRight(Answer{Text: []byte(text)}) != want {
				t.Errorf("%d: %q", n, text)
			}
		}
		j, tool := b.Ask(JSON, number), b.Ask(Tool, number)
		object, _ := json.Marshal(j.args)
		if !j.IsRight(Answer{Text: object}) || j.IsRight(Answer{Text: object[1:]}) || j.IsRight(Answer{Text: []byte(`{}`)}) || j.IsRight(Answer{Text: append(object, '!')}) {
			t.Errorf("%s", object)
		}
		args, _ := json.Marshal(tool.args)
		if !tool.IsRight(Answer{Call: append([]byte("book_table"), args...)}) || tool.IsRight(Answer{Call: args}) || tool.IsRight(Answer{Text: args}) {
			t.Errorf("%s", args)
		}
		for _, k := range []Kind{Echo, Needle} {
			q := b.Ask(k, number)
			if !q.IsRight(Answer{Text: []byte("Sure:\n\"" + strings.ReplaceAll(q.want, " ", "\n") + "\"")}) || q.IsRight(Answer{Text: []byte(q.want[1:])}) || q.IsRight(Answer{}) {
				t.Errorf("%s: %q", k, q.want)
			}
		}
	}
	if at, differs := FirstDifference([]byte("abc"), []byte("abd")); at != 2 || !differs {
		t.Error(at)
	}
	if _, differs := FirstDifference([]byte("abc"), []byte("abc")); differs {
		t.Error("equal texts differ")
	}
	if at, differs := FirstDifference([]byte("ab"), []byte("abc")); at != 2 || !differs {
		t.Error(at)
	}
}

// The mock's model reads numbers by rules of its own: where both are right they agree.
func TestMockReadsNumbers(t *testing.T) {
	m := lm.New(lm.Config{})
	for n := 0; n < 1_000_000; n += 997 {
		prompt := m.TextPrompt([]byte("Write this number in digits: "+inWords(n)+". Answer with the digits alone."), 0)
		p := lm.Plan{Limit: 9}
		m.AnswerKnown(&p, []lm.Prompt{prompt}, false)
		m.SettleLengths(&p, 0, lm.Mode{})
		a := m.Begin(&p, 0)
		if got := string(a.Append(nil, 0, a.Output, true)); got != fmt.Sprint(n) {
			t.Fatalf("%s: %q", inWords(n), got)
		}
	}
}

// empty is a workload of requests that say nothing.
type empty struct{}

func (empty) At(i int64) (workload.Request, error) {
	return workload.Request{ID: i, Session: workload.Unknown}, nil
}

// Questions stand in the place of a share of the items, the same ones each time, and change
// no other.
func TestAmong(t *testing.T) {
	s, err := ParseShares("numbers=6%,json=2%,greedy=2%")
	if err != nil {
		t.Fatal(err)
	}
	of, err := s.Of(func(Kind) bool { return true })
	if err != nil {
		t.Fatal(err)
	}
	sizes := SizesOf(of, 0)
	if sizes != (Sizes{Numbers: 29, JSON: 10, Greedy: 24}) {
		t.Errorf("%v", sizes)
	}
	bank := NewBank(3, 4096)
	a, again := NewAmong(empty{}, bank, of, sizes, 11), NewAmong(empty{}, NewBank(3, 4096), of, sizes, 11)
	const n = 20_000
	counts, texts := map[Kind]int{}, map[string]bool{}
	for i := range int64(n) {
		r, err := a.At(i)
		if err != nil || r.ID != i {
			t.Fatal(r.ID, err)
		}
		k, number, ok := a.FindQuestion(i)
		if k2, number2, ok2 := again.FindQuestion(i); k2 != k || number2 != number || ok2 != ok {
			t.Fatalf("item %d is another question", i)
		}
		if ok != (len(r.Messages) > 0) {
			t.Fatalf("item %d: %v, %d messages", i, ok, len(r.Messages))
		}
		if ok {
			counts[k]++
			kind, _, _ := strings.Cut(Name(k, number), "/")
			if back, known := ParseKind(kind); !known || back != k || k == Greedy && number >= sizes[k] {
				t.Fatal(k, number)
			}
			if name := Name(k, number); k != Greedy && texts[name] {
				t.Fatalf("%s is asked twice", name)
			} else {
				texts[name] = true
			}
		}
	}
	for k, share := range of {
		if want := share * n; math.Abs(float64(counts[Kind(k)])-want) > 4*math.Sqrt(want)+1 {
			t.Errorf("%d questions of %s, %.0f expected", counts[Kind(k)], Kind(k), want)
		}
	}
}

// About as many questions are asked alone as the load has, and no more than a bank.
func TestSizesFollowTheLoad(t *testing.T) {
	of, err := Shares{All: .2}.Of(func(Kind) bool { return true })
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		load      float64
		all, each int // requests alone, questions of a kind in a pass
	}{
		{0, 5*2*8 + 2*24, 8}, // not known
		{15, 5*2*1 + 2*2, 1}, // three questions
		{300, 5*2*6 + 2*11, 6},
		{1e6, 5*2*8 + 2*24, 8},
	} {
		n, _, _ := ExpectedAlone(Shares{All: .2}, c.load)
		if sizes := SizesOf(of, c.load); n != c.all || sizes[Numbers] != c.each {
			t.Errorf("%g: %d requests, want %d; sizes %v", c.load, n, c.all, sizes)
		}
	}
}
