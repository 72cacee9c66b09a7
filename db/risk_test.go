package db_test

import (
	"context"
	"testing"
	"time"

	"partnerapi/db"
	"partnerapi/domain"
)

func (w *world) exposure(client domain.ClientID, user domain.UserID, name string, severity domain.Severity, age int, resolved bool) {
	w.T.Helper()
	w.Exec("INSERT INTO breaches (name, title, severity, data_classes) VALUES ($1, $1, $2, '{}') ON CONFLICT DO NOTHING", name, severity)
	at := noon.AddDate(0, 0, -age)
	exposure := row{"client_id": client, "user_id": user, "breach_name": name, "severity": severity, "first_seen_at": at}
	if resolved {
		exposure["resolved_at"] = at
	}
	w.Add("exposures", exposure)
}

func (w *world) reportEmail(client domain.ClientID, user domain.UserID, classification string, age int) {
	w.T.Helper()
	w.Exec(`INSERT INTO reported_emails (client_id, id, user_id, message_id, subject, sender, classification, reported_at, updated_at)
		VALUES ($1, $2, $3, $2::uuid::text, '', '', $4, $5, $5)`, client, db.NewID[domain.ReportedEmailKind](), user, classification, noon.AddDate(0, 0, -age))
}

func ago(ages ...int) []domain.Date {
	days := make([]domain.Date, len(ages))
	for i, age := range ages {
		days[i] = today.AddDays(-age)
	}
	return days
}

// TestRescore compares what is stored with what the model says of the same
// signals, and those of others with nothing.
func TestRescore(t *testing.T) {
	w, ctx := newWorld(t), context.Background()
	for name, c := range map[string]struct {
		role   domain.Role
		happen func(w *world, client domain.ClientID, user domain.UserID)
		want   domain.RiskSignals
		counts [4]int // sent, clicked; of a year
	}{
		"mails": {
			domain.RoleFinance,
			func(w *world, c domain.ClientID, u domain.UserID) {
				w.AddSimulation(c, u, 0, false)
				w.AddSimulation(c, u, 364, false, "clicked_at")
				w.AddSimulation(c, u, 365, false, "clicked_at", "reported_at")
				w.AddSimulation(c, u, 366, false, "clicked_at", "attachment_opened_at", "credentials_submitted_at", "reported_at")
				w.AddSimulation(c, u, 10, false, "credentials_submitted_at")
				w.AddSimulation(c, u, 20, false, "attachment_opened_at")
				w.AddSimulation(c, u, 30, false, "opened_at", "attachment_opened_at", "clicked_at", "credentials_submitted_at", "reported_at")
				w.AddSimulation(c, u, 40, true, "reported_at")
			},
			domain.RiskSignals{Clicks: ago(364, 365, 10, 30), Attachments: ago(20, 30), Credentials: ago(10, 30), Reports: ago(365, 30, 40)},
			[4]int{8, 6, 6, 4},
		},
		"real mails": {
			domain.RoleStandard,
			func(w *world, c domain.ClientID, u domain.UserID) {
				for _, age := range []int{0, 365, 366} {
					w.reportEmail(c, u, "phishing", age)
				}
				w.reportEmail(c, u, "pending", 1)
				w.reportEmail(c, u, "spam", 2)
				w.reportEmail(c, u, "safe", 3)
			},
			domain.RiskSignals{RealPhishing: ago(0, 365), RealPending: ago(1), RealHarmless: ago(2, 3)}, [4]int{},
		},
		"training": {
			domain.RoleAdmin,
			func(w *world, c domain.ClientID, u domain.UserID) {
				w.AddRound(c, u, 1, 0, 180)
				w.AddRound(c, u, 2, 0, 365)
				w.AddRound(c, u, 3, 0, 366)
				w.AddRound(c, u, 4, 5, -1)
			},
			domain.RiskSignals{Completions: ago(180, 365)}, [4]int{},
		},
		"dormant": {
			domain.RoleExecutive,
			func(w *world, c domain.ClientID, u domain.UserID) {
				w.AddRound(c, u, 1, 0, 181)
				w.AddRound(c, u, 2, 5, -1)
			},
			domain.RiskSignals{Completions: ago(181), Dormant: true}, [4]int{},
		},
		"exposures": {
			domain.RoleStandard,
			func(w *world, c domain.ClientID, u domain.UserID) {
				w.exposure(c, u, "a", domain.SeverityCritical, 400, false)
				w.exposure(c, u, "b", domain.SeverityCritical, 365, false)
				w.exposure(c, u, "c", domain.SeverityCritical, 1, true)
				w.exposure(c, u, "d", domain.SeverityHigh, 1, false)
				w.exposure(c, u, "e", domain.SeverityHigh, 1, true)
				w.exposure(c, u, "f", domain.SeverityMedium, 1, false)
				w.exposure(c, u, "g", domain.SeverityLow, 1, false)
			},
			domain.RiskSignals{UnresolvedCritical: 2, UnresolvedHigh: 1, UnresolvedMedium: 1, SeenPasswordActive: 1, SeenPasswordResolved: 1, SeenPII: 1, SeenBasic: 1},
			[4]int{},
		},
	} {
		client := w.AddClient()
		user := w.AddUser(client, c.role, c.role.Baseline())
		bystander := w.AddUser(client, domain.RoleStandard, 750)
		c.happen(w, client, user)
		w.Must(w.Rescore(ctx, client, []domain.UserID{bystander, user}))

		want := domain.UserRisk{Assessment: domain.Assess(c.role, c.want, today), ComputedAt: noon}
		if got, err := w.UserRisk(ctx, user); err != nil || got != want {
			t.Errorf("%s: %+v, %v; want %+v", name, got, err, want)
		}
		var score int
		var counts [4]int
		w.Scan("SELECT score, phished_sent, phished_clicked, phished_sent_year, phished_clicked_year FROM users WHERE id = $1", []any{user},
			&score, &counts[0], &counts[1], &counts[2], &counts[3])
		if score != want.Score || counts != c.counts {
			t.Errorf("%s: score %d, counts %v; want %d, %v", name, score, counts, want.Score, c.counts)
		}
		if other, err := w.UserRisk(ctx, bystander); err != nil || other.Score != 750 || !w.UpdatedAt("users", bystander).Before(noon) {
			t.Errorf("%s: the bystander: %+v, %v", name, other, err)
		}
	}
}

