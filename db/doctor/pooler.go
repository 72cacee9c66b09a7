package doctor

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// Pooler is what shares the server's connections among its clients, as PgBouncer does.
type Pooler string

const (
	// NoPooler: connections lead to the server itself.
	NoPooler Pooler = ""
	// SessionPooler gives a client a server's connection for as long as it stays.
	SessionPooler Pooler = "session"
	// TransactionPooler gives it one for each transaction. Prepared statements, advisory
	// locks and LISTEN, which the service needs, do not survive that.
	TransactionPooler Pooler = "transaction"
)

// poolerWithin is how long a second connection may have to be waited for: a pooler in
// session mode gives none where the first client has the only one.
const poolerWithin = 3 * time.Second

// FindPooler says what is at a postgres:// URL. It goes by the process that answers: a
// pooler tells its clients of another one than the server's. It sets none of the
// service's session parameters, which poolers refuse.
func FindPooler(ctx context.Context, url string) (Pooler, error) {
	config, err := pgx.ParseConfig(url)
	if err != nil {
		return NoPooler, fmt.Errorf("read the database URL: %w", err)
	}
	clear(config.RuntimeParams)
	config.DefaultQueryExecMode = pgx.QueryExecModeSimpleProtocol

	client, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return NoPooler, err
	}
	defer client.Close(context.WithoutCancel(ctx))
	first, err := backend(ctx, client)
	if err != nil || first == client.PgConn().PID() {
		return NoPooler, err
	}

	ctx, cancel := context.WithTimeout(ctx, poolerWithin)
	defer cancel()
	return poolerOf(ctx, config, client, first)
}

// poolerOf tells the modes apart: a second client within a transaction has, or has
// taken, the first one's connection only where transactions share them.
func poolerOf(ctx context.Context, config *pgx.ConnConfig, client *pgx.Conn, first uint32) (Pooler, error) {
	other, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return SessionPooler, nil
	}
	defer other.Close(context.WithoutCancel(ctx))
	tx, err := other.Begin(ctx)
	if err != nil {
		return SessionPooler, nil
	}
	defer func() { _ = tx.Rollback(context.WithoutCancel(ctx)) }()

	if second, err := backend(ctx, tx); err != nil || second == first {
		return TransactionPooler, err
	}
	if again, err := backend(ctx, client); err != nil || again != first {
		return TransactionPooler, err
	}
	return SessionPooler, nil
}

// backend is the process of the server that a connection leads to.
func backend(ctx context.Context, conn interface {
	QueryRow(context.Context, string, ...any) pgx.Row
}) (pid uint32, err error) {
	err = conn.QueryRow(ctx, "SELECT pg_backend_pid()").Scan(&pid)
	return pid, err
}
