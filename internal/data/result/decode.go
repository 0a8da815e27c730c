package result

import (
	"encoding/json"
	"strings"

	v1 "pitot/internal/data/result/v1"
)

// family begins the schema of every version.
const family = "pitot.run/"

// Own says that a schema is some version of this contract.
func Own(schema string) bool { return strings.HasPrefix(schema, family) }

// SchemaError says that a document is of a schema that this program cannot read.
type SchemaError struct {
	Has string // "" if it names none
}

func (e *SchemaError) Error() string {
	switch {
	case e.Has == "":
		return "it names no schema"
	case e.Newer():
		return "it has schema " + e.Has + ", newer than the " + Schema + " that is read here"
	}
	return "it has schema " + e.Has + ", not " + Schema
}

// Newer says that another version of this program wrote the document.
func (e *SchemaError) Newer() bool { return Own(e.Has) }

// Decode reads a run.json of any version. A version that is not known gives a
// [SchemaError]; every other error says that the document is damaged.
func Decode(data []byte) (*Run, error) {
	var head struct {
		Schema string `json:"schema"`
	}
	if err := json.Unmarshal(data, &head); err != nil {
		return nil, err
	}
	switch head.Schema { // before the fields, which may have other types there
	case Schema:
		var run Run
		if err := json.Unmarshal(data, &run); err != nil {
			return nil, err
		}
		return &run, nil
	case v1.Schema:
		var old v1.Run
		if err := json.Unmarshal(data, &old); err != nil {
			return nil, err
		}
		run := FromV1(old)
		return &run, nil
	}
	return nil, &SchemaError{head.Schema}
}
