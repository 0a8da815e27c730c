package main

import (
	"fmt"
	"log"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// start starts the server with flags, unless it runs with them.
func (b *bench) start(command, flags string) {
	if b.server != nil && b.flags == flags {
		return
	}
	b.stop()
	line := fmt.Sprintf("exec taskset -c %d %s %s", b.engine, command, flags)
	if b.lift {
		line = fmt.Sprintf("exec chrt -f 1 taskset -c %d %s %s", b.engine, command, flags)
	}
	log, err := os.Create(filepath.Join(b.dir, "server.log"))
	must(err)
	defer log.Close()
	b.server = exec.Command("sh", "-c", line)
	b.server.Stdout, b.server.Stderr = log, log
	b.server.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	must(b.server.Start())
	b.flags = flags
	ended := make(chan error, 1)
	server := b.server
	go func() { ended <- server.Wait() }()
	for limit := time.Now().Add(5 * time.Minute); ; time.Sleep(500 * time.Millisecond) {
		if r, err := http.Get(b.url + "/health"); err == nil {
			r.Body.Close()
			if r.StatusCode == http.StatusOK {
				place(b.front(), b.client, 0, b.lift)
				return
			}
		}
		select {
		case err := <-ended:
			must(fmt.Errorf("the server ended: %v: see %s", err, log.Name()))
		default:
		}
		if time.Now().After(limit) {
			b.stop()
			must(fmt.Errorf("the server does not answer: see %s", log.Name()))
		}
	}
}

// stop ends the server and all that it started.
func (b *bench) stop() {
	if b.server == nil {
		return
	}
	group := -b.server.Process.Pid
	b.server = nil
	_ = syscall.Kill(group, syscall.SIGTERM)
	for range 40 {
		if time.Sleep(250 * time.Millisecond); syscall.Kill(group, 0) != nil {
			return
		}
	}
	_ = syscall.Kill(group, syscall.SIGKILL)
	time.Sleep(time.Second)
}

func must(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

// front is the server's API process: the first of its group that is no shell, whose child
// is the engine.
func (b *bench) front() int { return b.server.Process.Pid }

// threads are those of a process.
func threads(pid int) (list []int) {
	files, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
	must(err)
	for _, f := range files {
		if id, err := strconv.Atoi(f.Name()); err == nil {
			list = append(list, id)
		}
	}
	return list
}

// place sets the core and the priority of all threads of a process.
func place(pid, core, nice int, lifted bool) {
	for _, id := range threads(pid) {
		quietly("taskset", "-pc", fmt.Sprint(core), fmt.Sprint(id))
		if lifted {
			quietly("chrt", "-f", "-p", "1", fmt.Sprint(id))
			continue
		}
		quietly("chrt", "-o", "-p", "0", fmt.Sprint(id))
		quietly("renice", "-n", fmt.Sprint(nice), "-p", fmt.Sprint(id))
	}
}

// quietly runs a small command; a thread may have ended meanwhile.
func quietly(name string, args ...string) {
	if out, err := exec.Command(name, args...).CombinedOutput(); err != nil && !strings.Contains(string(out), "No such process") {
		must(fmt.Errorf("%s %s: %v: %s", name, strings.Join(args, " "), err, out))
	}
}

// hog takes all that is left of a core, until it is stopped.
func hog(core, nice int) (stop func()) {
	cmd := exec.Command("taskset", "-c", fmt.Sprint(core), "nice", "-n", fmt.Sprint(nice), "sh", "-c", "while :; do :; done")
	must(cmd.Start())
	return func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}
}
