package migrate_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"partnerapi/db"
	"partnerapi/db/dbtest/fixture"
	"partnerapi/db/dbtest/worldtest"
	"partnerapi/db/migrate"
	"partnerapi/domain"
)

// TestRemakeKeys gives rows the keys of an earlier version, and makes them again.
func TestRemakeKeys(t *testing.T) {
	t.Parallel()
	w := worldtest.New(t)
	made := 0
	at := func() time.Time { made++; return worldtest.Noon.AddDate(-1, 0, 0).Add(time.Duration(made) * time.Hour) }
	client := func(name, key string, archived bool) domain.ClientID {
		t.Helper()
		id := db.NewID[domain.ClientKind]()
		client := fixture.Row{"id": id, "partner_id": w.Partner, "name": name, "name_key": key, "created_at": at()}
		if archived {
			client["archived_at"] = worldtest.Noon
		}
		w.Add("clients", client)
		return id
	}
	first, second, third := client("Straße", "straße", false), client("STRASSE", "strasse", false), client("strasse ", "strasse ", false)
	gone := client("Strasse", "strasse", true)
	wide, wider := client("A  B", "a  b", false), client("a\tb", "a\tb", false)

	collection := func(c domain.ClientID, name, key string) domain.CollectionID {
		id := db.NewID[domain.CollectionKind]()
		w.Add("collections", fixture.Row{"client_id": c, "id": id, "name": name, "name_key": key, "created_at": at()})
		return id
	}
	group, same, other := collection(first, "Größe", "größe"), collection(first, "GRÖSSE", "grösse"), collection(second, "Größe", "größe")

	user := func(c domain.ClientID, email, manager, name string) domain.UserID {
		id := w.AddUser(c, domain.RoleStandard, 500)
		w.Exec("UPDATE users SET email = $2, manager_email = nullif($3, ''), first_name = $4, last_name = '', name_key = 'x', created_at = $5 WHERE id = $1",
			id, email, manager, name, at())
		return id
	}
	ann := user(first, "ann@MÜNCHEN.example", "boss@münchen.example", "Ånn ")
	bob := user(first, "bob@münchen.example", "", "Bob")
	twin := user(first, "bob@xn--mnchen-3ya.example", "", "Bob")
	odd := user(first, "not an address", "", "Odd")
	w.Exec("INSERT INTO admin_invites (client_id, id, email, role, created_at, expires_at) VALUES ($1, $2, 'New@münchen.example', 'admin', $3, $3)",
		first, db.NewID[domain.UserKind](), worldtest.Noon)
	w.Exec("UPDATE partners SET name = 'Fuß', name_key = 'fuß'")

	state := func() map[string]string {
		t.Helper()
		state := map[string]string{}
		rows, err := w.SQL().Query(`
			SELECT id::text, name_key FROM partners UNION ALL SELECT id::text, name_key FROM clients
			UNION ALL SELECT id::text, name_key FROM collections
			UNION ALL SELECT id::text, name_key || ',' || email || ',' || coalesce(manager_email, '') FROM users
			UNION ALL SELECT 'invite', email FROM admin_invites`)
		w.Must(err)
		defer func() { _ = rows.Close() }()
		for rows.Next() {
			var id, value string
			w.Must(rows.Scan(&id, &value))
			state[id] = value
		}
		w.Must(rows.Err())
		return state
	}
	want := map[string]string{
		w.Partner.UUID(): "fuss",
		first.UUID():     "strasse " + first.UUID(), // the second one has the key already
		second.UUID():    "strasse",
		third.UUID():     "strasse " + third.UUID(),
		gone.UUID():      "strasse",
		wide.UUID():      "a b",
		wider.UUID():     "a b " + wider.UUID(),
		group.UUID():     "grösse " + group.UUID(),
		same.UUID():      "grösse",
		other.UUID():     "grösse",
		ann.UUID():       "ånn,ann@xn--mnchen-3ya.example,boss@xn--mnchen-3ya.example",
		bob.UUID():       "bob,bob@münchen.example,",
		twin.UUID():      "bob,bob@xn--mnchen-3ya.example,",
		odd.UUID():       "odd,not an address,",
		"invite":         "new@xn--mnchen-3ya.example",
	}

	for _, run := range []string{"the first run", "the second run"} {
		clashes, err := migrate.RemakeKeys(t.Context(), w.DB)
		w.Must(err)
		if got := state(); !maps.Equal(got, want) {
			t.Errorf("%s makes\n%v, want\n%v", run, got, want)
		}
		var lines []string
		for _, clash := range clashes {
			line, _, _ := strings.Cut(clash.String(), ";")
			lines = append(lines, line)
		}
		slices.Sort(lines)
		wanted := []string{
			clashLine("client", first, "Straße", second, "STRASSE"), clashLine("client", third, "strasse ", second, "STRASSE"),
			clashLine("client", wider, "a\tb", wide, "A  B"), clashLine("collection", group, "Größe", same, "GRÖSSE"),
			clashLine("user", bob, "bob@münchen.example", twin, "bob@xn--mnchen-3ya.example"),
		}
		slices.Sort(wanted)
		if !slices.Equal(lines, wanted) {
			t.Errorf("%s: clashes\n%s, want\n%s", run, strings.Join(lines, "\n"), strings.Join(wanted, "\n"))
		}
	}
	if !w.UpdatedAt("users", ann).After(worldtest.Noon.AddDate(-2, 0, 0)) || w.UpdatedAt("users", odd).After(worldtest.Noon.AddDate(-2, 0, 0)) {
		t.Error("updated_at does not tell whose address changed")
	}

	// What was renamed since clashes no longer.
	w.Exec("UPDATE clients SET name = 'Other', name_key = 'other' WHERE id = $1", third)
	w.Exec("UPDATE users SET email = 'twin@example.com' WHERE id = $1", twin)
	if clashes, err := migrate.Clashes(t.Context(), w.DB); err != nil || len(clashes) != 3 {
		t.Errorf("after two were renamed: %v, %v", clashes, err)
	}

	// A client that is kept apart can be changed, but for its name.
	update := func(change func(*db.Tenant)) error {
		return w.ChangeOf(t.Context(), first, func(ctx context.Context, c *db.Change, tenant *db.Tenant) error {
			change(tenant)
			return tenant.Update(ctx, c)
		})
	}
	w.Must(update(func(tenant *db.Tenant) { tenant.Industry = new(string) }))
	if err := update(func(tenant *db.Tenant) { tenant.Name = "straSSe" }); !domain.IsCode(err, domain.Conflict) {
		t.Errorf("a name that is taken: %v", err)
	}
}

