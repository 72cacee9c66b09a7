package db

import (
	"context"

	"partnerapi/domain"
)

// refreshNextDue stores for some of a client's users, or with nil for all of
// them, which incomplete course is due first. updated_at moves with it, for it
// is shown. It is called in the transaction that gives or completes courses;
// the users are locked in the order of their ids.
func (d *DB) refreshNextDue(ctx context.Context, client domain.ClientID, users []domain.UserID) error {
	condition := "u.client_id = ?0"
	if users != nil {
		condition += " AND u.id = ANY(?1::uuid[])"
	}
	return d.refreshNextDueWhere(ctx, condition, client, uuids(users))
}

// refreshNextDueWhere is refreshNextDue for the users, alias u, that a condition
// on ?0 and ?1 selects.
func (d *DB) refreshNextDueWhere(ctx context.Context, condition string, arg0, arg1 any) error {
	_, err := d.conn(ctx).NewRaw(`
		WITH locked AS MATERIALIZED (
			SELECT u.client_id, u.id FROM users AS u WHERE `+condition+` ORDER BY u.client_id, u.id FOR NO KEY UPDATE
		)
		UPDATE users AS u SET next_due_on = n.due_on, next_course_id = n.course_id, updated_at = greatest(u.updated_at, ?2)
		FROM locked AS l LEFT JOIN LATERAL (
			SELECT a.due_on, a.course_id FROM assignments AS a
			WHERE a.client_id = l.client_id AND a.user_id = l.id AND a.completed_at IS NULL
			ORDER BY a.due_on, a.position, a.course_id LIMIT 1
		) AS n ON true
		WHERE u.client_id = l.client_id AND u.id = l.id
		AND (u.next_due_on, u.next_course_id) IS DISTINCT FROM (n.due_on, n.course_id)`,
		arg0, arg1, d.Now()).Exec(ctx)
	return d.bad("store what is due next", err)
}
