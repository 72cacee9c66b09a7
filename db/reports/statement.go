package reports

import (
	"context"
	"iter"

	"partnerapi/db"
	"partnerapi/db/pg"
	"partnerapi/domain"
)

// Statement reads rows of what reports say of a client in a period. Its text names the
// client as ?0; when the period begins and ends as ?1 and ?2, and its first and last
// day as ?3 and ?4; the time as ?5 and the day as ?6; and as ?7 whether the client has
// Dark Web Monitoring. Statements are for Tenant.Snapshot.
type Statement[Row any] struct{ doing, text string }

func (s Statement[Row]) query(t *db.Tenant, p domain.ReportPeriod) pg.Query {
	since, until := p.Within()
	now := t.DB().Now()
	return pg.SQL(s.text, t.ID, since, until, p.Start, p.End, now, domain.DateOf(now), t.DarkWebMonitoring)
}

// All reads all rows.
func (s Statement[Row]) All(ctx context.Context, t *db.Tenant, p domain.ReportPeriod) ([]Row, error) {
	return pg.All[Row](ctx, t.DB(), s.doing, s.query(t, p))
}

// One reads the one row that there is.
func (s Statement[Row]) One(ctx context.Context, t *db.Tenant, p domain.ReportPeriod) (Row, error) {
	return pg.One[Row](ctx, t.DB(), s.doing, s.query(t, p))
}

// Each reads rows as they are ranged over, in the transaction of ctx.
func (s Statement[Row]) Each(ctx context.Context, t *db.Tenant, p domain.ReportPeriod) iter.Seq2[Row, error] {
	return pg.Each[Row](ctx, t.DB(), s.doing, s.query(t, p))
}
