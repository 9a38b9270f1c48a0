// Package peer plays the clients and servers of tests and repros: scripted
// peers on real TCP and unix sockets, on either side of whatever is tested.
//
//	server := peer.Listen(t, peer.V4, peer.Expect(1<<10), peer.ExpectEOF(0), peer.Send(256<<10))
//	client := peer.Dial(t, address)
//	client.Do(peer.Send(1<<10), peer.FIN(), peer.Expect(256<<10), peer.ExpectEOF(0))
//	server.Wait(1)
//
// A script is a list of Steps. Do plays one at once, Go in the background, and
// Listen plays one on each connection it accepts. A step that does not come
// out as written fails the test, with its place in the script; steps that a
// Close cut short say nothing. Wait before looking at what a server saw.
//
// Bytes are coded by position and stream (pattern.go): Expect sees a byte that
// was lost, doubled, moved or that belongs to another session. That is as
// strong as comparing digests at both ends, and it names the place.
//
// Nothing waits for ever: a peer that makes no progress for Patience fails.
// Everything ends with the test, so that leak.Check, called first, finds the
// baseline.
//
// Read conn.go, step.go, server.go, ready.go (echo, sink, source, token ...).
package peer
