package move

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"partnerapi/db"
	"partnerapi/db/pg"
	"partnerapi/domain"
)

// table is a table that holds rows of partners.
type table struct {
	name string
	// rows is the SQL condition that selects the partner's rows, alias t, with the placeholders of ownedIDs.condition.
	rows string
	// last marks tables that are copied in the last transaction only: the service finds its work and its callers in
	// them, so the new cell must not have them before. The other tables are copied while they are in use.
	last bool
	// keep marks tables whose rows CleanUp does not delete.
	keep bool
	// order is the ORDER BY of the copy, for rows that get new identities in the new cell. Empty is any order.
	order string
}

const (
	ofClients = "t.client_id = ANY($clients)"
	ofPartner = "t.partner_id = $partner"
	ofKeys    = "t.key_id = ANY($keys)"
)

// tables are all tables with rows of partners. A table comes after the tables that it refers to.
var tables = slices.Concat([]table{
	{name: "partners", rows: "t.id = $partner", last: true},
	{name: "api_keys", rows: ofPartner, last: true},
	{name: "replaced_keys", rows: ofKeys, last: true},
	{name: "clients", rows: "t.id = ANY($clients)", last: true},
	{name: "api_key_clients", rows: ofKeys, last: true},
	{name: "client_risks", rows: ofClients},
	{name: "risk_history", rows: ofClients},
	{name: "active_user_days", rows: ofClients},
	{name: "mail_switches", rows: ofClients},
	{name: "program_courses", rows: ofClients},
	{name: "brands", rows: "(" + ofPartner + " OR " + ofClients + ")"},
	{name: "groups", rows: ofClients},
	{name: "users", rows: ofClients},
	{name: "user_risks", rows: ofClients},
	{name: "collections", rows: ofClients},
	{name: "collection_members", rows: ofClients},
	{name: "framework_assignments", rows: ofClients, last: true},
	{name: "assignments", rows: ofClients},
	{name: "waiting_assignments", rows: ofClients, last: true},
	{name: "exposures", rows: ofClients},
	{name: "policies", rows: ofClients},
	{name: "policy_signatures", rows: ofClients},
	{name: "template_uses", rows: ofClients},
	{name: "phishing_days", rows: ofClients},
	{name: "phishing_labels", rows: ofClients},
	{name: "phishing_label_days", rows: ofClients},
	{name: "phishing_results", rows: ofClients},
	{name: "reported_emails", rows: ofClients},
	{name: "email_classifications", rows: ofClients},
	{name: "sent_emails", rows: ofClients},
	{name: "admins", rows: ofPartner},
	{name: "admin_invites", rows: ofClients},
	{name: "reports", rows: ofClients, last: true},
	{name: "mail_requests", rows: ofClients},
	{name: "partner_mails", rows: ofPartner},
	{name: "outbox", rows: "(" + ofClients + " OR t.client_id = $partner)", last: true},
	{name: "directory_connections", rows: ofClients, last: true},
	{name: "directory_accounts", rows: ofClients},
	{name: "sync_runs", rows: ofClients, last: true},
	{name: "sync_accounts", rows: ofClients},
	{name: "events", rows: ofClients, last: true},
	{name: "published_events", rows: ofPartner},
	{name: "webhooks", rows: ofPartner, last: true},
	{name: "webhook_deliveries", rows: "t.webhook_id = ANY($webhooks)"},
	{name: "idempotency_records", rows: ofKeys},
	{name: "audit_entries", rows: "(" + ofPartner + " AND t.key_prefix = ANY($prefixes) OR " + ofClients + ")"},
},
	v1Tables, // v1-line
)

// ownedIDs holds the ids of a partner's objects by which its rows are found, and the prefixes of its keys.
type ownedIDs struct {
	Partner                           string
	Clients, Keys, Webhooks, Prefixes []string
}

// readOwnedIDs reads the ids of a partner's objects. The prefixes, which find audit entries, include that of commands.
func readOwnedIDs(ctx context.Context, d *db.DB, partner domain.PartnerID) (ownedIDs, error) {
	return pg.One[ownedIDs](ctx, d, "list the partner's objects", pg.SQL(`
		SELECT ?0::uuid::text AS partner,
			ARRAY(SELECT id::text FROM clients WHERE partner_id = ?0 ORDER BY id) AS clients,
			ARRAY(SELECT id::text FROM api_keys WHERE partner_id = ?0 ORDER BY id) AS keys,
			ARRAY(SELECT id::text FROM webhooks WHERE partner_id = ?0 ORDER BY id) AS webhooks,
			ARRAY(SELECT t.prefix FROM `+db.KeyTexts+` AS t JOIN api_keys AS k ON k.id = t.key_id
				WHERE k.partner_id = ?0 ORDER BY t.prefix) || ?1::text AS prefixes`,
		partner, domain.CommandActor))
}

// condition returns table.rows with constants for its placeholders: COPY takes no parameters. The constants are UUIDs
// and prefixes of keys, which need no escaping.
func (o ownedIDs) condition(t table) string {
	array := func(values []string, kind string) string {
		return "'{" + strings.Join(values, ",") + "}'::" + kind + "[]"
	}
	return strings.NewReplacer(
		"$partner", "'"+o.Partner+"'::uuid", "$clients", array(o.Clients, "uuid"), "$keys", array(o.Keys, "uuid"),
		"$webhooks", array(o.Webhooks, "uuid"), "$prefixes", array(o.Prefixes, "text"),
	).Replace(t.rows)
}

