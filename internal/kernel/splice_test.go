package kernel

import (
	"os"
	"runtime"
	"strconv"
	"testing"

	"golang.org/x/sys/unix"
)

// Splice from a socket says EAGAIN when the socket is empty, and also when the pipe has no slot left. Small segments
// take a slot each, so 16 bytes may fill a pipe of 64 KiB.
func TestSpliceEAGAINMeansTwoThings(t *testing.T) {
	begin(t)
	a, b := pair(t)
	r, w := pipe(t, 16*os.Getpagesize())
	_, err := splice(b, w)
	want(t, "splice of an empty socket", err, unix.EAGAIN)
	for range 16 {
		write(t, a, "x")
		await(t, b, unix.POLLIN)
		_, err := splice(b, w)
		check(t, err)
	}
	write(t, a, "x")
	await(t, b, unix.POLLIN)
	_, err = splice(b, w)
	want(t, "splice into a pipe of 16 bytes", err, unix.EAGAIN)
	unix.Read(r, make([]byte, 16))
	if n, err := splice(b, w); n != 1 {
		t.Fatalf("splice into the emptied pipe: %d, %v", n, err)
	}
}

// Splice stops at the mark of urgent data and never gets past it. A read steps over the mark: the urgent byte is left
// out, the rest comes.
func TestSpliceStopsAtUrgentData(t *testing.T) {
	begin(t)
	a, b := pair(t)
	_, w := pipe(t, 16*os.Getpagesize())
	write(t, a, "abc")
	check(t, unix.Sendto(a, []byte("U"), unix.MSG_OOB, nil))
	write(t, a, "def")
	await(t, b, unix.POLLPRI)
	if n, err := splice(b, w); n != 3 {
		t.Fatalf("splice moved %d (%v), want the 3 bytes before the mark", n, err)
	}
	await(t, b, unix.POLLIN) // the rest is there
	for range 3 {
		_, err := splice(b, w)
		want(t, "splice at the mark", err, unix.EAGAIN)
	}
	buf := make([]byte, 100)
	if n, err := unix.Read(b, buf); string(buf[:max(0, n)]) != "def" {
		t.Fatalf("read %q (%v), want the bytes after the mark", buf[:max(0, n)], err)
	}
}

// Without CAP_SYS_RESOURCE and CAP_SYS_ADMIN a user may hold fs.pipe-user-pages-soft pages in pipes. Beyond, a new
// pipe has two pages, without a word, and cannot grow.
func TestPipesShrinkForUnprivilegedUsers(t *testing.T) {
	begin(t)
	soft, err := strconv.Atoi(sysctl("fs/pipe-user-pages-soft"))
	if err != nil || soft == 0 || soft > 1<<16 {
		t.Skipf("fs.pipe-user-pages-soft is %q", sysctl("fs/pipe-user-pages-soft"))
	}
	done := make(chan string)
	go func() { done <- pipesAs(nobody, soft/256) }()
	if problem := <-done; problem != "" {
		t.Fatal(problem)
	}
}

const nobody = 65534

// pipesAs opens n pipes of 256 pages, and one more, as another user. It changes the thread that it runs on, which
// ends with the goroutine.
func pipesAs(uid, n int) (problem string) {
	runtime.LockOSThread()
	if os.Geteuid() == 0 {
		if _, _, e := unix.RawSyscall(unix.SYS_SETRESUID, uintptr(uid), uintptr(uid), uintptr(uid)); e != 0 {
			return "setresuid: " + e.Error()
		}
	}
	size, grow := 0, error(nil)
	for range n + 1 {
		var fds [2]int
		if err := unix.Pipe2(fds[:], unix.O_CLOEXEC); err != nil {
			return "pipe: " + err.Error()
		}
		defer unix.Close(fds[0])
		defer unix.Close(fds[1])
		size, _ = unix.FcntlInt(uintptr(fds[0]), unix.F_GETPIPE_SZ, 0)
		_, grow = unix.FcntlInt(uintptr(fds[0]), unix.F_SETPIPE_SZ, 256*os.Getpagesize())
	}
	if size != 2*os.Getpagesize() || grow != unix.EPERM {
		return "the last pipe has " + strconv.Itoa(size) + " bytes, and growing it says " + errText(grow)
	}
	return ""
}

func errText(err error) string {
	if err == nil {
		return "nothing"
	}
	return err.Error()
}
