package local

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"pitot/internal/clock"
	"pitot/internal/telemetry"
	"pitot/internal/telemetry/scrape"
)

// tick is the unit of processor times in /proc: USER_HZ, which is 100 on every system that
// Go runs on (proc(5), sysconf(_SC_CLK_TCK)).
const tick = 10 * time.Millisecond

// Processes are those of a server: whoever listens at its address, and their children,
// as the files of /proc have them.
type Processes struct {
	files   fs.FS // /proc
	address string
	unix    bool

	roots  []int // who listens
	known  map[int]*process
	sum    [3]time.Duration // of all, of one that listens on average, and what that waited: they only grow
	blind  bool             // the kernel does not tell what waits
	looked time.Time        // when children were last looked for
}

// process is one of them.
type process struct {
	started uint64 // in ticks since the machine was: a number may be given again
	spent   time.Duration
	waited  time.Duration
	listens bool
}

// childrenEvery is the interval at which new children are looked for: that reads all processes of
// the machine.
const childrenEvery = 10 * time.Second

// Tunnels are programs that listen for a server that is elsewhere.
var tunnels = []string{"ssh", "sshd", "autossh", "kubectl", "socat", "stunnel", "cloudflared", "ngrok", "docker-proxy"}

// ErrElsewhere says that what listens at an address of this machine only hands on.
var ErrElsewhere = errors.New("what listens only hands on to a server elsewhere")

// ErrUnseen says that it is not known who listens: the process is another user's.
var ErrUnseen = errors.New("the process that listens belongs to another user")

// ErrOwn says that the server is a part of this process.
var ErrOwn = errors.New("the server is a part of this process")

// FindProcesses finds who listens at host:port, or at the path of a unix socket.
func FindProcesses(files fs.FS, address string, unix bool) (*Processes, error) {
	p := &Processes{files: files, address: address, unix: unix}
	return p, p.find()
}

// find looks for who listens, anew.
func (p *Processes) find() error {
	inodes, err := p.listeningInodes()
	if err != nil {
		return err
	}
	if len(inodes) == 0 {
		return fmt.Errorf("no process that is seen here listens at %s", p.address)
	}
	p.roots, p.known = nil, map[int]*process{}
	for _, pid := range processIDs(p.files) {
		if p.hasSocket(pid, inodes) {
			p.roots = append(p.roots, pid)
		}
	}
	if len(p.roots) == 0 {
		return ErrUnseen
	}
	if slices.Contains(p.roots, os.Getpid()) {
		return ErrOwn
	}
	for _, pid := range p.roots {
		if s, err := readStat(p.files, pid); err == nil && slices.Contains(tunnels, s.name) {
			return ErrElsewhere
		}
	}
	return p.findChildren()
}

// listeningInodes are the inodes of the sockets that listen at the address.
func (p *Processes) listeningInodes() (inodes []string, err error) {
	if p.unix {
		data, err := fs.ReadFile(p.files, "net/unix")
		if err != nil {
			return nil, fmt.Errorf("read /proc/net/unix: %w", err)
		}
		for line := range bytes.Lines(data) { // Num RefCount Protocol Flags Type St Inode Path
			if f := strings.Fields(string(line)); len(f) == 8 && f[7] == p.address && f[6] != "0" {
				inodes = append(inodes, f[6])
			}
		}
		return inodes, nil
	}
	_, port, ok := strings.Cut(p.address[max(0, strings.LastIndexByte(p.address, ':')):], ":")
	n, err := strconv.ParseUint(port, 10, 16)
	if !ok || err != nil {
		return nil, fmt.Errorf("%s has no port", p.address)
	}
	read := 0
	for _, name := range []string{"net/tcp", "net/tcp6"} {
		data, err := fs.ReadFile(p.files, name)
		if err != nil {
			continue
		}
		read++
		inodes = append(inodes, listeningSockets(data, uint16(n), p.address)...)
	}
	if read == 0 {
		return nil, errors.New("/proc/net/tcp cannot be read")
	}
	return inodes, nil
}

