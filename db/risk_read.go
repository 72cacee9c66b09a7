package db

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"partnerapi/db/pg"
	"partnerapi/domain"
)

// Risk reads the user's score and what it is made of.
func (u *User) Risk(ctx context.Context) (domain.UserRisk, error) {
	type scored struct {
		Role domain.Role
		storedRisk
		ComputedAt time.Time
	}
	row, err := pg.Find[scored](ctx, u.db, u.ID.Noun(), pg.Prepared(pg.From("users AS u").
		Columns("u.role, r.computed_at, "+pg.Columns[riskRow]()).
		Join("JOIN user_risks AS r ON r.client_id = u.client_id AND r.user_id = u.id").
		Where("u.client_id = ?", u.Client).Where("u.id = ?", u.ID)))
	if err != nil {
		return domain.UserRisk{}, err
	}
	return domain.UserRisk{Assessment: row.assessment(row.Role), ComputedAt: row.ComputedAt}, nil
}

// clientRiskSQL reads what a client's risk is made of, in one statement and so
// of one moment: the active users by role and score, what each factor adds up
// to, and the history since the day ?1.
const clientRiskSQL = `
	SELECT coalesce((
		SELECT json_agg(s) FROM (
			SELECT role, score, count(*) AS users FROM users
			WHERE client_id = ?0 AND status = 'active' GROUP BY role, score
		) AS s), '[]') AS scores,
	coalesce((
		SELECT json_agg(f) FROM (
			SELECT delta.place, sum(delta.points) AS total, count(*) AS users
			FROM users AS u JOIN user_risks AS r ON r.client_id = u.client_id AND r.user_id = u.id
			CROSS JOIN unnest(r.deltas) WITH ORDINALITY AS delta (points, place)
			WHERE u.client_id = ?0 AND u.status = 'active' AND delta.points <> 0 GROUP BY delta.place
		) AS f), '[]') AS factors,
	coalesce((
		SELECT json_agg(h ORDER BY h.date) FROM (
			SELECT day AS date, average_score FROM risk_history WHERE client_id = ?0 AND day > ?1
		) AS h), '[]') AS history`

// clientRiskRow is the answer to clientRiskSQL: three lists in JSON.
type clientRiskRow struct {
	Scores  json.RawMessage
	Factors json.RawMessage
	History json.RawMessage
}

// historyDays is how many days a client's risk looks back, today included.
const historyDays = 90

// ClientRisk reads the risk of a client's active users together, as it is now.
// A client that does not exist has that of a client without users; whether the
// caller reaches it is for the caller to know.
func (d *DB) ClientRisk(ctx context.Context, client domain.ClientID) (domain.ClientRisk, error) {
	now := d.Now()
	var row clientRiskRow
	if err := d.conn(ctx).NewRaw(clientRiskSQL, client, domain.DateOf(now).AddDays(-historyDays)).Scan(ctx, &row); err != nil {
		return domain.ClientRisk{}, d.bad("read a client's risk", err)
	}
	risk := domain.ClientRisk{ComputedAt: now}
	if err := row.fill(&risk); err != nil {
		return domain.ClientRisk{}, fmt.Errorf("read a client's risk: %w", err)
	}
	return risk, nil
}

func (r *clientRiskRow) fill(risk *domain.ClientRisk) error {
	if err := json.Unmarshal(r.History, &risk.History); err != nil {
		return err
	}
	var factors []struct{ Place, Total, Users int }
	if err := json.Unmarshal(r.Factors, &factors); err != nil {
		return err
	}
	var totals domain.Deltas
	var touched [domain.NumFactors]int
	for _, f := range factors {
		if f.Place <= domain.NumFactors { // a newer model may know more
			totals[f.Place-1], touched[f.Place-1] = f.Total, f.Users
		}
	}
	risk.TopFactors = domain.FactorTotals(totals, touched)
	return r.fillScores(risk)
}

// fillScores sets what the users' scores alone give.
func (r *clientRiskRow) fillScores(risk *domain.ClientRisk) error {
	var scores []struct {
		Role         domain.Role
		Score, Users int
	}
	if err := json.Unmarshal(r.Scores, &scores); err != nil {
		return err
	}
	type total struct{ sum, users int }
	var all total
	byRole := map[domain.Role]total{}
	for _, s := range scores {
		of := byRole[s.Role]
		byRole[s.Role] = total{of.sum + s.Score*s.Users, of.users + s.Users}
		all = total{all.sum + s.Score*s.Users, all.users + s.Users}
		risk.Distribution.Add(s.Score, s.Users)
	}
	risk.AverageScore = domain.AverageScore(all.sum, all.users)
	risk.Grade = domain.GradeOf(risk.AverageScore)
	risk.HighRiskUsers = risk.Distribution.D + risk.Distribution.F
	risk.ByRole = []domain.RoleRisk{}
	for _, name := range domain.Role("").Values() {
		if of := byRole[domain.Role(name)]; of.users > 0 {
			risk.ByRole = append(risk.ByRole, domain.RoleRisk{Role: domain.Role(name), Users: of.users, AverageScore: domain.AverageScore(of.sum, of.users)})
		}
	}
	return nil
}
