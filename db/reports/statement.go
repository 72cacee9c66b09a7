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

// Statement reads rows of what reports say of a client in a period, in Tenant.Snapshot. Its
// text names the values of query that it needs.
type Statement[Row any] struct{ doing, text string }

func (s Statement[Row]) query(t *db.Tenant, p domain.ReportPeriod) pg.Query {
	since, until := p.Within()
	now := t.DB().Now()
	values := pg.Named{
		"client": t.ID, "darkWeb": t.DarkWebMonitoring, "now": now, "today": domain.DateOf(now),
		"since": since, "until": until, "firstDay": p.Start, "lastDay": p.End, // of the period
	}
	maps.DeleteFunc(values, func(name string, _ any) bool { return !strings.Contains(s.text, "@"+name) })
	return pg.SQL(s.text, values)
}

// All reads all rows.
func (s Statement[Row]) All(ctx context.Context, t *db.Tenant, p domain.ReportPeriod) ([]Row, error) {
	return pg.All[Row](ctx, t.DB(), s.doing, s.query(t, p))
}

// One reads the only row.
func (s Statement[Row]) One(ctx context.Context, t *db.Tenant, p domain.ReportPeriod) (Row, error) {
	return pg.One[Row](ctx, t.DB(), s.doing, s.query(t, p))
}

// Each reads rows as they are ranged over, in the transaction of ctx.
func (s Statement[Row]) Each(ctx context.Context, t *db.Tenant, p domain.ReportPeriod) iter.Seq2[Row, error] {
	return pg.Each[Row](ctx, t.DB(), s.doing, s.query(t, p))
}
