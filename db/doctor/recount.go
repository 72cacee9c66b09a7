package doctor

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"partnerapi/db"
	"partnerapi/db/pg"
	"partnerapi/domain"
)

const (
	// recountAtOnce is the greatest number of wrong counts that one comparison returns, and
	// recountBatch the greatest number that one transaction corrects.
	recountAtOnce = 50_000
	recountBatch  = 500
)

// Miscount is a stored count that was wrong.
type Miscount struct {
	// Counter is the name of the stored counts, such as "users of clients".
	Counter string `json:"counter"`
	// Key is the row's key, as a JSON object of columns.
	Key json.RawMessage `json:"key"`
	// Stored is the wrong value and Counted the right one, as texts of rows: (4,1).
	Stored  string `json:"stored"`
	Counted string `json:"counted"`
}

// storedCount describes counts that are stored in columns of a table. Each transaction that changes the counted rows
// updates the counts too, so in a snapshot the stored counts equal the counted ones.
type storedCount struct {
	name, table string
	// keys are the columns of the primary key, of which the first is the id of a client or
	// partner; values are the columns of the counts.
	keys, values []string
	// none is the value for a key without counted rows, in SQL.
	none string
	// counted is a query that selects keys and values, with %s for a condition on scope,
	// the counted rows' column for the first key.
	counted, scope string
	// shown is true if a correction must set updated_at, because callers see the counts.
	shown bool
	// countsOnly is true if the table's rows exist for the counts only, so that one can be missing.
	countsOnly bool
}

// countsOfDay are the counts of sent emails.
const countsOfDay = `count(*) AS sent, count(*) FILTER (WHERE status <> 'sent') AS opened,
	count(*) FILTER (WHERE status IN ('attachment_opened', 'clicked', 'credentials_submitted')) AS clicked,
	count(*) FILTER (WHERE reported) AS reported, count(credentials_submitted_at) AS credentials_submitted,
	count(attachment_opened_at) AS attachments_opened`

// storedCounts describes all stored counts except the counts of policies.
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
		none:   "0", scope: "client_id", countsOnly: true, counted: `SELECT client_id, (sent_at AT TIME ZONE 'UTC')::date AS day,
			` + countsOfDay + ` FROM phishing_results WHERE sent_at IS NOT NULL AND %s GROUP BY 1, 2`,
	}, {
		name: "phishing by label and day", table: "phishing_label_days", keys: []string{"client_id", "label_key", "day"},
		values: []string{"sent", "opened", "clicked", "reported", "credentials_submitted", "attachments_opened"},
		none:   "0", scope: "client_id", countsOnly: true, counted: `SELECT client_id, label_key, (sent_at AT TIME ZONE 'UTC')::date AS day,
			` + countsOfDay + ` FROM phishing_results WHERE label_key IS NOT NULL AND sent_at IS NOT NULL AND %s GROUP BY 1, 2, 3`,
	}, {
		name: "sends by label", table: "phishing_labels", keys: []string{"client_id", "key"}, values: []string{"sends", "cancelled"},
		none: "0", scope: "client_id", counted: `SELECT client_id, label_key AS key, count(*) FILTER (WHERE ` + db.KeptSend + `) AS sends,
			count(*) FILTER (WHERE NOT (` + db.KeptSend + `)) AS cancelled
			FROM phishing_results WHERE label_key IS NOT NULL AND %s GROUP BY 1, 2`,
	}, {
		name: "dates of labels", table: "phishing_labels", keys: []string{"client_id", "key"},
		values: []string{"first_send_at", "last_send_at"}, none: "'-infinity'::timestamptz", scope: "client_id",
		counted: `SELECT client_id, label_key AS key,
			coalesce(min(send_at) FILTER (WHERE ` + db.KeptSend + `), min(send_at)) AS first_send_at,
			coalesce(max(send_at) FILTER (WHERE ` + db.KeptSend + `), max(send_at)) AS last_send_at
			FROM phishing_results WHERE label_key IS NOT NULL AND %s GROUP BY 1, 2`,
	}, {
		name: "uses of templates", table: "template_uses", keys: []string{"client_id", "template_id"}, values: []string{"used"},
		none: "0", scope: "client_id", countsOnly: true, counted: `SELECT client_id, template_id, count(*) AS used
			FROM phishing_results WHERE ` + db.KeptSend + ` AND %s GROUP BY 1, 2`,
	}, {
		name: "superseded rounds", table: "assignments", keys: []string{"client_id", "user_id", "course_id", "round"},
		values: []string{"superseded"}, none: "false", scope: "client_id", counted: `SELECT client_id, user_id, course_id, round,
			true AS superseded FROM assignments AS a WHERE %s AND EXISTS (SELECT 1 FROM assignments AS later
				WHERE later.client_id = a.client_id AND later.user_id = a.user_id AND later.course_id = a.course_id
				AND later.round > a.round)`,
	},
}

