package audit

// Claim is what another client reports that it measured, as far as the reference
// server knows the truth of it. Times are milliseconds; nil is what it does not
// report.
type Claim struct {
	Tool      string
	Requests  *float64
	MeanTTFT  *float64
	P99TTFT   *float64
	MedianITL *float64
	P99ITL    *float64
	MeanTPOT  *float64
}
