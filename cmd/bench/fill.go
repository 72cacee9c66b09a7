package main

import (
	"context"
	"database/sql"
	"fmt"
	"io"
	"time"

	"partnerapi/cmd/internal/bar"
)

// What the seed has little of is made here, by statements that make many rows
// each, when a measure first needs it.

const (
	// policies is how many policies the largest client has, the seed's included.
	policies = 10
	// mailsEach is how many mails every user was sent: 5,000,000 to 100,000.
	mailsEach = 50
	// mailsFrom is when the first of them were sent: each user gets one a day.
	mailsFrom = "2026-01-01T00:00:00Z"

	measuredPolicy     = "Measured policy"
	measuredCollection = "Measured collection"
)

// papers makes a collection of all users of the largest client, and policies
// that most of their audiences signed. One is the collection's, the others are
// for all.
func (d *data) papers(ctx context.Context, progress io.Writer) error {
	return d.once(ctx, "papers", progress, func(tx *sql.Tx, _ func(done, total int)) error {
		client := d.clients[0].UUID()
		return filled(ctx, tx, []string{"collection_members", "policy_signatures"}, func() error {
			return execAll(ctx, tx, []statement{
				{`INSERT INTO collections (client_id, id, name, name_key, member_count, created_by, created_at, updated_at)
				SELECT $1, gen_random_uuid(), $2, lower($2), count(*), 'api', now(), now() FROM users WHERE client_id = $1`, []any{client, measuredCollection}},
				{`INSERT INTO collection_members (client_id, collection_id, user_id, added_at)
				SELECT $1, k.id, u.id, now() - make_interval(mins => (row_number() OVER (ORDER BY u.id) / 10)::integer)
				FROM users AS u JOIN collections AS k USING (client_id) WHERE client_id = $1 AND k.name = $2`, []any{client, measuredCollection}},
				{`INSERT INTO policies (client_id, id, title, scope_type, scope_id, requires_acknowledgment, reviewed_at, created_at, updated_at)
				SELECT k.client_id, gen_random_uuid(), $2 || ' ' || n, CASE n WHEN 1 THEN 'collection' ELSE 'tenant' END,
					CASE n WHEN 1 THEN k.id ELSE k.client_id END, true, now(), now() - make_interval(mins => 100 - n), now()
				FROM collections AS k, generate_series(1, $4 - 1) AS n WHERE k.client_id = $1 AND k.name = $3`,
					[]any{client, measuredPolicy, measuredCollection, policies}},
				{`INSERT INTO policy_signatures (client_id, policy_id, user_id, version, signed_at)
				SELECT p.client_id, p.id, u.id, p.version, now() - make_interval(days => abs(hashtext(u.id::text || p.title)) % 400)
				FROM policies AS p JOIN users AS u USING (client_id)
				WHERE client_id = $1 AND starts_with(p.title, $2) AND hashtext(p.title || u.id::text) % 10 <> 0`, []any{client, measuredPolicy}},
			})
		})
	})
}

// mails makes the records of the mails that every user was sent. They are
// stored in the order of their time, as they come in life: those of one user
// are far apart.
func (d *data) mails(ctx context.Context, progress io.Writer) error {
	return d.once(ctx, "mails", progress, func(tx *sql.Tx, shown func(done, total int)) error {
		return filled(ctx, tx, []string{"sent_emails"}, func() error {
			for n := range mailsEach {
				_, err := tx.ExecContext(ctx, `
					INSERT INTO sent_emails (client_id, user_id, id, sent_at, from_email, subject, send_method, message_type)
					SELECT client_id, id, gen_random_uuid(), at, 'no-reply@bench.example', 'Message ' || $1::integer, 'smtp',
						(ARRAY['training-invite', 'phishing', 'phish-reminder', 'certificate', 'monthly-report'])[1 + $1::integer % 5]
					FROM (
						SELECT client_id, id, $2::timestamptz + make_interval(days => $1::integer, secs => 1.3 * (hashtext(id::text) & 65535)) AS at FROM users
					) AS u`, n, mailsFrom)
				if err != nil {
					return fmt.Errorf("make mails: %w", err)
				}
				shown(n+1, mailsEach)
			}
			return nil
		})
	})
}

