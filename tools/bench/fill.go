package main

import (
	"context"
	"fmt"
	"time"

	"partnerapi/db/pg"
	"partnerapi/domain"
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
	// published is how many events of the seed's partner are there to be read.
	published = 200_000
	// evaluatedEach is how many collections each of evaluatedFrameworks is assigned
	// to where 1,000 assignments are evaluated.
	evaluatedEach       = 100
	evaluatedFrameworks = 10

	measuredPolicy      = "Measured policy"
	measuredCollection  = "Measured collection"
	evaluatedCollection = "Evaluated collection"
)

// papers makes a collection of all users of the largest client, and policies
// that most of their audiences signed. One is the collection's, the others are
// for all.
func (d *data) papers(ctx context.Context) {
	client := d.clients[0]
	d.once(ctx, "papers", []string{"collection_members", "policy_signatures"}, func(ctx context.Context) {
		d.exec(ctx, `
			INSERT INTO collections (client_id, id, name, name_key, member_count, created_by, created_at, updated_at)
			SELECT $1, gen_random_uuid(), $2, lower($2), count(*), 'api', now(), now() FROM users WHERE client_id = $1`,
			client, measuredCollection)
		d.exec(ctx, `INSERT INTO collection_members (client_id, collection_id, user_id, added_at)
			SELECT $1, k.id, u.id, now() - make_interval(mins => (row_number() OVER (ORDER BY u.id) / 10)::integer)
			FROM users AS u JOIN collections AS k USING (client_id) WHERE client_id = $1 AND k.name = $2`,
			client, measuredCollection)
		d.exec(ctx, `INSERT INTO policies
				(client_id, id, title, scope_type, scope_id, requires_acknowledgment, reviewed_at, created_at, updated_at)
			SELECT k.client_id, gen_random_uuid(), $2 || ' ' || n, CASE n WHEN 1 THEN 'collection' ELSE 'tenant' END,
				CASE n WHEN 1 THEN k.id ELSE k.client_id END, true, now(), now() - make_interval(mins => 100 - n), now()
			FROM collections AS k, generate_series(1, $4 - 1) AS n WHERE k.client_id = $1 AND k.name = $3`,
			client, measuredPolicy, measuredCollection, policies)
		d.exec(ctx, `INSERT INTO policy_signatures (client_id, policy_id, user_id, version, signed_at)
			SELECT p.client_id, p.id, u.id, p.version,
				now() - make_interval(days => abs(hashtext(u.id::text || p.title)) % 400)
			FROM policies AS p JOIN users AS u USING (client_id)
			WHERE client_id = $1 AND starts_with(p.title, $2) AND hashtext(p.title || u.id::text) % 10 <> 0`,
			client, measuredPolicy)
	})
}

// mails makes the records of the mails that every user was sent. They are
// stored in the order of their time, as they come in life: those of one user
// are far apart.
func (d *data) mails(ctx context.Context) {
	d.once(ctx, "mails", []string{"sent_emails"}, func(ctx context.Context) {
		for n := range mailsEach {
			d.exec(ctx, `
				INSERT INTO sent_emails (client_id, user_id, id, sent_at, from_email, subject, send_method, message_type)
				SELECT client_id, id, gen_random_uuid(),
					$2::timestamptz + make_interval(days => $1::integer, secs => 1.3 * (hashtext(id::text) & 65535)),
					'no-reply@bench.example', 'Message ' || $1::integer, 'smtp',
					(ARRAY['training-invite', 'phishing', 'phish-reminder', 'certificate', 'monthly-report'])
						[1 + $1::integer % 5]
				FROM users`, n, mailsFrom)
		}
	})
}

// parts makes collections of the second largest client, each of a part of its
// users.
func (d *data) parts(ctx context.Context) {
	client := d.clients[1]
	d.once(ctx, "parts", nil, func(ctx context.Context) {
		d.exec(ctx, `INSERT INTO collections (client_id, id, name, name_key, created_by, created_at, updated_at)
			SELECT $1, gen_random_uuid(), $2 || ' ' || n, lower($2 || ' ' || n), 'api', now(), now()
			FROM generate_series(0, $3::integer - 1) AS n`, client, evaluatedCollection, evaluatedEach)
		d.exec(ctx, `INSERT INTO collection_members (client_id, collection_id, user_id, added_at)
			SELECT client_id, k.id, u.id, now() FROM users AS u JOIN collections AS k USING (client_id)
			WHERE client_id = $1 AND k.name = $2 || ' ' || abs(hashtext(u.id::text)) % $3::integer`,
			client, evaluatedCollection, evaluatedEach)
		d.exec(ctx, `UPDATE collections AS k SET member_count =
				(SELECT count(*) FROM collection_members AS m WHERE m.client_id = k.client_id AND m.collection_id = k.id)
			WHERE client_id = $1 AND starts_with(name, $2)`, client, evaluatedCollection)
	})
}

