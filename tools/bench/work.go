package main

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net"
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
	"partnerapi/db"
	"partnerapi/db/dirsync"
	"partnerapi/domain"
	"partnerapi/platform/directory"
	"partnerapi/platform/directory/directorytest"
	"partnerapi/platform/mail"
	"partnerapi/platform/phishing"
	"partnerapi/platform/report"
	"partnerapi/platform/transfer"
	"partnerapi/platform/webhook"
	v2 "partnerapi/v2"
)

// work is the background work, and the command ingest.
func (b *bench) work() []measure {
	measures := []measure{
		{name: "scheduled simulations sent", run: b.simulations},
		{name: "signals ingested", run: b.ingest},
	}
	for _, typ := range domain.ReportTypes {
		for _, format := range []domain.ReportFormat{domain.PDF, domain.XLSX} {
			measures = append(measures, measure{name: fmt.Sprintf("report %s as %s", typ, format),
				bound: atMost(report.MakeWithin.Seconds()), needs: b.data.policies, run: func(context.Context) figure {
					got := inChild[int64](b, "report", params{Client: b.data.clients[0], Type: typ, Format: format})
					return took(got.Took).about(", of %.1f MB", float64(got.Result)/(1<<20)).in(got.peak)
				}})
		}
	}
	for _, of := range []domain.Directory{domain.Microsoft, domain.Google} {
		measures = append(measures, measure{name: fmt.Sprintf("first sync of %d users with %s", b.data.users, of),
			bound: atMost(60), run: func(ctx context.Context) figure { return b.sync(ctx, of) }})
	}
	return measures
}

// warnings is the log of the work of a child.
func warnings() *slog.Logger {
	return slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
}

// sendMails is a child that sends emails, as serve and work wire it.
func sendMails(ctx context.Context, d *db.DB, p params, say func(any)) {
	const public = "https://training.bench.example"
	composer := must(mail.NewComposer(public, ""))
	sender := must(mail.Open(p.SMTP, ""))
	defer sender.Close()
	simulated := phishing.NewComposer(public, phishing.NewTokens(must(d.TrackingSecret(ctx))))
	mails := mail.NewDispatcher(d, sender, mail.DefaultWorkers, map[db.OutboxKind]mail.Writer{
		db.RequestedMail: mail.Requests{DB: d, Composer: composer, Attachments: report.NewAttachments(d, nil /* no reports */, report.NewRenderer(nil))},
		db.SimulatedMail: phishing.NewSimulations(d, simulated),
	}, warnings(), nil, nil)
	say("sending")
	check(mails.Run(ctx))
}

// deliverEvents is a child that publishes and delivers events, as serve and work wire it.
func deliverEvents(ctx context.Context, d *db.DB, p params, say func(any)) {
	cli.RelaxGC()
	to := must(webhook.NewEndpoints(webhook.Options{AllowPrivate: true, CAFile: p.CA, Clock: d}))
	defer to.Close()
	api := v2.New(d, nil)
	hooks := webhook.NewDispatcher(d, to, unsealed{}, api.SignsBodies, warnings(), webhook.Observer{})
	publisher := webhook.NewPublisher(d, api.RenderEvents, warnings(), hooks.Wake)
	say("delivering")
	go publisher.Run(ctx)
	check(hooks.Run(ctx))
}

// unsealed leaves secrets as they are.
type unsealed struct{}

func (unsealed) Seal(text, _ []byte) ([]byte, error)   { return text, nil }
func (unsealed) Open(sealed, _ []byte) ([]byte, error) { return sealed, nil }

// sink counts emails and events of a server that accepts all.
type sink struct {
	taken atomic.Int64
	once  sync.Once
	began time.Time // of the first
}

func (s *sink) take(body io.Reader) error {
	s.once.Do(func() { s.began = time.Now() })
	_, err := io.Copy(io.Discard, body)
	s.taken.Add(1)
	return err
}

// ServeHTTP accepts an event.
func (s *sink) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	_ = s.take(r.Body)
	w.WriteHeader(http.StatusNoContent)
}

// NewSession implements smtp.Backend.
func (s *sink) NewSession(*smtp.Conn) (smtp.Session, error) { return session{s}, nil }

// session is a connection to the SMTP server of a sink.
type session struct{ *sink }

func (session) Reset()                               {}
func (session) Logout() error                        { return nil }
func (session) Mail(string, *smtp.MailOptions) error { return nil }
func (session) Rcpt(string, *smtp.RcptOptions) error { return nil }
func (s session) Data(r io.Reader) error             { return s.take(r) }

