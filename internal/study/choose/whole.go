package choose

import (
	"context"

	"pitot/internal/study/predict"
	"pitot/internal/twin/deploy"
)

// Whole is all engines of an option at the wanted rate, behind their router.
type Whole struct {
	Spec   string `json:"spec"`
	Router string `json:"router"` // "" of one engine
	// Times is, of each limit, by how many times what it allows the request took whose rank
	// it is about.
	Times []float64 `json:"times_the_limit"`
	Met   bool      `json:"met"`
}

const (
	mostWhole  = 3  // options that are put together: those that may be taken
	mostJoined = 64 // engines that are put together
)

// together puts the first options together and asks them all that is wanted. Where a router
// shares requests out less evenly than the engines' numbers have it, one engine is added.
func (r *race) together(ctx context.Context) error {
	if r.wanted.Rate == 0 {
		return nil
	}
	list := r.choice.Options[:min(mostWhole, len(r.choice.Options))]
	errs := make([]error, len(list))
	predict.InParallel(len(list), func(i int) {
		o := &list[i]
		for range 2 {
			if o.Engines > mostJoined {
				return
			}
			if o.Whole, errs[i] = r.whole(ctx, o); errs[i] != nil || o.Whole.Met {
				return
			}
			o.Missed = o.Engines
			r.count(o, o.Engines+1)
		}
		if o.Engines <= mostJoined {
			o.Whole, errs[i] = r.whole(ctx, o)
		}
	})
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// whole serves the wanted rate by all engines of an option.
func (r *race) whole(ctx context.Context, o *Option) (*Whole, error) {
	c := o.candidate
	spec := r.wanted.spec(c.Offer, c.Engine, c.TensorParallel, o.Engines, c.DType, c.Settings)
	d, err := deploy.Parse(spec)
	if err != nil {
		return nil, err
	}
	warm := int(2 * r.wanted.Rate * r.schedule.full(c))
	x, err := r.schedule.serve(ctx, d, r.claims, r.wanted.Rate, max(warm, 20), &r.closer)
	if err != nil {
		return nil, err
	}
	w := &Whole{Spec: spec, Times: x.Worst}
	_, times := x.worst()
	w.Met = times < 1
	if d.Replicated() {
		w.Router = d.Routing.Router
	}
	return w, nil
}
