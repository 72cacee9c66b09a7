package db

import (
	"context"
	"encoding/json"
	"time"

	"github.com/uptrace/bun"

	"partnerapi/domain"
)

// scoredUser is what a score needs of a user's own row, and what is stored
// there of it. The row is locked.
type scoredUser struct {
	ClientID  domain.ClientID
	ID        domain.UserID
	Status    domain.UserStatus
	Role      domain.Role
	CreatedAt time.Time
	Score     int
	phishedCounts
}

// phishedCounts are the counters of the simulated mails that a user was sent
// and fell for, by their columns.
type phishedCounts struct {
	PhishedSent        int `json:"phished_sent"`
	PhishedClicked     int `json:"phished_clicked"`
	PhishedSentYear    int `json:"phished_sent_year"`
	PhishedClickedYear int `json:"phished_clicked_year"`
}

// sameRates reports whether both give the same click rates, which is what is
// shown of the counters.
func (c phishedCounts) sameRates(o phishedCounts) bool {
	return domain.Percent(c.PhishedClicked, c.PhishedSent) == domain.Percent(o.PhishedClicked, o.PhishedSent) &&
		domain.Percent(c.PhishedClickedYear, c.PhishedSentYear) == domain.Percent(o.PhishedClickedYear, o.PhishedSentYear)
}

// storedRisk is a row of user_risks without its keys. The tallies' names are
// those of the columns, in JSON as in the table.
type storedRisk struct {
	Model    int   `json:"model"`
	Baseline int   `json:"baseline"`
	Deltas   []int `json:"deltas" bun:",array"`
	domain.Tallies
}

func (r *storedRisk) assessment(role domain.Role) domain.Assessment {
	a := domain.Assessment{Role: role, Baseline: r.Baseline, Tallies: r.Tallies}
	copy(a.Deltas[:], r.Deltas)
	a.Score = a.Baseline + a.Deltas.Sum()
	a.Grade = domain.GradeOf(a.Score)
	return a
}

// Rescore computes the scores of some of a client's users from the signals that
// are stored, and stores them. It is called in the transaction that changes a
// signal, after the change; the users are locked in the order of their ids, so
// that two such transactions wait for each other and each sees all signals.
func (d *DB) Rescore(ctx context.Context, client domain.ClientID, users []domain.UserID) error {
	if len(users) == 0 {
		return nil
	}
	return d.Tx(ctx, func(ctx context.Context) error {
		locked, err := d.lockUsers(ctx, `
			SELECT ?0 FROM users AS u WHERE u.client_id = ?1 AND u.id = ANY(?2::uuid[])
			ORDER BY u.client_id, u.id FOR NO KEY UPDATE`, client, uuids(users))
		if err != nil {
			return err
		}
		return d.score(ctx, locked, domain.DateOf(d.Now()))
	})
}

// rescoreUsers is Rescore for users of any clients, some of whom may be named
// more than once.
func (d *DB) rescoreUsers(ctx context.Context, keys []domain.UserKey) error {
	if len(keys) == 0 {
		return nil
	}
	clients, users := legacyKeyLists(distinct(keys))
	locked, err := d.lockUsers(ctx, `
		SELECT ?0 FROM users AS u WHERE (u.client_id, u.id) IN (SELECT * FROM unnest(?1::uuid[], ?2::uuid[]))
		ORDER BY u.client_id, u.id FOR NO KEY UPDATE`, uuids(clients), uuids(users))
	if err != nil {
		return err
	}
	return d.score(ctx, locked, domain.DateOf(d.Now()))
}

// lockUsers runs a query that locks users; ?0 in it is what is read of them,
// with the table's alias u, and the arguments begin at ?1. Signals are to be
// read by a later statement: this one's snapshot is older than the locks that
// it waited for.
func (d *DB) lockUsers(ctx context.Context, query string, args ...any) ([]scoredUser, error) {
	columns := bun.Safe("u.client_id, u.id, u.status, u.role, u.created_at, u.score, " +
		"u.phished_sent, u.phished_clicked, u.phished_sent_year, u.phished_clicked_year")
	var users []scoredUser
	err := d.conn(ctx).NewRaw(query, append([]any{columns}, args...)...).Scan(ctx, &users)
	return users, d.bad("lock users", err)
}

