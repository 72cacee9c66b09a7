package db_test

import (
	"context"
	"testing"
	"time"

	"partnerapi/db"
	"partnerapi/db/dbtest/worldtest"
	"partnerapi/domain"
)

func (w *world) phished(client domain.ClientID, age, sent, clicked, reported int) {
	w.T.Helper()
	w.Exec("INSERT INTO phishing_days (client_id, day, sent, clicked, reported) VALUES ($1, $2, $3, $4, $5)",
		client, today.AddDays(-age), sent, clicked, reported)
}

func (w *world) summary(client domain.ClientID) domain.ClientSummary {
	w.T.Helper()
	c, err := w.Tenant(w.caller(), client)
	w.Must(err)
	c.Summary.At = c.Summary.At.UTC()
	return c.Summary
}

func TestRefreshSummaries(t *testing.T) {
	w := newWorld(t)
	full, empty, untouched := w.AddClient(), w.AddClient(), w.AddClient()
	for i, score := range []int{0, 399, 599, 600, 1000, 904} { // 3502 / 6 = 583.67
		user := w.AddUser(full, domain.RoleStandard, score)
		w.Exec("UPDATE users SET next_due_on = $2 WHERE id = $1", user, today.AddDays(i-2))
	}
	w.Exec("UPDATE users SET status = 'inactive' WHERE client_id = $1 AND score IN (1000, 904)", full) // 1598 / 4 = 399.5
	w.phished(full, 0, 3, 1, 2)
	w.phished(full, 89, 5, 0, 0)
	w.phished(full, 90, 8, 4, 0)
	w.phished(full, 364, 1, 1, 0)
	w.phished(full, 365, 100, 50, 0)

	page, err := w.Clients(w.caller(), domain.ClientFilter{Sort: "name", IDs: []domain.ClientID{full, empty}}, domain.Window{Limit: 2})
	w.Must(err)
	want := domain.ClientSummary{
		AverageScore: 400, HighRiskUsers: 3, OverdueUsers: 2, OnTrackRate: 50,
		ClickRate90d: 12.5, ReportRate90d: 25, ClickRate365d: 35.3, ClickRateTotal: 47.9, At: noon, // 6/17, 56/117
	}
	if got := w.summary(full); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	for _, c := range page.Rows {
		if c.Summary != w.summary(c.ID) {
			t.Errorf("the page shows %+v", c.Summary)
		}
	}
	if got := w.summary(empty); got != domain.EmptySummary(noon) {
		t.Errorf("without users: %+v", got)
	}
	if at := w.UpdatedAt("clients", full); !at.Equal(noon) {
		t.Errorf("the summary changed and the client was updated at %v", at)
	}
	if at := w.UpdatedAt("clients", empty); !at.Before(noon) {
		t.Errorf("the summary is as it was and the client was updated at %v", at)
	}
	if at := w.summary(untouched).At; !at.Before(noon) {
		t.Errorf("another client was refreshed at %v", at)
	}
	var days, score int
	w.Scan("SELECT count(*), max(average_score) FROM risk_history WHERE client_id = $1 AND day = $2", []any{full, today}, &days, &score)
	if days != 1 || score != 400 {
		t.Errorf("%d rows of today's history, with %d", days, score)
	}
}

