package cost

import (
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"

	_ "pitot/internal/rapidtest" // the same draws each time
)

func rate(x float64) *float64 { return &x }

func near(t *testing.T, what string, got *float64, want float64) {
	t.Helper()
	if got == nil || math.Abs(*got-want) > 1e-12*math.Max(1, math.Abs(want)) {
		t.Errorf("%s: %v, want %g", what, got, want)
	}
}

// Prices that were worked out by hand.
func TestBill(t *testing.T) {
	// Two GPUs of 1.80 $/h cost a dollar in 1,000 seconds, and make 5 million tokens
	// meanwhile, 4 million of them good, of 20 million that they read for 1,000 requests.
	r := Rates{Requests: rate(1), Input: rate(20e3), Output: rate(5e3), GoodRequests: rate(.8), GoodOutput: rate(4e3)}
	b, ok := Price{GPU: GPU{Hour: 1.8}}.Bill(2, nil, r)
	if !ok {
		t.Fatal("no bill")
	}
	near(t, "an hour", &b.PerHour, 3.6)
	near(t, "input", b.MInput, .05)
	near(t, "output", b.MOutput, .2)
	near(t, "both", b.MTokens, .04)
	near(t, "good output", b.MGoodOutput, .25)
	near(t, "request", b.Request, .001)
	near(t, "good request", b.GoodRequest, .00125)
	near(t, "GPU", b.PerGPUHour, 1.8)
	b, _ = Price{GPU: GPU{Hour: 1.8}, Discount: .5}.Bill(2, nil, r)
	near(t, "output at half the price", b.MOutput, .1)

	// A GPU of 35,064 $ over 4 years is a dollar an hour, and a kilowatt at 10 cents
	// a tenth of one.
	owned := GPU{Owned: Owned{Purchase: 35064, Years: 4, Watts: 1000, KWh: .1}}
	b, _ = Price{GPU: owned}.Bill(2, nil, r)
	near(t, "owned", b.PerGPUHour, 1.1)
	b, _ = Price{GPU: owned}.Bill(2, rate(500), r)
	near(t, "owned, with power measured", b.PerGPUHour, 1.05)

	// A provider's 20,000 tokens in and 5,000 out a second at 0.15 and 0.60 $/M.
	b, _ = Price{Tokens: Tokens{Input: .15, Output: .6}}.Bill(0, nil, r)
	near(t, "an hour of tokens", &b.PerHour, 3600*(.003+.003))
	near(t, "all of it by the output", b.MOutput, 1.2)
	// Of these 20,000, half from its prompt cache at half the price.
	cached, half := .075, 10_000.
	sold, of := Price{Tokens: Tokens{Input: .15, Cached: &cached, Output: .6}}, r
	of.Cached = &half
	c, _ := sold.Bill(0, nil, of)
	near(t, "with a cache", &c.PerHour, 3600*(.0015+.00075+.003))
	if sold.Tokens.String() != "0.15/0.075/0.6" {
		t.Error(sold.Tokens.String())
	}
	if b.PerGPUHour != nil {
		t.Error("a provider's GPU has a price")
	}
}

// What is not known is no cost, and nothing is no divisor.
func TestUnknown(t *testing.T) {
	gpu, tokens := Price{GPU: GPU{Hour: 1}}, Price{Tokens: Tokens{Input: 1, Output: 1}}
	for name, c := range map[string]struct {
		Price
		gpus int
		Rates
	}{
		"no price":            {Price{}, 1, Rates{Output: rate(1)}},
		"no number of GPUs":   {gpu, 0, Rates{Output: rate(1)}},
		"tokens not counted":  {tokens, 1, Rates{Requests: rate(1)}},
		"no input counted":    {tokens, 1, Rates{Output: rate(1)}},
		"nothing sold is all": {Price{Discount: .5}, 1, Rates{Output: rate(1)}},
	} {
		if b, ok := c.Bill(c.gpus, nil, c.Rates); ok {
			t.Errorf("%s: %+v", name, b)
		}
	}
	for _, x := range []*float64{nil, rate(0), rate(math.NaN())} {
		if b, ok := gpu.Bill(1, nil, Rates{Requests: x, Input: x, Output: x}); !ok || b.MInput != nil || b.MOutput != nil || b.MTokens != nil || b.Request != nil {
			t.Errorf("%v: %+v", x, b)
		}
	}
}