// clashLine is how a clash of two rows begins, whose first one is kept apart.
func clashLine(kind string, id fmt.Stringer, value string, other fmt.Stringer, otherValue string) string {
	return fmt.Sprintf("%s %s (%q) has the name or address of %s %s (%q)", kind, id, value, kind, other, otherValue)
}

// TestRemakeManyKeys: more rows than are read at a time, with a clash of two that
// are read apart.
func TestRemakeManyKeys(t *testing.T) {
	t.Parallel()
	w := worldtest.New(t)
	client := w.AddClient()
	w.Exec(`INSERT INTO collections (client_id, id, name, name_key, created_by, created_at, updated_at)
		SELECT $1, gen_random_uuid(), 'N  ' || n % 1500, 'n  ' || n, 'api', $2::timestamptz + interval '1 second' * n, $2 FROM generate_series(0, 2000) AS n`,
		client, worldtest.Noon)
	clashes, err := migrate.RemakeKeys(t.Context(), w.DB)
	w.Must(err)

	var plain, apart int
	w.Get(`SELECT count(*) FILTER (WHERE name_key = 'n ' || extract(epoch FROM created_at - $1)::int),
		count(*) FILTER (WHERE name_key = 'n ' || extract(epoch FROM created_at - $1)::int - 1500 || ' ' || id) FROM collections`, []any{worldtest.Noon}, &plain, &apart)
	if got := fmt.Sprint(plain, apart, len(clashes)); got != "1500 501 501" {
		t.Errorf("%s rows have their key, are kept apart, are noted", got)
	}
}

// TestSchemaVersion counts the migration in Go.
func TestSchemaVersion(t *testing.T) {
	t.Parallel()
	have, want, err := migrate.SchemaVersion(t.Context(), worldtest.New(t).DB)
	if err != nil || have != want || want < 30 {
		t.Errorf("the tables are at %d of %d: %v", have, want, err)
	}
}
