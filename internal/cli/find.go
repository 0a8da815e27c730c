package cli

import (
	"context"
	"maps"
	"strings"
	"time"

	engine "pitot/internal/experiment/server"
	"pitot/internal/plan"
	"pitot/internal/run"
	"pitot/internal/say"
	"pitot/internal/slo"
	"pitot/internal/study/predict"
	"pitot/internal/twin/catalogue"
	"pitot/internal/twin/deploy"
	"pitot/internal/wire/api"
)

func findVerb(ctx context.Context, e *Env) (int, error) {
	v := measuring{verb: plan.VerbFind, loads: measureCapacity}
	return v.run(ctx, e)
}

func measureCapacity(ctx context.Context, s *run.Session, p *plan.Plan, view *progress) error {
	if c := s.Concluded(); c != nil {
		s.Found(c)
		return nil
	}
	claims, err := p.SLO.Claims()
	if err != nil {
		return err
	}
	var earlier *run.Continued
	if p.Continue != "" {
		if earlier, err = run.Continue(p); err != nil {
			return err
		}
		if err := earlier.Launched(s); err != nil {
			return err
		}
	}
	in := run.NewSearcher(s, claims, p.Closed(), view)
	goal := run.Goal{Objective: p.SLO, Budget: p.SearchTime(), MaxLoad: p.MaxLoad, Verify: p.Verify.Load, Seed: p.Seed, Continued: earlier}
	twin, err := twinOf(ctx, s, p, claims, in.Probed)
	if err != nil {
		return err
	}
	if twin != nil {
		goal.Twin, goal.TwinNamed, goal.TwinOwn = twin, twin.Named, p.Twin == plan.AutoTwin
	}
	if goal.Alone, err = s.Alone(ctx); err != nil {
		return err
	}
	c, err := in.Find(ctx, goal)
	s.Found(c)
	return err
}

// twinOf is the twin that a search is replayed on: the one that was named, by its GPU alone
// with the model and the settings that the server tells; with auto, where the target takes
// real time, the deployment of the catalogue that serves light loads most as it does. nil
// where none is asked for.
func twinOf(ctx context.Context, s *run.Session, p *plan.Plan, claims []slo.Claim, probed func() []run.Probed) (*predict.Searched, error) {
	spec := deploymentOf(p.Twin)
	switch {
	case spec == "":
		return nil, nil
	case strings.Contains(spec, "@"):
		return predict.NewSearched(spec, p, claims, s.Dir, probed)
	case spec == plan.AutoTwin && !replayable(s, p):
		return nil, say.Errorf("--twin auto: this search cannot be replayed on a twin that is found out: it is of a simulated target, in a closed loop, of conversations or classes, or asks for one load, several answers or retries").WithHint("leave --twin out, or name it: --twin MODEL@GPU")
	case spec == plan.AutoTwin:
		spec = "" // whatever it is
	}
	t, of := s.Target, []*deploy.Deployment(nil)
	if _, embedded, ok := strings.Cut(t.Spec, ":"); ok && spec == "" && t.Kind == plan.KindMock {
		if d, err := deploy.Parse(embedded); err == nil { // else it has fixed latencies
			of = append(of, d)
		}
	} else {
		told := maps.Clone(t.Server)
		maps.Copy(told, engine.Read(t.Settings(ctx)))
		of = predict.Candidates(t.Options.Model, spec, told)
	}
	if len(of) == 0 && spec == "" {
		return nil, say.Errorf("--twin auto: nothing in the catalogue can have the settings that the server tells").WithHint("leave --twin out, or name it: --twin MODEL@GPU")
	}
	if len(of) == 0 {
		return nil, noTwin(t.Options.Model, spec)
	}
	most := int64(0)
	if spec == "" { // nobody named it
		most = int64(max(leastReplay, p.SearchTime()/replayShare).Seconds() * predict.WorkPerSecond)
	}
	return predict.NewSearchedNearest(of, most, p, claims, s.Dir, probed)
}

// A replay on a twin that nobody named takes no more of a processor than one part in replayShare of
// the budget of time, and leastReplay at least, besides what it takes to find the nearest deployment. It
// is counted in what is simulated, so that a busy machine comes to the same result.
const (
	leastReplay = 20 * time.Second
	replayShare = 20
)

// replayable says whether a search whose twin is to be found out is replayed: where the
// target takes real time, which a replay does not, and requests are sent as a replay has them.
func replayable(s *run.Session, p *plan.Plan) bool {
	return s.Target.Kind != plan.KindSim && api.Generates(s.Target.API) && p.Verify.Load == 0 && p.Continue == "" && !p.Closed() &&
		!p.Conversing() && p.Mix == nil && len(p.SLO.Classes) == 0 && p.Choices <= 1 && p.Retry.Times == 0
}

// noTwin says that a server's twin cannot be made by its GPU alone.
func noTwin(model, gpu string) error {
	if _, err := catalogue.FindAccelerator(strings.TrimLeft(gpu, "0123456789x")); err != nil {
		return say.Errorf("--twin %s: %v", gpu, err).WithHint(say.Hint(err))
	}
	return say.Errorf("--twin %s: %s, with the settings that the server tells, does not fit on it", gpu, model).WithHint("name how many there are, such as --twin 4xh100, or model and GPU: --twin MODEL@GPU")
}
