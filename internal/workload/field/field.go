// Package field knows what the fields of requests are called in files: in the header of a CSV file,
// and as the keys of JSON. There is one table of names for all formats.
package field

import (
	"strings"
	"sync"
	"sync/atomic"
	"unicode"
)

// Field is the meaning of a field of a request.
type Field uint8

// What fields say.
const (
	None         Field = iota
	Time               // when it came
	End                // when it ended
	First              // when its first token came
	Delay              // how long after the answer before it in its session
	Input              // tokens of its prompt
	Output             // tokens of its answer
	InputEither        // tokens of its prompt, or the prompt
	OutputEither       // tokens of its answer, or the answer
	Usage              // an object with both
	Session            // the conversation that it is part of
	Client             // who asked
	Prompt             // its text
	Messages           // its messages
	Request            // the whole of it, as it was sent
	System             // what its system prompt says
	Context            // what stands behind its instruction
	Suffix             // what is to follow the answer
	Sampling           // how the answer is drawn, and where it ends
	Tools              // what the answer may call
	Media              // images, audio, video
	Adapter            // the LoRA adapter that answers
	Scheduling         // how soon the server is to serve it, and with whose cache
	Unclear            // a length of which it is not known whether it is in tokens
	fields
)

// names has what each field is called, normal as [NormalizeName] gives it, the surest name first.
var names = [fields]string{
	Time: `
		starttimeunixnano starttime requesttime requestcreatedat requeststarttime requesttimestamp
		requestedat receivedat arrivaltime arrivaltimestamp arrivedat arrivedtime arrived arrival
		timestamp tstamp time datetime ts due sentat startedat createdat date start created t`,
	End:   "endtimeunixnano endtime completedat finishedat end",
	First: "completionstarttime firsttokentime firsttokenat",
	Delay: "delay",
	Input: `
		prompttokens inputtokens contexttokens requesttokens inputlength numprefilltokens isl
		inputlen tokensprompt tokensinput tokensin inputusage requnits numprompttokens
		numinputtokens nprompttokens ninputtokens prompttokencount inputtokencount prompttokenscount
		inputtokenscount usageprompttokens usageinputtokens usageinput genaiusageinputtokens
		genaiusageprompttokens llmusageprompttokens llmtokencountprompt`,
	Output: `
		completiontokens outputtokens generatedtokens responsetokens outputlength numdecodetokens
		osl outputlen tokenscompletion tokensoutput tokensgenerated tokensout outputusage resunits
		numcompletiontokens numoutputtokens numgeneratedtokens ncompletiontokens noutputtokens
		completiontokencount outputtokencount candidatestokencount outputtokenscount
		completiontokenscount usagecompletiontokens usageoutputtokens usageoutput
		genaiusageoutputtokens genaiusagecompletiontokens llmusagecompletiontokens
		llmtokencountcompletion maxcompletiontokens maxtokens`,
	InputEither:  "input",
	OutputEither: "output",
	Usage:        "usage usagedetails",
	Session: `
		sessionid genaiconversationid conversationid conversation litellmsessionid chatid threadid
		session`,
	Client: `
		userapikeyhash userapikey enduser clientid client userid user requestuserid apikeyid
		apikeyhash apikeyname apikey tenant teamid organization enduserid safetyidentifier
		clientaddress`,
	Prompt: `
		prompt0 prompt question text textinput instruction inputtext content query prompttext
		textprompt userprompt userquery inputprompt`,
	Messages: "messages genaiinputmessages inputmessages requestmessages",
	Request:  "requestbody request proxyserverrequest body payload",
	System:   "system systemprompt systemmessage sysprompt",
	Context:  "context",
	Suffix:   "suffix",
	Sampling: `
		temperature topp topk minp n bestof stop frequencypenalty presencepenalty repetitionpenalty
		logitbias logprobs toplogprobs seed stopsequences stoptokenids mintokens ignoreeos
		lengthpenalty typicalp badwords allowedtokenids promptlogprobs usebeamsearch responseformat
		jsonschema guidedjson guidedregex guidedchoice guidedgrammar structuredoutputs
		guideddecoding samplingparams reasoningeffort thinkingbudget enablethinking
		chattemplatekwargs`,
	Tools: "tools toolchoice functions functioncall paralleltoolcalls",
	Media: "image images imageurl audio audios video videos multimodaldata mmdata modalities",
	Adapter: `
		lora loraname loraid lorapath loramodule loraadapter lorarequest adapter adaptername
		adapterid`,
	Scheduling: "priority prioritylevel requestpriority servicetier deadline cachesalt",
	Unclear: `
		promptlen promptlength promptsize completionlen completionlength completionsize responselen
		responselength responsesize answerlen answerlength requestlen requestlength inputsize
		outputsize contextlen contextlength`,
}