// userArrays are the keys of users as two PostgreSQL arrays.
func userArrays(users []scoredUser) (clients, ids any) {
	clientIDs := make([]domain.ClientID, len(users))
	userIDs := make([]domain.UserID, len(users))
	for i := range users {
		clientIDs[i], userIDs[i] = users[i].ClientID, users[i].ID
	}
	return uuids(clientIDs), uuids(userIDs)
}

// score computes and stores the scores of locked users, as of a day.
func (d *DB) score(ctx context.Context, users []scoredUser, today domain.Date) error {
	if len(users) == 0 {
		return nil
	}
	signals, err := d.signals(ctx, users, today)
	if err != nil {
		return err
	}
	now := d.Now()
	risks := make([]riskRecord, len(users))
	var moved []scoreRecord
	for i := range signals {
		s := &signals[i]
		u := &users[s.N-1]
		a := domain.Assess(u.Role, s.domain(u, today), today)
		risks[i] = riskRecord{
			ClientID: u.ClientID.UUID(), UserID: u.ID.UUID(), ComputedOn: today, ComputedAt: now,
			storedRisk: storedRisk{Model: domain.RiskModelVersion, Baseline: a.Baseline, Deltas: a.Deltas[:], Tallies: a.Tallies},
		}
		shown := a.Score != u.Score || !s.sameRates(u.phishedCounts) ||
			len(s.Deltas) > 0 && a != s.assessment(u.Role)
		if shown || s.phishedCounts != u.phishedCounts {
			record := scoreRecord{ClientID: u.ClientID.UUID(), ID: u.ID.UUID(), Score: a.Score, phishedCounts: s.phishedCounts}
			if shown {
				record.UpdatedAt = now
			}
			moved = append(moved, record)
		}
	}
	return d.storeScores(ctx, risks, moved)
}

// riskRecord is a row for user_risks, and scoreRecord what changes in a row of
// users; both go to the database as JSON with the names of the columns.
type (
	riskRecord struct {
		ClientID string `json:"client_id"`
		UserID   string `json:"user_id"`
		storedRisk
		ComputedOn domain.Date `json:"computed_on"`
		ComputedAt time.Time   `json:"computed_at"`
	}
	scoreRecord struct {
		ClientID string `json:"client_id"`
		ID       string `json:"id"`
		Score    int    `json:"score"`
		phishedCounts
		// UpdatedAt is zero where nothing that is shown has changed.
		UpdatedAt time.Time `json:"updated_at,omitzero"`
	}
)

func (d *DB) storeScores(ctx context.Context, risks []riskRecord, moved []scoreRecord) error {
	risksJSON, err := json.Marshal(risks)
	if err != nil {
		return err
	}
	movedJSON := []byte("[]")
	if len(moved) > 0 {
		if movedJSON, err = json.Marshal(moved); err != nil {
			return err
		}
	}
	_, err = d.conn(ctx).NewRaw(`
		WITH risks AS (
			INSERT INTO user_risks AS r SELECT * FROM json_populate_recordset(NULL::user_risks, ?0::json)
			ON CONFLICT (client_id, user_id) DO UPDATE SET
				(model, baseline, deltas, courses_completed, phishing_clicks, phishing_reports,
				 credential_submissions, attachments_opened, real_phish_reported, password_breaches_active,
				 password_breaches_resolved, pii_breaches, basic_breaches, dormant_on_training, computed_on, computed_at) =
				(excluded.model, excluded.baseline, excluded.deltas, excluded.courses_completed, excluded.phishing_clicks, excluded.phishing_reports,
				 excluded.credential_submissions, excluded.attachments_opened, excluded.real_phish_reported, excluded.password_breaches_active,
				 excluded.password_breaches_resolved, excluded.pii_breaches, excluded.basic_breaches, excluded.dormant_on_training, excluded.computed_on, excluded.computed_at)
		)
		UPDATE users AS u SET score = n.score,
			phished_sent = n.phished_sent, phished_clicked = n.phished_clicked,
			phished_sent_year = n.phished_sent_year, phished_clicked_year = n.phished_clicked_year,
			updated_at = greatest(u.updated_at, n.updated_at)
		FROM json_populate_recordset(NULL::users, ?1::json) AS n
		WHERE u.client_id = n.client_id AND u.id = n.id`, string(risksJSON), string(movedJSON)).Exec(ctx)
	return d.bad("store scores", err)
}
