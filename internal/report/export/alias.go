package export

import (
	"pitot/internal/data/result"
	"pitot/internal/wire/api"
)

// toolAlias is what another tool calls the API that a run spoke: its own name where
// the tool has none for it.
func toolAlias(run *result.Run, tool string) string {
	if a, ok := api.Named(run.Target.API); ok && a.Alias(tool) != "" {
		return a.Alias(tool)
	}
	return run.Target.API
}
