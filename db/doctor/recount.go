package doctor

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"partnerapi/db"
	"partnerapi/db/pg"
	"partnerapi/domain"
)

const (
	// recountAtOnce bounds the wrong counts that one comparison finds, and
	// recountBatch those that one transaction corrects.
	recountAtOnce = 50_000
	recountBatch  = 500
)

// Miscount is a stored count that differed from what it counts.
type Miscount struct {
	// Counter names the counts, as in "users of clients".
	Counter string `json:"counter"`
	// Key is the row's, a JSON object of columns.
	Key json.RawMessage `json:"key"`
	// Stored and Counted are the values as PostgreSQL writes a row: (4,1).
	Stored  string `json:"stored"`
	Counted string `json:"counted"`
}

// storedCount describes counts that are stored in rows of their own or of their parent.
// The transaction that changes what they count moves them too, so in one snapshot both
// are equal.
type storedCount struct {
	name, table string
	// keys are the columns of the primary key, the first of them that of a client or
	// partner; values those of the counts.
	keys, values []string
	// none is the value of a key without counted rows.
	none string
	// counted is a query for keys and values, with %s for a condition on the first
	// key, whose column is scope.
	counted, scope string
	// shown counts move updated_at.
	shown bool
}

var storedCounts = []storedCount{
	{
		name: "clients of partners", table: "partners", keys: []string{"id"}, values: []string{"client_count"}, none: "0",
		scope: "partner_id", counted: `SELECT partner_id AS id, count(*) AS client_count
			FROM clients WHERE archived_at IS NULL AND %s GROUP BY 1`,
	}, {
		name: "users of clients", table: "clients", keys: []string{"id"}, values: []string{"users_active", "users_inactive"}, none: "0",
		scope: "client_id", shown: true, counted: `SELECT client_id AS id, count(*) FILTER (WHERE status = 'active') AS users_active,
			count(*) FILTER (WHERE status = 'inactive') AS users_inactive FROM users WHERE %s GROUP BY 1`,
	}, {
		name: "frameworks of clients", table: "clients", keys: []string{"id"}, values: []string{"framework_ids"}, none: "'{}'::text[]",
		scope: "client_id", shown: true, counted: `SELECT client_id AS id, array_agg(DISTINCT framework_id ORDER BY framework_id)
			AS framework_ids FROM framework_assignments WHERE %s GROUP BY 1`,
	}, {
		name: "members of collections", table: "collections", keys: []string{"client_id", "id"}, values: []string{"member_count"},
		none: "0", scope: "client_id", shown: true, counted: `SELECT client_id, collection_id AS id, count(*) AS member_count
			FROM collection_members WHERE %s GROUP BY 1, 2`,
	}, {
		name: "phishing by day", table: "phishing_days", keys: []string{"client_id", "day"},
		values: []string{"sent", "opened", "clicked", "reported", "credentials_submitted", "attachments_opened"},
		none:   "0", scope: "client_id", counted: `SELECT client_id, (sent_at AT TIME ZONE 'UTC')::date AS day, count(*) AS sent,
			count(*) FILTER (WHERE status <> 'sent') AS opened,
			count(*) FILTER (WHERE status IN ('attachment_opened', 'clicked', 'credentials_submitted')) AS clicked,
			count(*) FILTER (WHERE reported) AS reported, count(credentials_submitted_at) AS credentials_submitted,
			count(attachment_opened_at) AS attachments_opened
			FROM phishing_results WHERE sent_at IS NOT NULL AND %s GROUP BY 1, 2`,
	}, {
		name: "uses of templates", table: "template_uses", keys: []string{"client_id", "template_id"}, values: []string{"used"},
		none: "0", scope: "client_id", counted: `SELECT client_id, template_id, count(*) AS used
			FROM phishing_results WHERE failure IS DISTINCT FROM '` + domain.FailureCancelled + `' AND %s GROUP BY 1, 2`,
	}, {
		name: "superseded rounds", table: "assignments", keys: []string{"client_id", "user_id", "course_id", "round"},
		values: []string{"superseded"}, none: "false", scope: "client_id", counted: `SELECT client_id, user_id, course_id, round,
			true AS superseded FROM assignments AS a WHERE %s AND EXISTS (SELECT 1 FROM assignments AS later
				WHERE later.client_id = a.client_id AND later.user_id = a.user_id AND later.course_id = a.course_id
				AND later.round > a.round)`,
	},
}

// signatures names the counts of policies, which are made when they are read, and
// kept until a writer says that they are stale.
const signatures = "sign-off of policies"

