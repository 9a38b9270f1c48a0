package leak

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// Usage is what a process holds, and has used, at one moment.
type Usage struct {
	Descriptors map[string]int // by kind: socket, pipe, eventpoll, eventfd, file ...
	RSS         int64          // resident memory, bytes
	CPU         time.Duration  // user and system time of all its threads so far; steps of 10 ms
	Threads     int
}

// Open is the number of open descriptors of all kinds.
func (u Usage) Open() int {
	sum := 0
	for _, n := range u.Descriptors {
		sum += n
	}
	return sum
}

// Of reads what the process pid holds from /proc.
func Of(pid int) (Usage, error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return Usage{}, fmt.Errorf("usage of process %d: %w", pid, err)
	}
	u, err := parseStat(string(stat))
	if err != nil {
		return Usage{}, fmt.Errorf("usage of process %d: %w", pid, err)
	}
	u.Descriptors = make(map[string]int)
	for target, n := range descriptors(strconv.Itoa(pid)) {
		u.Descriptors[kind(target)] += n
	}
	return u, nil
}

// USER_HZ is 100 on every Linux that Go runs on.
const tick = 10 * time.Millisecond

// parseStat reads proc(5)'s stat line. The command name may hold spaces and
// parentheses: fields are counted from the last one. Field 3 is fields[0].
func parseStat(line string) (Usage, error) {
	fields := strings.Fields(line[strings.LastIndexByte(line, ')')+1:])
	if len(fields) < 22 {
		return Usage{}, fmt.Errorf("stat line of %d fields", len(fields))
	}
	var numbers [4]int64
	for i, field := range []int{14, 15, 20, 24} { // utime, stime, num_threads, rss
		n, err := strconv.ParseInt(fields[field-3], 10, 64)
		if err != nil {
			return Usage{}, fmt.Errorf("stat field %d: %w", field, err)
		}
		numbers[i] = n
	}
	return Usage{
		CPU:     time.Duration(numbers[0]+numbers[1]) * tick,
		Threads: int(numbers[2]),
		RSS:     numbers[3] * int64(os.Getpagesize()),
	}, nil
}

// kind shortens a link target: "socket:[4711]" is a socket,
// "anon_inode:[eventpoll]" an eventpoll, a path a file.
func kind(target string) string {
	if strings.HasPrefix(target, "/") {
		return "file"
	}
	head, tail, _ := strings.Cut(target, ":")
	if head == "anon_inode" {
		return strings.Trim(tail, "[]")
	}
	return head
}
