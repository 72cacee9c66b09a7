package outbox_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"partnerapi/db"
	"partnerapi/db/dbtest/worldtest"
	"partnerapi/db/outbox"
	"partnerapi/domain"
)

// queue puts n mails of a client into the outbox, due now.
func (w *world) queue(client domain.ClientID, urgency, n int) {
	w.T.Helper()
	w.Exec(`INSERT INTO outbox (client_id, id, kind, urgency, due_at)
		SELECT $1, gen_random_uuid(), 'mail', $2, $3 FROM generate_series(1, $4::integer)`, client, urgency, w.Clock.Now(), n)
}

// each makes n clients with so many mails each, due at a time.
func (w *world) each(n, mails int, due time.Time) {
	w.T.Helper()
	clients := make([]row, n)
	for i := range n {
		id := db.NewID[domain.ClientKind]()
		clients[i] = row{"id": id, "partner_id": w.Partner, "name": id.String(), "name_key": id.String()}
	}
	w.Add("clients", clients...)
	for some := range slices.Chunk(clients, 1000) {
		ids := make([]string, len(some))
		for i, c := range some {
			ids[i] = c["id"].(domain.ClientID).UUID()
		}
		w.Exec(`INSERT INTO outbox (client_id, id, kind, urgency, due_at)
			SELECT c, gen_random_uuid(), 'mail', 2, $2 FROM unnest($1::uuid[]) AS c, generate_series(1, $3::integer)`, ids, due, mails)
	}
	w.Exec("ANALYZE outbox")
}

// of counts the leases of a client.
func of(client domain.ClientID, leases []outbox.Lease) (n int) {
	for _, l := range leases {
		if l.Client == client {
			n++
		}
	}
	return n
}

// TestClaimsTakeTurns: one client's many mails delay no other's, urgent ones come
// first, and a single client is claimed for as fast as can be, also beside leased mails.
func TestClaimsTakeTurns(t *testing.T) {
	w := newWorld(t)
	large, small, third := w.AddClient(), w.AddClient(), w.AddClient()
	w.queue(large, 2, 1000)
	for range 3 {
		if got := of(large, w.Claim(50)); got != 50 {
			t.Errorf("%d of 50 for the only client", got)
		}
	}
	w.Clock.Advance(time.Second)
	w.queue(small, 2, 5)
	w.queue(large, 1, 3)
	got := w.Claim(10)
	if of(small, got) < 3 || of(large, got) < 6 {
		t.Errorf("%d for the small client, %d for the large", of(small, got), of(large, got))
	}
	w.queue(third, 1, 20)
	w.queue(small, 1, 2)
	if got := w.Claim(8); of(third, got) < 5 || of(small, got) < 2 {
		t.Errorf("%d for the third client, %d for the small", of(third, got), of(small, got))
	}
}

// TestClaimsGoRound: every client gets its turn within a round, also behind many mails of
// another one that wait for longer, and beside clients whose mails are due later.
func TestClaimsGoRound(t *testing.T) {
	const small, later = 100, 200
	w := newWorld(t)
	w.each(1, 2000, noon.Add(-time.Hour))
	w.each(small, 1, noon)
	w.each(later, 1, noon.AddDate(0, 0, 1))
	served := map[domain.ClientID]bool{}
	for claims := 0; len(served) < 1+small; claims++ {
		leases := w.Claim(1)
		if len(leases) != 1 || claims > 1+small+later/10 {
			t.Fatalf("%d claims served %d of %d clients, and the last claim %d mails", claims, len(served), 1+small, len(leases))
		}
		served[leases[0].Client] = true
	}
}

