package db_test

import (
	"context"
	"testing"
	"time"

	"partnerapi/db"
	"partnerapi/domain"
)

const day = 24 * time.Hour

func (w *world) refresh(want bool) {
	w.T.Helper()
	ran, err := w.DailyRefresh(context.Background(), domain.DateOf(w.Clock.Now()), nil)
	if err != nil || ran != want {
		w.T.Fatalf("ran %v, %v; want %v", ran, err, want)
	}
}

func TestDailyRefreshOnce(t *testing.T) {
	w := newWorld(t)
	ctx := context.Background()
	client, archived := w.AddClient(), w.AddClient()
	for range 3 {
		w.AddUser(client, domain.RoleStandard, 0)
	}
	w.AddUser(archived, domain.RoleStandard, 0)
	w.Exec("UPDATE clients SET archived_at = $2 WHERE id = $1", archived, noon)
	w.Exec(`INSERT INTO idempotency_records (key_id, idempotency_key, request_hash, status, body, created_at)
		SELECT gen_random_uuid(), 'k', '', 200, '', $1::timestamptz - age FROM unnest('{24:00:00,24:00:01}'::interval[]) AS age`, noon)

	w.Exec(`INSERT INTO published_events (partner_id, position, client_id, id, type, created_at, body)
		SELECT $1, row_number() OVER (), $2, gen_random_uuid(), 'client.created', $3::timestamptz - age, ''
		FROM unnest('{720:00:00,720:00:01}'::interval[]) AS age`, w.Partner, client, noon)
	w.Exec(`INSERT INTO events (client_id, id, type, created_at)
		VALUES ($1, gen_random_uuid(), 'client.created', $2::timestamptz - interval '1 year')`, client, noon)

	due := func(want bool) {
		t.Helper()
		if got, err := w.RefreshDue(ctx); err != nil || got != want {
			t.Errorf("due: %v, %v; want %v", got, err, want)
		}
	}
	due(true)
	var told [][2]int
	ran, err := w.DailyRefresh(ctx, today, func(done, total int) { told = append(told, [2]int{done, total}) })
	if err != nil || !ran || len(told) != 1 || told[0] != [2]int{3, 3} {
		t.Fatalf("ran %v, %v, told %v", ran, err, told)
	}
	due(false)
	w.refresh(false)
	w.Clock.Step(-2 * time.Hour) // a refresh that lies ahead of the clock was too early
	due(true)
	w.Clock.Step(2 * time.Hour)
	due(false)
	var scored, records, events, waiting, days int
	w.Scan(`SELECT (SELECT count(*) FROM user_risks), (SELECT count(*) FROM idempotency_records),
		(SELECT count(*) FROM published_events), (SELECT count(*) FROM events), (SELECT count(*) FROM risk_history)`,
		nil, &scored, &records, &events, &waiting, &days)
	if scored != 3 || records != 1 || events != 1 || days != 1 {
		t.Errorf("%d users scored, %d records and %d events left, %d days of history", scored, records, events, days)
	}
	if waiting != 1 {
		t.Errorf("%d events wait to be published, however old", waiting)
	}
	if got := w.summary(client); got.AverageScore != 750 {
		t.Errorf("the summary was made before the scores: %+v", got)
	}
	w.Clock.Advance(day)
	due(true)
	w.refresh(true)
}

// TestDailyRefreshAlone holds that a process that finds another at it leaves
// the day to it, and that the lock is gone afterwards.
func TestDailyRefreshAlone(t *testing.T) {
	w := newWorld(t)
	w.AddUser(w.AddClient(), domain.RoleStandard, 750)
	ran, err := w.DailyRefresh(context.Background(), today, func(int, int) { w.refresh(false) })
	if err != nil || !ran {
		t.Fatalf("ran %v, %v", ran, err)
	}
	stopped, stop := context.WithCancel(context.Background())
	w.Clock.Advance(day)
	if ran, err := w.DailyRefresh(stopped, today.AddDays(1), func(int, int) { stop() }); err == nil || ran {
		t.Errorf("a refresh that was cut short: ran %v, %v", ran, err)
	}
	w.refresh(true)
}

func TestDailyRefreshDecay(t *testing.T) {
	w := newWorld(t, db.WithAcceptedClock()) // it is set months ahead
	client := w.AddClient()
	user, bystander := w.AddUser(client, domain.RoleStandard, 750), w.AddUser(client, domain.RoleStandard, 750)
	w.Exec("UPDATE users SET status = 'inactive' WHERE id = $1", user)
	w.AddSimulation(client, user, 0, false, "clicked_at")
	w.refresh(true)
	for _, step := range []struct {
		days, score, year int
		moves             bool
	}{{90, 725, 1, true}, {274, 748, 1, true}, {1, 748, 0, false}, {1, 750, 0, true}} {
		w.Clock.Advance(time.Duration(step.days) * day)
		w.refresh(true)
		var score, year int
		w.Scan("SELECT score, phished_clicked_year FROM users WHERE id = $1", []any{user}, &score, &year)
		if score != step.score || year != step.year || w.UpdatedAt("users", user).Equal(w.Clock.Now()) != step.moves {
			t.Errorf("%d days on: score %d, %d clicks; want %+v", step.days, score, year, step)
		}
	}
	if at := w.UpdatedAt("users", bystander); !at.Before(noon) {
		t.Errorf("a user for whom nothing changed was updated at %v", at)
	}
}

// TestDailyRefreshOverdue holds that a course that becomes overdue moves
// updated_at on that day and on no other.
func TestDailyRefreshOverdue(t *testing.T) {
	w := newWorld(t)
	client := w.AddClient()
	user, done := w.AddUser(client, domain.RoleStandard, 750), w.AddUser(client, domain.RoleStandard, 750)
	w.Exec("UPDATE users SET created_at = $1", noon) // nobody is dormant
	w.Exec("UPDATE users SET status = 'inactive' WHERE id = $1", done)
	w.AddRound(client, user, 1, 1, -1)
	w.AddRound(client, done, 1, 1, 366)
	w.refresh(true)
	for _, moves := range []bool{false, true, false} {
		at := w.UpdatedAt("users", user)
		w.Clock.Advance(day)
		w.refresh(true)
		if got := w.UpdatedAt("users", user); got.Equal(at) == moves {
			t.Errorf("%v: updated at %v, before that %v", w.Clock.Now(), got, at)
		}
	}
	if at := w.UpdatedAt("users", done); !at.Before(noon) {
		t.Errorf("a user who is done was updated at %v", at)
	}
}
