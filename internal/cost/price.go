// Package cost is what serving costs: prices as they are written, and the formulas by
// which a price and what a deployment serves become dollars per token and per request,
// and its power becomes joules per token. Nothing else in the program works out a cost.
package cost

import (
	"math"
	"strconv"
	"strings"

	"pitot/internal/say"
)

// HoursPerYear are those of a mean year of 365.25 days.
const HoursPerYear = 8766

// Price is the price of a deployment: GPUs by the hour or a provider's price for tokens. The zero
// value says that no price is known.
type Price struct {
	GPU      GPU     `json:"gpu"`
	Tokens   Tokens  `json:"tokens"`
	Listed   bool    `json:"listed"`   // it is the list price of a GPU that is simulated
	Discount float64 `json:"discount"` // share that is taken off, as for a batch window; at least 0, below 1
}

// IsUnknown says that no price is known.
func (p Price) IsUnknown() bool { return p.GPU.IsUnknown() && p.Tokens.IsUnknown() }

// GPU is the price of one GPU: rented by the hour, or owned.
type GPU struct {
	Hour  float64 // USD for an hour of a rented one
	Owned Owned
}

// IsUnknown says that no price is known.
func (g GPU) IsUnknown() bool { return g == GPU{} }

// Owned holds the cost of one GPU to its owner. Purchase includes everything that is bought with
// it: its share of a machine, of a network and of a building.
type Owned struct {
	Purchase float64 // USD
	Years    float64 // over which it is written off, evenly
	Watts    float64 // what it draws where its power is not measured; 0 leaves electricity out
	KWh      float64 // USD for a kilowatt-hour
}

// HourlyUSD returns the cost of one GPU for an hour, USD: its rent, or
//
// purchase ÷ (years × 8766 h) + watts ÷ 1000 × price of a kWh
//
// watts is the mean power of one GPU where it was measured, nil where it was not. The measured
// power takes the place of the one that the owner gave.
func (g GPU) HourlyUSD(watts *float64) float64 {
	o := g.Owned
	if o == (Owned{}) {
		return g.Hour
	}
	return o.Purchase/(o.Years*HoursPerYear) + o.ElectricityPerHour(watts)
}

// ElectricityPerHour returns the part of that cost that is for electricity, USD an hour.
func (o Owned) ElectricityPerHour(watts *float64) float64 {
	w := o.Watts
	if watts != nil {
		w = *watts
	}
	return w / 1000 * o.KWh
}

// Tokens holds a provider's price for a million tokens, USD.
type Tokens struct {
	Input, Output float64
	Cached        *float64 // of input that came from the provider's prompt cache, nil where it is priced as other input
}

// IsUnknown says that no price is known.
func (t Tokens) IsUnknown() bool { return t.Input == 0 && t.Output == 0 && t.Cached == nil }

// The largest numbers that are taken for a price: more is a slip.
const (
	mostPerHour  = 1e6
	mostPurchase = 1e9
	mostYears    = 100
	mostWatts    = 1e6
	mostPerKWh   = 1e3
)

const ownedWord = "owned:"

const ownedHint = "for example owned:30000,4y,700W,0.12/kWh: purchase in USD, years, power and USD for a kilowatt-hour"

// ParseGPU reads the price of a GPU: USD an hour, "2.49", or what it costs its owner,
// "owned:30000,4y" or "owned:30000,4y,700W,0.12/kWh".
func ParseGPU(text string) (GPU, error) {
	if rest, owned := strings.CutPrefix(text, ownedWord); owned {
		o, err := parseOwned(rest)
		return GPU{Owned: o}, err
	}
	x, ok := parseNumber(text, 0, mostPerHour)
	if !ok {
		return GPU{}, say.Errorf("%q is no price of a GPU and hour", text).WithHint("give USD, as 2.49, or what it costs its owner: owned:30000,4y,700W,0.12/kWh")
	}
	return GPU{Hour: x}, nil
}

