package pg

import (
	"cmp"
	"context"

	"github.com/jackc/pgx/v5"
)

// HasPooler reports whether a postgres:// URL leads to a pooler such as PgBouncer: the process id that a pooler tells
// its clients is not that of the server's process. It sets none of the service's session parameters, because poolers
// refuse them.
func HasPooler(ctx context.Context, url string) (bool, error) {
	address, err := parseAddress(url)
	if err != nil {
		return false, err
	}
	config := address.ConnConfig
	clear(config.RuntimeParams)
	config.ConnectTimeout = cmp.Or(config.ConnectTimeout, connectWithin)
	config.DefaultQueryExecMode = pgx.QueryExecModeExec

	client, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return false, err
	}
	defer client.Close(context.WithoutCancel(ctx))
	var pid uint32
	err = client.QueryRow(ctx, "SELECT pg_backend_pid()").Scan(&pid)
	return err == nil && pid != client.PgConn().PID(), err
}
