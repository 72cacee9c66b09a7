package migrate

import (
	"context"
	"database/sql"

	"github.com/pressly/goose/v3"
)

// supersededVersion and supersededName are those of the migration that marks superseded rounds.
const (
	supersededVersion = 95
	supersededName    = "00095_superseded.go"
)

// supersededStep says what the migration does to others: it locks rows of one client at a time.
func supersededStep() Step { return Step{Name: supersededName} }

// supersededMigration marks the rounds of courses that a later round follows, which are there
// from before column superseded.
func supersededMigration() *goose.Migration {
	return goose.NewGoMigration(supersededVersion, &goose.GoFunc{RunDB: markSuperseded}, nil)
}

// markSuperseded has a transaction for each client. It may be repeated.
func markSuperseded(ctx context.Context, db *sql.DB) error {
	clients, err := renewedClients(ctx, db)
	if err != nil {
		return err
	}
	for _, client := range clients {
		_, err := db.ExecContext(ctx, `
			WITH earlier AS MATERIALIZED (
				SELECT a.user_id, a.course_id, a.round FROM assignments AS a
				WHERE a.client_id = $1::uuid AND NOT a.superseded AND EXISTS (SELECT FROM assignments AS later
					WHERE later.client_id = a.client_id AND later.user_id = a.user_id AND later.course_id = a.course_id
					AND later.round > a.round)
				ORDER BY a.user_id, a.course_id, a.round FOR NO KEY UPDATE OF a
			)
			UPDATE assignments AS a SET superseded = true FROM earlier AS e
			WHERE a.client_id = $1::uuid AND a.user_id = e.user_id AND a.course_id = e.course_id AND a.round = e.round`, client)
		if err != nil {
			return err
		}
	}
	return nil
}

// renewedClients returns the ids of the clients with a second round of a course.
func renewedClients(ctx context.Context, db *sql.DB) (ids []string, err error) {
	rows, err := db.QueryContext(ctx, "SELECT DISTINCT client_id::text FROM assignments WHERE round > 1")
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var id string
		if err := rows.Scan(&id); err != nil {
			return nil, err
		}
		ids = append(ids, id)
	}
	return ids, rows.Err()
}
