package question

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"pitot/internal/workload"
	"pitot/internal/workload/seed"
	"pitot/internal/workload/token"
)

// Streams of a seed: which items are questions, and what is in them.
const (
	streamItem    = 0x7175657374
	streamNumber  = 0x7175657375
	streamContent = 0x7175657400 // + kind
)

// Lengths of questions, in tokens or words.
const (
	AnswerTokens = 64  // that an answer may have: a model that knows it needs fewer
	objectTokens = 192 // the same of an object or a call, whose tokens may be single characters
	greedyTokens = 64  // of a greedy answer, which goes on for all of them
	greedyWords  = 48  // of its prompt
	echoWords    = 8
	needleWords  = 1000 // around the phrase, unless told otherwise
)

// Question is one request with what its answer has to be.
type Question struct {
	Kind    Kind
	Number  int
	Request workload.Request

	want  string         // text that has to be in the answer
	args  map[string]any // of an object or a call
	call  string         // function to be called
	value int            // of a number, else 0
}

// Answer holds the answer to a question: that of the first choice, without its reasoning.
type Answer struct {
	Text []byte
	Call []byte // a call of a function: its name, and its arguments behind it
}

// Name returns the name of the question in records: "numbers/7".
func Name(k Kind, number int) string { return k.String() + "/" + strconv.Itoa(number) }

// Bank is the questions that there are of a seed. It is safe for concurrent use.
type Bank struct {
	seed   uint64
	needle int // words around the phrase
}

// NewBank makes the questions of a seed; context is the longest prompt and answer that the
// model takes, 0 where that is not known.
func NewBank(seed uint64, context int) *Bank {
	b := &Bank{seed: seed, needle: needleWords}
	if context > 0 {
		b.needle = max(min(b.needle, context/2-AnswerTokens), 16)
	}
	return b
}

// Ask gives a question of a kind.
func (b *Bank) Ask(k Kind, number int) Question {
	r := seed.Rand(seed.At(b.seed, streamContent+uint64(k), uint64(number)))
	q := Question{Kind: k, Number: number}
	q.Request = workload.Request{Input: workload.Unknown, Output: AnswerTokens, Session: workload.Unknown}
	text := func(parts ...workload.Segment) {
		q.Request.Messages = []workload.Message{workload.NewMessage("user", parts...)}
	}
	literal := func(format string, args ...any) workload.Segment {
		return workload.Segment{Text: fmt.Sprintf(format, args...)}
	}
	switch k {
	case Numbers:
		q.value = 1000 + int(r.Uint64()%999_000)
		text(literal("Write this number in digits: %s. Answer with the digits alone.", inWords(q.value)))
	case Echo:
		q.want = words(&r, echoWords)
		text(literal("Repeat this line exactly, and nothing else: %s", q.want))
	case JSON:
		q.args = map[string]any{"name": words(&r, 2), "count": float64(r.Uint64() % 10_000), "paid": r.Uint64()%2 == 0}
		text(literal("Answer with a JSON object: the name is %q, the count is %.0f, paid is %t.", q.args["name"], q.args["count"], q.args["paid"]))
		q.Request.Output = objectTokens
		q.Request.Body = marshalFields(map[string]any{"response_format": map[string]any{
			"type": "json_schema", "json_schema": map[string]any{"name": "form", "strict": true, "schema": argumentSchema(q.args)}}})
	case Needle:
		q.want = words(&r, 2)
		before := int(r.Uint64() % uint64(b.needle))
		hay := r.Uint64()
		text(literal("Remember the pass phrase that stands somewhere in these words.\n"),
			workload.Segment{Seed: hay, Words: before + 1}, literal("\nThe pass phrase is: %s.\n", q.want),
			workload.Segment{Seed: hay + 1, Words: b.needle - before}, literal("\nWhat is the pass phrase? Answer with it alone."))
	case Tool:
		q.call = "book_table"
		q.args = map[string]any{"name": words(&r, 2), "guests": float64(2 + r.Uint64()%98)}
		text(literal("Book a table for %.0f guests under the name %q.", q.args["guests"], q.args["name"]))
		function := map[string]any{"name": q.call, "description": "books a table", "parameters": argumentSchema(q.args)}
		q.Request.Output = objectTokens
		q.Request.Body = marshalFields(map[string]any{
			"tools":       []any{map[string]any{"type": "function", "function": function}},
			"tool_choice": map[string]any{"type": "function", "function": map[string]any{"name": q.call}}})
	default:
		text(workload.Segment{Seed: r.Uint64(), Words: greedyWords})
		q.Request.Output, q.Request.Exact = greedyTokens, true
	}
	return q
}

