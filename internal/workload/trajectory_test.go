package workload

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

const wekaDir = "testdata/weka"

func openSessions(t testing.TB, path string) *Trajectories {
	t.Helper()
	x, err := OpenTrajectories(path)
	if err != nil {
		t.Fatal(err)
	}
	return x
}

// A file, a directory and a packed archive hold the same sessions, and are found out by
// what they are.
func TestTrajectoriesPacked(t *testing.T) {
	var packed bytes.Buffer
	zip := gzip.NewWriter(&packed)
	archive := tar.NewWriter(zip)
	for _, name := range []string{"session_1.json", "session_2.json", "session_3.json"} {
		data, err := os.ReadFile(filepath.Join(wekaDir, name))
		if err != nil {
			t.Fatal(err)
		}
		if err := archive.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: int64(len(data))}); err != nil {
			t.Fatal(err)
		}
		_, _ = archive.Write(data)
	}
	_ = archive.Close()
	_ = zip.Close()
	path := filepath.Join(t.TempDir(), "sessions")
	if err := os.WriteFile(path, packed.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
	want := openSessions(t, wekaDir).list
	if len(want) != 3 || len(want[0].steps) != 8 || len(want[1].steps) != 8 || len(want[1].mains) != 4 {
		t.Fatalf("%d sessions", len(want))
	}
	if d := cmp.Diff(want, openSessions(t, path).list, cmp.AllowUnexported(trajectory{}, step{})); d != "" {
		t.Error(d)
	}
	if got := openSessions(t, filepath.Join(wekaDir, "session_3.json")).list; len(got) != 1 || len(got[0].steps) != 3 {
		t.Errorf("%+v", got)
	}
	for _, path := range []string{path, wekaDir, filepath.Join(wekaDir, "session_2.json")} {
		if k, err := Identify(path); k != Sessioned || err != nil {
			t.Errorf("%s is %s, %v", path, k, err)
		}
	}
}

// The agent waits for both of the sub-agents that it begins, and for the pause that the
// record has behind them.
func TestTrajectoriesFanOut(t *testing.T) {
	a := openSessions(t, filepath.Join(wekaDir, "session_2.json")).NewAgents(TrajectoryConfig{})
	want := map[int32][]Next{
		0: {{TurnItem(0, 1), 2 * time.Second, 1}},
		1: {{TurnItem(0, 2), time.Second, 1}, {TurnItem(0, 4), 1500 * time.Millisecond, 1}},
		2: {{TurnItem(0, 3), 2 * time.Second, 1}},
		3: {{TurnItem(0, 6), 8500 * time.Millisecond, 2}},
		4: {{TurnItem(0, 5), 2 * time.Second, 1}},
		5: {{TurnItem(0, 6), 8500 * time.Millisecond, 2}},
		6: {{TurnItem(0, 7), 2 * time.Second, 1}},
		7: nil,
	}
	for turn, next := range want {
		if d := cmp.Diff(next, a.Follow(TurnItem(0, turn), true)); d != "" {
			t.Errorf("behind request %d:\n%s", turn, d)
		}
		if got := a.Follow(TurnItem(0, turn), false); got != nil {
			t.Errorf("behind request %d, which failed, comes %+v", turn, got)
		}
	}
	short := openSessions(t, wekaDir).NewAgents(TrajectoryConfig{MaxThink: time.Second})
	for _, n := range short.Follow(0, true) {
		if n.After != time.Second {
			t.Errorf("a pause of %s", n.After)
		}
	}
}

// Every request of a session comes once, whatever it waits for and wherever the session
// begins; prompts have the recorded lengths and share what their blocks do.
func TestTrajectoriesAsked(t *testing.T) {
	x := openSessions(t, wekaDir)
	rapid.Check(t, func(t *rapid.T) {
		low, high := rapid.Float64Range(0, 1).Draw(t, "start"), rapid.Float64Range(0, 1).Draw(t, "end")
		a := x.NewAgents(TrajectoryConfig{Start: StartShare{min(low, high), max(low, high)}, Seed: rapid.Uint64().Draw(t, "seed")})
		s := rapid.Int64Range(0, 20).Draw(t, "session")
		one, first := a.sessionAt(s)
		open, waits := []int64{s}, map[int64]int{}
		asked := 0
		for len(open) > 0 {
			item := open[0]
			open = open[1:]
			r, err := a.At(item)
			if err != nil {
				t.Fatal(err)
			}
			q := one.steps[first+r.Turn]
			if r.Session != s || r.ID != item || r.Input != int(q.input) || words(&r) != r.Input || r.Output != int(q.output) || int(r.Turns) != len(one.steps)-int(first) {
				t.Fatalf("%+v is asked of %+v", r, q)
			}
			if asked == 0 != (r.History == 0 && item == s) && q.before >= 0 && r.History == 0 {
				t.Fatalf("request %d has no history", r.Turn)
			}
			asked++
			for _, n := range a.Follow(item, true) {
				if waits[n.Item]++; waits[n.Item] == max(n.Join, 1) {
					open = append(open, n.Item)
				}
			}
		}
		if asked != len(one.steps)-int(first) {
			t.Fatalf("%d of %d requests of a session were asked, from %d on", asked, len(one.steps), first)
		}
	})
	a := x.NewAgents(TrajectoryConfig{Seed: 5})
	seen := map[*trajectory]int{}
	for s := range int64(9) {
		one, _ := a.sessionAt(s)
		seen[one]++
	}
	for one, n := range seen {
		if n != 3 {
			t.Errorf("a session of %d requests came %d times in 3 rounds", len(one.steps), n)
		}
	}
	before, _ := a.At(0)
	after, _ := a.At(TurnItem(0, 1))
	again, _ := a.At(3) // another round
	if n := len(before.Messages[0].Segments) - 1; !cmp.Equal(before.Messages[0].Segments[:n], after.Messages[0].Segments[:n]) {
		t.Error("the second prompt does not begin with the first's blocks")
	}
	if before.Messages[0].Segments[0].Seed == again.Messages[0].Segments[0].Seed {
		t.Error("another round has the words of the first")
	}
}