// Counters are the names of all stored counts.
func Counters() (names []string) {
	for _, c := range storedCounts {
		names = append(names, c.name)
	}
	return append(names, signatures)
}

// RecountDue recounts the counters that a process of the previous release may have
// missed, as migrations list them: while such a process may run, and once after that.
func RecountDue(ctx context.Context, d *db.DB) ([]Miscount, error) {
	begun := d.Now()
	names, err := pg.All[string](ctx, d, "read what is to be recounted", pg.SQL("SELECT counter FROM recounts ORDER BY counter"))
	if err != nil || len(names) == 0 {
		return nil, err
	}
	wrong, err := Recount(ctx, d, names...)
	if err != nil {
		return wrong, err
	}
	_, err = pg.Exec(ctx, d, "note what was recounted", pg.SQL("DELETE FROM recounts WHERE until <= ?", begun))
	return wrong, err
}

// Recount compares stored counts with what they count: those of names or, without
// names, all. It corrects the counts that differ, and returns them. Others may write
// meanwhile.
func Recount(ctx context.Context, d *db.DB, names ...string) (wrong []Miscount, err error) {
	asked := map[string]bool{}
	for _, name := range names {
		asked[name] = true
	}
	for _, c := range storedCounts {
		if len(names) > 0 && !asked[c.name] {
			continue
		}
		found, err := c.recount(ctx, d)
		wrong = append(wrong, found...)
		if err != nil {
			return wrong, fmt.Errorf("recount the %s: %w", c.name, err)
		}
	}
	if len(names) > 0 && !asked[signatures] {
		return wrong, nil
	}
	found, err := recountPolicies(ctx, d)
	return append(wrong, found...), err
}

// AddCounts inserts missing stored counts, for rows that were copied without their
// counts.
func AddCounts(ctx context.Context, d *db.DB, names ...string) error {
	for _, c := range storedCounts {
		if !slices.Contains(names, c.name) {
			continue
		}
		columns := strings.Join(slices.Concat(c.keys, c.values), ", ")
		_, err := pg.Exec(ctx, d, "count the "+c.name, pg.SQL(fmt.Sprintf("INSERT INTO %s (%s) SELECT %[2]s FROM (%s) AS n ON CONFLICT DO NOTHING",
			c.table, columns, fmt.Sprintf(c.counted, "true"))))
		if err != nil {
			return err
		}
	}
	return nil
}

// recount compares and corrects the counts of one kind.
func (c storedCount) recount(ctx context.Context, d *db.DB) (wrong []Miscount, err error) {
	for {
		found, err := pg.All[Miscount](ctx, d, "compare "+c.name, c.compare())
		if err != nil {
			return wrong, err
		}
		for rest := found; len(rest) > 0; {
			batch := rest[:min(recountBatch, len(rest))]
			rest = rest[len(batch):]
			if err := c.correct(ctx, d, batch); err != nil {
				return wrong, err
			}
			wrong = append(wrong, batch...)
		}
		if len(found) < recountAtOnce {
			return wrong, nil
		}
	}
}

// here is the condition that the client of a column is served here. The rows of a partner
// that arrives from another cell come table by table, and those of one that left are no
// longer whole: their counts need not be equal.
func here(client string) string {
	return client + " IN (SELECT id FROM clients WHERE partner_id NOT IN (" + away + "))"
}

const away = "SELECT partner_id FROM moves WHERE step IN ('arriving', 'gone')"

// here is the condition that a stored count is of a partner that is served here.
func (c storedCount) here() string {
	if c.table == "partners" {
		return "id NOT IN (" + away + ")"
	}
	return here(c.keys[0])
}

// compare reads the stored counts that differ. It locks nothing: in one snapshot
// correct counts are equal.
func (c storedCount) compare() pg.Query {
	var key, stored, counted []string
	for _, k := range c.keys {
		key = append(key, "'"+k+"', "+k)
	}
	for _, v := range c.values {
		stored = append(stored, fmt.Sprintf("coalesce(s.%s, %s)", v, c.none))
		counted = append(counted, fmt.Sprintf("coalesce(n.%s, %s)", v, c.none))
	}
	was, is := "ROW("+strings.Join(stored, ", ")+")", "ROW("+strings.Join(counted, ", ")+")"
	return pg.SQL(fmt.Sprintf(`
		SELECT ?0::text AS counter, json_build_object(%s)::text AS key, %s::text AS stored, %s::text AS counted
		FROM %s AS s FULL JOIN (%s) AS n USING (%s) WHERE %[2]s <> %[3]s AND %[7]s ORDER BY %[6]s LIMIT ?1`,
		strings.Join(key, ", "), was, is, c.table, fmt.Sprintf(c.counted, "true"), strings.Join(c.keys, ", "), c.here()),
		c.name, recountAtOnce)
}

