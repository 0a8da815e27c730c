package rundir

import (
	"errors"
	"path/filepath"

	"pitot/internal/results/result"
	"pitot/internal/say"
	"pitot/internal/say/unreadable"
	"pitot/internal/userfile"
)

// ReadResult reads the result of the run in a directory. Every error is the user's, a
// [say.Error].
func ReadResult(dir string) (*result.Run, error) {
	switch StateOf(dir) {
	case Nothing:
		return nil, NoRun(dir)
	case Planned:
		return nil, say.Errorf("the run in %s ended before anything was measured", dir).WithHint("measure it again: pitot run --config " + filepath.Join(dir, Config))
	case Measured:
		return nil, say.Errorf("the run in %s was never finished", dir).WithHint("pitot report " + dir + " finishes it")
	}
	path := filepath.Join(dir, Result)
	data, err := userfile.Read(path, userfile.MostLarge)
	if err != nil {
		return nil, unreadable.FileError("run", path, err, "")
	}
	return DecodeResult(path, data)
}

// NoRun says that a directory holds none.
func NoRun(dir string) error {
	return say.Errorf("%s holds no run", dir).WithHint("name a directory that holds " + Result + " or " + Journal)
}

// DecodeResult reads the content of a file that holds a result. Every error is
// the user's, a [say.Error].
func DecodeResult(path string, data []byte) (*result.Run, error) {
	run, err := result.Decode(data)
	var schema *result.SchemaError
	switch {
	case err == nil:
		return run, nil
	case errors.As(err, &schema):
		return nil, UnknownSchema(path, schema)
	}
	hint := "copy it again from its source: pitot report cannot rebuild it, since its directory has no records"
	if dir := filepath.Dir(path); hasFile(dir, Journal) || hasFile(dir, Requests) {
		hint = "delete it, and pitot report " + dir + " makes it of the records again"
	}
	return nil, say.Errorf("%s is damaged: %v", path, err).WithHint(hint)
}

// UnknownSchema says that what a run was read from has a schema that is not read here.
func UnknownSchema(what string, schema *result.SchemaError) error {
	switch {
	case result.IsOwnSchema(schema.Has):
		return say.Errorf("%s has schema %s; this pitot reads %s", what, schema.Has, result.Schema).WithHint("another version of pitot wrote it: read it with that one, or measure again")
	case schema.Has == "":
		return say.Errorf("%s names no schema", what).WithHint("a run's begins with \"schema\": \"" + result.Schema + "\"")
	}
	return say.Errorf("%s has schema %q, which is not that of a run", what, schema.Has).WithHint("name the directory of a run of pitot")
}

// EncodeResult returns the content of run.json.
func EncodeResult(run *result.Run) ([]byte, error) { return result.Indent(run) }
