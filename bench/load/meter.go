package load

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Use is CPU time consumed between two stocks, in nanoseconds.
type Use struct {
	Wall      float64 // seconds
	Balancer  float64 // user + system of its processes
	Generator float64
	Kernel    float64 // kernel threads, where work can be hidden from Balancer
	Others    float64 // everything else on the machine: the noise of the measurement
	FDs       int     // of the balancer, at the end
	RSS       int64   // of the balancer, at the end
}

// clocks are cheap to read: microseconds.
type clocks struct {
	at             time.Time
	balancer, self int64
}

// stock takes milliseconds to read, so it is taken outside the window.
type stock struct {
	clocks
	kernel, busy int64
	rss, pss     int64
	fds, pipes   int
}

func readClocks(pids []int) clocks {
	c := clocks{at: time.Now(), self: cpuTime(os.Getpid())}
	for _, pid := range pids {
		c.balancer += cpuTime(pid)
	}
	return c
}

func takeStock(pids []int) stock {
	s := stock{kernel: kernelTime(), busy: busyTime(), clocks: readClocks(pids)}
	for _, pid := range pids {
		rss, pss := memory(pid)
		s.rss, s.pss = s.rss+rss, s.pss+pss
		fds, pipes := descriptors(pid)
		s.fds, s.pipes = s.fds+fds, s.pipes+pipes
	}
	return s
}

// use joins the clocks of the window with the stocks around it, whose longer
// time is scaled down to the window's.
func use(from, to clocks, before, after stock) Use {
	wall := to.at.Sub(from.at).Seconds()
	scale := wall / after.at.Sub(before.at).Seconds()
	kernel := float64(after.kernel - before.kernel)
	ours := float64(after.balancer-before.balancer+after.self-before.self) + kernel
	return Use{
		Wall:      wall,
		Balancer:  float64(to.balancer - from.balancer),
		Generator: float64(to.self - from.self),
		Kernel:    kernel * scale,
		Others:    max(0, float64(after.busy-before.busy)-ours) * scale,
		FDs:       after.fds,
		RSS:       after.rss,
	}
}

// cpuTime is the CPU clock of a process: nanoseconds, with the threads that
// ended and the slice that is running. /proc/PID/stat has ticks of 10 ms.
func cpuTime(pid int) int64 {
	var ts unix.Timespec
	const processClock = 2 // CPUCLOCK_SCHED
	if err := unix.ClockGettime(int32(^pid<<3|processClock), &ts); err != nil {
		return 0
	}
	return ts.Nano()
}

// kernelTime is the CPU time of all kernel threads, the children of pid 2.
func kernelTime() (ns int64) {
	dirs, _ := filepath.Glob("/proc/[0-9]*")
	for _, d := range dirs {
		stat, err := os.ReadFile(d + "/stat")
		if err != nil {
			continue
		}
		_, rest, _ := bytes.Cut(stat, []byte(") "))
		if f := strings.Fields(string(rest)); len(f) > 1 && f[1] == "2" {
			run, _ := os.ReadFile(d + "/schedstat")
			var n int64
			fmt.Sscan(string(run), &n)
			ns += n
		}
	}
	return ns
}

// busyTime is the time all cores together were not idle, in ticks of 10 ms:
// good enough to tell how noisy the machine was.
func busyTime() int64 {
	b, _ := os.ReadFile("/proc/stat")
	line, _, _ := strings.Cut(string(b), "\n")
	var ticks [8]int64 // user nice system idle iowait irq softirq steal
	for i, f := range strings.Fields(line) {
		if i > 0 && i <= len(ticks) {
			ticks[i-1], _ = strconv.ParseInt(f, 10, 64)
		}
	}
	const tick = 10_000_000
	sum := int64(0)
	for i, t := range ticks {
		if i != 3 && i != 4 {
			sum += t
		}
	}
	return sum * tick
}

// memory is the resident and the proportional set in bytes.
func memory(pid int) (rss, pss int64) {
	b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", pid))
	for line := range strings.Lines(string(b)) {
		f := strings.Fields(line)
		if len(f) < 2 {
			continue
		}
		n, _ := strconv.ParseInt(f[1], 10, 64)
		switch f[0] {
		case "Rss:":
			rss = n << 10
		case "Pss:":
			pss = n << 10
		}
	}
	return rss, pss
}

func descriptors(pid int) (all, pipes int) {
	dir := fmt.Sprintf("/proc/%d/fd", pid)
	entries, _ := os.ReadDir(dir)
	// Thousands of links take long to read: of many, every 16th tells.
	for i, e := range entries {
		if step := 1 + len(entries)/1024*16; i%step == 0 {
			if to, _ := os.Readlink(dir + "/" + e.Name()); strings.HasPrefix(to, "pipe:") {
				pipes += step
			}
		}
	}
	return len(entries), pipes
}
