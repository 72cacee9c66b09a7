package pg

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"partnerapi/domain"
)

// ListenEvent is the event for which Listen calls its function.
type ListenEvent int

const (
	// Listening means that notifications arrive from now on.
	Listening ListenEvent = iota
	// Notified means that a notification arrived.
	Notified
	// Silent means that no notification arrived for the duration silence, and that the connection works.
	Silent
)

// Listen calls on when it begins to listen to a channel, at each notification, and whenever no notification has arrived
// for silence. It uses a connection outside of the pool; a process may have up to Listeners of these. It returns an
// error when the connection or on fails, or when ctx ends.
func (d *DB) Listen(ctx context.Context, channel string, silence time.Duration, on func(ListenEvent) error) error {
	conn, err := pgx.ConnectConfig(ctx, d.sessions.Config().ConnConfig)
	if err != nil {
		return d.TranslateError("listen to "+channel, err)
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	if _, err := conn.Exec(ctx, "LISTEN "+channel); err != nil {
		return d.TranslateError("listen to "+channel, err)
	}

	for event := Listening; ; {
		if err := on(event); err != nil {
			return err
		}
		if event, err = await(ctx, conn, silence); err != nil {
			return d.TranslateError("listen to "+channel, err)
		}
	}
}

// Relisten is the pause before Follow replaces a lost connection.
const Relisten = time.Second

// Follow calls Listen until ctx ends. When Listen fails, it calls lost with the error, and Listen again after Relisten.
func (d *DB) Follow(
	ctx context.Context, channel string, silence time.Duration, on func(ListenEvent) error, lost func(error),
) {
	for ctx.Err() == nil {
		err := d.Listen(ctx, channel, silence, on)
		if ctx.Err() == nil {
			lost(err)
			_ = domain.Pause(ctx, Relisten) // the loop checks ctx
		}
	}
}

// await waits for a notification. If none arrives within silence, it pings the connection, with the same timeout.
func await(ctx context.Context, conn *pgx.Conn, silence time.Duration) (ListenEvent, error) {
	within := func(fn func(ctx context.Context) error) error {
		ctx, cancel := context.WithTimeout(ctx, silence)
		defer cancel()
		return fn(ctx)
	}
	err := within(func(ctx context.Context) error { _, err := conn.WaitForNotification(ctx); return err })
	if ctx.Err() != nil || !errors.Is(err, context.DeadlineExceeded) {
		return Notified, err
	}
	return Silent, within(conn.Ping)
}
