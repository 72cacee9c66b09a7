package db

import (
	"context"
	"time"

	"github.com/uptrace/bun"

	"partnerapi/db/pg"
	"partnerapi/domain"
)

// CountUsers adds to a client's counters of users.
func (c *Change) CountUsers(client domain.ClientID, active, inactive int) {
	c.countUser(&domain.User{Client: client, Status: domain.Active}, active)
	c.countUser(&domain.User{Client: client, Status: domain.Inactive}, inactive)
}

// EvaluateAll evaluates all framework assignments, however fresh they are.
func EvaluateAll(ctx context.Context, d *DB) error {
	return d.evaluate(ctx, pg.SQL("true"), d.Now().AddDate(1000, 0, 0))
}

// EvaluatedRow is a framework assignment with its evaluation.
type EvaluatedRow struct {
	bun.BaseModel `bun:"table:framework_assignments,alias:f"`

	ID domain.FrameworkAssignmentID
	evaluationRow
}

// Evaluations reads the evaluations of a client's framework assignments.
func Evaluations(
	ctx context.Context, d *DB, client domain.ClientID,
) (map[domain.FrameworkAssignmentID]domain.Evaluation, error) {
	rows, err := pg.All[EvaluatedRow](ctx, d, "read evaluations",
		pg.From("framework_assignments AS f").ColumnExpr(pg.Columns[EvaluatedRow]()).Apply(pg.Where("f.client_id = ?", client)))
	list := map[domain.FrameworkAssignmentID]domain.Evaluation{}
	for _, r := range rows {
		list[r.ID] = evaluationOf(r.evaluationRow)
	}
	return list, err
}

// Detail says a measure's numerator and denominator in words.
func Detail(m domain.Measure, part, whole *int) string { return detail(m, part, whole) }

// Retained returns how long rows of the tables with a retention are kept.
func Retained() map[string]time.Duration {
	lives := map[string]time.Duration{}
	for _, t := range retained {
		lives[t.table] = t.life
	}
	return lives
}

// PutBack are the statements that put back late work.
var PutBack = putBack