// listeningSockets are the inodes of the sockets of /proc/net/tcp that listen at a port and an
// address: its own, or any.
func listeningSockets(table []byte, port uint16, address string) (inodes []string) {
	const listen = "0A"
	want := netip.Addr{}
	if a, err := netip.ParseAddrPort(address); err == nil {
		want = a.Addr().Unmap()
	}
	for line := range bytes.Lines(table) { // sl local_address rem_address st tx:rx tr:when retrnsmt uid timeout inode …
		f := strings.Fields(string(line))
		if len(f) < 10 || f[3] != listen {
			continue
		}
		host, p, _ := strings.Cut(f[1], ":")
		if n, err := strconv.ParseUint(p, 16, 16); err != nil || uint16(n) != port {
			continue
		}
		if at, ok := hexAddress(host); ok && want.IsValid() && !at.IsUnspecified() && at != want {
			continue
		}
		if f[9] != "0" {
			inodes = append(inodes, f[9])
		}
	}
	return inodes
}

// hexAddress reads an address as the kernel writes it: words of four bytes in the order
// of the machine, which is that of the least byte first on all that Pitot is built for.
func hexAddress(s string) (netip.Addr, bool) {
	b, err := hex.DecodeString(s)
	if err != nil || len(b) != 4 && len(b) != 16 {
		return netip.Addr{}, false
	}
	for i := 0; i < len(b); i += 4 {
		slices.Reverse(b[i : i+4])
	}
	a, ok := netip.AddrFromSlice(b)
	return a.Unmap(), ok
}

// processIDs are all processes.
func processIDs(files fs.FS) (list []int) {
	entries, _ := fs.ReadDir(files, ".") // as far as it goes
	for _, e := range entries {
		if n, err := strconv.Atoi(e.Name()); err == nil && n > 0 {
			list = append(list, n)
		}
	}
	return list
}

// hasSocket says whether a process has one of these sockets open.
func (p *Processes) hasSocket(pid int, inodes []string) bool {
	dir := path.Join(strconv.Itoa(pid), "fd")
	entries, err := fs.ReadDir(p.files, dir)
	if err != nil {
		return false
	}
	for _, e := range entries {
		to, err := fs.ReadLink(p.files, path.Join(dir, e.Name()))
		if err != nil {
			continue
		}
		if inode, ok := strings.CutPrefix(to, "socket:["); ok && slices.Contains(inodes, strings.TrimSuffix(inode, "]")) {
			return true
		}
	}
	return false
}

// stat holds the fields of /proc/PID/stat.
type stat struct {
	name    string
	parent  int
	spent   time.Duration // in the kernel and outside
	started uint64
}

// parseStat reads it: pid (name) state ppid … utime stime … starttime …; a name may hold
// anything, brackets too.
func parseStat(data []byte) (s stat, err error) {
	open, end := bytes.IndexByte(data, '('), bytes.LastIndexByte(data, ')')
	if open < 0 || end < open {
		return s, errors.New("no name")
	}
	f := strings.Fields(string(data[end+1:]))
	const state, ppid, utime, stime, starttime = 0, 1, 11, 12, 19 // proc(5) counts them from 3
	if len(f) <= starttime {
		return s, errors.New("too short")
	}
	s.name = string(data[open+1 : end])
	user, err1 := strconv.ParseUint(f[utime], 10, 64)
	system, err2 := strconv.ParseUint(f[stime], 10, 64)
	s.parent, err = strconv.Atoi(f[ppid])
	var err3 error
	s.started, err3 = strconv.ParseUint(f[starttime], 10, 64)
	if err = errors.Join(err, err1, err2, err3); err != nil {
		return stat{}, err
	}
	const most = 1 << 38 // ticks: 87 years of a core, and two of them fit a Duration
	s.spent = time.Duration(min(user, most)+min(system, most)) * tick
	return s, nil
}

func readStat(files fs.FS, pid int) (stat, error) {
	data, err := fs.ReadFile(files, path.Join(strconv.Itoa(pid), "stat"))
	if err != nil {
		return stat{}, err
	}
	return parseStat(data)
}

// readWait is for how long the first thread of a process was ready and waited for a core:
// the second number of schedstat, nanoseconds. false where the kernel does not count it.
func readWait(files fs.FS, pid int) (time.Duration, bool) {
	data, err := fs.ReadFile(files, path.Join(strconv.Itoa(pid), "schedstat"))
	if err != nil {
		return 0, false
	}
	f := strings.Fields(string(data))
	if len(f) < 2 {
		return 0, false
	}
	n, err := strconv.ParseUint(f[1], 10, 62)
	return time.Duration(n), err == nil
}