// drain lets a child work until the sink has n things and all are marked as done, and returns the rate from the first.
func (b *bench) drain(name string, p params, s *sink, n int, marked func() bool) (f figure) {
	peak := b.during(name, p, func(*child) {
		for last, at := int64(-1), time.Now(); last < int64(n) || !marked(); time.Sleep(50 * time.Millisecond) {
			if taken := s.taken.Load(); taken != last {
				last, at = taken, time.Now()
			} else if time.Since(at) > time.Minute {
				fail("%d of %d came, and then none for a minute", taken, n)
			}
		}
		f = rate(n, time.Since(s.began))
	})
	return f.about(", %d of them", n).in(peak)
}

// simulations measures scheduled simulations for users of the largest client, which are requested from the service: from
// the first at the mail server to the last that is marked as sent.
func (b *bench) simulations(ctx context.Context) figure {
	n, began, s := b.tenth(10_000), time.Now(), &sink{}
	b.data.exec(ctx, "DELETE FROM outbox") // emails of an earlier run
	for some := range slices.Chunk(b.data.activeUsers(ctx, n), sendsAtOnce) {
		b.service.send(b.sends(some, time.Now().Add(5*time.Second)))
	}
	server := smtp.NewServer(s)
	server.ErrorLog = log.New(io.Discard, "", 0)
	defer server.Close()
	listener := must(net.Listen("tcp", "127.0.0.1:0"))
	go func() { _ = server.Serve(listener) }()
	return b.drain("email", params{SMTP: "smtp://" + listener.Addr().String()}, s, n, func() bool {
		return first[int](ctx, b.data,
			"SELECT count(*) FROM phishing_results WHERE client_id = $1 AND created_at >= $2 AND status = 'scheduled'",
			b.data.clients[0], began) == 0
	})
}

// deliver measures waiting events that are delivered to subscriptions over TLS: from the first at an endpoint to the last
// that is marked.
func (b *bench) deliver(ctx context.Context, subscriptions int) figure {
	d, s, n := b.data, &sink{}, b.tenth(40_000)
	server := httptest.NewTLSServer(s)
	defer server.Close()
	ca := filepath.Join(b.folder, "ca.pem")
	check(os.WriteFile(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}), 0o600))
	forget := func() {
		d.exec(ctx, "TRUNCATE webhook_deliveries, events") // those of other measures too
		d.exec(ctx, "DELETE FROM webhooks")
	}
	forget()
	defer forget()
	d.exec(ctx, `INSERT INTO webhooks (partner_id, id, key_id, url, events, status, created_at, updated_at, secret)
		SELECT partner_id, gen_random_uuid(), k.id, $2 || '/' || n, ARRAY[$3::text], 'active', now(), now(),
			convert_to('whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8g', 'UTF8')
		FROM (SELECT partner_id, id FROM api_keys WHERE partner_id = $1 AND all_clients ORDER BY id DESC LIMIT 1) AS k,
			generate_series(1, $4::integer) AS n`, d.partner, server.URL, domain.UserUpdated, subscriptions)
	d.exec(ctx, `INSERT INTO events (client_id, id, type, user_id, created_at)
		SELECT client_id, gen_random_uuid(), $2, id, now() FROM users WHERE client_id = $1 AND status = 'active'
		ORDER BY id LIMIT $3`, d.clients[0], domain.UserUpdated, n/subscriptions)
	d.exec(ctx, "ANALYZE webhooks, events")
	return b.drain("deliver", params{CA: ca}, s, n, func() bool {
		return n == first[int](ctx, d, "SELECT count(*) FROM webhook_deliveries WHERE status = 'succeeded'")
	})
}

// signalsSQL returns $2 signals as JSON, in random order: three fifths about simulated emails, the rest about courses,
// policies and exposures. The policies of the largest client ($3) stay as they are, as they are measured. $1 is unique
// to a run.
const signalsSQL = `
	SELECT (fields || jsonb_build_object('id', $1::text || row_number() OVER (), 'type', type, 'at', least(at, now())))::text FROM (
		(SELECT (ARRAY['phishing_opened', 'phishing_clicked', 'phishing_reported', 'credentials_submitted', 'attachment_opened'])
				[1 + abs(hashtext(id::text)::bigint) % 5] AS type, sent_at + interval '1 hour' AS at, jsonb_build_object('result_id', id) AS fields
		FROM phishing_results WHERE sent_at IS NOT NULL ORDER BY random() LIMIT $2::integer * 60 / 100)
		UNION ALL
		(SELECT 'course_completed', now(), jsonb_build_object('user_id', user_id, 'course_id', course_id)
		FROM assignments WHERE completed_at IS NULL ORDER BY random() LIMIT $2::integer * 17 / 100)
		UNION ALL
		(SELECT 'policy_signed', now(), jsonb_build_object('user_id', u.id, 'policy_id', p.id, 'version', p.version)
		FROM users AS u JOIN policies AS p USING (client_id)
		WHERE client_id <> $3 AND p.archived_at IS NULL ORDER BY random() LIMIT $2::integer * 99 / 1000)
		UNION ALL
		(SELECT 'policy_published', now(), jsonb_build_object('policy_id', id)
		FROM policies WHERE client_id <> $3 AND archived_at IS NULL ORDER BY random() LIMIT $2::integer / 1000)
		UNION ALL
		(SELECT CASE WHEN random() < 0.6 THEN 'exposure_found' ELSE 'exposure_resolved' END, now(), jsonb_build_object('user_id', u.id,
			'breach_name', (SELECT name FROM breaches WHERE u.id IS NOT NULL ORDER BY random() LIMIT 1))
		FROM users AS u ORDER BY random() LIMIT $2::integer * 13 / 100)
	) AS s ORDER BY random()`

