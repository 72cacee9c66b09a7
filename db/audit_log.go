package db

import (
	"context"
	"net/netip"
	"time"

	"github.com/uptrace/bun"

	"partnerapi/db/pg"
	"partnerapi/domain"
)

// The audit log is the part of the audit trail that a caller may see: the entries of its partner or, for a key that is
// limited to some clients, its own and those of its clients, archived ones included. A caller that is limited to one
// client (domain.Caller.Only) sees those of that client.

// loggedRow is an entry of the audit log, with the name of its key. Shown reports whether the caller may see the name
// and the address.
type loggedRow struct {
	auditRow
	KeyName *string
	Shown   bool
}

func (r *loggedRow) entry() domain.LoggedEntry {
	e := domain.LoggedEntry{AuditEntry: r.AuditEntry, KeyName: r.KeyName}
	if !r.Shown {
		e.KeyName, e.Address = nil, netip.Addr{}
	}
	return e
}

// AuditLog reads a page of the audit log. With Since, it contains only entries up to the list's horizon. A Client to which
// the caller has no access, and a Key that is unknown or of another partner, have no entries.
func (d *DB) AuditLog(ctx context.Context, f domain.AuditLogFilter, w domain.Window) (domain.Slice[domain.LoggedEntry], error) {
	delta, err := pg.DeltaOf(ctx, d.DB, f.Since, &w)
	if err != nil {
		return domain.Slice[domain.LoggedEntry]{}, err
	}
	k := pg.ByTime("e.at", "e.entry_id", func(r *loggedRow) (time.Time, domain.AuditID) { return r.At, r.ID })
	k.Table, k.Desc, k.Select = "audit_entries AS e", f.Sort.Descending(), selectLogged(ctx)
	l := auditLog{caller: domain.CallerFrom(ctx), client: f.Client, keyset: k, window: w}
	l.matches.Changed(delta, "e.at")
	pg.AddIf(&l.matches, "e.at < ?", f.Until)
	if f.Operation != "" {
		l.matches.Add("e.operation = ?", f.Operation)
	}
	if f.Key != "" {
		id, err := pg.Find[domain.KeyID](ctx, d, l.key.Noun(), pg.SQL(
			"SELECT k.id FROM api_keys AS k WHERE k.partner_id = ? AND k.id = ?", l.caller.Partner, KeyOfPrefix(f.Key)))
		if domain.IsCode(err, domain.NotFound) {
			return domain.Slice[domain.LoggedEntry]{Horizon: w.Horizon}, nil
		}
		if err != nil {
			return domain.Slice[domain.LoggedEntry]{}, err
		}
		l.key = id
		l.matches.Add("e.key_id = ?", id)
	}
	k.Rows = l.rows(ctx)
	rows, err := pg.Page(ctx, d, k, w)
	return pg.Map(rows, (*loggedRow).entry), err
}

// selectLogged returns a function that adds the columns of a loggedRow to a query. Keys whose access lies within the
// caller's are looked up once for the page.
func selectLogged(ctx context.Context) func(*bun.SelectQuery) {
	caller, shown := domain.CallerFrom(ctx), pg.SQL("true")
	if !caller.AllClients {
		shown = pg.SQL("(e.key_id = ?key OR e.key_id IN (SELECT k.id FROM api_keys AS k WHERE k.partner_id = ?partner AND ?covered))",
			pg.Named{"key": caller.Key, "partner": caller.Partner, "covered": CoveredKey(ctx, "k.id")})
	}
	return func(q *bun.SelectQuery) {
		q.ColumnExpr(pg.Columns[auditRow]()).ColumnExpr("n.name AS key_name, ? AS shown", shown).
			Join("LEFT JOIN api_keys AS n ON n.id = e.key_id")
	}
}

// auditLog builds the query of a page of the audit log.
type auditLog struct {
	caller  *domain.Caller
	client  *domain.ClientID // that of the filter
	key     domain.KeyID     // that of the filter; zero for none
	matches pg.Conditions    // what entries must match, wherever they are found
	keyset  pg.Keyset[loggedRow]
	window  domain.Window
}

// rows selects the entries of the page. They are found in ranges of indexes: as many as the page may have are read from
// each range, so that the cost does not grow with the log. An entry may be in two ranges: of a client and of the
// caller's key.
func (l auditLog) rows(ctx context.Context) pg.Query {
	found := l.ranges(ctx)
	for i, r := range found {
		if i > 0 {
			found[0] = pg.SQL("? UNION ?", found[0], r)
		}
	}
	return pg.SQL("SELECT e.* FROM audit_entries AS e WHERE e.id = ANY(ARRAY(?))",
		l.page(pg.FromRows(found[0], "e").ColumnExpr("e.id")))
}

// ranges selects the first entries of each range: the columns of their keys, which are in the indexes.
func (l auditLog) ranges(ctx context.Context) []pg.Query {
	clients := func(condition pg.Query) pg.Query {
		return l.each(pg.SQL("(SELECT c.id FROM clients AS c WHERE ? AND ?) AS r", withinReachOrArchived(ctx), condition), "e.client_id = r.id")
	}
	key := func(id domain.KeyID) pg.Query { // each of its secrets has a range
		return l.each(pg.SQL("(SELECT t.key_id, t.prefix FROM "+KeyTexts+" AS t WHERE t.key_id = ?) AS r", id),
			"e.key_prefix = r.prefix AND e.key_id = r.key_id")
	}
	switch {
	case l.client != nil:
		return []pg.Query{clients(pg.SQL("c.id = ?", *l.client))}
	case !l.key.IsZero() && (l.caller.AllClients || l.key == l.caller.Key && l.caller.Only.IsZero()):
		return []pg.Query{key(l.key)}
	case !l.key.IsZero(), !l.caller.Only.IsZero():
		return []pg.Query{clients(pg.SQL("true"))}
	case !l.caller.AllClients:
		return []pg.Query{key(l.caller.Key), clients(pg.SQL("true"))}
	}
	return []pg.Query{l.each(pg.SQL("(VALUES (?::uuid)) AS r (partner_id)", l.caller.Partner), "e.partner_id = r.partner_id")}
}

// each selects, from each row r of ranges, the first entries that are in its range.
func (l auditLog) each(ranges pg.Query, inRange string) pg.Query {
	q := pg.From("audit_entries AS e").ColumnExpr("e.id, e.at, e.entry_id").Where(inRange)
	for _, m := range l.matches {
		q.Where("?", m)
	}
	return pg.SQL("SELECT e.id, e.at, e.entry_id FROM ? CROSS JOIN LATERAL (?) AS e", ranges, l.page(q))
}

// page limits a query to the entries, alias e, that the page begins with.
func (l auditLog) page(q *bun.SelectQuery) pg.Query { return l.keyset.Window(q, l.window) }