// TestSummaryAge holds that a summary stands still until it is too old, and
// that updated_at moves only with what is shown.
func TestSummaryAge(t *testing.T) {
	w := newWorld(t)
	client := w.AddClient()
	user := w.AddUser(client, domain.RoleStandard, 500)
	read := func(wantScore int, made, updated time.Time) {
		t.Helper()
		got, err := w.FreshTenant(w.caller(), client)
		w.Must(err)
		history := w.Number("SELECT average_score FROM risk_history WHERE client_id = $1", client)
		if got.Summary.AverageScore != wantScore || history != wantScore || !got.Summary.At.Equal(made) || !got.UpdatedAt.Equal(updated) {
			t.Errorf("%+v, updated at %v; today's history says %d", got.Summary, got.UpdatedAt, history)
		}
	}
	read(500, noon, noon)
	w.Exec("UPDATE users SET score = 900 WHERE id = $1", user)
	w.Clock.Advance(domain.SummaryAge)
	read(500, noon, noon)
	w.Clock.Advance(time.Second)
	changed := w.Clock.Now()
	read(900, changed, changed)
	w.Clock.Advance(time.Hour)
	read(900, w.Clock.Now(), changed)
	w.Exec("UPDATE users SET score = 100 WHERE id = $1", user)
	w.Must(w.ForceSummaries(t.Context()))
	read(100, w.Clock.Now(), w.Clock.Now())

	// A summary that lies ahead of the clock is stale, also for RefreshAhead.
	w.Clock.Step(-10 * time.Minute)
	w.Exec("UPDATE users SET score = 300 WHERE id = $1", user)
	tenant, err := w.FreshTenant(w.caller(), client)
	w.Must(err)
	if tenant.Summary.AverageScore != 300 || !tenant.Summary.At.Equal(w.Clock.Now()) {
		t.Errorf("after the clock was set back: %+v", tenant.Summary)
	}
	w.Clock.Step(-10 * time.Minute)
	if n, err := w.RefreshAhead(t.Context()); err != nil || n != 1 {
		t.Errorf("after the clock was set back, %d summaries are refreshed ahead (%v)", n, err)
	}
	// One that a process stored whose clock is less than a second ahead is not.
	w.Exec("UPDATE clients SET summarized_at = $2 WHERE id = $1", client, w.Clock.Now().Add(900*time.Millisecond))
	if n, err := w.RefreshAhead(t.Context()); err != nil || n != 0 {
		t.Errorf("%d summaries are refreshed that are a little ahead (%v)", n, err)
	}
}

// TestRefreshAheadEnds: a summary that was read while the clock was years ahead is not kept fresh for these years.
func TestRefreshAheadEnds(t *testing.T) {
	w := newWorld(t)
	client := w.AddClient()
	w.Clock.Step(800 * 24 * time.Hour)
	if _, err := w.FreshTenant(w.caller(), client); err != nil {
		t.Fatal(err)
	}
	w.Clock.Step(-800 * 24 * time.Hour)
	if n, err := w.RefreshAhead(t.Context()); err != nil || n != 0 {
		t.Errorf("%d summaries are refreshed ahead (%v)", n, err)
	}
	if _, err := w.FreshTenant(w.caller(), client); err != nil { // a read keeps it fresh again
		t.Fatal(err)
	}
	w.Clock.Advance(4 * time.Minute)
	if n, err := w.RefreshAhead(t.Context()); err != nil || n != 1 {
		t.Errorf("after a read, %d summaries are refreshed ahead (%v)", n, err)
	}
}

func TestRefreshReachable(t *testing.T) {
	counter := &worldtest.Statements{}
	w := newWorld(t, db.WithTracer(counter))
	listed, other, archived := w.AddClient(), w.AddClient(), w.AddClient()
	w.Exec("UPDATE clients SET archived_at = $2 WHERE id = $1", archived, noon)
	key := db.NewID[domain.KeyKind]()
	w.Exec(`INSERT INTO api_keys (id, partner_id, name, prefix, digest, all_clients, scopes, created_at)
		VALUES ($1, $2, '', '', '', false, '{}', $3)`, key, w.Partner, noon)
	w.Exec("INSERT INTO api_key_clients (key_id, client_id) VALUES ($1, $2)", key, listed)
	made := func(client domain.ClientID) bool {
		var fresh bool
		w.Scan("SELECT summarized_at = $2 FROM clients WHERE id = $1", []any{client, noon}, &fresh)
		return fresh
	}
	for _, step := range []struct {
		name   string
		caller domain.Caller
		want   [3]bool
		// With a stale summary: the check, the stamp and the refresh.
		statements int
	}{
		{"nobody", domain.Caller{}, [3]bool{}, 1},
		{"another partner", domain.Caller{Partner: db.NewID[domain.PartnerKind](), AllClients: true}, [3]bool{}, 1},
		{"a key for one client", domain.Caller{Partner: w.Partner, Key: key}, [3]bool{true, false, false}, 3},
		{"a key for all", domain.Caller{Partner: w.Partner, AllClients: true}, [3]bool{true, true, false}, 3},
	} {
		ctx := domain.WithCaller(context.Background(), &step.caller)
		if n := counter.During(func() { w.Must(w.RefreshReachable(ctx)) }); n != step.statements {
			t.Errorf("%s: %d statements, want %d", step.name, n, step.statements)
		}
		if got := [3]bool{made(listed), made(other), made(archived)}; got != step.want {
			t.Errorf("%s: refreshed %v, want %v", step.name, got, step.want)
		}
	}
	for summarized, statements := range map[time.Time]int{noon.Add(time.Second): 1, noon.Add(time.Hour): 3} { // before the clock was set back
		w.Exec("UPDATE clients SET summarized_at = $2 WHERE id = $1", other, summarized)
		ctx := domain.WithCaller(context.Background(), &domain.Caller{Partner: w.Partner, AllClients: true})
		if n := counter.During(func() { w.Must(w.RefreshReachable(ctx)) }); n != statements || made(other) != (statements == 3) {
			t.Errorf("summarized at %v: %d statements, want %d; refreshed: %v", summarized, n, statements, made(other))
		}
	}
}