// ingest measures the ingestion of signals of all types.
func (b *bench) ingest(ctx context.Context) figure {
	signals := all[string](ctx, b.data, signalsSQL, db.NewID[domain.MessageKind]().String()+"-", b.tenth(100_000), b.data.clients[0])
	got := inChild[transfer.Ingested](b, "ingest", params{File: b.file(signals)})
	if got.Result.Taken != len(signals) {
		fail("of %d signals: %+v", len(signals), got.Result)
	}
	return rate(len(signals), got.Took).about(", %d of them", len(signals)).in(got.peak)
}

// makeReport is a child that makes a report, as the background work does, and returns its size in bytes.
func makeReport(ctx context.Context, d *db.DB, p params) int64 {
	cli.RelaxGC()
	t := must(d.AnyTenant(ctx, p.Client))
	file := must(os.CreateTemp("", "partnerapi-bench-report"))
	defer os.Remove(file.Name())
	check(report.NewRenderer(nil).Write(ctx, file, t, domain.Report{Client: p.Client, Type: p.Type, Format: p.Format}))
	return must(file.Stat()).Size()
}

// connection is a connection to a directory.
type connection struct {
	Endpoints   directory.Endpoints
	Settings    json.RawMessage
	Credentials []byte
}

// sync measures the first sync of a new client with a directory of as many accounts as the largest client has users, and
// one in which nothing has changed, for which Google's directory is compared as a whole and Microsoft's sends changes.
func (b *bench) sync(ctx context.Context, of domain.Directory) figure {
	accounts := make([]directorytest.Account, b.data.users)
	for i := range accounts {
		accounts[i] = directorytest.Account{
			ID: fmt.Sprintf("00000000-0000-4000-8000-%012d", i), Email: fmt.Sprintf("user%06d@bench.example", i),
			First: "User", Last: fmt.Sprint(i), Title: []string{"Clerk", "Accountant", "Director"}[i%3],
			Department: fmt.Sprint("Department ", i%40), OrgUnit: fmt.Sprint("/Unit ", i%40), Manager: accounts[i/20].ID,
		}
	}
	var at connection
	served := directorytest.New(accounts...)
	if of == domain.Microsoft {
		m := directorytest.NewMicrosoft(served)
		defer m.Close()
		at = connection{m.Endpoints(), m.Settings(""), m.Credentials()}
	} else {
		g := directorytest.NewGoogle(served)
		defer g.Close()
		at = connection{g.Endpoints(), g.Settings(""), g.Credentials()}
	}

	name := "Bench " + db.NewID[domain.PartnerKind]().String() // a partner without the seed's email addresses
	partner := must(b.data.db.InsertPartner(ctx, name))
	key := must(b.data.db.CreateKey(ctx, db.NewKey{Partner: partner, Name: name, Scopes: []domain.Scope{domain.Write}}))
	client := ask[struct{ ID domain.ClientID }](b.service, newRequest("POST", "/v2/clients", key, object{"name": "Synced client"})).ID
	check(dirsync.Connect(ctx, b.data.db, client, of, at.Settings, at.Credentials))
	created := inChild[domain.SyncRun](b, "sync", params{Client: client, Directory: at})
	unchanged := inChild[domain.SyncRun](b, "sync", params{Client: client, Directory: at})
	if r := unchanged.Result; created.Result.Created != b.data.users || r.Created+r.Updated+r.Deactivated != 0 {
		fail("the syncs of %d users ended with %+v and %+v", b.data.users, created.Result, r)
	}
	return took(created.Took).and("the same unchanged", atMost(10), took(unchanged.Took)).in(max(created.peak, unchanged.peak))
}

// syncClient is a child that syncs a client once, as the background work does.
func syncClient(ctx context.Context, d *db.DB, p params) domain.SyncRun {
	cli.RelaxGC()
	runner := directory.NewRunner(d, unsealed{}, directory.NewConnect(p.Directory.Endpoints, nil), warnings(), directory.Observer{})
	run := must(runner.Start(ctx, p.Client, false, nil))
	if run.Error != nil {
		fail("%s", *run.Error)
	}
	return run
}