// TestClaimCost: what a claim reads follows what it claims, however many clients have
// mails, and however many of these are due.
func TestClaimCost(t *testing.T) {
	const read = `SELECT coalesce(sum(pg_stat_get_xact_tuples_fetched(indexrelid) + pg_stat_get_xact_tuples_returned(indexrelid)), 0)
		+ (SELECT pg_stat_get_xact_tuples_returned('outbox'::regclass)) FROM pg_index WHERE indrelid = 'outbox'::regclass`
	for name, due := range map[string]time.Time{"due": noon, "later": noon.AddDate(0, 0, 1)} {
		w := newWorld(t)
		w.each(3000, 1, due)
		w.each(1, 1000, noon)
		var rows, claimed int
		w.Must(w.Tx(t.Context(), func(ctx context.Context) error {
			leases, err := outbox.ClaimMails(ctx, w.DB, outbox.NewMailTurns(), 10, time.Minute)
			if claimed = len(leases); err != nil {
				return err
			}
			return w.Transaction(ctx).QueryRow(ctx, read).Scan(&rows)
		}))
		if claimed != 10 || rows > 500 {
			t.Errorf("beside clients with mails %s, %d rows were read for %d mails", name, rows, claimed)
		}
	}
}

// TestClaimedOnce: claims at one time share the mails, each of which is one's
// until its lease ends.
func TestClaimedOnce(t *testing.T) {
	w := newWorld(t)
	for range 3 {
		w.queue(w.AddClient(), 2, 100)
	}
	var all sync.Mutex
	var ids []domain.MessageID
	claimAll := func() {
		for {
			leases, err := outbox.ClaimMails(t.Context(), w.DB, new(outbox.MailTurns), 10, time.Minute)
			if err != nil {
				t.Error(err)
			}
			left := w.Number("SELECT count(*) FROM outbox WHERE lease IS NULL")
			all.Lock()
			for _, l := range leases {
				ids = append(ids, l.ID)
			}
			all.Unlock()
			if left == 0 {
				return
			}
		}
	}
	var claimers sync.WaitGroup
	for range 4 {
		claimers.Go(claimAll)
	}
	claimers.Wait()
	slices.SortFunc(ids, func(a, b domain.MessageID) int { return slices.Compare(a[:], b[:]) })
	if n := len(slices.Compact(ids)); n != 300 || len(ids) != 300 {
		t.Errorf("%d mails were claimed %d times", n, len(ids))
	}
	w.Clock.Advance(time.Minute)
	if n := len(w.Claim(1000)); n != 300 {
		t.Errorf("%d leases have ended", n)
	}
}

// TestManyMailsAtOnce: the mails of one request take one statement, and marking
// many takes no more than marking one.
func TestManyMailsAtOnce(t *testing.T) {
	counter := &worldtest.Statements{}
	w := newWorld(t, db.WithTracer(counter))
	client := w.AddClient()
	user := w.AddUser(client, domain.RoleStandard, 750)
	ask := func(n int) int {
		ids := make([]domain.MessageID, n)
		for i := range ids {
			ids[i] = db.NewID[domain.MessageKind]()
			w.Exec("INSERT INTO mail_requests (client_id, id, type, user_id, created_at) VALUES ($1, $2, 'welcome', $3, $4)", client, ids[i], user, noon)
		}
		return counter.During(func() {
			w.Must(w.Change(t.Context(), func(_ context.Context, c *db.Change) error {
				c.SendMails(client, ids...)
				return nil
			}))
		})
	}
	if one, many := ask(1), ask(200); one != many {
		t.Errorf("%d statements for one mail, %d for many", one, many)
	}
	leases := w.Claim(1000)
	mark := func(leases []outbox.Lease) int {
		return counter.During(func() {
			if n := w.Send(leases...); n != len(leases) {
				t.Errorf("%d of %d are marked", n, len(leases))
			}
		})
	}
	if one, many := mark(leases[:1]), mark(leases[1:]); one != many {
		t.Errorf("%d statements mark one mail, %d many", one, many)
	}
	if n := w.Send(leases...); n != 0 {
		t.Errorf("%d are marked again", n)
	}
}
