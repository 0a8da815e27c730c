package audit

// ClientReport holds what another client reports that it measured, as far as the reference server knows
// the truth of it. Times are milliseconds; nil means that it does not report the value.
type ClientReport struct {
	Tool      string
	Requests  *float64
	MeanTTFT  *float64
	P99TTFT   *float64
	MedianITL *float64
	P99ITL    *float64
	MeanTPOT  *float64
}
