package db

import (
	"cmp"
	"context"
	"encoding/json"
	"strings"
	"time"

	"github.com/uptrace/bun"

	"partnerapi/db/pg"
	"partnerapi/domain"
)

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

// storedRisk is a row of user_risks without its keys and times. The names are
// those of the columns, in JSON as in the table.
type storedRisk struct {
	Model    int   `json:"model"`
	Baseline int   `json:"baseline"`
	Deltas   []int `json:"deltas" bun:",array"`
	domain.Tallies
}

// riskRow gives storedRisk its table.
type riskRow struct {
	bun.BaseModel `bun:"table:user_risks,alias:r"`
	storedRisk
}

// riskColumns are the columns of storedRisk without an alias.
var riskColumns = strings.ReplaceAll(pg.Columns[riskRow](), "r.", "")

func (r *storedRisk) assessment(role domain.Role) domain.Assessment {
	a := domain.Assessment{Role: role, Baseline: r.Baseline, Tallies: r.Tallies}
	copy(a.Deltas[:], r.Deltas)
	a.Score = a.Baseline + a.Deltas.Sum()
	a.Grade = domain.GradeOf(a.Score)
	return a
}

// score computes the scores of users from the signals that are stored, and stores
// them, with the course that is due first where that may have moved. The users
// are locked before: of two transactions that each add a signal, the second sees
// both.
func (c *Change) score(ctx context.Context, keys []domain.UserKey) error {
	if len(keys) == 0 {
		return nil
	}
	today := cmp.Or(c.users.day, domain.DateOf(c.At))
	signals, err := c.signals(ctx, keys, today)
	if err != nil {
		return err
	}

	risks := make([]riskRecord, len(signals))
	var moved []scoreRecord
	for i := range signals {
		s := &signals[i]
		a := domain.Assess(s.Role, s.domain(today), today)
		client, user := s.ClientID.UUID(), s.UserID.UUID()
		risks[i] = riskRecord{
			ClientID: client, UserID: user, ComputedOn: today, ComputedAt: c.At,
			storedRisk: storedRisk{
				Model: domain.RiskModelVersion, Baseline: a.Baseline, Deltas: a.Deltas[:], Tallies: a.Tallies,
			},
		}

		shown := a.Score != s.Score || !s.sameRates(s.storedCounts()) ||
			len(s.Deltas) > 0 && a != s.assessment(s.Role)
		_, due := c.users.due[domain.UserKey{Client: s.ClientID, User: s.UserID}]
		if !shown && !due && s.phishedCounts == s.storedCounts() {
			continue
		}
		record := scoreRecord{ClientID: client, ID: user, Score: a.Score, phishedCounts: s.phishedCounts}
		if shown {
			record.UpdatedAt = c.At
		}
		moved = append(moved, record)
	}
	return c.storeScores(ctx, risks, moved)
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

// storeRisksSQL stores the risks ?0, and what changed of the users ?1 as of the
// time ?2.
var storeRisksSQL = strings.NewReplacer(
	"{columns}", riskColumns, "{excluded}", strings.ReplaceAll(pg.Columns[riskRow](), "r.", "excluded."),
).Replace(`
	WITH risks AS (
		INSERT INTO user_risks AS r SELECT * FROM json_populate_recordset(NULL::user_risks, ?0::json)
		ON CONFLICT (client_id, user_id) DO UPDATE SET ({columns}, computed_on, computed_at) =
			({excluded}, excluded.computed_on, excluded.computed_at)
	)
	UPDATE users AS u SET score = n.score,
		phished_sent = n.phished_sent, phished_clicked = n.phished_clicked,
		phished_sent_year = n.phished_sent_year, phished_clicked_year = n.phished_clicked_year,
		next_due_on = due.due_on, next_course_id = due.course_id,
		updated_at = greatest(u.updated_at, n.updated_at, CASE
			WHEN (u.next_due_on, u.next_course_id) IS DISTINCT FROM (due.due_on, due.course_id) THEN ?2::timestamptz END)
	FROM json_populate_recordset(NULL::users, ?1::json) AS n LEFT JOIN LATERAL (` + nextDueSQL + `) AS due ON true
	WHERE u.client_id = n.client_id AND u.id = n.id`)

func (c *Change) storeScores(ctx context.Context, risks []riskRecord, moved []scoreRecord) error {
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
	_, err = pg.Exec(ctx, c, "store scores", pg.SQL(storeRisksSQL, string(risksJSON), string(movedJSON), c.At))
	return err
}
