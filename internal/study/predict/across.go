package predict

import (
	"encoding/json"

	"pitot/internal/twin/deploy"
)

// LeftOut is how well a load is predicted by a fit on the others alone: what the
// end of a run that was fitted cannot tell.
type LeftOut struct {
	Runs     []string `json:"runs"` // of this load
	Requests int      `json:"requests"`
	Reason   string   `json:"reason,omitempty"` // why there is no prediction
	// ErrorPct is the mean over the runs, each predicted whole, and AbsErrorPct that
	// of the errors without their signs; nil with a Reason.
	ErrorPct    *Metrics `json:"error_pct"`
	AbsErrorPct *Metrics `json:"abs_error_pct"`
}

// across leaves each load out in turn. With one load there is nothing to fit on.
func across(d *deploy.Deployment, runs, shown []*Recording) []LeftOut {
	var loads []string
	of := map[string][]int{} // the runs of each load
	for i, r := range runs {
		key := r.load()
		if of[key] == nil {
			loads = append(loads, key)
		}
		of[key] = append(of[key], i)
	}
	if len(loads) < 2 {
		return nil
	}
	var list []LeftOut
	for _, key := range loads {
		var others []*Recording
		for i := range runs {
			if runs[i].load() != key {
				c := *shown[i]
				c.course = nil // which the whole fit gave it
				others = append(others, &c)
			}
		}
		var x LeftOut
		f, slow, err := calibrate(d, others)
		if err != nil {
			x.Reason = "not predicted by the others: " + err.Error()
		} else {
			f.slow(&slow)
		}
		var errors []Metrics
		for _, i := range of[key] {
			recorded := runs[i].Recorded()
			x.Runs, x.Requests = append(x.Runs, runs[i].Dir), x.Requests+len(recorded.TTFT)
			if err == nil {
				errors = append(errors, Errors(runs[i].expected(&f.d, everyRequest), recorded.Metrics()))
			}
		}
		if err == nil {
			mean := meanMetrics(errors)
			for i := range errors {
				errors[i] = errors[i].abs()
			}
			size := meanMetrics(errors)
			x.ErrorPct, x.AbsErrorPct = &mean, &size
		}
		list = append(list, x)
	}
	return list
}

// load is what the run asked, as a key: not how it was rendered for the
// server's tokenizer.
func (r *Recording) load() string {
	if r.run == nil {
		return r.Dir
	}
	var workload map[string]any
	_ = json.Unmarshal(r.run.Workload, &workload) // what cannot be read is a workload too
	delete(workload, "vocabulary")
	delete(workload, "calibration")
	key, _ := json.Marshal([]any{r.run.Points[r.point].Load, workload}) // came from JSON
	return string(key)
}
