package audit

// Claim is what another client said it measured, as far as the reference
// server knows the truth of it. Times are milliseconds; nil is what it did not
// say.
type Claim struct {
	Tool      string
	Requests  *float64
	MeanTTFT  *float64
	P99TTFT   *float64
	MedianITL *float64
	P99ITL    *float64
	MeanTPOT  *float64
}