// statement is one with its values.
type statement struct {
	text   string
	values []any
}

func execAll(ctx context.Context, tx *sql.Tx, statements []statement) error {
	for _, s := range statements {
		if _, err := tx.ExecContext(ctx, s.text, s.values...); err != nil {
			return fmt.Errorf("%.60s...: %w", s.text, err)
		}
	}
	return nil
}

// once makes a part of the data, unless the database has it.
func (d *data) once(ctx context.Context, part string, progress io.Writer,
	fill func(tx *sql.Tx, shown func(done, total int)) error) error {
	begin := time.Now()
	tx, err := d.db.SQL().BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }() // does nothing after a commit
	err = execAll(ctx, tx, []statement{{"CREATE TABLE IF NOT EXISTS bench_parts (name text PRIMARY KEY)", nil}})
	if err != nil {
		return err
	}
	var there bool
	if err := tx.QueryRowContext(ctx, "SELECT EXISTS (SELECT 1 FROM bench_parts WHERE name = $1)",
		part).Scan(&there); err != nil || there {
		return err
	}
	fmt.Fprintf(progress, "making %s\n", part)
	if err := fill(tx, bar.New(progress, "making "+part)); err != nil {
		return err
	}
	if _, err := tx.ExecContext(ctx, "INSERT INTO bench_parts (name) VALUES ($1)", part); err != nil {
		return err
	}
	if err := tx.Commit(); err != nil {
		return err
	}
	if _, err := d.db.SQL().ExecContext(ctx, "VACUUM ANALYZE"); err != nil {
		return fmt.Errorf("vacuum: %w", err)
	}
	fmt.Fprintf(progress, "made %s in %s\n", part, time.Since(begin).Round(time.Second))
	return nil
}

// filled fills tables without their keys and indexes, which are put back when
// the rows are there: that is several times as quick.
func filled(ctx context.Context, tx *sql.Tx, tables []string, fill func() error) error {
	var drops, restores []statement
	for _, table := range tables {
		drop, restore, err := keysOf(ctx, tx, table)
		if err != nil {
			return fmt.Errorf("read the keys of %s: %w", table, err)
		}
		drops, restores = append(drops, drop...), append(restores, restore...)
	}
	if err := execAll(ctx, tx, drops); err != nil {
		return err
	}
	if err := fill(); err != nil {
		return err
	}
	return execAll(ctx, tx, append([]statement{{"SET LOCAL maintenance_work_mem = '512MB'", nil}}, restores...))
}

// keysOf is what drops a table's keys and indexes, and what restores them.
func keysOf(ctx context.Context, tx *sql.Tx, table string) (drops, restores []statement, err error) {
	rows, err := tx.QueryContext(ctx, `
		SELECT format('ALTER TABLE %I DROP CONSTRAINT %I', $1::text, conname),
			format('ALTER TABLE %I ADD CONSTRAINT %I %s', $1::text, conname, pg_get_constraintdef(oid))
		FROM pg_constraint WHERE conrelid = $1::regclass AND contype IN ('p', 'u', 'f')
		UNION ALL
		SELECT format('DROP INDEX %I', relname), pg_get_indexdef(indexrelid)
		FROM pg_index JOIN pg_class ON pg_class.oid = indexrelid
		WHERE indrelid = $1::regclass AND NOT EXISTS (SELECT 1 FROM pg_constraint WHERE conindid = indexrelid)`, table)
	if err != nil {
		return nil, nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var drop, restore string
		if err := rows.Scan(&drop, &restore); err != nil {
			return nil, nil, err
		}
		drops, restores = append(drops, statement{drop, nil}), append(restores, statement{restore, nil})
	}
	return drops, restores, rows.Err()
}
