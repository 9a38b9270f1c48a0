package pick_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"

	"sluice/pick"
)

// An event loop keeps a State of its own and takes a slot for each session.
func Example() {
	pool := pick.NewPool()
	err := pool.Configure(pick.Config{
		Policy: pick.WeightedRoundRobin,
		Servers: []pick.ServerConfig{
			{Name: "a", Addr: "10.0.0.1:5432", Weight: 5},
			{Name: "b", Addr: "10.0.0.2:5432", Weight: 1},
			{Name: "c", Addr: "10.0.0.3:5432", Weight: 1},
		},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	state := pick.NewStateAt(0) // NewState(shard), but the same in each run
	for range 7 {
		set := pool.Set()
		i := set.Acquire(state, 0, nil)
		if i < 0 {
			fmt.Println("no server")
			continue
		}
		fmt.Print(set.At(i).Name, " ")
		set.At(i).Release() // the session is over
	}
	// Output: a a b a c a a
}

// A retry goes to a server that was not tried; below the last, to the backup.
func ExampleSet_Pick() {
	pool := pick.NewPool()
	_ = pool.Configure(pick.Config{Servers: []pick.ServerConfig{
		{Name: "a", Addr: "10.0.0.1:80", Weight: 1},
		{Name: "b", Addr: "10.0.0.2:80", Weight: 1},
		{Name: "spare", Addr: "10.0.0.9:80", Weight: 1, Backup: true},
	}})
	set, state := pool.Set(), pick.NewStateAt(0)
	var tried []int
	for {
		i := set.Pick(state, 0, tried)
		if i < 0 {
			fmt.Println("none left")
			return
		}
		fmt.Println(set.At(i).Name)
		tried = append(tried, i)
	}
	// Output:
	// a
	// b
	// spare
	// none left
}

func ExampleParsePolicy() {
	_, name, _ := pick.ParsePolicy("leastconn") // as HAProxy says it
	fmt.Println(name)
	_, _, err := pick.ParsePolicy("leastcon")
	fmt.Println(err)
	// Output:
	// least_conn
	// got "leastcon", want one of round_robin, weighted_round_robin, interleaved_wrr, random, weighted_random, two_choices, least_conn, least_time, source_hash, ring_hash, rendezvous, first (did you mean least_conn?)
}

// sessionConn gives its server's slot back when it is closed.
type sessionConn struct {
	net.Conn
	end func()
}

func (c *sessionConn) Close() error {
	c.end()
	return c.Conn.Close()
}

// dial connects to one of a Balancer's servers, trying up to three.
func dial(ctx context.Context, b *pick.Balancer, key uint64) (net.Conn, error) {
	var d net.Dialer
	var conn net.Conn
	server, err := b.Try(key, 3, func(s *pick.Server) (err error) {
		conn, err = d.DialContext(ctx, "tcp", s.Addr)
		return err
	})
	if err != nil {
		return nil, err
	}
	return &sessionConn{conn, sync.OnceFunc(server.Release)}, nil
}

// With net.Dialer: the first of the two servers refuses, the client does not notice.
func ExampleBalancer_Try() {
	dead, _ := net.Listen("tcp", "127.0.0.1:0")
	dead.Close()
	live, _ := net.Listen("tcp", "127.0.0.1:0")
	defer live.Close()
	go func() {
		for {
			conn, err := live.Accept()
			if err != nil {
				return
			}
			_, _ = io.WriteString(conn, "hello")
			conn.Close()
		}
	}()

	b, err := pick.NewBalancer(pick.Config{Servers: []pick.ServerConfig{
		{Name: "dead", Addr: dead.Addr().String(), Weight: 1},
		{Name: "live", Addr: live.Addr().String(), Weight: 1},
	}})
	if err != nil {
		fmt.Println(err)
		return
	}
	for range 4 {
		conn, err := dial(context.Background(), b, 0)
		if err != nil {
			fmt.Println(err)
			continue
		}
		greeting, _ := io.ReadAll(conn)
		fmt.Println(string(greeting))
		conn.Close()
	}
	for _, s := range b.Servers() {
		fmt.Println(s.Name, s.Sessions)
	}
	// Output:
	// hello
	// hello
	// hello
	// hello
	// dead 0
	// live 0
}

// With http.Transport: the host of the URL is a service, and each new connection
// goes to the server of it that has the fewest.
func ExampleBalancer_httpTransport() {
	backend := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintln(w, "asked for", r.URL.Path)
	}))
	defer backend.Close()

	b, err := pick.NewBalancer(pick.Config{
		Policy:  pick.LeastConn,
		Servers: []pick.ServerConfig{{Addr: backend.Listener.Addr().String(), Weight: 1}},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	transport := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return dial(ctx, b, 0)
	}}
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport}
	resp, err := client.Get("http://catalogue/books")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer resp.Body.Close()
	_, _ = io.Copy(writer{}, resp.Body)
	// Output: asked for /books
}

// writer prints to the standard output of the example.
type writer struct{}

func (writer) Write(b []byte) (int, error) { return fmt.Print(string(b)) }

// With a registry: its answer is asked for once, and its news are passed to Update.
func ExampleServices() {
	nodes := func(addrs ...string) pick.Config {
		var cfg pick.Config
		for _, addr := range addrs {
			cfg.Servers = append(cfg.Servers, pick.ServerConfig{Addr: addr, Weight: 1})
		}
		return cfg
	}
	registry := map[string]pick.Config{"orders": nodes("10.0.0.1:80", "10.0.0.2:80")}
	services := pick.NewServices(func(name string) (pick.Config, error) {
		fmt.Println("looking up", name)
		return registry[name], nil
	})

	for range 2 {
		b, err := services.Balancer("orders")
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(b.Set().Len(), "servers")
	}
	if err := services.Update("orders", nodes("10.0.0.2:80", "10.0.0.3:80", "10.0.0.4:80")); err != nil {
		fmt.Println(err)
	}
	b, _ := services.Balancer("orders")
	fmt.Println(b.Set().Len(), "servers")

	_, err := services.Balancer("unheard-of")
	fmt.Println(err)
	// Output:
	// looking up orders
	// 2 servers
	// 2 servers
	// 3 servers
	// looking up unheard-of
	// service "unheard-of": pick: empty list of servers
}
