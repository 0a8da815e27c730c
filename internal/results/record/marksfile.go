package record

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"pitot/internal/userfile"
)

// marksSchema is the schema of marks.json, an object with a list of marks.
const marksSchema = "pitot.marks/v1"

// marksFile is marks.json.
type marksFile struct {
	Schema string     `json:"schema"`
	Marks  []jsonMark `json:"marks"`
}

// jsonMark is a mark in its file. Its data is a JSON text inside a
// string, so that it comes back byte by byte.
type jsonMark struct {
	Point  int32  `json:"point"`
	Worker int32  `json:"worker,omitempty"`
	T      int64  `json:"t_ns"`
	Name   string `json:"name"`
	Data   string `json:"data"`
}

func (j *jsonMark) partKey() part { return part{j.Point, j.Worker} }

func (j *jsonMark) toMark() Mark {
	return Mark{Point: j.Point, T: j.T, Name: j.Name, Data: []byte(j.Data)}
}

// writeMarks writes marks.json and closes it.
func writeMarks(file *os.File, marks []jsonMark) error {
	if marks == nil {
		marks = []jsonMark{}
	}
	data, err := json.Marshal(marksFile{marksSchema, marks})
	if err != nil {
		return errors.Join(fmt.Errorf("encode marks: %w", err), file.Close())
	}
	_, err = file.Write(append(data, '\n'))
	return errors.Join(err, file.Sync(), file.Close())
}

// readMarks reads marks.json; there are none in a directory without the file.
func readMarks(path string) ([]jsonMark, error) {
	data, err := userfile.Read(path, userfile.MostLarge)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read marks: %w", err)
	}
	var head struct {
		Schema string `json:"schema"`
	}
	var file marksFile
	err = json.Unmarshal(data, &head)
	if err == nil && head.Schema != marksSchema { // before the fields, which may have other types there
		err = ErrVersion
	}
	if err == nil {
		err = json.Unmarshal(data, &file)
	}
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	return file.Marks, nil
}