// TestRefreshersAtOnce lets many read the same stale clients, in all orders: each
// of them is shown fresh summaries.
func TestRefreshersAtOnce(t *testing.T) {
	w := newWorld(t)
	for range 20 {
		w.AddUser(w.AddClient(), domain.RoleStandard, 640)
	}
	w.atOnce(8, func(i int) error {
		sort := domain.Sort([]string{"name", "-name", "created_at", "-risk_score"}[i%4])
		page, err := w.Clients(w.caller(), domain.ClientFilter{Sort: sort}, domain.Window{Limit: 20})
		if len(page.Rows) != 20 {
			t.Errorf("%d clients", len(page.Rows))
		}
		for _, c := range page.Rows {
			if c.Summary.AverageScore != 640 || !c.Summary.At.Equal(noon) {
				t.Errorf("a stale summary: %+v", c.Summary)
			}
		}
		return err
	})
}

// TestNoUsersNoRates: a client whose users left has the summary of one without
// users, whatever they clicked (decisions 3.7).
func TestNoUsersNoRates(t *testing.T) {
	w := newWorld(t)
	client := w.AddClient()
	user := w.AddUser(client, domain.RoleStandard, 100)
	w.phished(client, 1, 4, 2, 1)
	w.Exec("UPDATE users SET next_due_on = $2 WHERE id = $1", user, today.AddDays(-1))
	got, err := w.FreshTenant(w.caller(), client)
	if err != nil || got.Summary.ClickRate90d != 50 || got.Summary.ReportRate90d != 25 || got.Summary.OnTrackRate != 0 {
		t.Errorf("with a user: %+v, %v", got.Summary, err)
	}
	w.Exec("UPDATE users SET status = 'inactive' WHERE id = $1", user)
	w.Clock.Advance(time.Hour)
	got, err = w.FreshTenant(w.caller(), client)
	if err != nil || got.Summary != domain.EmptySummary(w.Clock.Now()) {
		t.Errorf("without: %+v, %v", got.Summary, err)
	}
}

// TestRefreshAhead: the background refreshes what a read found stale within the
// last day before it is stale again, and nothing else, so that an hourly poller
// finds fresh summaries.
func TestRefreshAhead(t *testing.T) {
	counter := &worldtest.Statements{}
	w := newWorld(t, db.WithTracer(counter))
	ctx := w.caller()
	polled, unread, archived := w.AddClient(), w.AddClient(), w.AddClient()
	ahead := func(want int) {
		t.Helper()
		if n, err := w.RefreshAhead(context.Background()); err != nil || n != want {
			t.Fatalf("%d refreshed, want %d; %v", n, want, err)
		}
	}
	for _, client := range []domain.ClientID{polled, archived} {
		_, err := w.FreshTenant(ctx, client)
		w.Must(err)
	}
	w.Exec("UPDATE clients SET archived_at = $2 WHERE id = $1", archived, noon)
	user := w.AddUser(polled, domain.RoleStandard, 640)
	ahead(0) // it is fresh

	for range 24 { // an hour of rounds between two polls
		for range 15 {
			w.Clock.Advance(4 * time.Minute)
			ahead(1)
		}
		n := counter.During(func() {
			got, err := w.FreshTenant(ctx, polled)
			if err != nil || got.Summary.AverageScore != 640 {
				t.Fatalf("%+v, %v", got.Summary, err)
			}
		})
		if n != 1 {
			t.Fatalf("%d statements", n)
		}
	}
	if at := w.summary(unread).At; !at.Before(noon) {
		t.Errorf("a client that nobody reads was refreshed at %v", at)
	}
	w.Clock.Advance(2 * time.Hour) // a day after the read that found it stale
	ahead(0)
	w.Exec("UPDATE users SET score = 100 WHERE id = $1", user)
	if got, err := w.FreshTenant(ctx, polled); err != nil || got.Summary.AverageScore != 100 {
		t.Errorf("%+v, %v", got.Summary, err)
	}
	w.Clock.Advance(4 * time.Minute)
	ahead(1)
}
