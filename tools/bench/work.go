package main

import (
	"context"
	"encoding/pem"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/emersion/go-smtp"

	"partnerapi/cmd/internal/cli"
	"partnerapi/cmd/internal/output"
	"partnerapi/db"
	"partnerapi/domain"
	"partnerapi/platform/mail"
	"partnerapi/platform/phishing"
	"partnerapi/platform/webhook"
	v2 "partnerapi/v2"
)

// This file measures how quickly simulated mails that are due go out, and events to
// the endpoints of subscriptions.

const (
	// sendsAtOnce is how many users one request names.
	sendsAtOnce = 100
	// sendsLater is how far ahead the mails are asked for, so that the queue
	// holds them as scheduled ones.
	sendsLater = 5 * time.Second
	// stuck is how long nothing may come before a measure gives up.
	stuck = time.Minute
	// deliveriesGoal is how many deliveries a second are the goal, where both ends are
	// on two cores.
	deliveriesGoal = 2000
)

// warnings is the log of what works in a child.
func warnings() *slog.Logger {
	return slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
}

// sendMails is a child that sends mails, as serve and work wire it.
func sendMails(ctx context.Context, d *db.DB, p params, say func(any)) {
	const public = "https://training.bench.example"
	composer := must(mail.NewComposer(public, ""))
	sender := must(mail.Open(p.SMTP, ""))
	defer sender.Close()
	simulated := phishing.NewComposer(public, phishing.NewTokens(must(d.TrackingSecret(ctx))))
	mails := mail.NewDispatcher(d, sender, mail.DefaultWorkers, map[db.OutboxKind]mail.Writer{
		db.RequestedMail: mail.Requests{DB: d, Composer: composer},
		db.SimulatedMail: phishing.NewSimulations(d, simulated),
	}, warnings(), nil, nil)
	say("sending")
	check(mails.Run(ctx))
}

// deliverEvents is a child that publishes and delivers events, as serve and work wire
// it.
func deliverEvents(ctx context.Context, d *db.DB, p params, say func(any)) {
	cli.RelaxGC()
	to := must(webhook.NewEndpoints(webhook.Options{AllowPrivate: true, CAFile: p.CA, Clock: d}))
	defer to.Close()
	hooks := webhook.NewDispatcher(d, to, unsealed{}, warnings(), webhook.Observer{})
	publisher := webhook.NewPublisher(d, v2.New(d, nil).RenderEvents, warnings(),
		hooks.Wake)
	say("delivering")
	go publisher.Run(ctx)
	check(hooks.Run(ctx))
}

// sink counts what comes to a server that takes all at once.
type sink struct {
	taken atomic.Int64
	once  sync.Once
	first time.Time // when the first began to come
}

func (s *sink) begin() { s.once.Do(func() { s.first = time.Now() }) }

// session is that of a connection to the SMTP server of a sink.
type session struct{ *sink }

func (session) Reset()                               {}
func (session) Logout() error                        { return nil }
func (session) Rcpt(string, *smtp.RcptOptions) error { return nil }

func (s session) Mail(string, *smtp.MailOptions) error {
	s.begin()
	return nil
}

func (s session) Data(r io.Reader) error {
	_, err := io.Copy(io.Discard, r)
	s.taken.Add(1)
	return err
}

// ServeHTTP takes an event.
func (s *sink) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.begin()
	_, _ = io.Copy(io.Discard, r.Body)
	w.WriteHeader(http.StatusNoContent)
	s.taken.Add(1)
}

// drain measures how quickly mails that are due are sent, from the first that
// comes to the mail server to the last that is marked as sent.
func (b *bench) drain(ctx context.Context) figure {
	n := b.tenth(10_000)
	began := time.Now()
	b.schedule(ctx, n)
	s := &sink{}
	address, end := s.mailServer()
	defer end()
	return b.drained("work", params{SMTP: "smtp://" + address}, s, n, func() bool {
		return b.data.count(ctx,
			"SELECT count(*) FROM phishing_results WHERE client_id = $1 AND created_at >= $2 AND status = 'scheduled'",
			b.data.clients[0], began) == 0
	})
}