// TestRescoreMovesUpdatedAt holds that updated_at moves with what is shown, and
// with nothing else.
func TestRescoreMovesUpdatedAt(t *testing.T) {
	w := newWorld(t)
	ctx := context.Background()
	client := w.AddClient()
	user := w.AddUser(client, domain.RoleStandard, 750)
	at := w.UpdatedAt("users", user)
	for _, step := range []struct {
		name   string
		happen func()
		moves  bool
	}{
		{"the first time, with the score there already", func() {}, false},
		{"nothing new", func() {}, false},
		{"a mail that is not clicked", func() { w.AddSimulation(client, user, 0, false) }, true},
		{"a click", func() { w.AddSimulation(client, user, 0, false, "clicked_at") }, true},
		{"nothing since", func() {}, false},
		{"a mail that lowers the click rate", func() { w.AddSimulation(client, user, 0, false) }, true},
		{"a report that only the tallies show", func() { w.reportEmail(client, user, "spam", 0) }, true},
		{"the clicks decay", func() { w.Clock.Advance(90 * 24 * time.Hour) }, true},
	} {
		w.Clock.Advance(time.Minute)
		step.happen()
		w.Must(w.Rescore(ctx, client, []domain.UserID{user}))
		got := w.UpdatedAt("users", user)
		if moved := !got.Equal(at); moved != step.moves || moved && !got.Equal(w.Clock.Now()) {
			t.Errorf("%s: updated at %v, before that %v", step.name, got, at)
		}
		at = got
		if risk, err := w.UserRisk(ctx, user); err != nil || !risk.ComputedAt.Equal(w.Clock.Now()) {
			t.Errorf("%s: computed at %v, %v", step.name, risk.ComputedAt, err)
		}
	}
}

// report adds a reported mail in the transaction of ctx and rescores.
func (w *world) report(ctx context.Context, client domain.ClientID, users ...domain.UserID) error {
	err := w.ExecIn(ctx, `INSERT INTO reported_emails (client_id, id, user_id, message_id, subject, sender, classification, reported_at, updated_at)
		VALUES (?0, ?1, ?2, ?1::uuid::text, '', '', 'phishing', ?3, ?3)`, client, db.NewID[domain.ReportedEmailKind](), users[0], noon)
	if err != nil {
		return err
	}
	return w.Rescore(ctx, client, users)
}

// TestRescoreWaits holds that a signal is not lost whose transaction began
// while another's was in progress for the same user.
func TestRescoreWaits(t *testing.T) {
	w := newWorld(t)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	client := w.AddClient()
	user := w.AddUser(client, domain.RoleStandard, 750)
	second := make(chan error, 1)
	err := w.Tx(ctx, func(ctx1 context.Context) error {
		if err := w.report(ctx1, client, user); err != nil {
			return err
		}
		go func() {
			second <- w.Tx(ctx, func(ctx2 context.Context) error { return w.report(ctx2, client, user) })
		}()
		return w.waitForLock(ctx)
	})
	w.Must(err)
	w.Must(<-second)
	if risk, err := w.UserRisk(ctx, user); err != nil || risk.Tallies.RealPhishReported != 2 {
		t.Errorf("%+v, %v; want both reports", risk, err)
	}
}

// TestRescoreAtOnce lets many transactions each add a signal to the same users,
// named in all orders: none may deadlock.
func TestRescoreAtOnce(t *testing.T) {
	w := newWorld(t)
	client := w.AddClient()
	users := []domain.UserID{w.AddUser(client, domain.RoleStandard, 750), w.AddUser(client, domain.RoleStandard, 750)}
	const writers = 8
	w.atOnce(writers, func(i int) error {
		return w.Tx(context.Background(), func(ctx context.Context) error {
			return w.report(ctx, client, users[i%2], users[1-i%2])
		})
	})
	for _, user := range users {
		if risk, err := w.UserRisk(context.Background(), user); err != nil || risk.Tallies.RealPhishReported != writers/2 {
			t.Errorf("%+v, %v", risk, err)
		}
	}
}
