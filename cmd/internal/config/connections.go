package config

import (
	"context"
	"fmt"
	"log/slog"

	"partnerapi/db"
	"partnerapi/db/doctor"
	"partnerapi/db/pg"
)

// MinConnections is the least that a process can do its work with: the daily
// refresh needs two at a time.
const MinConnections = 5

// Needs is how many connections a process may have open: those of its pool, with
// the reserved ones, and those that listen, less the two for mail and reports where it
// leaves the background work to others. A pooler in transaction mode is between the
// server and all of the pool but as many as are reserved.
func (f WorkFlags) Needs(working bool, behind pg.Pooler) int {
	n := f.Connections + pg.ReservedConns + pg.Listeners
	if behind.Shared() {
		n -= f.Connections
	}
	if !working {
		n -= 2
	}
	return n
}

// CheckConnections reports an error where the process may need more connections
// than the database allows, and warns where others leave too few.
func (f WorkFlags) CheckConnections(ctx context.Context, d *db.DB, log *slog.Logger, working bool) error {
	need := f.Needs(working, d.Pooler())
	has, err := doctor.ReadConnections(ctx, d)
	if err != nil {
		return err
	}

	if need > has.Allowed {
		return fmt.Errorf("this process may need %d connections (--connections %d), and the database allows %d: "+
			"lower them, or raise the database's max_connections", need, f.Connections, has.Allowed)
	}
	if has.Used+need > has.Allowed {
		log.WarnContext(ctx, "the database may run out of connections: lower --connections, or raise its max_connections",
			"needed", need, "used_by_others", has.Used, "allowed", has.Allowed)
	}
	return nil
}
