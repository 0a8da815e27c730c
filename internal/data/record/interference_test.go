package record

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"pitot/internal/data/rundir"
)

// rowsIn counts the rows of a directory's records, the marks that say that
// records are missing, and the rows that are known to be lost.
func rowsIn(t *testing.T, dir string) (rows, marks int, lost int64, exact bool) {
	t.Helper()
	exact = true
	for f, err := range Frames(dir) {
		if err != nil {
			t.Fatal(err)
		}
		rows += len(f.Rows)
		for i := range f.Marks {
			if f.Marks[i].Name == LostMark {
				marks++
			}
			if d, ok := DamageOf(&f.Marks[i]); ok && f.Point == d.FirstPoint { // it stands in each point that it may be of
				lost += d.Rows
				exact = exact && d.Exact
			}
		}
	}
	return rows, marks, lost, exact
}

// writeRows has a journal take rows, a frame for each three.
func writeRows(t *testing.T, j *Journal, from, to int64) {
	t.Helper()
	for id := from; id < to; id++ {
		j.Done(&Row{ID: id, Done: id + 1})
		if id%3 == 2 {
			_ = j.Flush()
		}
	}
}

// Whatever becomes of the directory while the journal is written, all that was
// measured is somewhere, and nothing takes it for a run that went well.
func TestDeletedWhileWritten(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("an open file cannot be deleted there")
	}
	for name, c := range map[string]struct {
		harm      func(t *testing.T, dir string) error
		elsewhere bool // it cannot be saved where it was
	}{
		"directory deleted": {harm: func(_ *testing.T, dir string) error { return os.RemoveAll(dir) }},
		"parent deleted":    {harm: func(_ *testing.T, dir string) error { return os.RemoveAll(filepath.Dir(dir)) }},
		"journal deleted":   {harm: func(_ *testing.T, dir string) error { return os.Remove(filepath.Join(dir, rundir.Journal)) }},
		"directory moved":   {harm: func(_ *testing.T, dir string) error { return os.Rename(dir, dir+"-moved") }},
		"another run there": {elsewhere: true, harm: func(t *testing.T, dir string) error {
			if err := errors.Join(os.RemoveAll(dir), os.Mkdir(dir, 0o755)); err != nil {
				return err
			}
			other, err := Create(dir)
			if err != nil {
				return err
			}
			t.Cleanup(func() { other.Close() })
			other.Done(&Row{ID: 77})
			return other.Flush()
		}},
		"a file in its place": {elsewhere: true, harm: func(_ *testing.T, dir string) error {
			return errors.Join(os.RemoveAll(dir), os.WriteFile(dir, []byte("mine"), 0o644))
		}},
	} {
		t.Run(name, func(t *testing.T) {
			temp := t.TempDir()
			t.Setenv("TMPDIR", temp)
			dir := filepath.Join(t.TempDir(), "runs", "run")
			if err := os.MkdirAll(dir, 0o755); err != nil {
				t.Fatal(err)
			}
			j, err := Create(dir)
			if err != nil {
				t.Fatal(err)
			}
			writeRows(t, j, 0, 9)
			if err := j.Flush(); err != nil { // so that nothing is left that would wake it
				t.Fatal(err)
			}
			j.writing.Lock() // nothing is saved while the harm is half done
			err = c.harm(t, dir)
			j.writing.Unlock()
			if err != nil {
				t.Fatal(err)
			}
			<-j.Failed() // by itself, though nothing is written
			writeRows(t, j, 9, 20)
			var interference *InterferenceError
			if err := j.Close(); !errors.As(err, &interference) || interference.From != dir || interference.Err != nil || interference.Dir != j.Dir() {
				t.Fatalf("%v, in %s", err, j.Dir())
			}
			if (interference.Dir != dir) != c.elsewhere || c.elsewhere && filepath.Dir(interference.Dir) != temp {
				t.Errorf("saved in %s", interference.Dir)
			}
			if rows, marks, lost, _ := rowsIn(t, interference.Dir); rows != 20 || marks != 1 || lost != 0 {
				t.Errorf("%d rows, %d marks, %d lost", rows, marks, lost)
			}
			if name == "another run there" {
				if rows, marks, _, _ := rowsIn(t, dir); rows != 1 || marks != 0 {
					t.Errorf("the other run has %d rows and %d marks", rows, marks)
				}
			}
		})
	}
}

