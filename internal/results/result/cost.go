package result

// Cost holds the cost of serving at a load, in USD and after the discount. Each figure carries
// everything that is paid: package cost has the formulas.
type Cost struct {
	USDPerGPUHour *float64 `json:"usd_per_gpu_hour"` // null where tokens are paid
	USDPerHour    *float64 `json:"usd_per_hour,omitempty"`
	Basis         Basis    `json:"basis,omitempty"`
	Price         string   `json:"price,omitempty"` // as it was written
	Discount      float64  `json:"discount,omitempty"`
	CachedUnknown bool     `json:"cached_unknown,omitempty"` // usage does not say what was cached: all input is at the full price

	USDPerMInput      *float64 `json:"usd_per_m_input,omitempty"`
	USDPerMOutput     *float64 `json:"usd_per_m_output"`
	USDPerMTokens     *float64 `json:"usd_per_m_tokens,omitempty"` // input and output
	USDPerMGoodOutput *float64 `json:"usd_per_m_good_output"`      // of requests within the objective
	USDPerMCommon     *float64 `json:"usd_per_m_common,omitempty"` // output tokens as --tokenizer counts them
	USDPerRequest     *float64 `json:"usd_per_request,omitempty"`
	USDPerGoodRequest *float64 `json:"usd_per_good_request,omitempty"`

	Electricity *Electricity          `json:"electricity,omitempty"` // of GPUs that are owned
	CI95        map[string][2]float64 `json:"ci95,omitempty"`        // of usd_per_m_output and usd_per_request
}

// Basis is the thing that is paid for.
type Basis string

const (
	Rented     Basis = "rented" // GPUs by the hour
	Owned      Basis = "owned"  // GPUs that are written off, and their electricity
	ListPrice  Basis = "list"   // GPUs by the hour, at the list price of the catalogue
	TokenPrice Basis = "tokens" // tokens that a provider sells
)

// Electricity is that part of the cost of an owned GPU.
type Electricity struct {
	USDPerGPUHour float64 `json:"usd_per_gpu_hour"`
	WattsPerGPU   float64 `json:"watts_per_gpu"`
	Measured      bool    `json:"measured"` // not as its owner gave it
}

// Quoted holds the cost of the load that a search quotes.
type Quoted struct {
	AtCapacity   Cost    `json:"at_capacity"`
	Headroom     float64 `json:"headroom"`      // share of the capacity that is kept idle
	WithHeadroom Cost    `json:"with_headroom"` // the same deployment, loaded to the rest of it
}

// Energy holds the energy that the GPUs drew over the window.
type Energy struct {
	From   EnergySource `json:"from"`
	Joules float64      `json:"joules"`
	Error  float64      `json:"error_joules"` // at most so far off, of a counter; with 95 %, of samples of power
	Watts  float64      `json:"watts"`        // the mean
	GPUs   *int         `json:"gpus"`         // that tell; null where that is not known
	// IdleWatts was drawn just before the load began, null where nobody told.
	IdleWatts *float64 `json:"idle_watts"`
	Samples   int      `json:"samples"` // that differ from the one before

	JoulesPerOutputToken *float64 `json:"joules_per_output_token"`
	JoulesPerGoodToken   *float64 `json:"joules_per_good_token"`                // of the tokens of requests within the objective
	TokensPerSPerMW      *float64 `json:"output_tokens_per_s_per_mw,omitempty"` // tokens of a second by a megawatt

	Why Reason `json:"why,omitzero"` // why there is nothing by token
}

// EnergySource is the measurement that the energy follows from.
type EnergySource string

const (
	EnergyCounter EnergySource = "counter" // that the GPUs integrate themselves
	PowerSamples  EnergySource = "power"   // samples of their power
)

// CapacityCost returns the cost of a million output tokens within the objective, in USD. It is that
// at the quoted load of a search, and nil where that is not known.
func (r *Run) CapacityCost() *float64 {
	if c := r.Capacity; c != nil && c.Load != nil && c.USDPerMGoodOutput != nil {
		return c.USDPerMGoodOutput
	}
	if p := r.QuotablePoint(); p != nil && p.Cost != nil {
		return p.Cost.USDPerMGoodOutput
	}
	return nil
}

// QuotablePoint is the point at the load of a search that is to be quoted, nil where there is
// none: the last that counts.
func (r *Run) QuotablePoint() *Point {
	if i := r.QuotableIndex(); i >= 0 {
		return &r.Points[i]
	}
	return nil
}

// QuotableIndex is where that point is, -1 where there is none.
func (r *Run) QuotableIndex() int {
	c := r.Capacity
	if c == nil || c.Load == nil {
		return -1
	}
	for i := range c.Trail {
		p := &c.Trail[len(c.Trail)-1-i]
		if p.Load == *c.Load && !p.Excluded && p.Point >= 0 && p.Point < len(r.Points) {
			return p.Point
		}
	}
	return -1
}
