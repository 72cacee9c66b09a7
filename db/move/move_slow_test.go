//go:build slow

package move

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"partnerapi/db"
	"partnerapi/db/cells"
	"partnerapi/db/dirsync"
	"partnerapi/db/doctor"
	"partnerapi/db/outbox"
	"partnerapi/db/reports"
	"partnerapi/domain"
)

// TestMove: everything of a partner is in the new cell, and nothing of another; it can
// move back, and what is kept is deleted in time. Two commands do not move it at a time.
func TestMove(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.points["copied"] = func() {
		second := *w.Move
		second.onTestPoint = nil
		if err := second.Run(t.Context()); !errors.Is(err, errMoving) {
			t.Errorf("a second command: %v", err)
		}
	}
	var before *cells.Cells // as a process has it that did not hear of the end
	w.points["frozen"] = func() {
		var err error
		before, err = cells.Read(t.Context(), w.To)
		w.must(err)
		if a := before.Elsewhere("pk_demo_all", db.KeyDigest("pk_demo_all")); a != "00" {
			t.Errorf("before the new cell serves, it says %q", a)
		}
	}
	w.must(w.Run(t.Context()))
	w.moved()

	fromCells, err := cells.Read(t.Context(), w.From)
	w.must(err)
	toCells, err := cells.Read(t.Context(), w.To)
	w.must(err)
	digest := db.KeyDigest("pk_demo_all")
	if a, b, c := fromCells.Elsewhere("pk_demo_all", digest), toCells.Elsewhere("pk_demo_all", digest), before.Elsewhere("pk_demo_all", digest); a != "01" || b != "" || c != "" {
		t.Errorf("the old cell says %q, the new one %q, or %q where it had not heard", a, b, c)
	}
	if old := slices.Concat(digest, []byte("old")); !fromCells.Left(old) || toCells.Left(old) {
		t.Error("the old cell does not know that the replaced texts of keys left it")
	}
	if !fromCells.Left(digest) || toCells.Left(digest) || fromCells.Left(db.KeyDigest("pk_demo_other")) {
		t.Error("the old cell does not know which keys left it")
	}
	if a := fromCells.Elsewhere("pk_demo_other", db.KeyDigest("pk_demo_other")); a != "" {
		t.Errorf("another partner's key is of cell %q", a)
	}
	theirs, err := w.From.CursorSecret(t.Context())
	w.must(err)
	if got := toCells.CursorSecrets(); len(got) != 1 || string(got[0]) != string(theirs) {
		t.Errorf("the new cell opens cursors of %d others", len(got))
	}
	w.must(w.Run(t.Context())) // once more does nothing
	w.same("run again, the new cell", w.contents(w.To, w.Partner), w.before, resealed...)

	there := w.contents(w.To, w.Partner)
	back := *w.Move
	back.From, back.To, back.onTestPoint = w.To, w.From, nil
	w.must(back.Run(t.Context()))
	w.same("back again", w.contents(w.From, w.Partner), there, resealed...)
	fromCells, err = cells.Read(t.Context(), w.From)
	w.must(err)
	if a := fromCells.Elsewhere("pk_demo_all", digest); a != "" {
		t.Errorf("back again, the key is of cell %q", a)
	}

	n, err := CleanUp(t.Context(), w.To)
	if w.must(err); n != 0 {
		t.Error("what is to be kept was deleted")
	}
	w.exec(w.To, "UPDATE moves SET keep_until = now() - interval '1 minute'")
	if n, err = CleanUp(t.Context(), w.To); n != 1 || err != nil {
		t.Errorf("%d partners were deleted, %v", n, err)
	}
	w.nothingLeft(w.To)
	if n, err = CleanUp(t.Context(), w.From); n != 0 || err != nil {
		t.Errorf("of those who came back %d were deleted, %v", n, err)
	}
}