// publishedEvents makes events of all clients in turns, as if they were published.
func (d *data) publishedEvents(ctx context.Context) {
	d.once(ctx, "published events", nil, func(ctx context.Context) {
		d.exec(ctx, `
			WITH head AS (UPDATE event_head SET position = position + $2 RETURNING position - $2 AS position)
			INSERT INTO published_events (partner_id, position, client_id, id, type, created_at, body)
			SELECT $1, head.position + n, c.id, gen_random_uuid(), t.type, now(), format(
				'{"id":"evt_01h455vb4pex5vsknk084sn02q","type":"%s","created_at":"2026-06-15T12:00:00.000000Z",' ||
				'"client_id":"cli_01h455vb4pex5vsknk084sn02q","data":{"id":"usr_01h455vb4pex5vsknk084sn02q",' ||
				'"email":"user%s@bench.example","first_name":"User","last_name":"%s","job_title":"Accountant",' ||
				'"status":"active","updated_at":"2026-06-15T12:00:00.000000Z"}}', t.type, n, n)
			FROM head, generate_series(1, $2::bigint) AS n
			JOIN (SELECT id, row_number() OVER (ORDER BY id) - 1 AS place, count(*) OVER () AS of FROM clients
				WHERE partner_id = $1) AS c ON c.place = n % c.of
			JOIN (SELECT type, place - 1 AS place FROM unnest($3::text[]) WITH ORDINALITY AS t (type, place)) AS t
				ON t.place = n % cardinality($3::text[])`,
			d.partner, published, domain.EventType("").Values())
	})
}

// once makes a part of the data, unless the database has it. The keys and indexes of
// the tables that get very many rows are dropped and put back when the rows are
// there: that is several times as quick.
func (d *data) once(ctx context.Context, part string, tables []string, fill func(context.Context)) {
	begin := time.Now()
	made := false
	check(d.db.Tx(ctx, func(ctx context.Context) error {
		return try(func() {
			d.exec(ctx, "CREATE TABLE IF NOT EXISTS bench_parts (name text PRIMARY KEY)")
			made = must(pg.Exec(ctx, d.db, "note a part", pg.SQL(
				"INSERT INTO bench_parts (name) VALUES (?) ON CONFLICT DO NOTHING", part))) > 0
			if !made {
				return
			}
			keys := d.keysOf(ctx, tables)
			for _, k := range keys {
				d.exec(ctx, k.Drop)
			}
			fill(ctx)
			d.exec(ctx, "SET LOCAL maintenance_work_mem = '512MB'")
			for _, k := range keys {
				d.exec(ctx, k.Restore)
			}
		})
	}))
	if made {
		d.exec(ctx, "VACUUM ANALYZE")
		fmt.Fprintf(d.progress, "made %s in %s\n", part, rounded(time.Since(begin)))
	}
}

// tableKey is what drops a key or index of a table, and what restores it.
type tableKey struct{ Drop, Restore string }

func (d *data) keysOf(ctx context.Context, tables []string) []tableKey {
	return all[tableKey](ctx, d, `
		SELECT format('ALTER TABLE %s DROP CONSTRAINT %I', conrelid::regclass, conname) AS drop,
			format('ALTER TABLE %s ADD CONSTRAINT %I %s', conrelid::regclass, conname, pg_get_constraintdef(oid)) AS restore
		FROM pg_constraint WHERE conrelid = ANY ($1::text[]::regclass[]) AND contype IN ('p', 'u', 'f')
		UNION ALL
		SELECT format('DROP INDEX %s', indexrelid::regclass), pg_get_indexdef(indexrelid)
		FROM pg_index
		WHERE indrelid = ANY ($1::text[]::regclass[]) AND NOT EXISTS (SELECT FROM pg_constraint WHERE conindid = indexrelid)`,
		tables)
}