// shape is the columns of a table.
type shape struct {
	// columns are the columns to copy: all but generated and identity columns.
	columns []string
	// key is the primary key, or all columns if the primary key is an identity column.
	key []string
}

// shapedTable is a table that exists in a database, with its columns.
type shapedTable struct {
	table
	shape
}

// shapes returns those of the given tables that exist in a database, with the columns and the key that shape describes.
// The tables of version 1 may have been removed.
func shapes(ctx context.Context, d *db.DB, given []table) (list []shapedTable, err error) {
	names := pg.MapRows(given, func(t *table) string { return t.name })
	type column struct {
		Place         int // the index in given
		Name          string
		Identity, Key bool
	}
	found, err := pg.All[column](ctx, d, "read the columns of tables", pg.SQL(`
		SELECT n.place - 1 AS place, a.attname::text AS name, a.attidentity <> '' AS identity, EXISTS (
			SELECT FROM pg_index AS i WHERE i.indrelid = a.attrelid AND i.indisprimary AND a.attnum = ANY(i.indkey)) AS key
		FROM unnest(?::text[]) WITH ORDINALITY AS n (name, place) JOIN pg_attribute AS a ON a.attrelid = to_regclass(n.name)
		WHERE a.attnum > 0 AND NOT a.attisdropped AND a.attgenerated = ''
		ORDER BY n.place, a.attname`, names))
	for _, c := range found {
		if n := len(list); n == 0 || list[n-1].name != given[c.Place].name { // the first column of a table
			list = append(list, shapedTable{table: given[c.Place]})
		}
		s := &list[len(list)-1]
		if c.Identity { // the target assigns another value
			continue
		}
		s.columns = append(s.columns, `"`+c.Name+`"`)
		if c.Key {
			s.key = append(s.key, `"`+c.Name+`"`)
		}
	}
	for i := range list {
		if len(list[i].key) == 0 { // its primary key is an identity column
			list[i].key = list[i].columns
		}
	}
	return list, err
}

// sealedColumns returns the columns of a table that hold sealed secrets.
func sealedColumns(t table) []db.SealedColumn {
	return slices.DeleteFunc(slices.Clone(db.SealedColumns), func(c db.SealedColumn) bool { return c.Table != t.name })
}

// buckets is the number of buckets of rows by which a table is compared. It is a power of two: bucketOf masks the hash.
const buckets = 4096

// keyHash returns the SQL expression of the hash of a row's key.
func (s shape) keyHash() string {
	return fmt.Sprintf("hash_record_extended(ROW(t.%s), 0)", strings.Join(s.key, ", t."))
}

// bucketOf returns the SQL expression of the bucket of a row.
func (s shape) bucketOf() string { return fmt.Sprintf("(%s & %d)", s.keyHash(), buckets-1) }

// digestSQL returns the statement that counts and hashes the rows that match condition, grouped by the expression part.
// For sealed secrets it hashes only whether they are NULL, because the two cells seal them with different keys.
func (s shapedTable) digestSQL(part, condition string) string {
	values := make([]string, len(s.columns))
	secret := sealedColumns(s.table)
	for i, c := range s.columns {
		values[i] = "t." + c
		if slices.ContainsFunc(secret, func(s db.SealedColumn) bool { return `"`+s.Column+`"` == c }) {
			values[i] += " IS NULL"
		}
	}
	return "SELECT " + part + " AS part, count(*) AS rows, bit_xor(hash_record_extended(ROW(" +
		strings.Join(values, ", ") + "), 0)) AS hash FROM " + s.name + " AS t WHERE " + condition + " GROUP BY 1 ORDER BY 1"
}

// digest is the count and the hash of the rows of a part. A part is a bucket or the hash of a key.
type digest struct {
	Part int64
	Rows int64
	Hash int64
}

// differences returns the parts in which a and b differ, in ascending order, and the number of rows that a has in them.
func differences(a, b []digest) (differ []int64, rows int64) {
	unmatched := make(map[int64]digest, len(b))
	for _, d := range b {
		unmatched[d.Part] = d
	}
	for _, d := range a {
		if unmatched[d.Part] != d {
			differ = append(differ, d.Part)
			rows += d.Rows
		}
		delete(unmatched, d.Part)
	}
	for part := range unmatched { // parts of b only
		differ = append(differ, part)
	}
	slices.Sort(differ)
	return differ, rows
}

// anyOf returns the SQL condition that an expression is one of the numbers.
func anyOf(expression string, numbers []int64) string {
	list := strings.ReplaceAll(strings.Trim(fmt.Sprint(numbers), "[]"), " ", ",") // Sprint returns "[1 2 3]"
	return expression + " = ANY('{" + list + "}')"
}

// errOtherTables reports that the two cells have different tables, so that they run different versions.
var errOtherTables = errors.New("the two cells have different tables, or were migrated meanwhile; migrate both to the same version first")