// A deployment that is partly idle costs as much, for less; tokens that are bought cost
// what they cost. An interval holds the cost as its rate's holds the rate.
func TestIdleAndInterval(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		within := func(name string, lo, hi float64) float64 { return rapid.Float64Range(lo, hi).Draw(t, name) }
		p := Price{GPU: GPU{Hour: within("price", .01, 100)}, Discount: within("discount", 0, .99)}
		gpus, out, idle := rapid.IntRange(1, 64).Draw(t, "gpus"), within("rate", .1, 1e6), within("headroom", 0, .9)
		b, _ := p.Bill(gpus, nil, Rates{Output: &out})
		less := out * (1 - idle)
		want, _ := p.Bill(gpus, nil, Rates{Output: &less})
		got := p.WithHeadroom(b, idle)
		if math.Abs(*got.MOutput / *want.MOutput - 1) > 1e-12 || got.PerHour != b.PerHour {
			t.Errorf("%g, want %g", *got.MOutput, *want.MOutput)
		}
		lo, hi := out*within("low", .5, 1), out*within("high", 1, 2)
		ci, ok := p.IntervalFromRate(*b.MOutput, out, [2]float64{lo, hi})
		at, _ := p.Bill(gpus, nil, Rates{Output: &hi})
		if !ok || ci[0] > *b.MOutput*(1+1e-12) || ci[1] < *b.MOutput*(1-1e-12) || math.Abs(ci[0] / *at.MOutput - 1) > 1e-12 {
			t.Errorf("%v of %g", ci, *b.MOutput)
		}
		sold := Price{Tokens: Tokens{Input: 1, Output: 2}}
		bill, _ := sold.Bill(0, nil, Rates{Input: &out, Output: &out})
		if same := sold.WithHeadroom(bill, idle); *same.MOutput != *bill.MOutput {
			t.Error("a provider charges for idle time")
		}
		if _, ok := sold.IntervalFromRate(1, out, [2]float64{lo, hi}); ok {
			t.Error("the price of tokens has an interval")
		}
		if w := within("watts", 1, 1e5); math.Abs(JoulesPer(w, out)*TokensPerMegawatt(w, out)-1e6) > 1e-3 {
			t.Error("joules by token and tokens by power disagree")
		}
	})
	if _, ok := (Price{GPU: GPU{Hour: 1}}).IntervalFromRate(1, 1, [2]float64{0, 1}); ok {
		t.Error("a rate that may be nothing has a cost")
	}
}

// What is written is read back, and what is no price is refused with a way out.
func TestParse(t *testing.T) {
	for text, want := range map[string]GPU{
		"2.49": {Hour: 2.49}, "0": {}, "1e3": {Hour: 1000},
		"owned:30000,4y": {Owned: Owned{30000, 4, 0, 0}}, "owned:30000, 3.5y, 700W, 0.12/kWh": {Owned: Owned{30000, 3.5, 700, .12}},
	} {
		if got, err := ParseGPU(text); err != nil || got != want {
			t.Errorf("%q: %+v, %v", text, got, err)
		}
	}
	for _, text := range []string{"", " ", "x", "-1", "-0", "Inf", "NaN", "0x10", "1_000", "2.49/h", "1e7", "owned:", "owned:1", "owned:1,2", "owned:0,4y", "owned:1,0y", "owned:1,1e-9y",
		"owned:1,4y,700W", "owned:1,4y,700,0.1/kWh", "owned:1,4y,700W,0.1", "owned:1,4y,700W,0.1/kWh,", "owned:1,4y,-7W,0.1/kWh", "Owned:1,4y"} {
		if got, err := ParseGPU(text); err == nil {
			t.Errorf("%q is %+v", text, got)
		}
	}
	for _, text := range []string{"", "5", "/", "1/", "1/x", "-1/2", "1/2/3/4", "1//3", "1e9/1", "NaN/1"} {
		if got, err := ParseTokens(text); err == nil {
			t.Errorf("%q is %+v", text, got)
		}
	}
	for text, want := range map[string]Tokens{"1/2": {Input: 1, Output: 2}, "1/0.5/2": {Input: 1, Output: 2}} {
		if got, err := ParseTokens(text); err != nil || got.String() != text || got.Input != want.Input || got.Output != want.Output {
			t.Errorf("%q: %+v, %v", text, got, err)
		}
	}
	for text, want := range map[string]float64{"0%": 0, "30%": .3, "0.3": .3, "99.9%": .999} {
		if got, err := ParseShare(text); err != nil || math.Abs(got-want) > 1e-15 {
			t.Errorf("%q: %g, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "%", "100%", "1", "-3%", "30 %", "x"} {
		if got, err := ParseShare(text); err == nil {
			t.Errorf("%q is %g", text, got)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, text := range []string{"2.49", "owned:30000,4y,700W,0.12/kWh", "owned:1,2y", "0.15/0.60", "30%", "1e-300"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if g, err := ParseGPU(text); err == nil {
			if x := g.HourlyUSD(nil); !(x >= 0) || math.IsInf(x, 0) {
				t.Errorf("%q costs %g", text, x)
			}
			if again, err := ParseGPU(g.String()); !g.IsUnknown() && (err != nil || again != g) {
				t.Errorf("%q is written %q, read %+v, %v", text, g, again, err)
			}
		} else if strings.Contains(err.Error(), "\n") && !strings.Contains(text, "\n") {
			t.Errorf("%q: %v", text, err)
		}
		if p, err := ParseTokens(text); err == nil && !p.IsUnknown() {
			if again, err := ParseTokens(p.String()); err != nil || again.String() != p.String() {
				t.Errorf("%q is written %q, read %+v, %v", text, p, again, err)
			}
		}
		if x, err := ParseShare(text); err == nil && !(x >= 0 && x < 1) {
			t.Errorf("%q is %g", text, x)
		}
	})
}