// Where nothing can be saved, that is what is said.
func TestDeletedAndNowhereToSave(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("an open file cannot be deleted there")
	}
	t.Setenv("TMPDIR", filepath.Join(t.TempDir(), "none"))
	dir := filepath.Join(t.TempDir(), "run")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	j, err := Create(dir)
	if err != nil {
		t.Fatal(err)
	}
	writeRows(t, j, 0, 9)
	j.writing.Lock() // or it saves itself in between
	if err := errors.Join(os.RemoveAll(dir), os.WriteFile(dir, nil, 0o644)); err != nil {
		t.Fatal(err)
	}
	j.writing.Unlock()
	<-j.Failed()
	writeRows(t, j, 9, 20)
	var interference *InterferenceError
	if err := j.Close(); !errors.As(err, &interference) || interference.Err == nil || interference.Dir != "" {
		t.Errorf("%v", err)
	}
}

// A journal that is cut at any byte while it is written loses what was cut off and
// nothing else, and counts it.
func TestCutWhileWritten(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("an open file is not cut there")
	}
	whole := t.TempDir()
	j, err := Create(whole)
	if err != nil {
		t.Fatal(err)
	}
	writeRows(t, j, 0, 9)
	all := j.Written()
	j.Close()
	step := int64(7)
	if testing.Short() {
		step = 31
	}
	for size := int64(0); size < all; size += step {
		dir := t.TempDir()
		j, err := Create(dir)
		if err != nil {
			t.Fatal(err)
		}
		writeRows(t, j, 0, 9)
		path := filepath.Join(dir, rundir.Journal)
		if info, err := os.Stat(path); err != nil || info.Size() <= size { // fewer frames than in the other one
			j.Close()
			continue
		}
		if err := os.Truncate(path, size); err != nil {
			t.Fatal(err)
		}
		writeRows(t, j, 9, 20)
		var interference *InterferenceError
		if err := j.Close(); !errors.As(err, &interference) || interference.From != "" || interference.Dir != dir || interference.Lost <= 0 {
			t.Fatalf("cut at %d: %v", size, err)
		}
		rows, marks, lost, exact := rowsIn(t, dir)
		if int64(rows)+lost != 20 || rows < 11 || !exact || marks != 1 {
			t.Errorf("cut at %d of %d: %d rows, %d lost, exactly %v, %d marks", size, all, rows, lost, exact, marks)
		}
	}
}

// Frames that were written in the place of a payload that was cut off are found, also where
// they happen to be as long as it was.
func TestFrameWithinDamaged(t *testing.T) {
	dir := t.TempDir()
	j, err := Create(dir)
	if err != nil {
		t.Fatal(err)
	}
	writeRows(t, j, 0, 9)
	j.Close()
	path := filepath.Join(dir, rundir.Journal)
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	first, _ := parseHeader(data)
	second, _ := parseHeader(data[headerSize+first.length:])
	inner := data[headerSize+first.length:][:headerSize+second.length]
	grown := append([]byte(nil), data[:headerSize]...)
	copy(grown[4:], []byte{byte(len(inner) + 1), byte((len(inner) + 1) >> 8), 0, 0}) // a payload one byte longer than the frame within it
	resum(grown)
	grown = append(append(grown, 0), inner...)
	grown = append(grown, data[headerSize+first.length+int64(len(inner)):]...)
	if err := os.WriteFile(path, grown, 0o644); err != nil {
		t.Fatal(err)
	}
	if rows, _, lost, _ := rowsIn(t, dir); rows != 6 || lost != 3 {
		t.Errorf("%d rows, %d lost", rows, lost)
	}
}

// resum makes the header of a frame sound again.
func resum(h []byte) {
	binary.LittleEndian.PutUint32(h[88:], crc32.Checksum(h[:88], castagnoli))
}
