package session

import (
	"slices"
	"testing"

	"pitot/internal/results/record"
)

// sessions are the rows of a run by conversation, in the order of their turns.
func sessions(t *testing.T, dir string) map[int64][]record.Row {
	of := map[int64][]record.Row{}
	for _, r := range rowsOf(t, dir)[0] {
		of[r.Session] = append(of[r.Session], r)
	}
	for _, rows := range of {
		slices.SortFunc(rows, func(a, b record.Row) int { return int(a.Turn - b.Turn) })
	}
	return of
}

// With room for all of them, a prompt finds in the cache of the twin what stood in the
// turn before it and in its answer, block by block: the last token of an answer was never
// computed, and the last of a prompt always is.
func TestConversationsHits(t *testing.T) {
	t.Parallel()
	const block, system = 16, 100
	for _, history := range []string{"served", "planned"} {
		_, dir := mustMeasure(t, "sim:llama-3.1-8b@h100", "--rate", "3", "--turns", "uniform(1,6)", "--think", "exponential(1s)", "--system", "100",
			"--input", "uniform(10,300)", "--set", "turn-input=uniform(5,80)", "--output", "uniform(3,90)", "--duration", "40s", "--warmup", "0s", "--seed", "5", "--set", "history="+history)
		checked, begun := 0, 0
		for s, rows := range sessions(t, dir) {
			for k, r := range rows {
				if int(r.Turn) != k || r.Outcome != record.OK {
					continue // the last ones, when the load ended
				}
				if r.PromptTokens != r.InputPlanned {
					t.Errorf("%s: session %d, turn %d has %d tokens, %d planned", history, s, k, r.PromptTokens, r.InputPlanned)
				}
				if k == 0 {
					begun++
					if want := int32(system / block * block); r.CachedTokens != want && r.CachedTokens != 0 {
						t.Errorf("%s: session %d begins with %d cached tokens, want %d", history, s, r.CachedTokens, want)
					}
					continue
				}
				before := rows[k-1]
				said := before.PromptTokens + before.CompletionTokens - 1
				if history == "planned" {
					said = before.PromptTokens
				}
				if want := min(said, r.PromptTokens-1) / block * block; r.CachedTokens != want {
					t.Errorf("%s: session %d, turn %d has %d cached tokens, want %d of %d after %d and %d", history, s, k, r.CachedTokens, want, r.PromptTokens, before.PromptTokens, before.CompletionTokens)
				}
				if r.History != before.PromptTokens+before.CompletionTokens {
					t.Errorf("%s: session %d, turn %d has a history of %d tokens, after %d and %d", history, s, k, r.History, before.PromptTokens, before.CompletionTokens)
				}
				if r.After != before.ID || r.Due <= before.Done || r.Turns < r.Turn+1 {
					t.Errorf("%s: session %d, turn %d of %d was due at %d after request %d; request %d ended at %d", history, s, k, r.Turns, r.Due, r.After, before.ID, before.Done)
				}
				checked++
			}
		}
		if checked < 100 || begun < 60 {
			t.Errorf("%s: %d turns of %d conversations", history, checked, begun)
		}
	}
}

// Over sockets the answers themselves are handed back, and the mock server counts and
// finds what the twin does.
func TestConversationsOverSockets(t *testing.T) {
	t.Parallel()
	_, dir := mustMeasure(t, "mock:llama-3.1-8b@h100?prompt_tokens_details", "--concurrency", "4", "--turns", "4", "--system", "100",
		"--input", "90", "--set", "turn-input=30", "--output", "20", "--requests", "40", "--warmup", "0s", "--seed", "5")
	const block = 16
	checked := 0
	for s, rows := range sessions(t, dir) {
		for k, r := range rows {
			if r.Outcome != record.OK || s < 0 {
				continue
			}
			if int(r.Turn) != k || k == 0 {
				if r.PromptTokens != 190 || r.InputPlanned != 190 {
					t.Errorf("session %d begins with %d tokens, %d planned, want 190", s, r.PromptTokens, r.InputPlanned)
				}
				continue
			}
			// The answers' words are other tokens where they are read than where they were written.
			if want := int32(190 + 50*k); r.PromptTokens > want || r.PromptTokens < want-int32(2*k) || r.InputPlanned != record.Unset {
				t.Errorf("session %d, turn %d has %d tokens, %d planned, want about %d", s, k, r.PromptTokens, r.InputPlanned, want)
			}
			before := rows[k-1]
			if most := (before.PromptTokens + before.CompletionTokens) / block * block; r.CachedTokens > most || r.CachedTokens < most-2*block {
				t.Errorf("session %d, turn %d has %d cached tokens of %d, after %d and %d", s, k, r.CachedTokens, r.PromptTokens, before.PromptTokens, before.CompletionTokens)
			}
			checked++
		}
	}
	if checked < 15 {
		t.Errorf("%d turns", checked)
	}
}

// A conversation that is not answered ends, and no further turn of it is asked.
func TestConversationsEndEarly(t *testing.T) {
	_, dir := mustMeasure(t, "sim:llama-3.1-8b@h100?max_model_len=400", "--rate", "20", "--turns", "5", "--duration", "5s", "--warmup", "0s", "--seed", "5",
		"--input", "100", "--output", "40")
	for s, rows := range sessions(t, dir) {
		if len(rows) > 3 {
			t.Errorf("session %d has %d requests, and the third does not fit", s, len(rows))
		}
		for k, r := range rows {
			if failed := r.Outcome == record.Failed; failed != (k == 2) && r.Outcome != record.Cut {
				t.Errorf("session %d, turn %d: %v, %s", s, k, r.Outcome, r.Error)
			}
		}
	}
}

// Recorded sessions of agents are asked again, sub-agents at once, in virtual time and over
// sockets: every request of a session that is over once, and each behind what it waited for.
func TestRecordedSessions(t *testing.T) {
	t.Parallel()
	for _, target := range []string{"sim:llama-3.1-8b@h100", "mock:llama-3.1-8b@h100"} {
		_, dir := mustMeasure(t, target, "--concurrency", "2", "--workload", "../workload/testdata/weka", "--set", "max-think=20ms",
			"--requests", "40", "--warmup", "0s", "--seed", "5")
		over, joins := 0, 0
		for s, rows := range sessions(t, dir) {
			if s < 0 || len(rows) < int(rows[0].Turns) {
				continue // still going on
			}
			over++
			byID := map[int64]record.Row{}
			for _, r := range rows {
				byID[r.ID] = r
			}
			for k, r := range rows {
				if int(r.Turn) != k || r.PromptTokens != r.InputPlanned || r.CompletionTokens != r.OutputPlanned && r.Outcome == record.OK {
					t.Errorf("%s: session %d, request %d: turn %d, %d tokens of %d, %d of %d", target, s, k, r.Turn, r.PromptTokens, r.InputPlanned, r.CompletionTokens, r.OutputPlanned)
				}
				if k == 0 {
					continue
				}
				before, ok := byID[r.After]
				if !ok || r.Due < before.Done || r.Due > before.Done+20_000_000 {
					t.Errorf("%s: session %d, request %d was due at %d, %d ended at %d", target, s, k, r.Due, r.After, before.Done)
				}
				if rows[0].Turns == 8 && k == 6 && before.Turn == 5 || before.Turn == 3 && k == 6 {
					joins++
				}
			}
		}
		if over < 3 || joins == 0 {
			t.Errorf("%s: %d sessions are over, with %d joins", target, over, joins)
		}
	}
}
