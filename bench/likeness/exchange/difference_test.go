package exchange

import (
	"strings"
	"testing"
)

// Texts, ids and times may differ, fields, their order, constants, status and
// recorded header lines may not; nor may a byte of a refusal.
func TestDifference(t *testing.T) {
	whole := func(body string) Answer {
		return Answer{Status: 200, Type: "application/json", Sent: map[string]string{"Vary": "Origin"}, Body: body}
	}
	real := whole(`{"id":"a","object":"o","choices":[{"index":0,"text":"x","finish_reason":"stop"}],"usage":{"n":1}}`)
	other := func(change func(*Answer)) Answer {
		a := real
		change(&a)
		return a
	}
	replace := func(old, new string) Answer {
		return other(func(a *Answer) { a.Body = strings.Replace(a.Body, old, new, 1) })
	}
	unrecorded := real
	unrecorded.Sent = nil
	refused := Answer{Status: 400, Body: `{"error":"one"}`}
	for name, c := range map[string]struct {
		want, got Answer
		in        string // what is named, "" for nothing
	}{
		"itself":            {real, real, ""},
		"id and text":       {real, replace(`"a"`, `"b"`), ""},
		"a number":          {real, replace(`"n":1`, `"n":22`), ""},
		"a constant":        {real, replace(`"stop"`, `"length"`), "body, part 1"},
		"a field":           {real, replace(`"n":1`, `"m":1`), "body, part 1"},
		"order":             {real, replace(`"id":"a","object":"o"`, `"object":"o","id":"a"`), "body, part 1"},
		"null":              {real, replace(`"x"`, `null`), "body, part 1"},
		"no end":            {real, replace(`}}`, `}`), "body, part 1"},
		"status":            {real, refused, "status"},
		"type":              {real, other(func(a *Answer) { a.Type = "text/plain" }), "content type"},
		"header":            {real, unrecorded, "header"},
		"header not known":  {unrecorded, real, ""},
		"a refusal's byte":  {refused, Answer{Status: 400, Body: `{"error":"two"}`}, "body"},
		"events in a row":   {whole("data: {\"a\":1}\n\ndata: {\"a\":2}\n\n"), whole("data: {\"a\":3}\n\n"), ""},
		"choices in turn":   {whole("data: {\"choices\":[{\"index\":0}]}\ndata: {\"choices\":[{\"index\":1}]}\n"), whole("data: {\"choices\":[{\"index\":1}]}\ndata: {\"choices\":[{\"index\":0}]}\n"), ""},
		"one event too few": {whole("data: {\"a\":1}\n\ndata: [DONE]\n\n"), whole("data: {\"a\":1}\n\n"), "body, part 2"},
	} {
		d := Difference(c.want, c.got)
		if c.in == "" && d != "" || c.in != "" && !strings.Contains(d, c.in+":\n") {
			t.Errorf("%s: %q", name, d)
		}
	}
}