// schedule asks for a simulated mail to each of n users of the largest client,
// through the interface.
func (b *bench) schedule(ctx context.Context, n int) {
	b.data.exec(ctx, "DELETE FROM outbox") // what an earlier run left behind would be sent too
	c := dial(b.service.address)
	defer c.Close()
	for some := range slices.Chunk(b.data.activeUsers(ctx, n), sendsAtOnce) {
		check(c.send(b.sends(some, time.Now().Add(sendsLater)), io.Discard))
	}
}

// sends is the request for simulated mails to users of the largest client.
func (b *bench) sends(users []domain.UserID, at time.Time) []byte {
	return request("POST", pathOf(b.data.clients[0], "/phishing/sends"), b.writeKey,
		object{"user_ids": users, "send_at": at.UTC()})
}

// drained lets a child work until n things have come to the sink and all are marked as
// done, and returns how quickly they came, from the first on.
func (b *bench) drained(name string, p params, s *sink, n int, marked func() bool) (f figure) {
	peak := b.while(name, p, func(*child) {
		show := output.NewBar(b.progress, name)
		for last, at := int64(-1), time.Now(); last < int64(n) || !marked(); time.Sleep(50 * time.Millisecond) {
			switch taken := s.taken.Load(); {
			case taken != last:
				last, at = taken, time.Now()
				show(min(int(taken), n), n)
			case time.Since(at) > stuck:
				fail("%d of %d came, and then none for %s", taken, n, stuck)
			}
		}
		f = rate(n, time.Since(s.first))
	})
	return f.about(", %d of them", n).in(peak)
}

// deliver measures how quickly events that wait to be published are delivered to
// subscriptions over TLS: from the first that comes to the last that is marked.
func (b *bench) deliver(subscriptions int) finder {
	return func(ctx context.Context) figure {
		s := &sink{}
		server := httptest.NewTLSServer(s)
		defer server.Close()
		ca := filepath.Join(b.folder, "ca.pem")
		text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
		check(os.WriteFile(ca, text, 0o600))
		n := b.tenth(40_000)
		b.subscribe(ctx, server.URL, subscriptions, n/subscriptions)
		f := b.drained("deliver", params{CA: ca}, s, n, func() bool {
			return n == b.data.count(ctx, "SELECT count(*) FROM webhook_deliveries WHERE status = 'succeeded'")
		})
		b.unsubscribe(ctx)
		return f
	}
}

// subscribe makes subscriptions to changes of users, and changes that wait to be
// published.
func (b *bench) subscribe(ctx context.Context, to string, subscriptions, events int) {
	b.unsubscribe(ctx)
	b.data.exec(ctx, `INSERT INTO webhooks (partner_id, id, key_id, url, events, status, created_at, updated_at, secret)
		SELECT partner_id, gen_random_uuid(), k.id, $2 || '/' || n, ARRAY[$3::text], 'active', now(), now(),
			convert_to('whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8g', 'UTF8')
		FROM (SELECT partner_id, id FROM api_keys WHERE partner_id = $1 AND all_clients ORDER BY id DESC LIMIT 1) AS k,
			generate_series(1, $4::integer) AS n`, b.data.partner, to, domain.UserUpdated, subscriptions)
	b.data.exec(ctx, `INSERT INTO events (client_id, id, type, user_id, created_at)
		SELECT client_id, gen_random_uuid(), $2, id, now() FROM users WHERE client_id = $1 AND status = 'active'
		ORDER BY id LIMIT $3`, b.data.clients[0], domain.UserUpdated, events)
	b.data.exec(ctx, "ANALYZE webhooks, events")
}

// unsubscribe removes the subscriptions and what waits, also that of an earlier run
// and of other measures.
func (b *bench) unsubscribe(ctx context.Context) {
	b.data.exec(ctx, "TRUNCATE webhook_deliveries, events")
	b.data.exec(ctx, "DELETE FROM webhooks")
}