// policyCounter is the name of the counts of policies. A read computes and stores them if
// they are stale; writers mark them as stale.
const policyCounter = "sign-off of policies"

// RecountDue recounts the counters in the table recounts: migrations add counters that
// processes of the previous release do not update. A counter stays there until such a
// process can no longer be running, and one recount began after that.
func RecountDue(ctx context.Context, d *db.DB) ([]Miscount, error) {
	startedAt := d.Now()
	names, err := pg.All[string](ctx, d, "read what is to be recounted", pg.SQL("SELECT counter FROM recounts ORDER BY counter"))
	if err != nil || len(names) == 0 {
		return nil, err
	}
	wrong, err := Recount(ctx, d, names...)
	if err != nil {
		return wrong, err
	}
	if trusted, err := d.ClockTrusted(ctx, startedAt); err != nil || !trusted {
		return wrong, err // such a process may be running, whatever the clock shows
	}
	err = pg.Run(ctx, d, "note what was recounted", pg.SQL("DELETE FROM recounts WHERE until <= ?", startedAt))
	return wrong, err
}

// Recount compares the stored counts of the counters in names, or of all counters without names, with counts of the
// rows. It corrects the wrong counts, and returns them, also with an error. Other transactions may write at the same
// time.
func Recount(ctx context.Context, d *db.DB, names ...string) (wrong []Miscount, err error) {
	for _, c := range storedCounts {
		if len(names) > 0 && !slices.Contains(names, c.name) {
			continue
		}
		found, err := c.recount(ctx, d)
		wrong = append(wrong, found...)
		if err != nil {
			return wrong, fmt.Errorf("recount the %s: %w", c.name, err)
		}
	}
	if len(names) > 0 && !slices.Contains(names, policyCounter) { // the counts of policies are not asked for
		return wrong, nil
	}
	found, err := recountPolicies(ctx, d)
	return append(wrong, found...), err
}

// AddCounts inserts the missing rows of the named stored counts, after rows were copied without their counts.
func AddCounts(ctx context.Context, d *db.DB, names ...string) error {
	for _, c := range storedCounts {
		if !slices.Contains(names, c.name) {
			continue
		}
		columns := strings.Join(slices.Concat(c.keys, c.values), ", ")
		err := pg.Run(ctx, d, "count the "+c.name, pg.SQL(fmt.Sprintf("INSERT INTO %s (%s) SELECT %[2]s FROM (%s) AS n ON CONFLICT DO NOTHING",
			c.table, columns, fmt.Sprintf(c.counted, "true" /* all rows */))))
		if err != nil {
			return err
		}
	}
	return nil
}

