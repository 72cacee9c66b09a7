package pg

import "time"

// Stats are figures of the connections that requests and background work share.
type Stats struct {
	// InUse and Idle are the numbers of open connections, and Max is their maximum.
	InUse, Idle, Max int
	// Waits is the number of waits for a connection since Open, and Waited their total duration.
	Waits  int64
	Waited time.Duration
}

// Stats returns the current figures of the pool. Max leaves out the reserved connections.
func (d *DB) Stats() Stats {
	s := d.pool.Stat()
	return Stats{
		InUse: d.gate.inUse(), Idle: int(s.IdleConns()), Max: int(s.MaxConns()) - ReservedConns,
		Waits: d.gate.waited.Load(), Waited: time.Duration(d.gate.waitedFor.Load()),
	}
}
