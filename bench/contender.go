package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// contender is a balancer program and the way it is configured.
type contender struct {
	name string
	// command writes what configuration it needs into dir. nil: no balancer,
	// the clients connect to a server.
	command func(dir string, l layout) ([]string, error)
}

// layout is who listens where. Each contender has servers of its own, so that
// the TIME_WAIT left behind by one is not in the way of the next.
type layout struct {
	port    int
	servers []string
}

func (l layout) bind() string { return fmt.Sprintf("127.0.0.1:%d", l.port) }

func layoutOf(i, servers int) layout {
	l := layout{port: 7000 + i}
	for s := range servers {
		l.servers = append(l.servers, fmt.Sprintf("127.0.0.1:%d", 7100+10*i+s))
	}
	return l
}

const direct = "direct"

// isReference tells the contenders that ratios are formed to.
func (c contender) isReference() bool { return strings.HasPrefix(c.name, "haproxy") }

// sessions all balancers are configured for: T4 needs 6,500, and a process
// may have 20,000 descriptors, of which HAProxy sets a quarter aside for pipes.
const sessions = 7000

func write(dir, name, format string, args ...any) (string, error) {
	p := filepath.Join(dir, name)
	return p, os.WriteFile(p, []byte(fmt.Sprintf(format, args...)), 0o644)
}

// each is one line for each server.
func (l layout) each(format string) string {
	var b strings.Builder
	for i, s := range l.servers {
		b.WriteString(strings.NewReplacer("{i}", fmt.Sprint(i), "{addr}", s).Replace(format))
	}
	return b.String()
}

const sluiceConfig = `[process]
shards = 1
%s
[[listeners]]
name = "b"
bind = %q
pool = "p"
[[pools]]
name = "p"
balance = "round_robin"
%s`

func sluice(name, path string) contender {
	return contender{name, func(dir string, l layout) ([]string, error) {
		servers := l.each("[[pools.servers]]\nname = \"s{i}\"\naddress = \"{addr}\"\n")
		admin := fmt.Sprintf("[admin]\nlisten = \"unix:%s/admin.sock\"", dir)
		f, err := write(dir, "sluice.toml", sluiceConfig, admin, l.bind(), servers)
		// A build without the admin interface refuses its table.
		if err == nil && exec.Command(path, "check", f).Run() != nil {
			f, err = write(dir, "sluice.toml", sluiceConfig, "", l.bind(), servers)
		}
		return []string{path, "run", "-c", f}, err
	}}
}

// haproxy with options, one a line. `option splice-auto` alone does not splice
// a steady stream: the streamer is recognized only when the session's task is
// woken, which forwarding does not do (strace shows recvfrom and sendto for
// gigabytes). So "with splice" means splice-request and splice-response; where
// that is worse, the other HAProxy is the reference.
func haproxy(name, path string, options ...string) contender {
	return contender{name, func(dir string, l layout) ([]string, error) {
		option := strings.Join(options, "\n  ")
		f, err := write(dir, "haproxy.cfg", `global
  nbthread 1
  maxconn %d
defaults
  mode tcp
  maxconn %[1]d
  timeout connect 5s
  timeout client 1h
  timeout server 1h
  %s
listen b
  bind %s
  balance roundrobin
%s`, sessions, option, l.bind(), l.each("  server s{i} {addr}\n"))
		return []string{path, "-db", "-f", f}, err
	}}
}

func nginx(path string) contender {
	return contender{"nginx", func(dir string, l layout) ([]string, error) {
		module := "/usr/lib/nginx/modules/ngx_stream_module.so"
		load := ""
		if _, err := os.Stat(module); err == nil {
			load = "load_module " + module + ";"
		}
		f, err := write(dir, "nginx.conf", `%s
daemon off;
user root;
pid %s/nginx.pid;
error_log stderr error;
worker_processes 1;
worker_rlimit_nofile 20000;
events { worker_connections 16000; }
stream {
  upstream p {
%s  }
  server {
    listen %s backlog=8192;
    proxy_pass p;
    proxy_connect_timeout 5s;
    proxy_timeout 1h;
    proxy_half_close on;
  }
}
`, load, dir, l.each("    server {addr} max_fails=0;\n"), l.bind())
		return []string{path, "-p", dir, "-e", "stderr", "-c", f}, err
	}}
}

