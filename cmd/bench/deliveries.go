package main

import (
	"context"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"partnerapi/cmd/internal/bar"
	"partnerapi/cmd/internal/gc"
	"partnerapi/db"
	"partnerapi/domain"
	"partnerapi/platform/webhook"
	v2 "partnerapi/v2"
)

// This file measures how quickly events go out to the endpoints of subscriptions.

const (
	envCA = "BENCH_CA_FILE"

	// deliveriesGoal is how many deliveries a second are the goal, where both ends are
	// on two cores.
	deliveriesGoal = 2000
	benchSecret    = "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8g"
)

// deliverChild publishes and delivers events, as serve and work wire it, until its
// standard input ends.
func deliverChild(ctx context.Context, parent io.Reader, out io.Writer) error {
	ctx, cancel := whileParent(ctx, parent)
	defer cancel()
	gc.Relax()
	d, err := db.Open(os.Getenv(envURL))
	if err != nil {
		return err
	}
	defer d.Close()
	to, err := webhook.NewEndpoints(webhook.Options{AllowPrivate: true, CAFile: os.Getenv(envCA), Clock: d})
	if err != nil {
		return err
	}
	defer to.Close()
	log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	hooks := webhook.NewDispatcher(d, to, unsealed{}, log, webhook.Observer{})
	publisher := webhook.NewPublisher(d, v2.New(d, nil).RenderEvents, log, webhook.PublisherEvents{Deliveries: hooks.Wake})
	fmt.Fprintln(out, "delivering")
	go publisher.Run(ctx)
	return hooks.Run(ctx)
}

// sink is an endpoint over TLS that takes every event at once and keeps none.
type sink struct {
	*httptest.Server
	folder string
	taken  atomic.Int64
	first  chan time.Time // gets when the first event came
}

func openSink() (*sink, error) {
	s := &sink{first: make(chan time.Time, 1)}
	var err error
	if s.folder, err = os.MkdirTemp("", "partnerapi-bench-sink"); err != nil {
		return nil, err
	}
	s.Server = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case s.first <- time.Now(): // which no later one can
		default:
		}
		_, _ = io.Copy(io.Discard, r.Body)
		w.WriteHeader(http.StatusNoContent)
		s.taken.Add(1)
	}))
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
	if err := os.WriteFile(s.ca(), text, 0o600); err != nil {
		return nil, errors.Join(err, s.close())
	}
	return s, nil
}

// ca is the file of the sink's certificate.
func (s *sink) ca() string { return filepath.Join(s.folder, "ca.pem") }

func (s *sink) close() error {
	s.Close()
	return os.RemoveAll(s.folder)
}

// deliveries are the measures of deliveries, to few subscriptions and to many.
func (b *bench) deliveries() (measures []measure) {
	for _, n := range []int{20, 200} {
		measures = append(measures, measure{fmt.Sprintf("deliveries to %d subscriptions", n), nil,
			func(ctx context.Context) ([]result, error) { return b.deliver(ctx, n) }})
	}
	return measures
}

// deliver measures how quickly events that wait to be published are delivered to so
// many subscriptions: from the first that comes to the sink to the last that is marked.
func (b *bench) deliver(ctx context.Context, subscriptions int) (results []result, err error) {
	sink, err := openSink()
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, sink.close()) }()
	n := b.sends() * 4
	if err := b.subscribe(ctx, sink.URL, subscriptions, n/subscriptions); err != nil {
		return nil, err
	}
	before := childProcessors(b.data.server)
	worker, err := start("deliver", b.progress, envURL+"="+b.data.url, envCA+"="+sink.ca())
	if err != nil {
		return nil, err
	}
	long, err := b.delivered(ctx, sink, n)
	b.spent("delivery", worker, before, n)
	peak, failed := worker.peakMB()
	if err := errors.Join(err, failed, worker.stop(), b.unsubscribe(ctx)); err != nil {
		return nil, err
	}
	rate := float64(n) / long.Seconds()
	return []result{
		{name: fmt.Sprintf("deliveries over TLS to %d subscriptions", subscriptions), ours: perSecond(rate), value: rate,
			bar: deliveriesGoal, atLeast: true},
		memory("  peak resident memory of their process, MB", peak),
	}, nil
}

// subscribe makes subscriptions to changes of users, and so many changes that wait to
// be published.
func (b *bench) subscribe(ctx context.Context, to string, subscriptions, events int) error {
	if err := b.unsubscribe(ctx); err != nil {
		return err
	}
	name := "bench deliveries " + db.NewID[domain.KeyKind]().String()
	if _, err := b.data.key(ctx, name, domain.Write); err != nil {
		return err
	}
	return errors.Join(
		b.data.exec(ctx, `INSERT INTO webhooks (partner_id, id, key_id, url, events, status, created_at, updated_at, secret)
			SELECT partner_id, gen_random_uuid(), id, $2 || '/' || n, ARRAY[$3::text], 'active', now(), now(), convert_to($4, 'UTF8')
			FROM api_keys, generate_series(1, $5::integer) AS n WHERE name = $1`,
			name, to, string(domain.UserUpdated), benchSecret, subscriptions),
		b.data.exec(ctx, `INSERT INTO events (client_id, id, type, user_id, created_at)
			SELECT client_id, gen_random_uuid(), $2, id, now() FROM users WHERE client_id = $1 AND status = 'active'
			ORDER BY id LIMIT $3`, b.data.clients[0].UUID(), string(domain.UserUpdated), events),
		b.data.exec(ctx, "ANALYZE webhooks, events"),
	)
}

// unsubscribe removes the subscriptions and what waits, also that of an earlier run
// and of other measures.
func (b *bench) unsubscribe(ctx context.Context) error {
	return errors.Join(b.data.exec(ctx, "TRUNCATE webhook_deliveries, events"), b.data.exec(ctx, "DELETE FROM webhooks"))
}

// delivered waits until so many events have come and are marked as delivered, and
// returns how long that took from the first on.
func (b *bench) delivered(ctx context.Context, sink *sink, n int) (time.Duration, error) {
	show := bar.New(b.progress, "delivering")
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for last, at := int64(-1), time.Now(); ; {
		select {
		case <-ctx.Done():
			return 0, ctx.Err()
		case <-tick.C:
		}
		taken := sink.taken.Load()
		if taken != last {
			last, at = taken, time.Now()
			show(min(int(taken), n), n)
		} else if time.Since(at) > stuck {
			return 0, fmt.Errorf("%d of %d events came, and then none for %s", taken, n, stuck)
		}
		if taken < int64(n) {
			continue
		}
		var marked int
		err := b.data.db.SQL().QueryRowContext(ctx,
			"SELECT count(*) FROM webhook_deliveries WHERE status = 'succeeded'").Scan(&marked)
		if err != nil {
			return 0, err
		}
		if marked == n {
			return time.Since(<-sink.first), nil
		}
	}
}
