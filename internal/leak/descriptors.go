package leak

import (
	"os"
	"path/filepath"
)

// descriptors counts what the descriptors of a process point to:
// "socket:[4711]", "pipe:[815]" (twice when both ends are open),
// "anon_inode:[eventpoll]", a path. Sockets and pipes carry an inode that is
// not used twice, so a descriptor number taken by something else is noticed.
func descriptors(pid string) map[string]int {
	dir := filepath.Join("/proc", pid, "fd")
	// The directory is closed again before the links are read, so its own
	// descriptor reads as gone.
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil
	}
	targets := make(map[string]int, len(entries))
	for _, entry := range entries {
		if target, err := os.Readlink(filepath.Join(dir, entry.Name())); err == nil {
			targets[target]++
		}
	}
	return targets
}
