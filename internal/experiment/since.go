package experiment

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"pitot/internal/experiment/decide"
	"pitot/internal/say"
	"pitot/internal/say/unreadable"
	"pitot/internal/stats"
	"pitot/internal/userfile"
)

// Has the system changed since a record? Two records of the same plan are held against
// each other line by line, by their launches; many, in the order of their dates, for the
// points from which on something is otherwise. Records alone tell: the runs may be gone.

// LineRecord is a metric of a row in a configuration, with a value of each launch.
type LineRecord struct {
	Row           string     `json:"row"`
	Metric        string     `json:"metric"`
	Unit          string     `json:"unit"`
	Configuration string     `json:"configuration"`
	Higher        bool       `json:"higher_is_better"`
	OfShare       bool       `json:"of_share"`
	Values        []*float64 `json:"values"` // by launch, from the first; null: not measured, or not in a steady state
}

// RowRecord describes a row and its question.
type RowRecord struct {
	Name     string `json:"name"`
	Question string `json:"question,omitempty"`
	Asks     string `json:"asks"` // settings of pitot run
}

// ReadRecord reads that of an experiment's directory, or a file. Errors are the user's.
func ReadRecord(path string) (*Record, error) {
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		if path = filepath.Join(path, RecordJSON); !fileThere(path) {
			return nil, say.Errorf("%s holds no record of an experiment", filepath.Dir(path)).WithHint("pitot experiment report " + filepath.Dir(path) + " writes " + RecordJSON + " where launches are measured")
		}
	}
	data, err := userfile.Read(path, userfile.MostResult)
	if err != nil {
		return nil, unreadable.FileError("record", path, err, "name the directory of an experiment, or its "+RecordJSON)
	}
	return parseRecord(path, data)
}

