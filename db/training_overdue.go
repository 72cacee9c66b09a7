package db

import (
	"context"

	"partnerapi/db/pg"
	"partnerapi/domain"
)

// overdueBatch is how many assignments are looked at in one transaction.
const overdueBatch = 1000

// NoteOverdue records, once for each assignment, the event that it is overdue: of a
// batch of those that became so and whose event was not recorded. It returns how many it
// looked at; fewer than that batch where none is left. An assignment that a transaction
// is at, as one that completes it, is left for the next call. Those of archived clients
// are noted without an event. Any number of processes may call it at once.
func (d *DB) NoteOverdue(ctx context.Context) (n int, more bool, err error) {
	type row struct {
		ClientID domain.ClientID
		UserID   domain.UserID
		CourseID domain.CourseID
		Archived bool
	}
	err = d.Change(ctx, func(ctx context.Context, c *Change) error {
		rows, err := pg.All[row](ctx, c, "note what is overdue", pg.SQL(`
			WITH due AS MATERIALIZED (
				SELECT client_id, user_id, course_id, round FROM assignments
				WHERE completed_at IS NULL AND NOT overdue_noted AND due_on < ?0::date
				ORDER BY due_on LIMIT ?1 FOR NO KEY UPDATE SKIP LOCKED
			)
			UPDATE assignments AS a SET overdue_noted = true
			FROM due JOIN clients AS c ON c.id = due.client_id
			WHERE a.client_id = due.client_id AND a.user_id = due.user_id AND a.course_id = due.course_id
				AND a.round = due.round
			RETURNING a.client_id, a.user_id, a.course_id, c.archived_at IS NOT NULL AS archived`,
			domain.DateOf(c.At), overdueBatch))
		for _, r := range rows {
			if !r.Archived {
				c.ObjectEvent(domain.CourseOverdue, domain.UserKey{Client: r.ClientID, User: r.UserID}, r.CourseID.UUID())
			}
		}
		n = len(rows)
		return err
	})
	return n, n == overdueBatch, err
}
