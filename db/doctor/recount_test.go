package doctor_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"partnerapi/db"
	"partnerapi/db/dbtest/worldtest"
	"partnerapi/db/doctor"
	"partnerapi/domain"
)

// newCounted is a world with a row of every stored count, all right.
func newCounted(t *testing.T) (*worldtest.World, domain.ClientID, domain.UserID) {
	w := worldtest.New(t)
	client := w.AddClient()
	user := w.AddUser(client, domain.RoleStandard, 700)
	collection := db.NewID[domain.CollectionKind]()
	w.Add("collections", row{"client_id": client, "id": collection, "name": "Sales", "name_key": "sales"})
	w.Add("collection_members", row{"client_id": client, "collection_id": collection, "user_id": user, "added_at": noon})
	w.Add("framework_assignments", row{"client_id": client, "id": db.NewID[domain.FrameworkAssignmentKind](), "framework_id": "hipaa",
		"audience_type": "all", "training": true, "phishing": false, "policies": false, "reporting": false, "created_at": noon})
	w.AddSimulation(client, user, 3, false)
	w.Exec("UPDATE phishing_results SET label = 'Drill', label_key = 'drill'")
	w.Exec(`INSERT INTO phishing_labels (client_id, key, label, sends, cancelled, first_send_at, last_send_at)
		SELECT client_id, label_key, label, 0, 0, '-infinity', '-infinity' FROM phishing_results`)
	for round := 1; round <= 2; round++ {
		w.Add("assignments", row{"client_id": client, "user_id": user, "course_id": domain.CourseID{0x01, 0x9b, 0x77, 0x40, 6: 0x70, 8: 0x80, 15: 1},
			"round": round, "position": 1, "assigned_at": noon, "due_on": "2026-07-01"})
	}
	w.Add("policies", row{"client_id": client, "id": db.NewID[domain.PolicyKind](), "scope_id": client})
	return w, client, user
}

// recounted wants these counts to be wrong, in the order of Counters, and right
// afterwards.
func recounted(w *worldtest.World, want ...string) {
	w.T.Helper()
	wrong, err := doctor.Recount(w.T.Context(), w.DB)
	w.Must(err)
	var got []string
	for _, m := range wrong {
		got = append(got, m.Counter)
	}
	if !slices.Equal(got, want) {
		w.T.Errorf("wrong were %v, not %v", wrong, want)
	}
	if wrong, err := doctor.Recount(w.T.Context(), w.DB); err != nil || len(wrong) != 0 {
		w.T.Errorf("after a recount: %v, %v", wrong, err)
	}
}

// TestRecountCorrectsEveryStoredCount: rows that were written past the counts, then
// counts that were moved past the rows.
func TestRecountCorrectsEveryStoredCount(t *testing.T) {
	t.Parallel()
	w, client, _ := newCounted(t)
	w.Exec("UPDATE policies SET counted_until = 'infinity'")
	recounted(w, doctor.Counters()...)
	recounted(w)

	w.Exec(`UPDATE partners SET client_count = 9`)
	w.Exec(`UPDATE clients SET users_active = 9, users_inactive = 2, framework_ids = '{gdpr}'`)
	w.Exec(`UPDATE collections SET member_count = 0`)
	w.Exec(`UPDATE phishing_days SET opened = 1`)
	w.Exec(`INSERT INTO phishing_days (client_id, day, sent) VALUES ($1, '2026-01-01', 4)`, client.UUID())
	w.Exec(`UPDATE phishing_label_days SET opened = 1`)
	w.Exec(`UPDATE phishing_labels SET sends = 0, cancelled = 7, last_send_at = 'infinity'`)
	w.Exec(`UPDATE template_uses SET used = 0`)
	w.Exec(`UPDATE policies SET acknowledged_count = 1`)
	w.Exec(`UPDATE assignments SET superseded = false`)
	names := doctor.Counters()
	recounted(w, slices.Insert(names, slices.Index(names, "phishing by day"), "phishing by day")...)

	if wrong := w.Number(worldtest.WrongPhishingDays + " AND d.day > '2026-01-01'"); wrong != 0 {
		t.Errorf("%d days are wrong", wrong)
	}
	var active, members int
	w.Scan("SELECT users_active, (SELECT sum(member_count) FROM collections) FROM clients", nil, &active, &members)
	if active != 1 || members != 1 {
		t.Errorf("%d active users, %d members", active, members)
	}
}

// TestRecountBesideWriters: users come while their counts are compared and corrected.
func TestRecountBesideWriters(t *testing.T) {
	t.Parallel()
	w, client, _ := newCounted(t)
	var writers sync.WaitGroup
	for range 4 {
		writers.Go(func() {
			for range 10 {
				if err := w.Tx(t.Context(), func(ctx context.Context) error {
					err := w.ExecIn(ctx, `INSERT INTO users (SELECT (json_populate_record(u, json_build_object('id', n, 'email', n))).*
						FROM users AS u, gen_random_uuid() AS n LIMIT 1)`)
					return errors.Join(err, w.ExecIn(ctx, "UPDATE clients SET users_active = users_active + 1"))
				}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	for range 5 {
		if _, err := doctor.Recount(t.Context(), w.DB, "users of clients"); err != nil {
			t.Error(err)
		}
		w.Exec("UPDATE clients SET users_active = users_active + 1")
	}
	writers.Wait()
	if _, err := doctor.Recount(t.Context(), w.DB, "users of clients"); err != nil {
		t.Error(err)
	}
	if active := w.Number("SELECT users_active FROM clients WHERE id = $1", client); active != 41 {
		t.Errorf("%d active users", active)
	}
}

// TestRecountsThatAreDue: what a release may have missed is recounted while one of its
// processes may run, and once after that.
func TestRecountsThatAreDue(t *testing.T) {
	t.Parallel()
	w, _, _ := newCounted(t)
	w.Exec("INSERT INTO recounts VALUES ('users of clients', $1)", noon.Add(time.Hour))
	for _, step := range []struct {
		at    time.Time
		wrong int
		left  int
	}{{noon, 1, 1}, {noon.Add(30 * time.Minute), 1, 1}, {noon.Add(2 * time.Hour), 1, 0}, {noon.Add(3 * time.Hour), 0, 0}} {
		w.Clock.Set(step.at)
		w.Exec("UPDATE clients SET users_active = users_active + 1, users_inactive = 7")
		wrong, err := doctor.RecountDue(t.Context(), w.DB)
		w.Must(err)
		left := w.Number("SELECT count(*) FROM recounts")
		if len(wrong) != step.wrong || left != step.left {
			t.Errorf("at %v: wrong %v, %d left to do", step.at, wrong, left)
		}
	}
}
