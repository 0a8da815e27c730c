package explain

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"sync"

	"pitot/internal/results/metric"
)

// words holds the phrases for a cause of a symptom, and what to do about it where no twin was
// simulated.
type words struct {
	Name    string // in plain words
	Claim   string // what it does
	Relief  string // what a simulation changes to take the cause away
	Confirm string // what would confirm or refute it
	Knob    string
	To      string
}

// Names translates vLLM's names to those of an engine: settings, their values, and all of these and
// its metrics in a text. nil is vLLM.
type Names interface {
	Knob(name string) string
	KnobValue(name, value string) string
	Words(text string) string
}

// InWords is a text that has vLLM's names of settings and metrics, with those of another
// engine.
func InWords(names Names, text string) string {
	if names == nil {
		return text
	}
	return names.Words(text)
}

// wordingFor is the wording for an engine.
func wordingFor(names Names, cause Cause, of metric.Name, f Facts) words {
	w := wording(cause, of, f)
	if names == nil {
		return w
	}
	w.Knob, w.To = names.Knob(w.Knob), names.KnobValue(w.Knob, w.To)
	w.Name, w.Claim, w.Confirm, w.Knob = names.Words(w.Name), names.Words(w.Claim), names.Words(w.Confirm), names.Words(w.Knob)
	return w
}

// NameOf returns the name of a cause of a metric in plain words, with an engine's own names of
// settings.
func NameOf(names Names, cause Cause, of metric.Name) string {
	if cause == Unknown {
		return string(cause)
	}
	return wordingFor(names, cause, of, nil).Name
}

// wording is that of a cause and a metric, in vLLM's names.
func wording(cause Cause, of metric.Name, f Facts) words {
	w := wordings()[cause]
	switch {
	case cause == Proxy && !isBuffered(f):
		w.Claim = "something between client and server takes time for each request"
		w.Knob, w.To = "", ""
	case cause == Freezes && f.Get(FrozenInTail) < f.Get(StoppedInTail):
		w.Claim = "all streams stop at once now and then, and no prompt explains it"
		w.Confirm = "look at the server's log and machine at these times: a garbage collector, swapping"
	case cause == Throttling:
		return throttledWords(w, f)
	case cause == PrefixCache && f.Get(HitShare) > 0.01: // it is on
		w.Claim = "it does not hold all that prompts have in common: the same tokens are computed again"
		w.Confirm = "half as many different prefixes at this load: hits ÷ queries of vllm:prefix_cache grow"
		w.Knob, w.To = "gpu_memory_utilization", "higher"
	case cause == Compute && of == metric.TTFT:
		w.Name, w.Claim = "prefill compute", "the GPU is busy with prompts, this one's or earlier ones'"
		w.Knob, w.To = "quantization", "fp8"
	case cause == Bandwidth && of == metric.TTFT:
		w.Claim = "requests wait for steps that read weights and KV cache"
	}
	return w
}

// throttledWords is the wording of a clock that is held down, as far as is known by what. A
// power limit that is as high as the board has it is not advised to be raised: fewer bits
// move and multiply for less energy.
func throttledWords(w words, f Facts) words {
	power, heat := f.Get(ByPower) >= heldShare, f.Get(ByHeat) >= heldShare
	if !f.hasAll(ByPower, ByHeat) || !power && !heat {
		return w
	}
	w.Confirm = "" // the GPU has said so
	limit := "its power limit"
	if f.hasAll(PowerLimit) {
		limit += fmt.Sprintf(" of %.0f W", f.Get(PowerLimit))
	}
	highest := ""
	switch most := f.Get(PowerMost); {
	case !f.hasAll(PowerLimit, PowerMost):
		w.To = "higher, where the board allows it"
	case f.Get(PowerLimit) < 0.99*most:
		w.To = fmt.Sprintf("%.0f W", most)
	default:
		highest = " (the board's highest)"
		w.Knob, w.To = "quantization", "fp8"
	}
	switch {
	case power && heat:
		w.Claim = "its heat and " + limit + highest + " hold the clock down"
	case power:
		w.Claim = limit + highest + ", and not its heat, holds the clock down"
	default:
		w.Claim = "its heat, and not its power limit, holds the clock down"
		w.Knob, w.To = "cooling", "better"
	}
	return w
}

//go:embed words.json
var wordFile []byte

// wordings are those of all causes, in vLLM's names.
var wordings = sync.OnceValue(func() (of map[Cause]words) {
	if err := json.Unmarshal(wordFile, &of); err != nil {
		panic(err)
	}
	return of
})
