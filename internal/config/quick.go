package config

import "slices"

// QuickConsent is the user's consent to what pitot quick may cost.
type QuickConsent struct {
	Yes bool
}

// quickPoints is the number of loads that pitot quick measures at most.
const quickPoints = 8

// DecodeQuick makes the plan of a sweep over users from the command line of pitot quick. args are the
// arguments that are no flags. Every error is a [say.Error].
func DecodeQuick(argv, environ []string) (sweep Plan, consent QuickConsent, args []string, err error) {
	given, args, err := DecodeWith(VerbQuick, argv, environ, &consent)
	if err != nil {
		return sweep, consent, nil, err
	}
	var unset Plan
	newDecoder(VerbQuick, unset.settingParts())
	d := newDecoder(VerbSweep, sweep.settingParts())
	for _, s := range Settings() {
		to := d.known[s.Name]
		if !s.AppliesTo(VerbQuick) || to == nil || !s.isIn(given.settingParts()) {
			continue
		}
		values := s.written(given.settingParts())
		if s.Default == "" && slices.Equal(values, s.written(unset.settingParts())) {
			continue
		}
		for _, value := range values {
			if err := to.parseInto(d.parts, value); err != nil {
				return sweep, consent, nil, err
			}
		}
	}
	sweep.Spec, sweep.Origins = given.Spec, given.Origins
	sweep.Over, sweep.Points = OverConcurrency, quickPoints
	return sweep, consent, args, nil
}
