package cli

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os/exec"
	"path/filepath"
	"runtime"

	"pitot/internal/report"
	"pitot/internal/report/page"
	"pitot/internal/results/result"
	"pitot/internal/results/rundir"
	"pitot/internal/userfile"
)

// writePage writes a run's page into its directory and gives its path, and what of
// the records cannot be read. The page is made from the results and no part of
// them: that it cannot be written is a note, and the path "".
func writePage(stderr io.Writer, run *result.Run, m report.Model, dir string) (path string, missing []string) {
	if run == nil || dir == "" {
		return "", nil
	}
	html, missing, err := makePage(run, m, dir)
	if err == nil {
		err = rundir.WriteFile(dir, rundir.Page, html)
	}
	path = filepath.Join(dir, rundir.Page)
	switch {
	case err == nil:
		return path, missing
	case isFile(path):
		fmt.Fprintf(stderr, "note: %s stays as it was: %v\n", rundir.Page, err)
	default:
		fmt.Fprintf(stderr, "note: no %s: %v\n", rundir.Page, err)
	}
	return "", missing
}

// makePage makes it from the result and what can be read of the records, and says
// what cannot.
func makePage(run *result.Run, m report.Model, dir string) (html []byte, missing []string, err error) {
	series, err := page.ReadSeries(dir, run)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		missing = append(missing, "The records are not all in the run directory: charts of single requests are missing, and what is exported from them. The figures are those of run.json.")
	case err != nil:
		missing = append(missing, fmt.Sprintf("The records are damaged: charts of single requests show what comes before the damage, and nothing is exported from them. The figures are those of run.json. (%v)", err))
	}
	parts := page.Extra{Series: series, Missing: missing}
	if config, err := userfile.Read(filepath.Join(dir, rundir.Config), userfile.MostText); err == nil {
		parts.Config = string(config)
	}
	var b bytes.Buffer
	err = page.Write(&b, m, parts)
	return b.Bytes(), missing, err
}

// openPage shows a page in a browser.
func openPage(e *Env, path string) {
	if full, err := filepath.Abs(path); err == nil {
		path = full
	}
	command := []string{"xdg-open"}
	switch browser := e.Getenv("BROWSER"); {
	case browser != "":
		command = []string{browser}
	case runtime.GOOS == "darwin":
		command = []string{"open"}
	case runtime.GOOS == "windows":
		command = []string{"rundll32", "url.dll,FileProtocolHandler"}
	}
	open := exec.Command(command[0], append(command[1:], path)...)
	open.Stdout, open.Stderr = e.Stderr, e.Stderr
	if err := open.Run(); err != nil {
		fmt.Fprintf(e.Stderr, "note: no browser could be started (%v): open %s\n", err, path)
	}
}
