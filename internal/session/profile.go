package session

import (
	"pitot/internal/config"
	"pitot/internal/target"
	"pitot/internal/workload/profile"
	"pitot/internal/workload/seed"
)

// fromProfile asks what is like the traffic of a profile: other words for each point.
func fromProfile(p *config.Ask, t *target.Target, point int32) (source, error) {
	known, err := profile.Open(p.Workload)
	if err != nil {
		return source{}, err
	}
	s := seed.Point(p.Seed, point)
	src, err := profile.NewSource(known, profile.Config{Seed: seed.At(s, seed.Workload, 0), Nonce: promptNonce(p, point), Calibration: t.Calibration})
	if err != nil {
		return source{}, err
	}
	v := t.Options.Vocab
	about := profile.Describe(known, p.Workload, t.Calibration, v)
	return source{Source: src, about: about, cold: known.Prefixes == nil && known.Sessions == nil, close: func() {}}, nil
}
