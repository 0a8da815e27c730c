package result

import (
	"encoding/json"
	"strings"
)

// family begins the schema of every version.
const family = "pitot.run/"

// IsOwnSchema says that a schema is some version of this contract.
func IsOwnSchema(schema string) bool { return strings.HasPrefix(schema, family) }

// SchemaError says that a document has another schema than the one that is read.
type SchemaError struct {
	Has string // "" if it names none
}

func (e *SchemaError) Error() string {
	if e.Has == "" {
		return "it names no schema"
	}
	return "it has schema " + e.Has + "; this pitot reads " + Schema
}

// Decode reads a run.json. Another schema gives a [SchemaError]; every other error says that
// the document is damaged.
func Decode(data []byte) (*Run, error) {
	if err := checkBounds(data); err != nil {
		return nil, err
	}
	var head struct {
		Schema string `json:"schema"`
	}
	if err := json.Unmarshal(data, &head); err != nil {
		return nil, err
	}
	if head.Schema != Schema { // before the fields, which may have other types there
		return nil, &SchemaError{head.Schema}
	}
	var run Run
	if err := json.Unmarshal(data, &run); err != nil {
		return nil, err
	}
	return &run, nil
}