// Is is the meaning of a name.
type Is struct {
	Field Field
	Rank  int   // of the names of this field: 0 is the surest
	Unit  int64 // nanoseconds that a time is counted in, where the name says it; else 0
}

var known = func() map[string]Is {
	m := map[string]Is{}
	for f := range fields {
		for rank, name := range KnownNames(f) {
			m[name] = Is{Field: f, Rank: rank}
		}
	}
	return m
}()

// KnownNames gives what a field is called, as [NormalizeName] gives names, the surest first.
func KnownNames(f Field) []string { return strings.Fields(names[f]) }

// ParseName says what a name stands for: the same name in any case, with any separators between its
// words, and a time with its unit behind it.
func ParseName(name string) Is {
	if is, ok := asked.Load(name); ok {
		return is.(Is)
	}
	is := lookUpName(name)
	if len(name) <= longest && askedNames.Add(1) <= most {
		asked.Store(strings.Clone(name), is)
	}
	return is
}

// asked are names that were asked for: those of a file come again with each of its records.
var (
	asked      sync.Map
	askedNames atomic.Int64
)

const (
	most    = 4096 // names that are kept
	longest = 64   // bytes of each
)

func lookUpName(name string) Is {
	words := splitWords(name)
	if is, ok := known[strings.Join(words, "")]; ok {
		return is
	}
	if n := len(words); n > 1 && units[words[n-1]] > 0 {
		if is, ok := known[strings.Join(words[:n-1], "")]; ok && (is.Field == Time || is.Field == Delay || is.Field == Scheduling) {
			is.Unit = units[words[n-1]]
			return is
		}
	}
	return Is{}
}

// NormalizeName is a name in lower case, without what separates its words.
func NormalizeName(name string) string { return strings.Join(splitWords(name), "") }

// units maps the units of times to nanoseconds.
var units = map[string]int64{
	"s": 1e9, "sec": 1e9, "secs": 1e9, "second": 1e9, "seconds": 1e9,
	"ms": 1e6, "msec": 1e6, "msecs": 1e6, "millis": 1e6, "millisecond": 1e6, "milliseconds": 1e6,
	"us": 1e3, "usec": 1e3, "usecs": 1e3, "micros": 1e3, "microsecond": 1e3, "microseconds": 1e3,
	"ns": 1, "nsec": 1, "nanos": 1, "nanosecond": 1, "nanoseconds": 1,
}

// splitWords gives the words of a name in lower case: prompt_tokens, promptTokens and "Prompt
// tokens" have the same.
func splitWords(name string) (words []string) {
	var word []rune
	flush := func() {
		if len(word) > 0 {
			words, word = append(words, string(word)), word[:0]
		}
	}
	lower := false
	for _, r := range name {
		if !unicode.IsLetter(r) && !unicode.IsDigit(r) {
			flush()
			lower = false
			continue
		}
		if unicode.IsUpper(r) && lower {
			flush()
		}
		lower = unicode.IsLower(r) || unicode.IsDigit(r)
		word = append(word, unicode.ToLower(r))
	}
	flush()
	return words
}

// Wanted says what columns a file of requests may have, for the hint of an error.
const Wanted = "columns that are known: a time (timestamp, start_time, created_at), tokens of prompts (input_tokens, prompt_tokens) and of answers (output_tokens, completion_tokens), or prompts (prompt, messages)"
