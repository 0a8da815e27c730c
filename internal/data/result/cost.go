package result

// USDOfGPUs is what GPUs cost for a time in seconds, each of them usdPerHour.
func USDOfGPUs(gpus int, usdPerHour, seconds float64) float64 {
	return float64(gpus) * usdPerHour * seconds / 3600
}

// USDPerMillion is what GPUs cost for the time in which they make a million
// tokens, of which they make tokensPerS a second. ok is false where they make none,
// or their price is not known.
func USDPerMillion(gpus int, usdPerHour, tokensPerS float64) (usd float64, ok bool) {
	if gpus <= 0 || usdPerHour <= 0 || !(tokensPerS > 0) {
		return 0, false
	}
	return USDOfGPUs(gpus, usdPerHour, 1) / tokensPerS * 1e6, true
}