// What cannot be read is left out with its reason; where nothing is left it is an error.
func TestTrajectoriesLeftOut(t *testing.T) {
	dir := t.TempDir()
	whole, err := os.ReadFile(filepath.Join(wekaDir, "session_3.json"))
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"a.json": string(whole), "b.json": string(whole[:len(whole)/2]), "c.json": `{"block_size":64,"requests":[{"t":0,"type":"n","out":3}]}`,
		"d.json": `{"block_size":0,"requests":[]}`, "e.json": `{"block_size":64,"requests":[]}`, "f.json": `{"block_size":64,"requests":[{"t":-1,"type":"n","in":5}]}`,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	x := openSessions(t, dir)
	want := map[string]LeftOut{
		"not JSON as it should be": {1, "b.json"}, "a request of no length": {1, "c.json"}, "no block_size": {1, "d.json"}, "no requests": {1, "e.json"}, "a time that is none": {1, "f.json"},
	}
	if d := cmp.Diff(want, x.Left); d != "" || len(x.list) != 1 {
		t.Errorf("%d sessions:\n%s", len(x.list), d)
	}
	if err := os.Remove(filepath.Join(dir, "a.json")); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenTrajectories(dir); err == nil || !strings.Contains(err.Error(), "no block_size") {
		t.Error(err)
	}
	if _, err := OpenTrajectories(t.TempDir()); err == nil || !strings.Contains(err.Error(), "no .json files") {
		t.Error(err)
	}
}

func TestPermuted(t *testing.T) {
	for _, n := range []uint64{1, 2, 3, 10, 60, 64, 1000} {
		seen := map[uint64]bool{}
		for i := range n {
			seen[permuteIndex(i, n, n+7)] = true
		}
		if uint64(len(seen)) != n {
			t.Errorf("of %d there are %d", n, len(seen))
		}
	}
}

func FuzzTrajectories(f *testing.F) {
	for _, name := range []string{"session_1.json", "session_2.json"} {
		data, err := os.ReadFile(filepath.Join(wekaDir, name))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Add([]byte(`{"block_size":64,"requests":[{"t":0,"type":"subagent","requests":[{"t":0,"in":5}]},{"t":1,"in":70,"hash_ids":[1,2,3]},{"t":2,"type":"subagent","requests":[{"type":"subagent","requests":[]}]},{"t":3,"in":1}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		x := &Trajectories{Left: map[string]LeftOut{}}
		if err := x.readFile("f", bytes.NewReader(data)); err != nil || len(x.list) == 0 {
			return
		}
		a := x.NewAgents(TrajectoryConfig{})
		for s := range int64(len(x.list)) {
			one, first := a.sessionAt(s)
			open, waits, asked := []int64{s}, map[int64]int{}, 0
			for len(open) > 0 {
				item := open[0]
				open = open[1:]
				if asked++; asked > len(one.steps) {
					t.Fatal("a request comes twice")
				}
				if _, turn := SplitItem(item); one.steps[first+turn].input < 1<<16 {
					if r, err := a.At(item); err != nil || words(&r) != r.Input {
						t.Fatalf("%+v, %v", r, err)
					}
				}
				for _, n := range a.Follow(item, true) {
					if waits[n.Item]++; waits[n.Item] == max(n.Join, 1) {
						open = append(open, n.Item)
					}
				}
			}
			if asked != one.remainingRequests(first) {
				t.Fatalf("%d of %d requests", asked, one.remainingRequests(first))
			}
		}
	})
}

// What is odd about recorded sessions is told of where the load begins with them.
func TestTrajectoriesLint(t *testing.T) {
	dir := t.TempDir()
	one := `{"block_size":64,"requests":[` + strings.Repeat(`{"t":0,"type":"n","in":100,"out":5,"think_time":2,"api_time":1},`, 12) + `{"t":90,"type":"n","in":5000,"out":5,"think_time":2,"api_time":1}]}`
	few := `{"block_size":64,"requests":[{"t":0,"type":"n","in":100,"out":5,"think_time":2,"api_time":1}]}`
	for name, text := range map[string]string{"a": one, "b": few, "c": few, "d": `{"block_size":0,"requests":[]}`} {
		if err := os.WriteFile(filepath.Join(dir, name+".json"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	sessions, err := OpenTrajectories(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, f := range sessions.Lint(TrajectoryConfig{}, 4096) {
		names = append(names, f.Name)
	}
	if want := []string{LintHistory, LintSingle, LintSession, LintPauses, LintRejected}; !slices.Equal(names, want) {
		t.Errorf("%q, want %q", names, want)
	}
	if list := sessions.Lint(TrajectoryConfig{}, 0); slices.ContainsFunc(list, func(f Finding) bool { return f.Name == LintHistory }) {
		t.Errorf("beyond a limit that is not known: %+v", list)
	}
}
