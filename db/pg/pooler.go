package pg

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// Pooler is how a pooler such as PgBouncer shares a server's connections among clients.
type Pooler string

const (
	// NoPooler: connections lead to the server itself.
	NoPooler Pooler = ""
	// SessionPooler gives a client a server's connection until the client disconnects.
	SessionPooler Pooler = "session"
	// TransactionPooler gives it one for each transaction. Prepared statements, advisory
	// locks of a session and LISTEN do not survive that.
	TransactionPooler Pooler = "transaction"
	// PreparingPooler is a TransactionPooler that prepares the statements of a client
	// again where it needs them.
	PreparingPooler Pooler = "transaction, with prepared statements"
)

// Shared reports whether transactions share connections, so that nothing of a session
// outlasts one.
func (p Pooler) Shared() bool { return p == TransactionPooler || p == PreparingPooler }

const (
	// poolerWithin bounds the wait for a second connection, and for a transaction on it: a
	// pooler in session mode gives none where the first client has the only one.
	poolerWithin = 3 * time.Second
	// poolerTries bounds the tries to tell the modes apart: if others use the pooler too, a client
	// may by chance get the connection again that it had.
	poolerTries = 10
)

// FindPooler returns the kind of pooler at a postgres:// URL, if any. It compares process ids:
// the one that a pooler gives its clients is not that of the server's process. It sets none of
// the service's session parameters, which poolers refuse.
func FindPooler(ctx context.Context, url string) (Pooler, error) {
	address, err := parseAddress(url)
	if err != nil {
		return NoPooler, err
	}
	config := address.ConnConfig
	clear(config.RuntimeParams)
	config.ConnectTimeout = connectTimeout(config.ConnectTimeout)
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
	case prepares(ctx, client):
		return PreparingPooler, nil
	}
	return TransactionPooler, nil
}

// shares reports whether a second client within a transaction has, or has taken, the
// first one's connection.
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
			var refused *pgconn.PgError
			if errors.As(err, &refused) {
				return false, fmt.Errorf("begin a transaction: %w", err) // pool_mode = statement
			}
			return false, nil
		}
		second, err := backend(ctx, tx)
		if err != nil || second == first {
			return true, err
		}
		if again, err := backend(ctx, client); err != nil || again != first {
			return true, err
		}
		if err := tx.Rollback(ctx); err != nil {
			return false, err
		}
	}
	return false, nil
}

// beginWithin begins a transaction within bound, which the transaction may outlast.
func beginWithin(ctx context.Context, conn *pgx.Conn, bound time.Duration) (pgx.Tx, error) {
	ctx, cancel := context.WithTimeout(ctx, bound)
	defer cancel()
	return conn.Begin(ctx)
}

// backend returns the id of the server's process that a connection leads to.
func backend(ctx context.Context, conn interface {
	QueryRow(context.Context, string, ...any) pgx.Row
}) (pid uint32, err error) {
	err = conn.QueryRow(ctx, "SELECT pg_backend_pid()").Scan(&pid)
	return pid, err
}

// prepares reports whether the pooler of a client supports prepared statements: such a pooler
// renames them, because clients may choose the same names.
func prepares(ctx context.Context, client *pgx.Conn) bool {
	tx, err := client.Begin(ctx)
	if err != nil {
		return false
	}
	defer func() { _ = tx.Rollback(context.WithoutCancel(ctx)) }()
	name := "partnerapi_" + rand.Text()
	if _, err := tx.Prepare(ctx, name, "SELECT 1"); err != nil {
		return false
	}
	var kept bool
	err = tx.QueryRow(ctx, "SELECT EXISTS (SELECT FROM pg_prepared_statements WHERE name = $1)", name).Scan(&kept)
	return errors.Join(err, client.Deallocate(ctx, name)) == nil && !kept
}