// correct locks the rows and then counts: a transaction that moves a count holds its
// row until its commit, and one that has not moved it yet waits for this one's.
func (c storedCount) correct(ctx context.Context, d *db.DB, wrong []Miscount) error {
	list, err := json.Marshal(pg.MapRows(wrong, func(w *Miscount) json.RawMessage { return w.Key }))
	if err != nil {
		return err
	}
	keys := strings.Join(c.keys, ", ")
	var set, differ, none, same []string
	for _, v := range c.values {
		set = append(set, fmt.Sprintf("%s = coalesce(n.%[1]s, %s)", v, c.none))
		differ = append(differ, fmt.Sprintf("s.%s <> coalesce(n.%[1]s, %s)", v, c.none))
		none = append(none, c.none)
	}
	for _, k := range c.keys {
		same = append(same, fmt.Sprintf("s.%s = k.%[1]s", k))
	}
	if c.shown {
		set = append(set, "updated_at = greatest(s.updated_at, ?1)")
	}
	asked := fmt.Sprintf("(SELECT %s FROM json_populate_recordset(NULL::%s, ?0::json)) AS k", keys, c.table)

	return d.Tx(ctx, func(ctx context.Context) error {
		steps := []string{
			fmt.Sprintf("SELECT FROM %s AS s JOIN %s USING (%s) ORDER BY %[3]s FOR NO KEY UPDATE OF s", c.table, asked, keys),
			fmt.Sprintf("UPDATE %s AS s SET %s FROM %s LEFT JOIN (%s) AS n USING (%s) WHERE %s AND (%s)", c.table,
				strings.Join(set, ", "), asked, fmt.Sprintf(c.counted, c.scope+" IN (SELECT "+c.keys[0]+
					" FROM json_populate_recordset(NULL::"+c.table+", ?0::json))"), keys,
				strings.Join(same, " AND "), strings.Join(differ, " OR ")),
		}
		if len(c.keys) > 1 && c.table != "collections" && c.table != "assignments" { // whose rows come with the first count
			steps = append([]string{fmt.Sprintf("INSERT INTO %s (%s, %s) SELECT %s, %s FROM %s ORDER BY %[2]s ON CONFLICT DO NOTHING",
				c.table, keys, strings.Join(c.values, ", "), keys, strings.Join(none, ", "), asked)}, steps...)
		}
		for _, step := range steps {
			if _, err := pg.Exec(ctx, d, "correct "+c.name, pg.SQL(step, string(list), d.Now())); err != nil {
				return err
			}
		}
		return nil
	})
}

// recountPolicies recounts the sign-off of the policies whose stored counts are not
// stale, and stores it, as a read does for stale ones.
func recountPolicies(ctx context.Context, d *db.DB) (wrong []Miscount, err error) {
	type held struct {
		Client   domain.ClientID
		Policies []string
	}
	clients, err := pg.All[held](ctx, d, "find policies whose counts hold", pg.SQL(`
		SELECT client_id AS client, array_agg(id::text ORDER BY id) AS policies FROM policies
		WHERE requires_acknowledgment AND counted_until > ? AND `+here("client_id")+` GROUP BY 1 ORDER BY 1`, d.Now()))
	if err != nil {
		return nil, err
	}
	for _, c := range clients {
		found, err := pg.All[Miscount](ctx, d, "recount the "+signatures, pg.SQL(db.PolicyCountsSQL+db.StorePolicyCountsSQL+`
			SELECT ?3::text AS counter, json_build_object('client_id', p.client_id, 'id', id)::text AS key,
				ROW(p.audience_count, p.acknowledged_count)::text AS stored, ROW(c.audience, c.acknowledged)::text AS counted
			FROM counted AS c JOIN policies AS p USING (id)
			WHERE p.client_id = ?0 AND p.counted_until > ?2
				AND (p.audience_count, p.acknowledged_count) <> (c.audience, c.acknowledged)`,
			c.Client, c.Policies, d.Now(), signatures))
		wrong = append(wrong, found...)
		if err != nil {
			return wrong, fmt.Errorf("recount the %s: %w", signatures, err)
		}
	}
	return wrong, nil
}
