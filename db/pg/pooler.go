package pg

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// Pooler is the mode in which a pooler such as PgBouncer shares the connections of a server among clients.
type Pooler string

const (
	// NoPooler means that connections are to the server itself.
	NoPooler Pooler = ""
	// SessionPooler assigns a connection of the server to a client until the client disconnects.
	SessionPooler Pooler = "session"
	// TransactionPooler assigns a connection to a client for each transaction. Prepared statements, advisory locks of
	// sessions and LISTEN do not survive that.
	TransactionPooler Pooler = "transaction"
	// PreparingPooler is a TransactionPooler that supports prepared statements: it prepares a client's statements on
	// each connection that needs them.
	PreparingPooler Pooler = "transaction, with prepared statements"
)

// Shared reports whether transactions share connections, so that the state of a session does not outlast a transaction.
func (p Pooler) Shared() bool { return p == TransactionPooler || p == PreparingPooler }

const (
	// poolerWithin bounds the wait for a second connection, and for a transaction on it: a pooler in session mode
	// grants none if the first client has the only connection of the server.
	poolerWithin = 3 * time.Second
	// poolerTries bounds the tries to distinguish the modes. If others use the pooler too, a client in transaction mode
	// may by chance get the same connection again.
	poolerTries = 10
)

// FindPooler returns the kind of pooler at a postgres:// URL, or NoPooler. It compares process ids: the id that a
// pooler tells its clients is not that of the server's process. It sets none of the service's session parameters,
// because poolers refuse them.
func FindPooler(ctx context.Context, url string) (Pooler, error) {
	address, err := parseAddress(url)
	if err != nil {
		return NoPooler, err
	}
	config := address.ConnConfig
	clear(config.RuntimeParams)
	config.ConnectTimeout = cmp.Or(config.ConnectTimeout, connectWithin)
	config.DefaultQueryExecMode = pgx.QueryExecModeExec

	client, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return NoPooler, err
	}
	defer client.Close(context.WithoutCancel(ctx))
	first, err := backend(ctx, client)
	if err != nil || first == client.PgConn().PID() {
		return NoPooler, err
	}

	shared, err := shares(ctx, config, client, first)
	switch {
	case err != nil || !shared:
		return SessionPooler, err
	case supportsPrepared(ctx, client):
		return PreparingPooler, nil
	}
	return TransactionPooler, nil
}

// shares reports whether the pooler shares connections between clients. first is the server process that client got. A
// second client begins transactions: connections are shared if it gets that process, or if client gets another process
// meanwhile. It returns false if the second client gets no connection, and an error if the pooler refuses transactions.
func shares(ctx context.Context, config *pgx.ConnConfig, client *pgx.Conn, first uint32) (bool, error) {
	connect := config.Copy()
	connect.ConnectTimeout = poolerWithin
	other, err := pgx.ConnectConfig(ctx, connect)
	if err != nil {
		return false, nil
	}
	defer other.Close(context.WithoutCancel(ctx))
	for range poolerTries {
		tx, err := beginWithin(ctx, other, poolerWithin)
		if err != nil {
			if _, refused := errors.AsType[*pgconn.PgError](err); refused {
				return false, fmt.Errorf("begin a transaction: %w", err) // pool_mode = statement
			}
			return false, nil
		}
		second, err := backend(ctx, tx)
		if err != nil || second == first {
			return true, err
		}
		if third, err := backend(ctx, client); err != nil || third != first {
			return true, err
		}
		if err := tx.Rollback(ctx); err != nil {
			return false, err
		}
	}
	return false, nil
}

// beginWithin begins a transaction. The timeout applies only to the beginning.
func beginWithin(ctx context.Context, conn *pgx.Conn, timeout time.Duration) (pgx.Tx, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	return conn.Begin(ctx)
}

// backend returns the process id of the server process of a connection.
func backend(ctx context.Context, conn interface {
	QueryRow(context.Context, string, ...any) pgx.Row
}) (pid uint32, err error) {
	err = conn.QueryRow(ctx, "SELECT pg_backend_pid()").Scan(&pid)
	return pid, err
}

// supportsPrepared reports whether the pooler of a client supports prepared statements. Such a pooler renames them,
// because clients may choose the same names: the server does not know the statement under the client's name.
func supportsPrepared(ctx context.Context, client *pgx.Conn) bool {
	tx, err := client.Begin(ctx)
	if err != nil {
		return false
	}
	defer func() { _ = tx.Rollback(context.WithoutCancel(ctx)) }()
	name := "partnerapi_" + rand.Text()
	if _, err := tx.Prepare(ctx, name, "SELECT 1"); err != nil {
		return false
	}
	var exists bool
	err = tx.QueryRow(ctx, "SELECT EXISTS (SELECT FROM pg_prepared_statements WHERE name = $1)", name).Scan(&exists)
	return errors.Join(err, client.Deallocate(ctx, name)) == nil && !exists
}