func fileThere(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// parseRecord is ReadRecord of a file's contents.
func parseRecord(path string, data []byte) (*Record, error) {
	var head struct {
		Schema string `json:"schema"`
	}
	if err := json.Unmarshal(data, &head); err != nil {
		return nil, say.Errorf("%s: %v", path, err).WithHint("pitot experiment report writes a record anew from its runs")
	}
	if head.Schema != RecordSchema {
		return nil, say.Errorf("%s is of version %.60q, which this program does not know", path, head.Schema).WithHint("a newer pitot wrote it, or it is no record of an experiment")
	}
	r := new(Record)
	if err := json.Unmarshal(data, r); err != nil {
		return nil, say.Errorf("%s: %v", path, err).WithHint("pitot experiment report writes a record anew from its runs")
	}
	return r, nil
}

// PlanOfRecord is the plan that a record holds: with it the experiment is done again.
func PlanOfRecord(path string) (*Plan, []byte, error) {
	r, err := ReadRecord(path)
	if err != nil {
		return nil, nil, err
	}
	if r.Plan == "" {
		return nil, nil, say.Errorf("%s holds no plan", path).WithHint("the plan lies beside it, " + planFile)
	}
	p, err := Parse(r.Experiment+".yaml", []byte(r.Plan))
	return p, []byte(r.Plan), err
}

// BeginTime is when it was begun, RFC 3339; "" where that is not known.
func (r *Record) BeginTime() string {
	if len(r.Sittings) == 0 {
		return ""
	}
	return r.Sittings[0].Began
}

// logsOf are the values of a line, in launches that count, as logarithms but for shares.
func (r *Record) logsOf(l *LineRecord) []float64 {
	out := make([]float64, len(l.Values))
	for i, v := range l.Values {
		out[i] = math.NaN()
		if v == nil || slices.ContainsFunc(r.Bad, func(b BadRecord) bool { return b.Configuration == l.Configuration && b.Launch == i+1 }) {
			continue
		}
		if out[i] = *v; !l.OfShare {
			out[i] = math.Log(*v)
		}
		if math.IsInf(out[i], 0) {
			out[i] = math.NaN()
		}
	}
	return out
}

// withoutNaN leaves out what is not known.
func withoutNaN(xs []float64) []float64 {
	return slices.DeleteFunc(slices.Clone(xs), math.IsNaN)
}

// Since holds the changes from one record to another.
type Since struct {
	Record    string      `json:"record"` // directory of the earlier one
	When      string      `json:"when"`   // it was begun
	Changed   []string    `json:"changed"`
	Left      []string    `json:"not_compared,omitempty"` // rows, and why
	Lines     []SinceLine `json:"lines"`
	Corrected int         `json:"corrected"` // lines that were corrected for their number
	Worse     int         `json:"worse"`     // that are established
	Better    int         `json:"better"`
	Was       string      `json:"was_accepted"`
	Now       string      `json:"now_accepted"`
	Answers   [2]string   `json:"answers"`
}

// SinceLine is one metric of a row in a configuration, before and now.
type SinceLine struct {
	Configuration string      `json:"configuration"` // "" for all of them together
	Row           string      `json:"row"`
	Metric        string      `json:"metric"`
	Unit          string      `json:"unit"`
	OfShare       bool        `json:"of_share"`
	Was           float64     `json:"was"`
	Now           float64     `json:"now"`
	Change        float64     `json:"change"`
	Interval      *[2]float64 `json:"interval"`
	PAdjusted     float64     `json:"p_adjusted"`
	Verdict       string      `json:"verdict"`
	Launches      [2]int      `json:"launches"`
	Smallest      *float64    `json:"smallest,omitempty"` // change, up, that would be established in four of five such pairs of records; null: no spread is known
	higher        bool
	se, df        float64
}

// CompareRecords says what changed from then, which lies in a directory, to now: each line by the
// spread of launches about their configuration in both records, see [poolSquares]; all
// configurations together by their means over blocks; corrected for the number of lines (Holm).
func CompareRecords(dir string, then, now *Record) *Since {
	s := &Since{Record: dir, When: then.BeginTime(), Changed: environmentDifferences(then, now), Lines: []SinceLine{}, Was: then.Accepted, Now: now.Accepted, Answers: [2]string{then.Answer, now.Answer}}
	asks := map[string]string{}
	for _, row := range then.Rows {
		asks[row.Name] = row.Asks
	}
	for _, row := range now.Rows {
		was, ok := asks[row.Name]
		switch {
		case !ok:
			s.Left = append(s.Left, "row "+row.Name+" is new")
		case was != row.Asks:
			s.Left = append(s.Left, "row "+row.Name+" asks something else")
		default:
			s.compareRow(row.Name, then, now)
		}
	}
	var ps []float64
	var at []int
	for i, l := range s.Lines {
		if l.Verdict != Alike && l.Interval != nil {
			ps, at = append(ps, l.PAdjusted), append(at, i)
		}
	}
	s.Corrected = len(ps)
	alpha := 1 - now.Contract.Confidence
	for _, i := range at {
		s.Lines[i].setSmallest(alpha / float64(len(at)))
	}
	for n, p := range stats.Holm(ps) {
		l := &s.Lines[at[n]]
		l.PAdjusted = p
		switch {
		case p >= alpha:
		case (l.Change > 0) == l.higher:
			l.Verdict = Better
			s.Better++
		default:
			l.Verdict = Worse
			s.Worse++
		}
	}
	return s
}

// setSmallest is the change that a line would most likely show as established at a level.
func (l *SinceLine) setSmallest(alpha float64) {
	x := decide.DetectableEffect(l.se, l.df, alpha)
	if !l.OfShare {
		x = math.Expm1(x)
	}
	l.Smallest = finiteValue(x)
}

// compareRow compares the lines of one.
func (s *Since) compareRow(name string, then, now *Record) {
	level := now.Contract.Confidence
	var metrics []string
	for _, l := range now.Lines {
		if l.Row == name && !slices.Contains(metrics, l.Metric) {
			metrics = append(metrics, l.Metric)
		}
	}
	for _, metric := range metrics {
		var pairs [][2]*LineRecord
		for i := range now.Lines {
			b := &now.Lines[i]
			for k := range then.Lines {
				if a := &then.Lines[k]; a.Row == name && b.Row == name && a.Metric == metric && b.Metric == metric && a.Configuration == b.Configuration {
					pairs = append(pairs, [2]*LineRecord{a, b})
				}
			}
		}
		squares, n, df := poolSquares(then, now, pairs)
		if len(pairs) > 1 {
			together := func(r *Record, side int) (means []float64) {
				for b := 0; ; b++ {
					sum, n, more := 0.0, 0, false
					for _, pair := range pairs {
						if xs := r.logsOf(pair[side]); b < len(xs) {
							if more = true; !math.IsNaN(xs[b]) {
								sum, n = sum+xs[b], n+1
							}
						}
					}
					if !more {
						return means
					}
					if n == len(pairs) {
						means = append(means, sum/float64(n))
					}
				}
			}
			a, b := together(then, 0), together(now, 1)
			l, _ := lineOf(pairs[0][1], a, b)
			l.Configuration = ""
			if d, ok := stats.Welch(a, b, level); ok {
				l.applyTest(d)
			}
			if len(a) > 0 && len(b) > 0 {
				s.Lines = append(s.Lines, l)
			}
		}
		for _, pair := range pairs {
			a, b := withoutNaN(then.logsOf(pair[0])), withoutNaN(now.logsOf(pair[1]))
			if len(a) == 0 || len(b) == 0 {
				continue
			}
			l, change := lineOf(pair[1], a, b)
			if df > 0 && squares > 0 {
				d := stats.Difference{Estimate: change, SE: math.Sqrt(squares / n * (1/float64(len(a)) + 1/float64(len(b)))), DF: df}
				d.P = 2 * stats.StudentCDF(-math.Abs(d.Estimate)/d.SE, df)
				half := stats.StudentQuantile((1+level)/2, df) * d.SE
				d.Interval = stats.Interval{Lo: d.Estimate - half, Hi: d.Estimate + half}
				l.applyTest(d)
			}
			s.Lines = append(s.Lines, l)
		}
	}
}

// alikeBlocks is the least probability with which equal blocks differ as measured, where blocks are
// taken to be equal. It is a quarter, so that tests keep their level whatever blocks do. The source
// is Bancroft, Annals of Mathematical Statistics 15, 1944, on tests after such a test.
const alikeBlocks = 0.25

// poolSquares are the squares of launches about their configuration's mean in both records, of
// how many degrees of freedom they are, and for how many a test by them counts. Launches of
// a block may be off together: then there are as many as blocks. Where nothing shows that
// they are, it is the number of Satterthwaite (Biometrics Bulletin 2, 1946) for the squares
// of blocks and those within them.
func poolSquares(then, now *Record, pairs [][2]*LineRecord) (squares, n, df float64) {
	within, inBlocks := 0.0, 0.0
	for side, r := range []*Record{then, now} {
		var values [][]float64
		most := 0
		for _, pair := range pairs {
			values = append(values, r.logsOf(pair[side]))
			xs := withoutNaN(values[len(values)-1])
			most = max(most, len(xs))
			if len(xs) > 1 {
				_, sd := stats.Moments(xs)
				squares, n = squares+sd*sd*float64(len(xs)-1), n+float64(len(xs)-1)
			}
		}
		df += float64(max(most-1, 0))
		if fit, _ := stats.FitBlocks(values); len(pairs) > 1 && fit.DF >= 1 {
			within, inBlocks = within+fit.SD*fit.SD*fit.DF, inBlocks+fit.DF
		}
	}
	blocks := n - inBlocks
	if inBlocks < 1 || blocks < 1 || !(within > 0) {
		return squares, n, df
	}
	between, rest := max(squares-within, 0)/blocks, within/inBlocks
	if stats.FisherBeyond(between/rest, blocks, inBlocks) >= alikeBlocks {
		df = max(df, squares*squares/(blocks*between*between+inBlocks*rest*rest))
	}
	return squares, n, df
}

// lineOf has the means of both sides; change is that of what was averaged.
func lineOf(of *LineRecord, a, b []float64) (l SinceLine, change float64) {
	was, _ := stats.Moments(a)
	now, _ := stats.Moments(b)
	l = SinceLine{Configuration: of.Configuration, Row: of.Row, Metric: of.Metric, Unit: of.Unit, OfShare: of.OfShare, Was: was, Now: now, Change: now - was,
		PAdjusted: 1, Verdict: NotDiscerned, Launches: [2]int{len(a), len(b)}, higher: of.Higher}
	if slices.Equal(a, b) {
		l.Verdict = Alike
	}
	if !l.OfShare {
		l.Was, l.Now, l.Change = math.Exp(was), math.Exp(now), math.Expm1(now-was)
	}
	return l, now - was
}

// applyTest takes over a test.
func (l *SinceLine) applyTest(d stats.Difference) {
	if l.Verdict == Alike {
		l.Change = 0
		return
	}
	l.se, l.df = d.SE, d.DF
	l.PAdjusted, l.Change, l.Interval = d.P, d.Estimate, &[2]float64{d.Lo, d.Hi}
	if !l.OfShare {
		l.Change, l.Interval = math.Expm1(d.Estimate), &[2]float64{math.Expm1(d.Lo), math.Expm1(d.Hi)}
	}
}

// environmentDifferences are those of the environment: versions, settings, machines, the contract.
func environmentDifferences(then, now *Record) (list []string) {
	list = []string{}
	differ := func(what, was, is string) {
		if was != is {
			list = append(list, fmt.Sprintf("%s: %s → %s", what, cmp.Or(was, "none"), cmp.Or(is, "none")))
		}
	}
	differ("target", then.Target, now.Target)
	keys := slices.AppendSeq(slices.Collect(maps.Keys(then.Server)), maps.Keys(now.Server))
	slices.Sort(keys)
	for _, key := range slices.Compact(keys) {
		if strings.HasPrefix(then.Server[key], "pitot ") || strings.HasPrefix(now.Server[key], "pitot ") {
			continue // the twin's own description, whose settings are keys of their own
		}
		differ("server "+key, then.Server[key], now.Server[key])
	}
	differ("limits", then.Contract.Limits, now.Contract.Limits)
	differ("capacity wanted", say.Exact(then.Contract.Capacity), say.Exact(now.Contract.Capacity))
	differ("pitot", then.Pitot.Version, now.Pitot.Version)
	if then.Machine != nil && now.Machine != nil {
		differ("client CPU", then.Machine.CPU, now.Machine.CPU)
		differ("client cores", strconv.Itoa(then.Machine.Cores), strconv.Itoa(now.Machine.Cores))
		differ("client kernel", then.Machine.Kernel, now.Machine.Kernel)
	}
	return list
}

// Trend holds the trend over several records, the oldest first.
type Trend struct {
	Records []TrendRecord `json:"records"`
	Changes []ChangePoint `json:"changes"`
	Lines   int           `json:"lines"` // that were looked at, each with enough records
}

// TrendRecord is one of them.
type TrendRecord struct {
	Record   string      `json:"record"` // directory
	When     string      `json:"when"`
	Pitot    string      `json:"pitot"`
	Answer   string      `json:"answer"`
	Accepted string      `json:"accepted,omitempty"`
	Carries  *float64    `json:"carries"` // of the accepted configuration, else of the baseline
	Interval *[2]float64 `json:"interval"`
	Changed  []string    `json:"changed"` // since the one before
}

// ChangePoint is a record from which on a line is otherwise.
type ChangePoint struct {
	Configuration string     `json:"configuration"`
	Row           string     `json:"row"`
	Metric        string     `json:"metric"`
	Unit          string     `json:"unit"`
	OfShare       bool       `json:"of_share"`
	From          int        `json:"from"` // index of the first record that is otherwise
	When          string     `json:"when"`
	Was           float64    `json:"was"`
	Now           float64    `json:"now"`
	Change        float64    `json:"change"`
	Interval      [2]float64 `json:"interval"`
	PAdjusted     float64    `json:"p_adjusted"`
	Verdict       string     `json:"verdict"`
	Records       [2]int     `json:"records"` // on both sides
	Changed       []string   `json:"changed"` // in the environment, there
}

// leastRecords is the least number of records in which a point of change can be seen. The unit is
// the record. Nights differ by more than launches of one night, and are like the night before.
const leastRecords = 4

// TrendOf looks for points of change in each line, by splitting it where the means of the
// two sides differ most, as long as that is established (binary segmentation: Scott and
// Knott, Biometrics 30, 1974), corrected for the splits that there are and for the lines.
func TrendOf(dirs []string, records []*Record) *Trend {
	order := make([]int, len(records))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(records[a].BeginTime(), records[b].BeginTime()) })
	t := &Trend{Records: []TrendRecord{}, Changes: []ChangePoint{}}
	var sorted []*Record
	for n, i := range order {
		r := records[i]
		sorted = append(sorted, r)
		one := TrendRecord{Record: dirs[i], When: r.BeginTime(), Pitot: r.Pitot.Version, Answer: r.Answer, Accepted: r.Accepted, Changed: []string{}}
		for _, s := range r.Standings {
			if s.Name == cmp.Or(r.Accepted, Baseline) {
				one.Carries, one.Interval = s.Carries, s.Interval
			}
		}
		if n > 0 {
			one.Changed = environmentDifferences(sorted[n-1], r)
		}
		t.Records = append(t.Records, one)
	}
	type series struct {
		of     LineRecord
		at     []int // records
		means  []float64
		within []float64 // variance of the means by launches
	}
	var all []*series
	for n, r := range sorted {
		for i := range r.Lines {
			l := &r.Lines[i]
			xs := withoutNaN(r.logsOf(l))
			if len(xs) == 0 {
				continue
			}
			k := slices.IndexFunc(all, func(s *series) bool {
				return s.of.Configuration == l.Configuration && s.of.Row == l.Row && s.of.Metric == l.Metric && asksOf(sorted[s.at[0]], l.Row) == asksOf(r, l.Row)
			})
			if k < 0 {
				all, k = append(all, &series{of: *l}), len(all)
			}
			s := all[k]
			mean, sd := stats.Moments(xs)
			s.at, s.means = append(s.at, n), append(s.means, mean)
			if len(xs) > 1 {
				s.within = append(s.within, sd*sd/float64(len(xs)))
			}
		}
	}
	all = slices.DeleteFunc(all, func(s *series) bool { return len(s.means) < leastRecords })
	t.Lines = len(all)
	for _, s := range all {
		least := 0.0
		for _, v := range s.within {
			least += v / float64(len(s.within))
		}
		for _, c := range findChanges(s.means, 0, len(s.means), least, float64(len(all))) {
			r := sorted[s.at[c.at]]
			p := ChangePoint{Configuration: s.of.Configuration, Row: s.of.Row, Metric: s.of.Metric, Unit: s.of.Unit, OfShare: s.of.OfShare, From: s.at[c.at], When: r.BeginTime(),
				Was: c.was, Now: c.now, Change: c.d.Estimate, Interval: [2]float64{c.d.Lo, c.d.Hi}, PAdjusted: c.p, Verdict: Worse, Records: c.n, Changed: environmentDifferences(sorted[s.at[c.at-1]], r)}
			if !p.OfShare {
				p.Was, p.Now, p.Change, p.Interval = math.Exp(p.Was), math.Exp(p.Now), math.Expm1(p.Change), [2]float64{math.Expm1(p.Interval[0]), math.Expm1(p.Interval[1])}
			}
			if (p.Change > 0) == s.of.Higher {
				p.Verdict = Better
			}
			t.Changes = append(t.Changes, p)
		}
	}
	stats.SortStable(t.Changes, func(a, b ChangePoint) int { return cmp.Compare(a.From, b.From) })
	return t
}

