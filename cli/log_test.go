package cli

import (
	"bufio"
	"os"
	"strings"
	"testing"
	"time"

	"sluice/internal/leak"
)

// Whoever writes a line goes on at once, also when nobody takes any; how many were dropped is told when it goes on.
func TestLogWriterNeverBlocks(t *testing.T) {
	leak.Check(t)
	r, out, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	w := &logWriter{lines: make(chan []byte, queuedLines), done: make(chan struct{})}
	w.out.Store(out)
	go w.run()
	wrote := make(chan struct{})
	go func() {
		defer close(wrote)
		for range 3 * queuedLines {
			w.Write([]byte(strings.Repeat("x", 99) + "\n"))
		}
	}()
	select {
	case <-wrote:
	case <-time.After(patience):
		t.Error("a line that nobody takes holds up who writes it")
	}
	if w.dropped.Load() == 0 {
		t.Error("no line was dropped")
	}
	told := make(chan bool)
	go func() {
		found := false
		for in := bufio.NewScanner(r); in.Scan(); {
			found = found || strings.Contains(in.Text(), "log lines were dropped")
		}
		told <- found
	}()
	<-wrote
	w.close()
	out.Close()
	if !<-told {
		t.Error("nothing says that lines were dropped")
	}
}