func parseOwned(text string) (o Owned, err error) {
	parts := strings.Split(text, ",")
	if len(parts) != 2 && len(parts) != 4 {
		return o, say.Errorf("%q is no price of an owned GPU", ownedWord+text).WithHint(ownedHint)
	}
	for i, part := range []struct {
		into *float64
		unit string
		what string
		most float64
	}{
		{&o.Purchase, "", "a purchase in USD", mostPurchase}, {&o.Years, "y", "years, as 4y", mostYears},
		{&o.Watts, "W", "a power, as 700W", mostWatts}, {&o.KWh, "/kWh", "USD for a kilowatt-hour, as 0.12/kWh", mostPerKWh},
	} {
		if i == len(parts) {
			break
		}
		v, has := strings.CutSuffix(strings.TrimSpace(parts[i]), part.unit)
		x, ok := parseNumber(v, 0, part.most)
		if !has || !ok || x == 0 {
			return Owned{}, say.Errorf("%q is not %s", parts[i], part.what).WithHint(ownedHint)
		}
		*part.into = x
	}
	if o.Years < 1e-3 { // less is no time in which anything is written off
		return Owned{}, say.Errorf("%q is too short a time", parts[1]).WithHint(ownedHint)
	}
	return o, nil
}

// String is the price as it is written, "" for none.
func (g GPU) String() string {
	o := g.Owned
	switch {
	case g.IsUnknown():
		return ""
	case o == Owned{}:
		return say.Exact(g.Hour)
	case o.Watts == 0:
		return ownedWord + say.Exact(o.Purchase) + "," + say.Exact(o.Years) + "y"
	}
	return ownedWord + say.Exact(o.Purchase) + "," + say.Exact(o.Years) + "y," + say.Exact(o.Watts) + "W," + say.Exact(o.KWh) + "/kWh"
}

// ParseTokens reads what a provider asks for a million input and output tokens, USD:
// "0.15/0.60".
func ParseTokens(text string) (t Tokens, err error) {
	parts := strings.Split(text, "/")
	var x [3]float64
	ok := len(parts) == 2 || len(parts) == 3
	for i := 0; ok && i < len(parts); i++ {
		x[i], ok = parseNumber(parts[i], 0, mostPerHour)
	}
	switch {
	case !ok:
		return Tokens{}, say.Errorf("%q is not IN/OUT or IN/CACHED/OUT", text).WithHint("for example 0.15/0.60, or 0.15/0.075/0.60 where input from the prompt cache has a price of its own")
	case len(parts) == 3 && x[1] > x[0]:
		return Tokens{}, say.Errorf("%q has input from the prompt cache above other input", text).WithHint("the order is IN/CACHED/OUT, for example 0.15/0.075/0.60")
	case len(parts) == 3:
		return Tokens{Input: x[0], Cached: &x[1], Output: x[2]}, nil
	}
	return Tokens{Input: x[0], Output: x[1]}, nil
}

// String is the price as it is written, "" for none.
func (t Tokens) String() string {
	if t.IsUnknown() {
		return ""
	}
	in := say.Exact(t.Input)
	if t.Cached != nil {
		in += "/" + say.Exact(*t.Cached)
	}
	return in + "/" + say.Exact(t.Output)
}

// MarshalText returns the price as it is written.
func (g GPU) MarshalText() ([]byte, error) { return []byte(g.String()), nil }

// UnmarshalText reads a price as [GPU.String] writes it.
func (g *GPU) UnmarshalText(text []byte) (err error) {
	if *g = (GPU{}); len(text) > 0 {
		*g, err = ParseGPU(string(text))
	}
	return err
}

// MarshalText returns the prices as they are written.
func (t Tokens) MarshalText() ([]byte, error) { return []byte(t.String()), nil }

// UnmarshalText reads prices as [Tokens.String] writes them.
func (t *Tokens) UnmarshalText(text []byte) (err error) {
	if *t = (Tokens{}); len(text) > 0 {
		*t, err = ParseTokens(string(text))
	}
	return err
}

// ParseShare reads a share that is at least 0 and below 1: "30%" or "0.3".
func ParseShare(text string) (float64, error) {
	v, percent := strings.CutSuffix(text, "%")
	x, ok := parseNumber(v, 0, 100)
	if percent {
		x /= 100
	}
	if !ok || x >= 1 {
		return 0, say.Errorf("%q is no share below 100%%", text).WithHint("for example 30%")
	}
	return x, nil
}

// parseNumber reads a decimal number; false for one that is none or out of bounds.
func parseNumber(text string, least, most float64) (float64, bool) {
	if text == "" || strings.Trim(text, "0123456789.eE+-") != "" { // no hexadecimal, no "Inf", no "_"
		return 0, false
	}
	x, err := strconv.ParseFloat(text, 64)
	return x, err == nil && x >= least && x <= most && !math.Signbit(x)
}
