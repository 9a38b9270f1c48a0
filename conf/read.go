package conf

// A reading is a Config in the making, with the tables that its parts were read from.
type reading struct {
	cfg      Config
	defaults struct { // built-in ones with [defaults] on top
		listener Listener
		pool     Pool
		check    Check
	}
	root      *table
	listeners []*table
	routes    [][]*table // of each listener
	pools     []*table
	byName    map[string]int // pools; of two with one name, the last
	servers   [][]*table     // of each pool
}

func newReading(root *table) *reading {
	r := &reading{cfg: defaultConfig(), root: root, byName: map[string]int{}}
	r.defaults.listener, r.defaults.pool, r.defaults.check = defaultListener(), defaultPool(), defaultCheck()
	return r
}

// config reads and checks the whole file.
func (s *source) config(values map[string]any) *Config {
	r := newReading(s.root(values))
	r.cfg.File = s.file
	r.read()
	for _, t := range s.tables {
		t.done()
	}
	r.checkAll()
	return &r.cfg
}

func (s *source) root(values map[string]any) *table {
	t := &table{source: s, values: values}
	s.tables = append(s.tables, t)
	return t
}

func (r *reading) read() {
	r.cfg.Process.read(r.root.sub("process"))
	r.cfg.Log.read(r.root.sub("log"))
	r.cfg.Admin.read(r.root.sub("admin"))
	r.readDefaults(r.root.sub("defaults"))
	r.readListeners(r.root.subs("listeners"))
	r.readPools(r.root.subs("pools"))
}

// readDefaults reads [defaults] twice, as a listener and as a pool: it may have the keys of both.
func (r *reading) readDefaults(t *table) {
	d := &r.defaults
	t.kind = "listeners"
	d.listener.readOptional(t)
	t.kind = "pools"
	d.pool.readOptional(t)
	d.check.read(t.sub("check"))
	t.kind = "defaults"
}

func (r *reading) readListeners(in []*table) {
	r.listeners = in
	for _, t := range in {
		l := r.defaults.listener
		r.routes = append(r.routes, l.read(t))
		l.derive()
		r.cfg.Listeners = append(r.cfg.Listeners, l)
	}
}

func (r *reading) readPools(in []*table) {
	r.pools = in
	for _, t := range in {
		p := r.defaults.pool
		p.readCheck(t, r.defaults.check)
		r.servers = append(r.servers, p.read(t))
		r.byName[p.Name] = len(r.cfg.Pools)
		r.cfg.Pools = append(r.cfg.Pools, p)
	}
}
