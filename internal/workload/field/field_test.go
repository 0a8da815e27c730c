package field

import "testing"

func TestOf(t *testing.T) {
	for name, want := range map[string]Is{
		"timestamp":                 {Field: Time},
		"TIMESTAMP":                 {Field: Time},
		"@timestamp":                {Field: Time},
		"arrival_s":                 {Field: Time, Unit: 1e9},
		"arrival time (ms)":         {Field: Time, Unit: 1e6},
		"startTimeMs":               {Field: Time, Unit: 1e6},
		"created-at":                {Field: Time},
		"t_us":                      {Field: Time, Unit: 1e3},
		"delay_ms":                  {Field: Delay, Unit: 1e6},
		"completionStartTime":       {Field: First},
		"ContextTokens":             {Field: Input},
		"Request tokens":            {Field: Input},
		"usage.prompt_tokens":       {Field: Input},
		"gen_ai.usage.input_tokens": {Field: Input},
		"num_prefill_tokens":        {Field: Input},
		"ISL":                       {Field: Input},
		"tokens_completion":         {Field: Output},
		"res_units":                 {Field: Output},
		"usage.completionTokens":    {Field: Output},
		"max-tokens":                {Field: Output},
		"input":                     {Field: InputEither},
		"Session ID":                {Field: Session},
		"request_user_id":           {Field: Client},
		"Text Prompt":               {Field: Prompt},
		"request.body":              {Field: Request},
		"systemPrompt":              {Field: System},
		"priority":                  {Field: Scheduling},
		"deadline_ms":               {Field: Scheduling, Unit: 1e6},
		"lora_path":                 {Field: Adapter},
		"adapter":                   {Field: Adapter},
		"seed":                      {Field: Sampling},
		"n":                         {Field: Sampling},
		"stop":                      {Field: Sampling},
		"logit_bias":                {Field: Sampling},
		"response_format":           {Field: Sampling},
		"prompt_len":                {Field: Unclear},
		"completion_len":            {Field: Unclear},
		"input_tokens_ms":           {},
		"latency_ms":                {},
		"":                          {},
		"---":                       {},
		"s":                         {},
		"Log Type":                  {},
	} {
		got := ParseName(name)
		got.Rank = 0
		if got != want {
			t.Errorf("%s: %+v, want %+v", name, got, want)
		}
	}
	if a, b := ParseName("startTime"), ParseName("created_at"); a.Rank >= b.Rank {
		t.Errorf("a start is no surer than when a row was made: %+v, %+v", a, b)
	}
}

// No name stands for two fields, and all are as Normal gives them.
func TestNames(t *testing.T) {
	of := map[string]Field{}
	for f := range fields {
		for _, name := range KnownNames(f) {
			if was, twice := of[name]; twice {
				t.Errorf("%s stands for %d and for %d", name, was, f)
			}
			of[name] = f
			if NormalizeName(name) != name {
				t.Errorf("%s is not normal", name)
			}
		}
	}
}