// words are common words, as a line of text.
func words(r *seed.Rand, n int) string {
	return string(token.Universal().AppendText(nil, r.Uint64(), n, true))
}

// marshalFields returns the JSON fields that are merged into a request.
func marshalFields(fields map[string]any) []byte {
	b, err := json.Marshal(fields)
	if err != nil {
		panic(err) // texts, numbers and lists of them always marshal
	}
	return b
}

// argumentSchema allows one object alone: then what is right hangs on the server, which has to hold
// the model to it, more than on the model.
func argumentSchema(args map[string]any) map[string]any {
	properties, required := map[string]any{}, []string{}
	for name, value := range args {
		of := map[string]any{"enum": []any{value}}
		switch value.(type) {
		case string:
			of["type"] = "string"
		case bool:
			of["type"] = "boolean"
		default:
			of["type"] = "integer"
		}
		properties[name] = of
		required = append(required, name)
	}
	slices.Sort(required)
	return map[string]any{"type": "object", "properties": properties, "required": required, "additionalProperties": false}
}

// IsRight says whether an answer is right. A greedy one has nothing that is right by itself: see
// [FirstDifference].
func (q *Question) IsRight(a Answer) bool {
	switch {
	case q.value > 0:
		return hasNumber(string(a.Text), q.value)
	case q.call != "":
		args, named := bytes.CutPrefix(a.Call, []byte(q.call))
		return named && q.matchesObject(args)
	case q.args != nil:
		return q.matchesObject(a.Text)
	}
	return q.want != "" && strings.Contains(strings.Join(strings.Fields(string(a.Text)), " "), q.want)
}

// matchesObject says whether a text is the JSON object that is wanted, and nothing else.
func (q *Question) matchesObject(text []byte) bool {
	var got map[string]any
	if json.Unmarshal(text, &got) != nil || len(got) != len(q.args) {
		return false
	}
	for name, want := range q.args {
		if got[name] != want { // texts, numbers and truth values alone
			return false
		}
	}
	return true
}

// FirstDifference says from which byte on an answer differs from another to the same prompt; false
// where it does not.
func FirstDifference(a, b []byte) (at int, differs bool) {
	n := min(len(a), len(b))
	for i := range n {
		if a[i] != b[i] {
			return i, true
		}
	}
	return n, len(a) != len(b)
}

// numeral is a number in digits: with separators between its thousands or without, its decimals,
// and the end that keeps a part of a longer row of digits from being taken for thousands.
var numeral = regexp.MustCompile(`(\d{1,3}(?:[,. ]\d{3})+|\d+)(?:\.(\d+))?(?:\D|$)`)

// hasNumber says whether a number stands in a text, with or without separators between its
// thousands and with no decimals but zeros. Other numbers may stand beside it.
func hasNumber(text string, n int) bool {
	thousands := strings.NewReplacer(",", "", " ", "", ".", "")
	for _, found := range numeral.FindAllStringSubmatch(text, -1) {
		if thousands.Replace(found[1]) == strconv.Itoa(n) && strings.Trim(found[2], "0") == "" {
			return true
		}
	}
	return false
}

var (
	small = strings.Fields("zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen nineteen")
	tens  = strings.Fields("- - twenty thirty forty fifty sixty seventy eighty ninety")
)

// inWords writes a number from 0 to 999,999 in English words.
func inWords(n int) string {
	switch {
	case n < 20:
		return small[n]
	case n < 100:
		if n%10 == 0 {
			return tens[n/10]
		}
		return tens[n/10] + "-" + small[n%10]
	case n < 1000:
		return joinWords(small[n/100]+" hundred", n%100)
	}
	return joinWords(inWords(n/1000)+" thousand", n%1000)
}

func joinWords(head string, rest int) string {
	if rest == 0 {
		return head
	}
	return head + " " + inWords(rest)
}
