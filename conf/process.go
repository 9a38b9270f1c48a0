package conf

import (
	"errors"
	"strings"
)

// More shards than this are a slip of the pen: each has an epoll set, a buffer and a goroutine that never ends.
const mostShards = 1024

func (p *Process) read(t *table) {
	p.Line = t.line
	read(t, "shards", &p.Shards, count(0, mostShards))
	read(t, "max_connections", &p.MaxConnections, limit)
	read(t, "shutdown_timeout", &p.ShutdownTimeout, timeout)
	read(t, "user", &p.User, text)
	read(t, "splice", &p.Splice, oneOf("auto", "off", "always"))
}

func (l *Log) read(t *table) {
	read(t, "level", &l.Level, oneOf("debug", "info", "warn", "error"))
	read(t, "format", &l.Format, oneOf("text", "json"))
	read(t, "output", &l.Output, output("stderr", "stdout"))
	read(t, "access", &l.Access, output("off", "stderr", "stdout"))
}

// output accepts one of words or a path. A path has a slash, so that a misspelt word is not taken for a file.
func output(words ...string) parser[string] {
	return func(raw any) (string, error) {
		if s, err := text(raw); err == nil && strings.Contains(s, "/") {
			return s, nil
		}
		s, err := oneOf(words...)(raw)
		if err != nil {
			err = errors.New(err.Error() + " or a path with a slash")
		}
		return s, err
	}
}

func (a *Admin) read(t *table) {
	read(t, "listen", &a.Listen, adminAddress)
	read(t, "token_file", &a.TokenFile, text)
	a.TLS.read(t.sub("tls"))
}

func (a *AdminTLS) read(t *table) {
	read(t, "cert", &a.Cert, text)
	read(t, "key", &a.Key, text)
	read(t, "client_ca", &a.ClientCA, text)
}

// adminAddress is a bind address, or "" for no admin listener.
func adminAddress(raw any) (Address, error) {
	if raw == "" {
		return Address{}, nil
	}
	return bindAddress(raw)
}
