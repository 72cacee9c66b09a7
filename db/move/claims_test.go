package move

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/uuid"
	"partnerapi/db/dirsync"

	"partnerapi/db"
	"partnerapi/db/outbox"
	"partnerapi/db/reports"
	"partnerapi/domain"
)

// TestClaimsAreNumbered: a claim has its transaction's number before it looks at a queue,
// so that a freeze waits for one that saw none.
func TestClaimsAreNumbered(t *testing.T) {
	t.Parallel()
	for table, claim := range map[string]func(ctx context.Context, d *db.DB) error{
		"outbox": func(ctx context.Context, d *db.DB) error {
			_, err := outbox.ClaimMails(ctx, d, new(outbox.MailTurns), 10, time.Minute)
			return err
		},
		"webhook_deliveries": func(ctx context.Context, d *db.DB) error {
			_, err := outbox.ClaimDeliveries(ctx, d, new(outbox.DeliveryTurns), 10, time.Minute, func([]outbox.DueWebhook) []outbox.Places { return nil })
			return err
		},
		"reports": func(ctx context.Context, d *db.DB) error {
			_, err := reports.ClaimReports(ctx, d, 10, time.Minute)
			return err
		},
		"sync_runs": func(ctx context.Context, d *db.DB) error {
			_, err := dirsync.Claim(ctx, d, time.Minute)
			return err
		},
	} {
		t.Run(table, func(t *testing.T) {
			t.Parallel()
			w := &world{t: t}
			d := open(t, emptySchema, domain.Cell{Number: 1, Count: 16})
			lock, err := d.SQL().BeginTx(t.Context(), nil)
			w.must(err)
			_, err = lock.ExecContext(t.Context(), "LOCK TABLE "+table)
			w.must(err)
			claimed := make(chan error, 1)
			go func() { claimed <- claim(t.Context(), d) }()

			const waits = "FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
			for value[int](w, d, "SELECT count(*) "+waits) == 0 {
				w.must(domain.Pause(t.Context(), pollEvery))
			}
			if !value[bool](w, d, "SELECT backend_xid IS NOT NULL "+waits) {
				t.Errorf("a claim looks at %s before it has a number", table)
			}
			w.must(lock.Rollback())
			w.must(<-claimed)
		})
	}
}

// TestWorkUnderWay: reports and sync runs of a partner that is handed over are not claimed
// in the old cell, and are due at once in the new one, whoever has begun them. Who has a
// lease in the old cell has lost it when what the partner left is at rest.
func TestWorkUnderWay(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, p := range []domain.PartnerID{w.Partner, w.other} {
		w.exec(w.From, `INSERT INTO reports (client_id, id, type, format, status, created_at, updated_at)
			SELECT id, uuid_v7(now()), 'risk_overview', 'pdf', 'pending', now() - interval '1 hour', now() FROM clients WHERE partner_id = $1`, p.UUID())
		w.exec(w.From, `INSERT INTO sync_runs (client_id, id, status, trigger, queued_at, updated_at)
			SELECT id, uuid_v7(now()), 'queued', 'schedule', now() - interval '1 hour', now() FROM clients WHERE partner_id = $1`, p.UUID())
	}
	client, lease := w.clientOf(1), uuid.New()
	w.exec(w.From, "UPDATE reports SET tries = 1, lease = $2, due_at = now() + interval '1 hour' WHERE client_id = $1 AND status = 'pending'", client, lease)
	w.exec(w.From, "UPDATE sync_runs SET status = 'running', lease = $2, leased_until = now() + interval '1 hour' WHERE client_id = $1 AND status = 'queued'", client, lease)
	own := func(client domain.ClientID) bool {
		return value[bool](w, w.From, "SELECT partner_id = $2 FROM clients WHERE id = $1", client.UUID(), w.Partner.UUID())
	}
	w.points["frozen"] = func() {
		leases, err := reports.ClaimReports(t.Context(), w.From, 1000, time.Minute)
		w.must(err)
		for _, l := range leases {
			if own(l.Client) {
				t.Error("a report of a frozen partner is claimed")
			}
		}
		runs := 0
		for run, err := dirsync.Claim(t.Context(), w.From, time.Minute); run != nil || err != nil; run, err = dirsync.Claim(t.Context(), w.From, time.Minute) {
			w.must(err)
			if runs++; own(run.Client) {
				t.Error("a sync run of a frozen partner is claimed")
			}
		}
		if len(leases) == 0 || runs == 0 {
			t.Errorf("of another partner %d reports and %d sync runs are claimed", len(leases), runs)
		}
	}
	pending := value[int](w, w.From, "SELECT count(*) FROM reports AS r JOIN clients AS c ON c.id = r.client_id WHERE status = 'pending' AND partner_id = $1", w.Partner.UUID())
	w.must(w.Run(t.Context()))

	leases, err := reports.ClaimReports(t.Context(), w.To, 1000, time.Minute)
	w.must(err)
	if len(leases) != pending {
		t.Errorf("%d of %d pending reports are due in the new cell", len(leases), pending)
	}
	for _, l := range leases {
		if l.Client.UUID() == client && l.Tries != 1 {
			t.Errorf("a report that was under way has %d tries", l.Tries)
		}
	}
	found := false
	for run, err := dirsync.Claim(t.Context(), w.To, time.Minute); run != nil || err != nil; run, err = dirsync.Claim(t.Context(), w.To, time.Minute) {
		w.must(err)
		found = found || run.Client.UUID() == client && run.Deaths == 0
	}
	if !found {
		t.Error("a sync run that was under way is not due in the new cell")
	}

	id, err := domain.ParseUUID[domain.ReportKind](value[string](w, w.From, "SELECT id::text FROM reports WHERE lease = $1", lease))
	w.must(err)
	of, err := domain.ParseUUID[domain.ClientKind](client)
	w.must(err)
	_, err = Suspend(t.Context(), w.From, 0)
	w.must(err)
	held := reports.ReportLease{Client: of, Report: id, Token: lease}
	if status, err := reports.FinishReport(t.Context(), w.From, held, domain.ReportReady); !errors.Is(err, db.ErrLeaseLost) {
		t.Errorf("the old cell marks the report as %q, %v", status, err)
	}
}
