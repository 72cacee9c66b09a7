package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net"
	"os"
	"sync/atomic"
	"time"

	"github.com/emersion/go-smtp"

	"partnerapi/cmd/internal/bar"
	"partnerapi/db"
	"partnerapi/domain"
	"partnerapi/platform/mail"
	"partnerapi/platform/phishing"
)

// This file measures how quickly simulated mails that are due go out.

const (
	envSMTP = "BENCH_SMTP_URL"

	// sendsAtOnce is how many users one request names.
	sendsAtOnce = 100
	// sendsLater is how far ahead the mails are asked for, so that the queue
	// holds them as scheduled ones.
	sendsLater = 5 * time.Second
	// stuck is how long no mail may come before the measure gives up.
	stuck = time.Minute
)

// workChild does the background work, as serve and work wire it, until its
// standard input ends.
func workChild(ctx context.Context, parent io.Reader, out io.Writer) error {
	ctx, cancel := whileParent(ctx, parent)
	defer cancel()
	d, err := db.Open(os.Getenv(envURL))
	if err != nil {
		return err
	}
	defer d.Close()
	const public = "https://training.bench.example"
	composer, err := mail.NewComposer(public, "")
	if err != nil {
		return err
	}
	sender, err := mail.Open(os.Getenv(envSMTP), "")
	if err != nil {
		return err
	}
	defer sender.Close()
	secret, err := d.TrackingSecret(ctx)
	if err != nil {
		return err
	}
	logger := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	mails := mail.NewDispatcher(d, sender, mail.DefaultWorkers, map[db.OutboxKind]mail.Writer{
		db.RequestedMail: mail.NewRequests(d, composer, nil),
		db.SimulatedMail: phishing.NewSimulations(d, phishing.NewComposer(public, phishing.NewTokens(secret))),
	}, logger, nil)
	fmt.Fprintln(out, "working")
	return mails.Run(ctx)
}

// inbox is an SMTP server that takes every mail at once and keeps none.
type inbox struct {
	server   *smtp.Server
	listener net.Listener
	taken    atomic.Int64
	first    chan time.Time // gets when the first mail began to come
}

func openInbox() (*inbox, error) {
	i := &inbox{first: make(chan time.Time, 1)}
	i.server = smtp.NewServer(i)
	i.server.ErrorLog = log.New(io.Discard, "", 0)
	var err error
	if i.listener, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		return nil, err
	}
	go func() { _ = i.server.Serve(i.listener) }()
	return i, nil
}

// NewSession begins a connection's session.
func (i *inbox) NewSession(*smtp.Conn) (smtp.Session, error) { return &delivery{i}, nil }

// delivery is a session.
type delivery struct{ to *inbox }

func (*delivery) Reset()                               {}
func (*delivery) Logout() error                        { return nil }
func (*delivery) Rcpt(string, *smtp.RcptOptions) error { return nil }

func (s *delivery) Mail(string, *smtp.MailOptions) error {
	select {
	case s.to.first <- time.Now(): // which no later one can
	default:
	}
	return nil
}

func (s *delivery) Data(r io.Reader) error {
	_, err := io.Copy(io.Discard, r)
	s.to.taken.Add(1)
	return err
}

// sends is how many mails are sent.
func (o options) sends() int {
	if o.quick {
		return 1000
	}
	return 10_000
}

// drain measures how quickly mails that are due are sent, from the first that
// comes to the mail server to the last that is marked as sent.
func (b *bench) drain(ctx context.Context) ([]result, error) {
	n := b.sends()
	began := time.Now()
	if err := b.schedule(ctx, n); err != nil {
		return nil, err
	}
	inbox, err := openInbox()
	if err != nil {
		return nil, err
	}
	defer inbox.server.Close()
	before := childProcessors(b.data.server)
	worker, err := start("work", b.progress, envURL+"="+b.data.url, envSMTP+"=smtp://"+inbox.listener.Addr().String())
	if err != nil {
		return nil, err
	}
	long, err := b.drained(ctx, inbox, n, began)
	b.spent("mail", worker, before, n)
	peak, failed := worker.peakMB()
	if err := errors.Join(err, failed, worker.stop()); err != nil {
		return nil, err
	}
	return []result{
		{name: fmt.Sprintf("%d scheduled simulations sent", n), ours: perSecond(float64(n) / long.Seconds())},
		{name: "  peak resident memory of the work, MB", ours: fmt.Sprintf("%.0f", peak)},
	}, nil
}

// schedule asks for a simulated mail to each of so many users of the largest
// client, through the interface.
func (b *bench) schedule(ctx context.Context, n int) error {
	// What an earlier run left behind would be sent too.
	if _, err := b.data.db.SQL().ExecContext(ctx, "DELETE FROM outbox"); err != nil {
		return err
	}
	key, err := b.data.key(ctx, "bench sends", domain.Write)
	if err != nil {
		return err
	}
	client := b.data.clients[0]
	users, err := ids[domain.UserKind](ctx, b.data,
		"SELECT id::text FROM users WHERE client_id = $1 AND status = 'active' ORDER BY id LIMIT $2", client.UUID(), n)
	if err != nil {
		return err
	}
	if len(users) != n {
		return fmt.Errorf("the largest client has %d active users and not %d", len(users), n)
	}
	c, err := dial(b.service.said)
	if err != nil {
		return err
	}
	defer c.Close()
	for ; len(users) > 0; users = users[min(sendsAtOnce, len(users)):] {
		body, err := json.Marshal(map[string]any{"user_ids": users[:min(sendsAtOnce, len(users))],
			"send_at": time.Now().Add(sendsLater).UTC()})
		if err != nil {
			return err
		}
		if err := c.send(post("/v2/clients/"+client.String()+"/phishing/sends", key, body), io.Discard); err != nil {
			return err
		}
	}
	return nil
}

// drained waits until so many mails have come and all that were asked for since
// are marked as sent, and returns how long that took from the first on.
func (b *bench) drained(ctx context.Context, inbox *inbox, n int, since time.Time) (time.Duration, error) {
	show := bar.New(b.progress, "sending")
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for last, at := int64(-1), time.Now(); ; {
		select {
		case <-ctx.Done():
			return 0, ctx.Err()
		case <-tick.C:
		}
		taken := inbox.taken.Load()
		if taken != last {
			last, at = taken, time.Now()
			show(min(int(taken), n), n)
		} else if time.Since(at) > stuck {
			return 0, fmt.Errorf("%d of %d mails came, and then none for %s", taken, n, stuck)
		}
		if taken < int64(n) {
			continue
		}
		var left int
		err := b.data.db.SQL().QueryRowContext(ctx,
			"SELECT count(*) FROM phishing_results WHERE client_id = $1 AND created_at >= $2 AND status = 'scheduled'",
			b.data.clients[0].UUID(), since).Scan(&left)
		if err != nil {
			return 0, err
		}
		if left == 0 {
			return time.Since(<-inbox.first), nil
		}
	}
}
