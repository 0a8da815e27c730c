package config

// MeanTokens are those of a request: of its prompt and of all its answers, or of all its texts
// where nothing is generated. 0 is what is not known beforehand.
func (a *Ask) MeanTokens() (in, out float64) {
	in, out = a.meanPair()
	if a.Pooling {
		return in * float64(a.Batch), 0
	}
	return in, out * float64(max(a.Choices, 1))
}

// meanPair are the tokens of one prompt, or text, and of one answer to it.
func (a *Ask) meanPair() (in, out float64) {
	if a.Mix != nil && a.HasConversations() { // each class has turns of its own
		for i := range a.Mix.Classes {
			c := &a.Mix.Classes[i]
			x, y := c.Ask.meanPair()
			if x == 0 || y == 0 {
				return 0, 0
			}
			share := a.ShareOf(c.Name)
			in, out = in+share*x, out+share*y
		}
		return in, out
	}
	if in, out, ok := a.RecordedMeans(); ok {
		return in, out
	}
	random := a.IsGenerated()
	if random {
		in = a.meanHistory() + a.Input.Mean() + a.PrefixMean()
	}
	if random || a.Output != Default().Ask.Output {
		out = a.Output.Mean()
	}
	return in, out
}

// meanHistory returns the mean number of tokens that a request of a conversation has beyond its
// first turn's.
func (a *Ask) meanHistory() float64 {
	if !a.GeneratedTurns() {
		return 0
	}
	answer, further := a.Output.Mean(), a.FurtherInput().Mean()
	started, prompts, read := a.SubAgents.ExpectedPerStep(answer, further)
	begin := a.Input.Mean() + a.PrefixMean()
	const draws = 1024
	requests, tokens := 0.0, 0.0
	for i := range draws {
		n := float64(a.Turns.Quantile((float64(i) + 0.5) / draws))
		requests += n + (n-1)*started
		// So many times a turn is in a later prompt, besides what sub-agents ask.
		tokens += n*(float64(a.System)+begin) + n*(n-1)/2*(answer+further+read) + (n-1)*prompts
	}
	return tokens/requests - begin
}
