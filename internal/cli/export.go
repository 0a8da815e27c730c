package cli

import (
	"errors"
	"fmt"
	"os"

	"pitot/internal/analysis/tools"
	"pitot/internal/report"
	"pitot/internal/report/export"
	"pitot/internal/results/result"
	"pitot/internal/say"
	"pitot/internal/session"
)

// writeExports writes a run in the formats asked for. An error in one does not keep the
// others from being written.
func writeExports(e *Env, exports []export.Export, measured *result.Run, dir string) error {
	var failed []error
	for _, x := range exports {
		err := session.NotOwn(x.Path)
		if err == nil {
			err = x.Write(measured, dir)
		}
		if err != nil {
			failed = append(failed, err)
			continue
		}
		fmt.Fprintf(e.Stderr, "pitot: wrote %s\n", x.Path)
	}
	return errors.Join(failed...)
}

// isFile says that a path names a regular file, as results of other tools are.
func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}

// showForeign shows what another tool's file says.
func showForeign(e *Env, path, format string, exports []export.Export, sideBySide *report.SideBySide) error {
	if len(exports) > 0 {
		return say.Errorf("--export: %s was measured by another tool", path).WithHint("only runs of Pitot have the records that other formats are written from")
	}
	if format == "html" || format == "csv" {
		return say.Errorf("a result of another tool is not written as %s: %s", format, path).WithHint("--format text, json or md")
	}
	r, err := tools.Read(path)
	if err != nil {
		return err
	}
	sideBySide.AddToolResult(r)
	if format == "json" {
		return report.WriteJSON(e.Stdout, r)
	}
	return report.WriteToolResult(e.Stdout, r, format == "md")
}
