package export

import (
	"pitot/internal/client/api"
	"pitot/internal/results/result"
)

// toolAlias returns another tool's name for the API that a run spoke. It returns the API's own name
// if the tool has none for it.
func toolAlias(run *result.Run, tool string) string {
	if a, ok := api.ByName(run.Target.API); ok && a.Alias(tool) != "" {
		return a.Alias(tool)
	}
	return run.Target.API
}
