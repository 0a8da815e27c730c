package record

import "testing"

func TestKindOfFinish(t *testing.T) {
	for kind, reasons := range map[FinishKind][]string{
		FinishNone:     {""},
		FinishNormal:   {"stop", "length", "tool_calls", "function_call", "eos_token", "end_turn", "END_TURN", "endTurn", "max_tokens", "STOP_SEQUENCE", "COMPLETE", "model_length", "repetition", "pause_turn"},
		FinishFailed:   {"abort", "aborted", "ABORT", "error", "Error", "engine_error", "engineError", "request.cancelled", "canceled", "cancelled", "timeout", "timed_out", "unload", "failed", "insufficient_system_resource", "network_error", "MALFORMED_FUNCTION_CALL", "client-disconnected"},
		FinishFiltered: {"content_filter", "SAFETY", "sensitive", "refusal", "guardrail_intervened", "content_filtered", "PROHIBITED_CONTENT", "IMAGE_SAFETY", "content_filter_error"},
		FinishUnknown:  {"max_time_reached", "other", "stopped by magic", "42", "é"},
	} {
		for _, reason := range reasons {
			if got := KindOfFinish(reason); got != kind {
				t.Errorf("%q is of kind %d, want %d", reason, got, kind)
			}
		}
	}
	for reason, want := range map[string]string{"abort": "finish_abort", "engineError": "finish_engine_error", "SAFETY": ErrContentFilter} {
		if got := FinishError(reason); got != want {
			t.Errorf("%q is of class %q, want %q", reason, got, want)
		}
	}
}

func FuzzKindOfFinish(f *testing.F) {
	f.Add("engineError")
	f.Add("\xff\x00É_ERROR")
	f.Fuzz(func(t *testing.T, reason string) {
		if class := FinishError(reason); len(class) > 64 {
			t.Errorf("the class %q is long", class)
		}
		KindOfFinish(reason)
	})
}