// ProcessorTime is the processor time of one process; false where it is not known.
func ProcessorTime(files fs.FS, pid int) (time.Duration, bool) {
	s, err := readStat(files, pid)
	return s.spent, err == nil
}

// findChildren looks for children.
func (p *Processes) findChildren() error {
	p.looked = time.Now()
	all := map[int]stat{}
	children := map[int][]int{}
	for _, pid := range processIDs(p.files) {
		if s, err := readStat(p.files, pid); err == nil {
			all[pid] = s
			children[s.parent] = append(children[s.parent], pid)
		}
	}
	found := 0
	for queue := slices.Clone(p.roots); len(queue) > 0; queue = queue[1:] {
		pid := queue[0]
		s, lives := all[pid]
		listens := slices.Contains(p.roots, pid)
		if !lives {
			continue
		}
		if listens {
			found++
		}
		if one := p.known[pid]; one == nil || one.started != s.started {
			waited, _ := readWait(p.files, pid)
			p.known[pid] = &process{started: s.started, spent: s.spent, waited: waited, listens: listens}
			queue = append(queue, children[pid]...)
			continue
		}
		for _, child := range children[pid] {
			if !slices.Contains(queue, child) {
				queue = append(queue, child)
			}
		}
	}
	if found == 0 {
		return errors.New("the process that listens has ended")
	}
	return nil
}

// IDs are those of the server's processes.
func (p *Processes) IDs() (list []int) {
	for pid := range p.known {
		list = append(list, pid)
	}
	slices.Sort(list)
	return list
}

// StartMark names this start of the server: numbers of the processes that listen, and when they
// began, in ticks since the machine did.
func (p *Processes) StartMark() string {
	var list []string
	for _, pid := range p.roots {
		if k := p.known[pid]; k != nil {
			list = append(list, fmt.Sprintf("%d:%d", pid, k.started))
		}
	}
	slices.Sort(list)
	return strings.Join(list, " ")
}

// Tell says how much processor time they took since they were found: a count that only
// grows, whichever of them end and begin.
func (p *Processes) Tell(context.Context) (scrape.Asked, error) {
	begin := clock.Now()
	if time.Since(p.looked) >= childrenEvery {
		if err := p.findChildren(); err != nil {
			if err := p.find(); err != nil {
				return scrape.Asked{Work: time.Duration(clock.Now() - begin)}, err
			}
		}
	}
	lives, listens, answering, waiting := 0, 0, time.Duration(0), time.Duration(0)
	for pid, one := range p.known {
		s, err := readStat(p.files, pid)
		if err != nil || s.started != one.started {
			delete(p.known, pid)
			continue
		}
		grown := max(0, s.spent-one.spent)
		one.spent = s.spent
		p.sum[0] += grown
		if one.listens {
			answering += grown
			waited, ok := readWait(p.files, pid)
			p.blind = p.blind || !ok
			waiting += max(0, waited-one.waited)
			one.waited = waited
			listens++
		}
		lives++
	}
	if listens == 0 {
		p.looked = time.Time{} // it is looked for again with the next question
		return scrape.Asked{Work: time.Duration(clock.Now() - begin)}, errors.New("the process that listens has ended")
	}
	p.sum[1] += answering / time.Duration(listens)
	p.sum[2] += waiting / time.Duration(listens)
	values := map[telemetry.Signal]float64{
		telemetry.ServerCPU: p.sum[0].Seconds(), telemetry.ListenerCPU: p.sum[1].Seconds(), telemetry.ServerProcesses: float64(lives),
	}
	if !p.blind {
		values[telemetry.ListenerWait] = p.sum[2].Seconds()
	}
	end := clock.Now()
	return scrape.Asked{At: begin + (end-begin)/2, Took: time.Duration(end - begin), Work: time.Duration(end - begin), Reading: telemetry.Reading{Sources: []string{SourceProc}, Values: values}}, nil
}

// Close has nothing to end.
func (p *Processes) Close() {}