func goRelay() contender {
	return contender{"go", func(_ string, l layout) ([]string, error) {
		return []string{"/proc/self/exe", "iocopy", "-bind", l.bind(), "-servers", strings.Join(l.servers, ",")}, nil
	}}
}

// peer is the contender of a name that -peers may say.
func peer(name, haproxyPath, nginxPath string) (contender, error) {
	switch name {
	case "haproxy":
		return haproxy(name, haproxyPath), nil
	case "haproxy-splice":
		return haproxy(name, haproxyPath, "option splice-request", "option splice-response"), nil
	case "haproxy-auto":
		return haproxy(name, haproxyPath, "option splice-auto"), nil
	case "nginx":
		return nginx(nginxPath), nil
	case "go":
		return goRelay(), nil
	case direct:
		return contender{name: direct}, nil
	}
	return contender{}, fmt.Errorf("peers: got %q, want haproxy, haproxy-splice, haproxy-auto, nginx, go, direct", name)
}

// running is a started contender.
type running struct {
	contender
	layout
	cmd  *exec.Cmd
	log  string
	pids []int
	gone chan error
}

// start puts a balancer on its core and waits until it listens.
func start(c contender, l layout, dir string, cpu int) (*running, error) {
	r := &running{contender: c, layout: l, gone: make(chan error, 1)}
	if c.command == nil {
		return r, nil
	}
	dir = filepath.Join(dir, c.name)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	argv, err := c.command(dir, l)
	if err != nil {
		return nil, fmt.Errorf("configure %s: %w", c.name, err)
	}
	r.log = filepath.Join(dir, "log")
	log, err := os.Create(r.log)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	r.cmd = exec.Command(argv[0], argv[1:]...)
	r.cmd.Stdout, r.cmd.Stderr = log, log
	r.cmd.Env = withoutMark(os.Environ())
	r.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := startOn(cpu, r.cmd); err != nil {
		return nil, fmt.Errorf("start %s: %w", c.name, err)
	}
	go func() { r.gone <- r.cmd.Wait() }()
	if err := awaitListen(l.port, r.alive); err != nil {
		err = fmt.Errorf("start %s: %w%s", c.name, err, r.lastWords())
		r.stop()
		return nil, err
	}
	r.pids = family(r.cmd.Process.Pid)
	return r, nil
}

// startOn starts a command on one core. A child inherits the cores of the
// thread that made it, and main has locked this one.
func startOn(cpu int, cmd *exec.Cmd) error {
	var before, one unix.CPUSet
	if err := unix.SchedGetaffinity(0, &before); err != nil {
		return err
	}
	one.Set(cpu)
	if err := unix.SchedSetaffinity(0, &one); err != nil {
		return fmt.Errorf("core %d: %w", cpu, err)
	}
	defer unix.SchedSetaffinity(0, &before)
	return cmd.Start()
}

func withoutMark(env []string) (out []string) {
	for _, e := range env {
		if !strings.HasPrefix(e, insideMark) {
			out = append(out, e)
		}
	}
	return out
}

// alive says why the process is not, if it is not.
func (r *running) alive() error {
	if r.cmd == nil {
		return nil
	}
	select {
	case err := <-r.gone:
		r.gone <- err
		if err == nil {
			err = errors.New("exit status 0")
		}
		return fmt.Errorf("%s has ended: %w%s", r.name, err, r.lastWords())
	default:
		return nil
	}
}

// stop ends the process, and only it: nginx's master ends its worker.
func (r *running) stop() {
	if r.cmd == nil || r.alive() != nil {
		return
	}
	r.cmd.Process.Signal(syscall.SIGTERM)
	for _, pid := range r.pids[min(1, len(r.pids)):] {
		syscall.Kill(pid, syscall.SIGTERM)
	}
	if !waitFor(r.gone) {
		r.cmd.Process.Kill()
		<-r.gone
	}
}

// lastWords is the end of what the process wrote, for an error message.
func (r *running) lastWords() string {
	b, _ := os.ReadFile(r.log)
	if b = b[max(0, len(b)-600):]; len(b) == 0 {
		return ""
	}
	return "\n" + strings.TrimSpace(string(b))
}

// family is a process and its children, as nginx has them.
func family(pid int) []int {
	pids := []int{pid}
	b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", pid, pid))
	for _, f := range strings.Fields(string(b)) {
		var child int
		fmt.Sscan(f, &child)
		pids = append(pids, family(child)...)
	}
	return pids
}