func asksOf(r *Record, row string) string {
	for _, known := range r.Rows {
		if known.Name == row {
			return known.Asks
		}
	}
	return ""
}

// split is where a series is otherwise from.
type split struct {
	at       int
	was, now float64
	d        stats.Difference
	p        float64
	n        [2]int
}

// likeLast is the least assumed correlation of a night with the one before. Few nights do not show
// that there is none.
const likeLast = 0.3

// alikeNights is by how much the variance of a difference of means is larger than of nights
// that are independent: by their correlation with the night before, about the means of both
// sides, with what the fit takes out of it put back (Kendall, Biometrika 41, 1954).
func alikeNights(xs []float64, at int, before, since float64) float64 {
	squares, products, last := 0.0, 0.0, 0.0
	for i, x := range xs {
		if x -= before; i >= at {
			x -= since - before
		}
		squares, products, last = squares+x*x, products+x*last, x
	}
	n := float64(len(xs))
	like := likeLast
	if r := products / squares; squares > 0 {
		const most = 0.8
		like = min(max(like, r+(1+4*max(r, 0))/n), most)
	}
	return (1 + like) / (1 - like) * (1 + 2*like/n)
}

// findChanges are those of xs[from:to], in their order. least is the variance that launches
// alone give a mean; tests is among how many lines they are looked for.
func findChanges(xs []float64, from, to int, least, tests float64) (list []split) {
	if to-from < leastRecords {
		return nil
	}
	best := split{p: 1}
	for k := from + 1; k < to; k++ {
		a, b := xs[from:k], xs[k:to]
		squares := 0.0
		ma, sa := stats.Moments(a)
		mb, sb := stats.Moments(b)
		if len(a) > 1 {
			squares += sa * sa * float64(len(a)-1)
		}
		if len(b) > 1 {
			squares += sb * sb * float64(len(b)-1)
		}
		df := float64(to - from - 2)
		variance := max(squares/df*alikeNights(xs[from:to], k-from, ma, mb), least)
		if !(variance > 0) {
			continue
		}
		d := stats.Difference{Estimate: mb - ma, SE: math.Sqrt(variance * (1/float64(len(a)) + 1/float64(len(b)))), DF: df}
		d.P = 2 * stats.StudentCDF(-math.Abs(d.Estimate)/d.SE, df)
		if p := d.P * float64(to-from-1) * tests; p < best.p {
			const level = 0.95
			half := stats.StudentQuantile((1+level)/2, df) * d.SE
			d.Interval = stats.Interval{Lo: d.Estimate - half, Hi: d.Estimate + half}
			best = split{k, ma, mb, d, p, [2]int{len(a), len(b)}}
		}
	}
	const established = 0.05
	if best.p >= established {
		return nil
	}
	list = append(findChanges(xs, from, best.at, least, tests), best)
	return append(list, findChanges(xs, best.at, to, least, tests)...)
}
