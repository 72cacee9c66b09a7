package seed

import (
	"context"
	"slices"

	"partnerapi/db"
	"partnerapi/db/pg"
)

// writer copies rows into tables. After the first error, err, it does nothing.
type writer struct {
	db  *db.DB
	err error
}

// copyAtOnce is the number of parents whose rows copyRows copies in one statement.
const copyAtOnce = 2000

// copyRows copies rowsOf(parent) for each of parents into Row's table. After an error of w it does nothing.
func copyRows[P, Row any](ctx context.Context, w *writer, parents []P, rowsOf func(P) []Row) {
	for chunk := range slices.Chunk(parents, copyAtOnce) {
		if w.err == nil {
			w.err = pg.CopyRows(ctx, w.db, "seed "+pg.Table[Row](), flat(chunk, rowsOf))
		}
	}
}

// flat concatenates rowsOf(x) for each x of a list.
func flat[P, T any](list []P, rowsOf func(P) []T) (all []T) {
	for _, x := range list {
		all = append(all, rowsOf(x)...)
	}
	return all
}

// just returns a list of one row.
func just[Row any](row Row) []Row { return []Row{row} }

// copyAll copies rows into their table. After an error of w it does nothing.
func copyAll[Row any](ctx context.Context, w *writer, rows ...Row) { copyRows(ctx, w, rows, just[Row]) }

// exec executes a statement, which action names in errors. After an error of w it does nothing.
func (w *writer) exec(ctx context.Context, action, query string, args ...any) {
	if w.err == nil {
		_, w.err = pg.Exec(ctx, w.db, action, pg.SQL(query, args...))
	}
}

// writeAll writes clients with all their rows. w keeps an error.
func (w *writer) writeAll(ctx context.Context, clients []*client, program []courseSpec) {
	w.writeClients(ctx, clients, program)
	w.writeUsers(ctx, flat(clients, func(c *client) []*user { return c.users }))
	w.completeClients(ctx, clients)
}

// writeClients writes clients and those of their rows that must exist before their users, table by table in the order
// of the foreign keys. It also sets the number of clients of all partners.
func (w *writer) writeClients(ctx context.Context, clients []*client, program []courseSpec) {
	copyRows(ctx, w, clients, func(c *client) []db.ClientRow { return just(c.ClientRow) })
	w.exec(ctx, "count the clients of partners", `UPDATE partners AS p SET client_count =
		(SELECT count(*) FROM clients AS c WHERE c.partner_id = p.id AND c.archived_at IS NULL)`)
	copyRows(ctx, w, clients, func(c *client) []db.GroupRow { return c.groups })
	copyRows(ctx, w, clients, func(c *client) (rows []db.ProgramRow) {
		for _, spec := range program {
			rows = append(rows, db.ProgramRow{ClientID: c.ID, Position: spec.Position, CourseID: spec.CourseID,
				DueAfterDays: spec.DueAfterDays})
		}
		return rows
	})
	copyRows(ctx, w, clients, func(c *client) []db.FrameworkRow { return c.frameworks })
	copyRows(ctx, w, clients, func(c *client) []db.AdminRow { return c.admins })
	copyRows(ctx, w, clients, func(c *client) []invite { return c.invites })
}

// completeClients updates the totals of clients, and writes their rows that refer to users. All users must have been
// written, and computeTotals called.
func (w *writer) completeClients(ctx context.Context, clients []*client) {
	if w.err == nil {
		w.err = pg.UpdateRows(ctx, w.db, "sum up clients", flat(clients, func(c *client) []db.ClientRow { return just(c.ClientRow) }))
	}
	copyRows(ctx, w, clients, func(c *client) []dayScore { return c.history })
	w.writeUsage(ctx, clients)
	w.writeCollections(ctx, clients)
	policies := flat(clients, func(c *client) []policy { return c.policies })
	copyRows(ctx, w, policies, func(p policy) []policyRow { return just(p.policyRow) })
	copyRows(ctx, w, policies, func(p policy) []signature { return p.signatures })
	copyRows(ctx, w, clients, func(c *client) []db.ReportRow { return c.reports })
}

// writeUsers writes users with all of their rows.
func (w *writer) writeUsers(ctx context.Context, users []*user) {
	copyRows(ctx, w, users, func(u *user) []db.UserRow { return just(u.UserRow) })
	copyRows(ctx, w, users, func(u *user) []risk { return just(u.risk) })
	copyRows(ctx, w, users, func(u *user) []assignment { return u.training })
	copyRows(ctx, w, users, func(u *user) []db.ResultRow {
		return flat(u.simulations, func(s simulation) []db.ResultRow { return just(s.ResultRow) })
	})
	copyRows(ctx, w, users, func(u *user) []reportedEmail { return u.reported })
	copyRows(ctx, w, users, func(u *user) []exposure { return u.exposures })
	copyRows(ctx, w, users, func(u *user) []db.SentEmailRow { return u.sent })
}

// writeCollections writes the collections of clients. Then it deletes the deleted ones: other rows refer to them, and
// the triggers of the table must run.
func (w *writer) writeCollections(ctx context.Context, clients []*client) {
	all := flat(clients, func(c *client) []collection { return c.collections })
	copyRows(ctx, w, all, func(k collection) []db.CollectionRow { return just(k.CollectionRow) })
	copyRows(ctx, w, all, func(k collection) []member { return k.members })
	for _, k := range all {
		if k.deleted {
			w.exec(ctx, "delete a collection", "DELETE FROM collections WHERE client_id = ? AND id = ?", k.Client, k.ID)
		}
	}
}

// writeUsage writes the numbers of active users by day, as of the risk histories of clients, in place of the rows that
// the trigger of their table has written.
func (w *writer) writeUsage(ctx context.Context, clients []*client) {
	for chunk := range slices.Chunk(clients, copyAtOnce) {
		ids := pg.MapRows(chunk, func(c **client) [16]byte { return (*c).ID })
		w.exec(ctx, "drop what was counted meanwhile", "DELETE FROM active_user_days WHERE client_id = ANY(?::uuid[])", ids)
		w.exec(ctx, "seed active_user_days", `
			INSERT INTO active_user_days (client_id, day, active_users_max, active_users_last)
			SELECT client_id, day, active_users, active_users FROM (
				SELECT client_id, day, active_users, lag(active_users) OVER (PARTITION BY client_id ORDER BY day) AS before
				FROM risk_history WHERE client_id = ANY(?::uuid[])
			) AS h WHERE active_users IS DISTINCT FROM before`, ids)
	}
}
