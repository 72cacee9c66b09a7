package pg

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"partnerapi/domain"
)

// ListenEvent is the reason of a call by Listen.
type ListenEvent int

const (
	// Listening says that notifications arrive from now on.
	Listening ListenEvent = iota
	// Notified says that there was a notification.
	Notified
	// Silent says that there was none for a while, and that the connection is alive.
	Silent
)

// Listen calls on when it begins to listen to a channel, at each notification, and
// whenever none has arrived for silence. It has a connection of its own beside the
// pool's, of which a process has up to Listeners. It returns an error when that
// connection or on fails, or when ctx ends.
func (d *DB) Listen(ctx context.Context, channel string, silence time.Duration, on func(ListenEvent) error) error {
	conn, err := pgx.ConnectConfig(ctx, d.sessions.Config().ConnConfig)
	if err != nil {
		return d.TranslateError("listen to "+channel, err)
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	if _, err := conn.Exec(ctx, "LISTEN "+channel); err != nil {
		return d.TranslateError("listen to "+channel, err)
	}

	for why := Listening; ; {
		if err := on(why); err != nil {
			return err
		}
		if why, err = await(ctx, conn, silence); err != nil {
			return d.TranslateError("listen to "+channel, err)
		}
	}
}

// Relisten is the pause before Follow makes a lost connection again.
const Relisten = time.Second

// Follow listens, as Listen does, until ctx ends. When Listen fails, it calls lost with the
// error, and listens again after Relisten.
func (d *DB) Follow(
	ctx context.Context, channel string, silence time.Duration, on func(ListenEvent) error, lost func(error),
) {
	for ctx.Err() == nil {
		err := d.Listen(ctx, channel, silence, on)
		if ctx.Err() == nil {
			lost(err)
			_ = domain.Pause(ctx, Relisten) // the loop looks at ctx
		}
	}
}

// await waits for a notification. If none arrives for silence, it pings the connection, which
// has to answer within the same time.
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
