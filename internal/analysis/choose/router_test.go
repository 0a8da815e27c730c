package choose

import (
	"context"
	"slices"
	"testing"

	"pitot/internal/config"
	"pitot/internal/sim/catalogue"
	"pitot/internal/sim/deploy"
	"pitot/internal/sim/engine"
	"pitot/internal/sim/engine/sglang"
	"pitot/internal/sim/engine/vllm"
)

// Where all conversations begin with one long prompt a cache-aware router keeps them at few
// engines, which miss the limits. One that goes by the conversation's name does better, is taken,
// and is what the commands start and verify.
func TestReroute(t *testing.T) {
	const engines, rate = 4, 22.0
	s, _, claims := talking(t, "p99 ttft<500ms, p99 tpot<60ms", "llama-3.1-8b@h100", "h100", "3", "50", "2s", func(ask *config.Ask) {
		ask.Input, ask.Output, ask.System = lengths(t, "3100"), lengths(t, "32"), 3000
	})
	ask := config.Default().Ask
	ask.Turns = lengths(t, "3")
	gpu, err := catalogue.FindAccelerator("h100")
	if err != nil {
		t.Fatal(err)
	}
	for kind, want := range map[*engine.Kind]Router{&vllm.Kind: {Policy: Session}, &sglang.Kind: {Policy: CacheAware, BalanceAbsThreshold: 8}} {
		w := &Wanted{Model: "llama-3.1-8b", Ask: &ask, Rate: rate}
		if w.model, err = catalogue.FindModel(w.Model); err != nil {
			t.Fatal(err)
		}
		r := &race{wanted: w, schedule: s, claims: claims, close: s.refinedEffort(lookedClosely, 1.06)}
		c, err := w.newCandidate(EngineShape{Offer{Accelerator: gpu, Most: 8}, kind, 1, "bf16"}, nil)
		if err != nil {
			t.Fatal(err)
		}
		o := &Option{Spec: c.Spec, Engine: kind.Name, Engines: engines, candidate: c}
		usual, err := r.serveWhole(context.Background(), o, engines)
		if err != nil {
			t.Fatal(err)
		}
		if usual.Met || usual.Router != CacheAware {
			t.Fatalf("behind %s the limits are met: %v", usual.Router, usual.Met)
		}
		other, err := r.tryOtherRouter(context.Background(), o, engines, usual)
		if err != nil {
			t.Fatal(err)
		}
		_, before := usual.served.worstClaim()
		_, now := other.served.worstClaim()
		if now > before || (o.router == want) != (now <= before) {
			t.Errorf("%s: from %.2f times the limit to %.2f behind %+v", kind.Name, before, now, o.router)
		}
		if kind != &vllm.Kind {
			// What is dearer than it may be, as far as is seen, is not looked at any further.
			o.router = Router{}
			if err := r.findLeastEngines(context.Background(), o, 0); err != nil || o.Whole.Met || o.Engines != engines || o.failed != engines {
				t.Errorf("%d engines and no more: %d of %d miss the limits, %v", engines, o.failed, o.Engines, err)
			}
			continue
		}
		if !other.Met || other.Router != Session || o.router != want {
			t.Errorf("behind %s the limits are met: %v", other.Router, other.Met)
		}
		if line := o.RouterCommand(); !slices.Contains(line, "consistent_hash") {
			t.Errorf("the router is started by %v", line)
		}
		if d, err := deploy.Parse(other.Spec); err != nil || d.Routing.Router != Session {
			t.Errorf("%s: %v", other.Spec, err)
		}
	}
}

// A look that is only asked whether the limits hold says so as a whole one does, and sooner where
// they do not.
func TestWhether(t *testing.T) {
	s, d, claims := talking(t, "p95 ttft<300ms", "llama-3.1-8b@h100", "h100", "uniform(2,6)", "50", "lognormal(2s,1s)", func(ask *config.Ask) {
		ask.Input, ask.Output, ask.System = lengths(t, "200"), lengths(t, "16"), 500
	})
	sooner := 0
	for _, rate := range []float64{20, 80, 100, 140} {
		e := s.effort(1000, 1.1)
		whole, err := s.serveConversations(context.Background(), d, claims, rate, 1, &e)
		if err != nil {
			t.Fatal(err)
		}
		e.whether = true
		brief, err := s.serveConversations(context.Background(), d, claims, rate, 1, &e)
		if err != nil {
			t.Fatal(err)
		}
		_, a := whole.worstClaim()
		_, b := brief.worstClaim()
		if a < 1 != (b < 1) || a < 1 && a != b {
			t.Errorf("%v/s: %.3g times the limit, and %.3g", rate, a, b)
		}
		if len(brief.times[0]) < len(whole.times[0]) {
			sooner++
		}
	}
	if sooner == 0 {
		t.Error("no look ended sooner")
	}
}
