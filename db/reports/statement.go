package reports

import (
	"context"
	"iter"
	"maps"
	"strings"

	"partnerapi/db"
	"partnerapi/db/pg"
	"partnerapi/domain"
)

// Statement is a statement that reads data of reports, of a client in a period. It is to be run in Tenant.Snapshot.
// action is its name. Its text may use the named values of query.
type Statement[Row any] struct{ action, text string }

// query returns the statement with the named values that its text uses.
func (s Statement[Row]) query(t *db.Tenant, p domain.ReportPeriod) pg.Query {
	since, until := p.Within()
	before, _ := p.Previous().Within()
	now := t.DB().Now()
	values := pg.Named{
		"client": t.ID, "darkWeb": t.DarkWebMonitoring, "now": now, "today": domain.DateOf(now),
		"since": since, "until": until, "firstDay": p.Start, "lastDay": p.End, // of the period
		"before":        before, // the start of the period before
		"highRiskBelow": domain.HighRiskBelow, "most": mostInNeed,
	}
	maps.DeleteFunc(values, func(name string, _ any) bool { return !strings.Contains(s.text, "?"+name) })
	return pg.SQL(s.text, values)
}

// All returns all rows.
func (s Statement[Row]) All(ctx context.Context, t *db.Tenant, p domain.ReportPeriod) ([]Row, error) {
	return pg.All[Row](ctx, t.DB(), s.action, s.query(t, p))
}

// One returns the single row.
func (s Statement[Row]) One(ctx context.Context, t *db.Tenant, p domain.ReportPeriod) (Row, error) {
	return pg.One[Row](ctx, t.DB(), s.action, s.query(t, p))
}

// Each reads the rows as the sequence is ranged over, in the transaction of ctx (pg.Each).
func (s Statement[Row]) Each(ctx context.Context, t *db.Tenant, p domain.ReportPeriod) iter.Seq2[Row, error] {
	return pg.Each[Row](ctx, t.DB(), s.action, s.query(t, p))
}
