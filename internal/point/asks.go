package point

import (
	"pitot/internal/plan"
	"pitot/internal/wire"
	"pitot/internal/workload"
	"pitot/internal/workload/token"
)

// Workload gives what a run's point asked, as far as its plan tells without
// the target: lengths and what prompts share, not how many words the target
// makes of a token. Call close when done.
func Workload(p *plan.Plan, index int32) (src workload.Source, close func(), err error) {
	s, err := newSource(p, &Target{Options: wire.Options{Vocab: token.Universal()}}, index)
	return s, s.close, err
}
