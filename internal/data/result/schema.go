package result

import _ "embed"

//go:embed schema.json
var schema string

// JSONSchema is the contract of run.json as a JSON Schema, draft 2020-12.
func JSONSchema() string { return schema }