// TestFreeze: while a partner is handed over its writes are refused, and its mails, events,
// deliveries, reports and sync runs rest, and no other's.
func TestFreeze(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.queueWork()
	result := value[string](w, w.From, `SELECT r.id::text FROM phishing_results AS r JOIN clients AS c ON c.id = r.client_id
		WHERE c.partner_id = $1 AND r.sent_at IS NOT NULL AND r.clicked_at IS NULL ORDER BY r.id LIMIT 1`, w.Partner.UUID())
	w.before = w.contents(w.From, w.Partner)
	freezes := 0
	w.points["frozen"] = func() {
		freezes++
		if err := w.write(); !domain.IsCode(err, domain.Unavailable) || !errors.Is(err, domain.ErrMoving) {
			t.Errorf("a write is not refused: %v", err)
		}
		id, err := domain.ParseUUID[domain.ResultKind](result)
		w.must(err)
		step := domain.ResultStep{Result: id, Kind: domain.MailClicked, At: w.From.Now()}
		if err := w.From.AdvanceResults(t.Context(), []domain.ResultStep{step}); !domain.IsCode(err, domain.Unavailable) {
			t.Errorf("a click is not refused: %v", err)
		}
		theirs := domain.AuditEntry{Partner: w.other, Prefix: domain.CommandActor, Operation: "keys create"}
		w.must(w.From.Audit(t.Context(), theirs))

		for _, queue := range queues {
			owners, err := queue.claim(t.Context(), w.From)
			w.must(err)
			n := value[int](w, w.From, "SELECT count(*) FROM "+queue.owners+" WHERE partner_id = $1 AND id::text = ANY($2)", w.Partner.UUID(), owners)
			if n > 0 || len(owners) == 0 {
				t.Errorf("%d are claimed of %s, of %d of the frozen partner", len(owners), queue.table, n)
			}
		}
		published, err := outbox.PublishEvents(t.Context(), w.From, 1000, func(_ context.Context, events []db.OutboxEvent) ([]string, error) {
			for _, e := range events {
				if *e.Partner == w.Partner {
					t.Error("an event of a frozen partner is published")
				}
			}
			return make([]string, len(events)), nil
		})
		if w.must(err); published.Taken() == 0 {
			t.Error("no event of another partner is published")
		}
	}
	w.must(w.Run(t.Context()))
	if freezes != 1 {
		t.Errorf("writes were frozen %d times", freezes)
	}
	w.same("the new cell", w.contents(w.To, w.Partner), w.before, resealed...)
	if err := w.write(); !domain.IsCode(err, domain.Unavailable) || !errors.Is(err, domain.ErrMoving) {
		t.Errorf("a write after it left is not refused: %v", err)
	}
}

// TestMoveInUse: what is written while the copy goes on is moved as well, also where it
// swaps what is unique.
func TestMoveInUse(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	client := w.clientOf(2)
	const user = "SELECT id::text FROM users WHERE client_id = $1 ORDER BY id LIMIT 1 OFFSET $2"
	first, second := value[string](w, w.From, user, client, 0), value[string](w, w.From, user, client, 1)
	email := value[string](w, w.From, "SELECT email FROM users WHERE id = $1", first)
	w.points["copied users"] = func() {
		delete(w.points, "copied users")
		w.exec(w.From, "UPDATE users SET first_name = 'Changed' WHERE client_id = $1", client)
		w.exec(w.From, "DELETE FROM collection_members WHERE client_id = $1", client)
	}
	w.points["copied"] = func() {
		w.exec(w.From, "UPDATE users SET email = 'parked@example.com' WHERE id = $1", first)
		w.exec(w.From, "UPDATE users SET email = $2 WHERE id = $1", second, email)
	}
	w.points["frozen"] = func() { w.before = w.contents(w.From, w.Partner) }
	w.must(w.Run(t.Context()))
	w.same("the new cell", w.contents(w.To, w.Partner), w.before, resealed...)
}

// TestMoveFromWhereItWas: a cell that keeps the rows of a partner that left moves them
// nowhere, whatever became of the partner since.
func TestMoveFromWhereItWas(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.must(w.Run(t.Context()))
	third := *w.Move
	third.To, third.onTestPoint = open(t, emptySchema, domain.Cell{Number: 2, Count: 16}), nil
	other := *w
	other.Move = &third
	other.catalogues()
	if err := third.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "does not serve the partner") {
		t.Errorf("to a third cell: %v", err)
	}

	// As the new cell has it while it moves the partner on.
	second := value[string](w, w.To, "SELECT count(*)::text FROM users")
	w.exec(w.To, "UPDATE moves SET step = 'copying', cell = '02'")
	if err := w.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "does not serve the partner") {
		t.Errorf("to the cell that moves it on: %v", err)
	}
	if n := value[string](w, w.To, "SELECT count(*)::text FROM users"); n != second {
		t.Errorf("there are %s users, not %s", n, second)
	}
}

// TestMoveOfNoClients: a partner without clients moves too.
func TestMoveOfNoClients(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var err error
	w.Partner, err = w.From.InsertPartner(t.Context(), "Empty")
	w.must(err)
	w.must(w.Run(t.Context()))
	if n := value[int](w, w.To, "SELECT count(*) FROM partners"); n != 1 {
		t.Errorf("there are %d partners", n)
	}
}

