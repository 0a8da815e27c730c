package session

import (
	"errors"

	"pitot/internal/config"
	"pitot/internal/workload"
	"pitot/internal/workload/arrival"
	"pitot/internal/workload/seed"
)

// fromMix gives the workload of a point whose requests are of several classes; open makes
// that of one of them.
func fromMix(p *config.Ask, point int32, open func(p *config.Ask, point int32) (source, error)) (source, error) {
	m := p.Mix
	out := source{cold: true, close: func() {}}
	about := workload.MixDescription{Name: m.Path, SHA256: m.SHA256}
	var classes []workload.ClassOf
	endless := false
	for k := range m.Classes {
		c, ask := &m.Classes[k], p.OfClass(k)
		src, err := open(&ask, point)
		if err != nil {
			out.close()
			return source{}, err
		}
		others := out.close
		out.close = func() { src.close(); others() }
		out.cold = out.cold && src.cold
		out.prompts += src.prompts
		if p.HasConversations() {
			out.turns += c.Share * src.meanTurns(&ask)
		}
		endless = endless || src.prompts == 0
		about.Classes = append(about.Classes, workload.ClassDescription{Name: c.Name, Share: c.Share, Arrival: c.Arrival, SLO: c.SLO.String(), Workload: src.about})
		classes = append(classes, workload.ClassOf{Name: c.Name, Share: c.Share, Source: src.Source})
	}
	if endless {
		out.prompts = 0
	}
	mixed, err := workload.NewMixed(classes, seed.At(seed.Point(p.Seed, point), seed.Workload, 0))
	if err != nil {
		return source{}, errors.Join(err, func() error { out.close(); return nil }())
	}
	out.Source, out.about = mixed.SessionSource(), workload.Description{Kind: "mix", Mix: &about}
	return out, nil
}

// setArrivals says to a workload whose classes arrive by laws of their own which arrivals a load
// has.
func (s *source) setArrivals(p *config.Ask, l *config.Load, begin uint64, warmup int64) error {
	m, ok := workload.WithoutAnswerEnds(s.Source).(interface{ Arrive(arrival.Process) })
	if !ok || !l.Open() || len(p.Mix.Classes) < 2 || p.Mix.ArrivalLaw() == "" || p.Mix.ArrivalLaw() != l.Arrival {
		return nil
	}
	law, err := l.ArrivalLaw()
	if err != nil {
		return err
	}
	a, err := law.NewProcess(l.Rate, begin, warmup)
	if err != nil {
		return err
	}
	m.Arrive(a)
	return nil
}
