package sim

import (
	"container/heap"
	"math"
	"time"
)

// FixedConfig describes an engine whose latencies do not depend on load.
type FixedConfig struct {
	// TTFT is the time from a job's slot to its first tokens.
	TTFT time.Duration
	// ITL is the time between two emissions of a job, however many tokens
	// each of them has.
	ITL time.Duration
	// JitterCV is the coefficient of variation of TTFT and of every gap, which
	// are then lognormal with the means above; 0 makes them constant.
	JitterCV float64
	// Slots is the number of jobs that run at once; 0 is any number. The other jobs wait in the
	// order of their arrival.
	Slots int
	// TokensPerChunk is the number of tokens in an emission; 0 is 1.
	TokensPerChunk int
	// RoleChunk gives each job a chunk that only names the role, as soon as it
	// has its slot.
	RoleChunk bool
	// Seed decides the jitter, together with the job's id and the emission's
	// index; the order in which jobs come has no influence on it.
	Seed uint64
}

// Fixed is an [Engine] with fixed latencies. It has no steps: emission k of a
// job that got its slot at start is due at start + TTFT + k·ITL, computed and
// not accumulated from when the caller looked, so that a late caller makes
// single emissions late and nothing after them.
type Fixed struct {
	cfg     FixedConfig
	sigma   float64 // of the logarithm of a jitter factor
	running fixedHeap
	waiting []*fixedJob // FIFO; nil where a job was aborted
	byID    map[int64]*fixedJob
	out     []Emission
}

// fixedJob is a job in its slot or waiting for one.
type fixedJob struct {
	finish string // how it will end
	Job
	arrived int64
	next    int64 // when its next emission is due
	k       int   // token emissions so far
	sent    int   // tokens so far
	role    bool  // the next emission is the role chunk
	place   int   // in the heap; -1 while it waits
}

// NewFixed gives an engine without jobs. Values that make no sense are taken
// as 0: they mean no delay, no jitter, no limit.
func NewFixed(c FixedConfig) *Fixed {
	c.TTFT, c.ITL = max(c.TTFT, 0), max(c.ITL, 0)
	c.TokensPerChunk = max(c.TokensPerChunk, 1)
	if !(c.JitterCV > 0) || math.IsInf(c.JitterCV, 0) {
		c.JitterCV = 0
	}
	return &Fixed{
		cfg: c,
		// The CV of a lognormal is sqrt(exp(sigma²) − 1).
		sigma: math.Sqrt(math.Log1p(c.JitterCV * c.JitterCV)),
		byID:  make(map[int64]*fixedJob),
	}
}

// Add implements [Engine]. A job always generates at least one token; an id
// that is still known replaces nothing and is ignored.
func (f *Fixed) Add(now int64, j Job) {
	if f.byID[j.ID] != nil {
		return
	}
	j.Output = max(j.Output, 1)
	finish := "length"
	switch {
	case j.Limit > j.Output:
		finish = "stop"
	case j.Limit > 0:
		j.Output = j.Limit
	}
	job := &fixedJob{Job: j, finish: finish, arrived: now, place: -1}
	f.byID[j.ID] = job
	if f.hasFreeSlot() && len(f.waiting) == 0 {
		f.start(now, job)
		return
	}
	f.waiting = append(f.waiting, job)
}

// Abort implements [Engine].
func (f *Fixed) Abort(id int64) {
	job := f.byID[id]
	if job == nil {
		return
	}
	delete(f.byID, id)
	if job.place >= 0 {
		heap.Remove(&f.running, job.place)
		return
	}
	for i, w := range f.waiting {
		if w == job {
			f.waiting[i] = nil
			return
		}
	}
}

// Step implements [Engine]: everything due by now, or when the next emission
// will be due.
func (f *Fixed) Step(now int64) Step {
	f.out = f.out[:0]
	f.fillSlots(now) // slots that aborted jobs left
	for len(f.running) > 0 && f.running[0].next <= now {
		f.emitDue(f.running[0])
	}
	if len(f.out) > 0 {
		return Step{End: now, Out: f.out}
	}
	if len(f.running) > 0 {
		return Step{End: f.running[0].next, Idle: true}
	}
	return Step{End: math.MaxInt64, Idle: true}
}

// Queue implements [Queueing].
func (f *Fixed) Queue() (running, waiting int) {
	return len(f.running), len(f.byID) - len(f.running)
}

func (f *Fixed) hasFreeSlot() bool { return f.cfg.Slots <= 0 || len(f.running) < f.cfg.Slots }

// fillSlots gives free slots to waiting jobs; the slots came free at.
func (f *Fixed) fillSlots(at int64) {
	for len(f.waiting) > 0 && f.hasFreeSlot() {
		job := f.waiting[0]
		f.waiting[0] = nil
		f.waiting = f.waiting[1:]
		if job != nil {
			f.start(max(at, job.arrived), job)
		}
	}
}

// start gives job its slot at the time at.
func (f *Fixed) start(at int64, job *fixedJob) {
	job.role = f.cfg.RoleChunk
	job.next = at
	if !job.role {
		job.next += f.emissionGap(job)
	}
	heap.Push(&f.running, job)
}

// emissionGap is the time that passes before the job's token emission k.
func (f *Fixed) emissionGap(job *fixedJob) int64 {
	d := f.cfg.ITL
	if job.k == 0 {
		d = f.cfg.TTFT
	}
	if f.sigma == 0 {
		return int64(d)
	}
	z := normalDeviate(f.cfg.Seed, uint64(job.ID), uint64(job.k))
	return int64(float64(d) * math.Exp(f.sigma*z-f.sigma*f.sigma/2))
}

// emitDue takes the due emission of the job at the top of the heap.
func (f *Fixed) emitDue(job *fixedJob) {
	e := Emission{ID: job.ID, At: job.next}
	if job.role {
		job.role = false
		e.Role = true
	} else {
		e.Tokens = min(f.cfg.TokensPerChunk, job.Output-job.sent)
		job.sent += e.Tokens
		job.k++
	}
	if job.sent == job.Output {
		e.Finish = job.finish
		delete(f.byID, job.ID)
		heap.Pop(&f.running)
		f.fillSlots(e.At)
	} else {
		job.next += f.emissionGap(job)
		heap.Fix(&f.running, 0)
	}
	f.out = append(f.out, e)
}

// normalDeviate is a standard normal deviate that depends on its arguments only
// (Box and Muller, 1958).
func normalDeviate(seed, id, k uint64) float64 {
	h := Mix(Mix(Mix(seed)^id) ^ k)
	u := (float64(h>>11) + 0.5) / (1 << 53)
	v := float64(Mix(h)>>11) / (1 << 53)
	return math.Sqrt(-2*math.Log(u)) * math.Cos(2*math.Pi*v)
}

// Mix is one output of splitmix64 (Steele, Lea and Flood, 2014).
func Mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// fixedHeap orders running jobs by their next emission, then by id.
type fixedHeap []*fixedJob

func (h fixedHeap) Len() int { return len(h) }

func (h fixedHeap) Less(i, j int) bool {
	if h[i].next != h[j].next {
		return h[i].next < h[j].next
	}
	return h[i].ID < h[j].ID
}

func (h fixedHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].place, h[j].place = i, j
}

func (h *fixedHeap) Push(x any) {
	job := x.(*fixedJob)
	job.place = len(*h)
	*h = append(*h, job)
}

func (h *fixedHeap) Pop() any {
	old := *h
	job := old[len(old)-1]
	old[len(old)-1] = nil
	*h = old[:len(old)-1]
	job.place = -1
	return job
}