// TestCancelOfAMoveBack: what the new cell keeps of an earlier stay is not served again,
// and is deleted.
func TestCancelOfAMoveBack(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.must(w.Run(t.Context()))
	w.moved()
	back := *w.Move
	back.From, back.To = w.To, w.From
	ctx, end := context.WithCancel(t.Context())
	back.onTestPoint = func(point string) {
		if point == "copied" {
			end()
		}
	}
	if back.Run(ctx) == nil {
		t.Fatal("the move did not end")
	}
	back.onTestPoint = nil
	w.must(back.Cancel(t.Context()))
	if step := value[string](w, w.From, "SELECT step FROM moves WHERE keep_until <= clock_timestamp()"); step != "gone" {
		t.Errorf("the step is %s", step)
	}
	// The process knows the server's clock only roughly.
	w.exec(w.From, "UPDATE moves SET keep_until = keep_until - interval '1 minute'")
	if n, err := CleanUp(t.Context(), w.From); n != 1 || err != nil {
		t.Errorf("%d partners were deleted, %v", n, err)
	}
	w.nothingLeft(w.From)
	w.same("where it is", w.contents(w.To, w.Partner), w.before, resealed...)
}

// TestMoveCopiesWhatChanged: where a table is large a row that changed is copied, and not
// the others of its bucket.
func TestMoveCopiesWhatChanged(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const rows, each = 40_000, 100 // of which changes one of so many
	w.exec(w.From, `INSERT INTO published_events (partner_id, position, client_id, id, type, created_at, body)
		SELECT $1, 1000000 + n, $2, uuid_v7(now()), 'user.created', now(), '{}' FROM generate_series(1, $3::integer) AS n`,
		w.Partner.UUID(), w.clientOf(2), rows)
	change := func() {
		w.exec(w.From, "UPDATE published_events SET type = type || '!' WHERE partner_id = $1 AND position > 1000000 AND position % $2 = 0",
			w.Partner.UUID(), each)
	}
	began, copied := false, []string{}
	w.Logf = func(format string, args ...any) {
		if line := fmt.Sprintf(format, args...); began && strings.HasPrefix(line, "published_events: ") {
			copied = append(copied, line)
		}
	}
	w.must(w.Check(t.Context()))
	pass := func() {
		_, err := w.copyPass(t.Context())
		w.must(err)
	}
	pass()
	began = true
	for range 2 {
		change()
		pass()
	}
	want := fmt.Sprintf("published_events: %d rows", rows/each)
	if !slices.Equal(copied, []string{want, want}) {
		t.Errorf("the passes copied %q, not %q each", copied, want)
	}
	change()
	w.before = w.contents(w.From, w.Partner)
	w.must(w.Run(t.Context()))
	w.moved()
}

// TestRecountWhileAPartnerMoves: counts of a partner whose rows are still coming, or that
// left, are not wrong.
func TestRecountWhileAPartnerMoves(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	right := func(where string, d *db.DB) {
		t.Helper()
		if wrong, err := doctor.Recount(t.Context(), d); err != nil || len(wrong) > 0 {
			t.Errorf("%s: %d counts were corrected, such as %v, %v", where, len(wrong), wrong[:min(1, len(wrong))], err)
		}
	}
	right("before", w.From)
	w.before, w.kept = w.contents(w.From, w.Partner), w.contents(w.From, w.other)
	looked := 0
	for _, table := range []string{"users", "collections", "phishing_days", "policies", "policy_signatures"} {
		w.points["copied "+table] = func() { looked++; right("after "+table, w.To) }
	}
	w.must(w.Run(t.Context()))
	if looked < 5 {
		t.Errorf("it looked %d times", looked)
	}
	w.moved()
	right("where it left", w.From)
	right("where it is", w.To)
}

// TestWorkUnderWay: reports and sync runs of a partner that is handed over are due at once in
// the new cell, whoever has begun them. Who has a lease in the old cell has lost it when what
// the partner left is at rest.
func TestWorkUnderWay(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.queueWork()
	client, lease := w.clientOf(1), uuid.New()
	w.exec(w.From, "UPDATE reports SET tries = 1, lease = $2, due_at = now() + interval '1 hour' WHERE client_id = $1 AND status = 'pending'", client, lease)
	w.exec(w.From, "UPDATE sync_runs SET status = 'running', lease = $2, leased_until = now() + interval '1 hour' WHERE client_id = $1 AND status = 'queued'", client, lease)
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
