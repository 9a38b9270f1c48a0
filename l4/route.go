package l4

import (
	"sync/atomic"

	"sluice/pick"
)

// A route is a service as one shard sees it. It is replaced, never changed, on Apply; a session keeps the route that
// it was accepted under.
type route struct {
	*Service
	state *pick.State    // the shard's position in the pool
	stats *listenerStats // the shard's share
	load  *atomic.Int64  // sessions of the service, over all shards
	armIn int64          // ns after the start when keepalive and user timeout must be set
}

func newRoute(svc *Service, state *pick.State, stats *listenerStats, load *atomic.Int64) *route {
	r := &route{Service: svc, state: state, stats: stats, load: load, armIn: never}
	if k := svc.Keepalive.Idle; k > 0 {
		r.armIn = int64(k) / 2
	}
	if t := svc.UserTimeout; t > 0 {
		r.armIn = min(r.armIn, int64(t)/2)
	}
	return r
}

// enter counts a session in; false when the service is full.
func (r *route) enter() bool {
	if n := r.load.Add(1); r.MaxConnections > 0 && n > int64(r.MaxConnections) {
		r.load.Add(-1)
		return false
	}
	r.stats.Accepted.Add(1)
	return true
}

// leave counts it out.
func (r *route) leave(why Reason) {
	r.load.Add(-1)
	r.stats.Ended[why].Add(1)
}

// expiry is when a session that starts now has lived long enough, 0 for never. The jitter keeps sessions that came
// together from ending together.
func (r *route) expiry(now int64, random func() float64) int64 {
	if r.MaxSessionDuration == 0 {
		return 0
	}
	return now + int64(float64(r.MaxSessionDuration)*(1-r.MaxSessionJitter*random()))
}

// key is what the hashing policies see of a session.
func (s *session) key() uint64 {
	if s.Pool.Key == KeyNone {
		return 0
	}
	return s.from.key(s.Pool.Key == KeySourceIPPort)
}