// recount compares and corrects c's counts, recountAtOnce at a time, and returns the wrong ones, also with an error.
func (c storedCount) recount(ctx context.Context, d *db.DB) (wrong []Miscount, err error) {
	for {
		found, err := pg.All[Miscount](ctx, d, "compare "+c.name, c.compare())
		if err != nil {
			return wrong, err
		}
		for batch := range slices.Chunk(found, recountBatch) {
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

// servedHere returns the condition that this cell serves the client whose id is in a column. The rows of partners that
// are arriving or gone may be incomplete, so that their counts need not match.
func servedHere(client string) string {
	return client + " IN (SELECT id FROM clients WHERE partner_id NOT IN (" + partnersElsewhere + "))"
}

// partnersElsewhere selects the partners that have rows in this cell, but are not served by it.
const partnersElsewhere = "SELECT partner_id FROM moves WHERE step IN ('arriving', 'gone')"

// servedHere returns the condition that this cell serves the partner of a stored count.
func (c storedCount) servedHere() string {
	if c.table == "partners" {
		return "id NOT IN (" + partnersElsewhere + ")"
	}
	return servedHere(c.keys[0])
}

// compare returns a query for the wrong counts of the partners that this cell serves, at most recountAtOnce. A missing
// stored or counted row has the values c.none. The query needs no locks, because a statement has one snapshot.
func (c storedCount) compare() pg.Query {
	var keyObject, stored, counted []string
	for _, k := range c.keys {
		keyObject = append(keyObject, "'"+k+"', "+k)
	}
	for _, v := range c.values {
		stored = append(stored, fmt.Sprintf("coalesce(s.%s, %s)", v, c.none))
		counted = append(counted, fmt.Sprintf("coalesce(n.%s, %s)", v, c.none))
	}
	storedRow, countedRow := "ROW("+strings.Join(stored, ", ")+")", "ROW("+strings.Join(counted, ", ")+")"
	keys := strings.Join(c.keys, ", ")
	return pg.SQL("SELECT ?0::text AS counter, json_build_object("+strings.Join(keyObject, ", ")+")::text AS key, "+
		storedRow+"::text AS stored, "+countedRow+"::text AS counted FROM "+c.table+" AS s FULL JOIN ("+
		fmt.Sprintf(c.counted, "true" /* all rows */)+") AS n USING ("+keys+") WHERE "+storedRow+" <> "+countedRow+
		" AND "+c.servedHere()+" ORDER BY "+keys+" LIMIT ?1", c.name, recountAtOnce)
}

// correct counts again for the keys of wrong, and stores the counts that differ. It inserts missing rows, if there can
// be any, then locks the stored rows, and only then counts: it thereby waits for transactions that have changed a
// count, and those that are about to change one wait for its commit.
func (c storedCount) correct(ctx context.Context, d *db.DB, wrong []Miscount) error {
	list := pg.MapRows(wrong, func(w *Miscount) json.RawMessage { return w.Key })
	keys := strings.Join(c.keys, ", ")
	var set, differ, none, sameKey []string
	for _, v := range c.values {
		set = append(set, v+" = coalesce(n."+v+", "+c.none+")")
		differ = append(differ, "s."+v+" <> coalesce(n."+v+", "+c.none+")")
		none = append(none, c.none)
	}
	for _, k := range c.keys {
		sameKey = append(sameKey, "s."+k+" = k."+k)
	}
	if c.shown { // callers see the count
		set = append(set, "updated_at = greatest(s.updated_at, ?1)") // ?1 is the time
	}
	wrongKeys := fmt.Sprintf("(SELECT %s FROM json_populate_recordset(NULL::%s, ?0::json)) AS k", keys, c.table)

	return d.Stamped(ctx, func(ctx context.Context, now time.Time) error {
		insert := fmt.Sprintf("INSERT INTO %s (%s, %s) SELECT %s, %s FROM %s ORDER BY %[2]s ON CONFLICT DO NOTHING",
			c.table, keys, strings.Join(c.values, ", "), keys, strings.Join(none, ", "), wrongKeys)
		lock := fmt.Sprintf("SELECT FROM %s AS s JOIN %s USING (%s) ORDER BY %[3]s FOR NO KEY UPDATE OF s", c.table, wrongKeys, keys)
		update := fmt.Sprintf("UPDATE %s AS s SET %s FROM %s LEFT JOIN (%s) AS n USING (%s) WHERE %s AND (%s)", c.table,
			strings.Join(set, ", "), wrongKeys, fmt.Sprintf(c.counted, c.scope+" IN (SELECT "+c.keys[0]+
				" FROM json_populate_recordset(NULL::"+c.table+", ?0::json))"), keys,
			strings.Join(sameKey, " AND "), strings.Join(differ, " OR "))
		steps := []string{lock, update}
		if c.countsOnly { // the table has rows for the counts only, so a row may be missing
			steps = []string{insert, lock, update}
		}
		for _, step := range steps {
			if err := pg.Run(ctx, d, "correct "+c.name, pg.SQL(step, list, now)); err != nil {
				return err
			}
		}
		return nil
	})
}

// recountPolicies recounts the signatures of the policies whose stored counts are not
// stale, and stores the counts. It returns the counts that were wrong.
func recountPolicies(ctx context.Context, d *db.DB) (wrong []Miscount, err error) {
	type clientPolicies struct {
		Client   domain.ClientID
		Policies []string
	}
	clients, err := pg.All[clientPolicies](ctx, d, "find policies whose counts are not stale", pg.SQL(`
		SELECT client_id AS client, array_agg(id::text ORDER BY id) AS policies FROM policies
		WHERE requires_acknowledgment AND ? AND `+servedHere("client_id")+` GROUP BY 1 ORDER BY 1`, db.PolicyCountsHold(d.Now())))
	if err != nil {
		return nil, err
	}
	for _, c := range clients {
		now := d.Now()
		found, err := pg.All[Miscount](ctx, d, "recount the "+policyCounter, pg.SQL(
			db.PolicyCountsSQL+db.StorePolicyCountsSQL+`
			SELECT ?counter::text AS counter, json_build_object('client_id', p.client_id, 'id', id)::text AS key,
				ROW(p.audience_count, p.acknowledged_count)::text AS stored, ROW(c.audience, c.acknowledged)::text AS counted
			FROM counted AS c JOIN policies AS p USING (id)
			WHERE p.client_id = ?client AND ?hold
				AND (p.audience_count, p.acknowledged_count) <> (c.audience, c.acknowledged)`,
			pg.Named{
				"client": c.Client, "policies": c.Policies, "now": now, "counter": policyCounter, "hold": db.PolicyCountsHold(now),
			}))
		wrong = append(wrong, found...)
		if err != nil {
			return wrong, fmt.Errorf("recount the %s: %w", policyCounter, err)
		}
	}
	return wrong, nil
}
