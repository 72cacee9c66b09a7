package pg

import "time"

// Stats counts the connections that requests and background work share.
type Stats struct {
	// InUse and Idle are open connections, Max how many there may be.
	InUse, Idle, Max int
	// Waits is how often a connection had to be waited for since Open, and Waited
	// how long in all.
	Waits  int64
	Waited time.Duration
}

// Stats returns the present figures.
func (d *DB) Stats() Stats {
	s := d.pool.Stat()
	return Stats{
		InUse: d.gate.inUse(), Idle: int(s.IdleConns()), Max: int(s.MaxConns()) - ReservedConns,
		Waits: d.gate.waited.Load(), Waited: time.Duration(d.gate.waitedFor.Load()),
	}
}
