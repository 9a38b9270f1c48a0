// Package pick decides which server is next. The balancer's shards use it for every
// session, and any program that dials its servers itself can use it as a library.
// It needs the standard library only, does no I/O, logs nothing and starts no
// goroutine.
//
// # Three lifetimes, three types
//
//   - A [Server] is who: an identity, and how many sessions it has. It lives as long
//     as anybody counts on it.
//   - A [Set] is how things are: who may be picked, and by which rule. It never
//     changes; a change publishes another.
//   - A [State] is where one goroutine is: whose turn comes next. It survives every
//     Set.
//
// A pick is Set x State x key -> index. It takes no lock, no memory and no reading
// of the clock, and the one interface call on its way is Picker.Pick.
//
// A [Pool] knows all servers and is the only one to publish Sets. Configure gives it
// a whole new membership; SetUp, SetEjected, SetState and SetWeight change one
// server. Whether a server may be picked is decided there and nowhere else: the
// operator wants it (ready, weight above 0), checks have it up, and it is not
// ejected. Only tried servers and full ones are passed over by the picks themselves.
//
//	pool := pick.NewPool()
//	err := pool.Configure(cfg)    // control side
//	state := pick.NewState(shard) // one for each goroutine and Pool
//	...
//	set := pool.Set()             // for each session: one atomic load
//	i := set.Acquire(state, key, tried)
//	if i < 0 { ... }              // nobody is left
//	server := set.At(i)
//	...                           // dial server.Addr; if that fails, release it and
//	...                           // go on with append(tried, i), in the same Set
//	server.Release()              // at the end of the session
//
// Without an event loop to keep a State in, use a [Balancer]: a Pool with States of
// its own that any goroutine may call. [Services] has a Balancer for each name in a
// registry.
//
// # Policies
//
// The names are those of the configuration; [ParsePolicy] knows what other products
// call them.
//
//	round_robin           in turn; weights obeyed, smooth
//	weighted_round_robin  the same: the sequence of nginx
//	interleaved_wrr       in turn by weight, clumped: the sequence of LVS
//	random                any, weights ignored
//	weighted_random       any, by weight
//	two_choices           two by weight, of these the less busy
//	least_conn            the fewest sessions for its weight, ties in turn
//	least_time            the least of (peak EWMA of answer times) x sessions
//	source_hash           by key: Maglev's table
//	ring_hash             by key: ketama's ring
//	rendezvous            by key: highest random weight
//	first                 the first that is not full
//
// For long sessions, as databases have them, take least_conn, or two_choices if
// there are very many servers: least_conn, least_time, rendezvous and bounded loads
// look at every server for each pick, all others do not. A hash policy places a key
// ([HashString] makes one); key 0 means that there is none, and goes in turn.
//
// # Rules
//
// Tiers. Servers of the lowest Priority are used first, those of the next when these
// are all down, full or tried in this session, and backups last.
//
// Limits. MaxConnections is exact: no number of goroutines gets one session more
// through [Server.Acquire], and each slot is back the moment that it is released.
//
// Turns are exact for each State. States start one place apart, and processes
// anywhere, so that nobody's first pick is everybody's. With weights, each cycle has
// exactly as many turns of a server as it weighs, and no server is ever more than a
// turn and a half ahead or behind. Cycles above 131,072 turns (after dividing by what
// the weights have in common) are not written down but computed for each pick; that
// takes some nanoseconds for each doubling of the number of servers.
//
// Panic. When less than PanicThreshold of the servers that the operator wants is up,
// all of them are used: more likely the checks are wrong.
//
// Slow start. A server that is new, or back, is given a tenth of its weight and then
// linearly more. Policies that look at loads also let it win by being idle only in
// that share of their picks. Nobody ramps when the process starts. A Pool knows the
// time only from [Pool.Tick]; a Balancer ticks itself.
//
// Weights are 0 to 1,000,000. Weight 0 takes no new sessions. An empty Set, or one
// of which everybody is full, answers -1: no search is endless.
//
// # Reading the code
//
// server.go, set.go and state.go are the three types, pool.go and config.go who
// writes them, ramp.go slow start. policy.go is the list of policies and what they
// have in common. Turns: roundrobin.go, cycle.go with fair.go and tree.go behind it,
// interleaved.go. By chance: random.go, twochoices.go. By load: least.go,
// leasttime.go. By key: hash.go, placed.go, maglev.go, ring.go, rendezvous.go.
// balancer.go and services.go are the library for clients.
package pick
