package cost

// Rates holds the rates at which a deployment serves, per second; nil where a rate is not known. A
// good request is within the limits of the objective, and so are its tokens.
type Rates struct {
	Requests, Input, Output  *float64
	Cached                   *float64 // of the input, what came from a prompt cache
	GoodRequests, GoodOutput *float64
}

// Bill holds the cost of a deployment at a load, all in USD and after the discount. Unknown figures
// are nil.
//
// Each figure carries all that is paid: the dollars of a second by the requests or the millions of
// tokens of a second. So the figures of input and of output tokens must not be added: they are one
// bill, shared out in two ways.
type Bill struct {
	PerHour    float64  // of the deployment
	PerGPUHour *float64 // of one GPU, nil where tokens are paid

	MInput      *float64 // by a million input tokens
	MOutput     *float64 // by a million output tokens
	MTokens     *float64 // by a million of both: blended
	MGoodOutput *float64 // by a million output tokens of good requests
	Request     *float64 // by a request that was answered
	GoodRequest *float64 // by a good request
}

// Bill returns the cost of a number of GPUs, or of the tokens of these rates. watts is the mean
// power of one GPU where it was measured, else nil. ok is false where the price, or the amount to
// pay for, is not known.
func (p Price) Bill(gpus int, watts *float64, r Rates) (b Bill, ok bool) {
	switch {
	case !p.GPU.IsUnknown():
		if gpus <= 0 {
			return Bill{}, false
		}
		each := p.GPU.HourlyUSD(watts) * (1 - p.Discount)
		b.PerGPUHour, b.PerHour = &each, each*float64(gpus)
	case !p.Tokens.IsUnknown():
		if r.Input == nil && p.Tokens.Input > 0 || r.Output == nil && p.Tokens.Output > 0 {
			return Bill{}, false
		}
		b.PerHour = 3600 * (p.OfTokens(valueOrZero(r.Input), valueOrZero(r.Output)) - p.cacheDiscount(min(valueOrZero(r.Cached), valueOrZero(r.Input))))
	default:
		return Bill{}, false
	}
	second := b.PerHour / 3600
	b.MInput, b.MOutput, b.MGoodOutput = usdFor(second, r.Input, 1e6), usdFor(second, r.Output, 1e6), usdFor(second, r.GoodOutput, 1e6)
	if r.Input != nil && r.Output != nil {
		both := *r.Input + *r.Output
		b.MTokens = usdFor(second, &both, 1e6)
	}
	b.Request, b.GoodRequest = usdFor(second, r.Requests, 1), usdFor(second, r.GoodRequests, 1)
	return b, true
}

// usdFor returns the cost of n units at the given rate, when a second costs second. It is nil where
// the rate is zero or not known.
func usdFor(second float64, rate *float64, n float64) *float64 {
	if rate == nil || !(*rate > 0) {
		return nil
	}
	x := second / *rate * n
	return &x
}

func valueOrZero(x *float64) float64 {
	if x == nil {
		return 0
	}
	return *x
}

// OfTokens returns a provider's price for the given tokens, USD, after the discount.
func (p Price) OfTokens(input, output float64) float64 {
	return (input*p.Tokens.Input + output*p.Tokens.Output) / 1e6 * (1 - p.Discount)
}

// cacheDiscount returns the reduction of a provider's price for input tokens of its prompt cache,
// USD.
func (p Price) cacheDiscount(cached float64) float64 {
	if p.Tokens.Cached == nil {
		return 0
	}
	return cached * (p.Tokens.Input - *p.Tokens.Cached) / 1e6 * (1 - p.Discount)
}

// OfTime returns the cost of GPUs for a time in seconds, USD, after the discount.
func (p Price) OfTime(gpus int, seconds float64) float64 {
	return float64(gpus) * p.GPU.HourlyUSD(nil) * (1 - p.Discount) * seconds / 3600
}

// WithHeadroom is the bill of a deployment of which a share is kept idle, as for peaks: what is
// paid by the hour stays, and is shared by so many fewer requests and tokens. Tokens that
// a provider sells cost the same at any load.
func (p Price) WithHeadroom(b Bill, headroom float64) Bill {
	if p.GPU.IsUnknown() {
		return b
	}
	for _, x := range []**float64{&b.MInput, &b.MOutput, &b.MTokens, &b.MGoodOutput, &b.Request, &b.GoodRequest} {
		if *x != nil {
			dearer := **x / (1 - headroom)
			*x = &dearer
		}
	}
	return b
}

// IntervalFromRate is that of a cost that follows from the interval of a rate: what is paid by
// the hour does not depend on the rate, so that the ends change places. ok is false where
// the cost does not fall as the rate grows, as of tokens that a provider sells, and where
// the rate may be nothing.
func (p Price) IntervalFromRate(usd, rate float64, ci [2]float64) (of [2]float64, ok bool) {
	if p.GPU.IsUnknown() || !(ci[0] > 0) {
		return of, false
	}
	return [2]float64{usd * rate / ci[1], usd * rate / ci[0]}, true
}

// JoulesPer is the energy by a token, of tokens that come at a rate while power is drawn.
func JoulesPer(watts, tokensPerS float64) float64 { return watts / tokensPerS }

// TokensPerMegawatt are the tokens of a second by a megawatt of power. It is a million by
// the joules of a token.
func TokensPerMegawatt(watts, tokensPerS float64) float64 { return tokensPerS / watts * 1e6 }
