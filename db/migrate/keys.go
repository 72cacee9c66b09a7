package migrate

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"

	"github.com/pressly/goose/v3"

	"partnerapi/domain"
)

const (
	// keysVersion and keysName are those of the migration that makes keys again.
	keysVersion = 30
	keysName    = "00030_keys.go"
	// keysBatch is how many rows it reads at a time.
	keysBatch = 1000
)

// keysStep is what the migration of keys does to others: SQL files say it in their
// heads.
func keysStep() Step {
	step := Step{Name: keysName}
	for _, table := range []string{"partners", "clients", "collections", "users", "admin_invites"} {
		step.Locks = append(step.Locks, Lock{Table: table, Mode: "SHARE ROW EXCLUSIVE", PerMillion: 120})
	}
	return step
}

// keysMigration makes the values again that Go makes of others: the keys of names,
// and email addresses. Their rules have changed (decisions 2.8). Clashes lists the
// rows that clash under the new ones.
func keysMigration() *goose.Migration {
	return goose.NewGoMigration(keysVersion, &goose.GoFunc{RunTx: remakeKeys}, nil)
}

// madeColumn is a column whose values Go makes of other ones of the row.
type madeColumn struct {
	table, name string
	// of is the SQL expression of what a value is made of. Rows where it is null
	// are left alone.
	of   string
	make func(of string) string
	// shown columns move updated_at.
	shown bool
	// unique is the condition that a row's value is unique among those of its
	// parent; empty where no value need be.
	unique string
	// parent is the SQL expression of the id of what the row belongs to.
	parent string
	// apart is the value of a row whose own is another one's.
	apart func(made string, r madeRow) string
}

// madeRow is a row with the value of a made column.
type madeRow struct {
	ID     string `json:"id"`
	Parent string `json:"parent"`
	Value  string `json:"value"`

	of     string
	unique bool
}

var madeColumns = []madeColumn{
	{
		table: "partners", name: "name_key", of: "t.name", make: domain.SortKey,
		unique: "true", parent: "'00000000-0000-0000-0000-000000000000'::uuid", apart: withID,
	}, {
		table: "clients", name: "name_key", of: "t.name", make: domain.SortKey,
		unique: "t.archived_at IS NULL", parent: "t.partner_id", apart: withID,
	}, {
		table: "collections", name: "name_key", of: "t.name", make: domain.SortKey,
		unique: "true", parent: "t.client_id", apart: withID,
	}, {
		table: "users", name: "name_key", of: "t.first_name || ' ' || t.last_name", make: domain.SortKey,
		parent: "t.client_id",
	}, {
		table: "users", name: "email", of: "t.email", make: cleanEmail, shown: true,
		unique: "true", parent: "t.client_id", apart: asItIs,
	}, {
		table: "users", name: "manager_email", of: "t.manager_email", make: cleanEmail, shown: true,
		parent: "t.client_id",
	}, {
		table: "admin_invites", name: "email", of: "t.email", make: cleanEmail,
		parent: "t.client_id",
	},
}

// withID keeps a key apart from all others.
func withID(made string, r madeRow) string { return made + " " + r.ID }

// asItIs keeps an address, at which mail arrives as before.
func asItIs(_ string, r madeRow) string { return r.Value }

// cleanEmail leaves what is no address by the new rules as it is.
func cleanEmail(text string) string {
	if email, ok := domain.CleanEmail(text); ok {
		return email
	}
	return text
}

// remakeKeys makes the values of all made columns. It may be repeated.
func remakeKeys(ctx context.Context, tx *sql.Tx) error {
	// No other transaction adds a clash between the look for one and the commit.
	_, err := tx.ExecContext(ctx,
		"LOCK TABLE partners, clients, collections, users, admin_invites IN SHARE ROW EXCLUSIVE MODE")
	if err != nil {
		return fmt.Errorf("lock the tables: %w", err)
	}
	for _, m := range madeColumns {
		if err := m.remake(ctx, tx); err != nil {
			return fmt.Errorf("make %s of %s again: %w", m.name, m.table, err)
		}
	}
	return nil
}

// remake makes the column's values in the order of the rows' creation, a batch in
// each statement.
func (m madeColumn) remake(ctx context.Context, tx *sql.Tx) error {
	unique := m.unique
	if unique == "" {
		unique = "false"
	}
	_, err := tx.ExecContext(ctx, fmt.Sprintf(
		`DECLARE made NO SCROLL CURSOR FOR SELECT t.id::text, (%s)::text, t.%s, %s, %s
		FROM %s AS t WHERE (%s) IS NOT NULL ORDER BY t.created_at, t.id`,
		m.parent, m.name, m.of, unique, m.table, m.of))
	if err != nil {
		return err
	}
	for {
		rows, err := fetchMade(ctx, tx)
		if err != nil {
			return err
		}
		if err := m.store(ctx, tx, rows); err != nil {
			return err
		}
		if len(rows) < keysBatch {
			_, err := tx.ExecContext(ctx, "CLOSE made")
			return err
		}
	}
}

// fetchMade reads the next batch of rows.
func fetchMade(ctx context.Context, tx *sql.Tx) (batch []madeRow, err error) {
	rows, err := tx.QueryContext(ctx, fmt.Sprintf("FETCH %d FROM made", keysBatch))
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }() // Err tells what went wrong
	for rows.Next() {
		var r madeRow
		if err := rows.Scan(&r.ID, &r.Parent, &r.Value, &r.of, &r.unique); err != nil {
			return nil, err
		}
		batch = append(batch, r)
	}
	return batch, rows.Err()
}

// store writes the values that differ from those that are stored. A row that has
// its value already keeps it; of several that should get the same one, the first
// does, and the others get one that is apart.
func (m madeColumn) store(ctx context.Context, tx *sql.Tx, rows []madeRow) error {
	var asked []madeRow
	for _, r := range rows {
		if made := m.make(r.of); made != r.Value {
			asked = append(asked, madeRow{ID: r.ID, Parent: r.Parent, Value: made, of: r.Value, unique: r.unique})
		}
	}
	if len(asked) == 0 {
		return nil
	}
	taken, err := m.taken(ctx, tx, asked)
	if err != nil {
		return err
	}

	changed := asked[:0]
	for _, r := range asked {
		if place := [2]string{r.Parent, r.Value}; r.unique && taken[place] {
			r.Value = m.apart(r.Value, madeRow{ID: r.ID, Value: r.of})
		} else if r.unique {
			taken[place] = true
		}
		if r.Value != r.of {
			changed = append(changed, r)
		}
	}
	return m.update(ctx, tx, changed)
}

// taken tells which of the values that are asked for a row has already, each with
// its parent.
func (m madeColumn) taken(ctx context.Context, tx *sql.Tx, asked []madeRow) (map[[2]string]bool, error) {
	taken := map[[2]string]bool{}
	if m.unique == "" {
		return taken, nil
	}
	list, err := json.Marshal(asked)
	if err != nil {
		return nil, err
	}
	rows, err := tx.QueryContext(ctx, fmt.Sprintf(`
		SELECT n.parent::text, n.value FROM json_to_recordset($1::json) AS n (parent uuid, value text)
		JOIN %s AS t ON %s = n.parent AND t.%s = n.value WHERE %s`, m.table, m.parent, m.name, m.unique), string(list))
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }() // Err tells what went wrong
	for rows.Next() {
		var place [2]string
		if err := rows.Scan(&place[0], &place[1]); err != nil {
			return nil, err
		}
		taken[place] = true
	}
	return taken, rows.Err()
}

// update writes the values of a batch.
func (m madeColumn) update(ctx context.Context, tx *sql.Tx, rows []madeRow) error {
	if len(rows) == 0 {
		return nil
	}
	list, err := json.Marshal(rows)
	if err != nil {
		return err
	}
	set := m.name + " = n.value"
	if m.shown {
		set += ", updated_at = greatest(t.updated_at, now())"
	}
	_, err = tx.ExecContext(ctx, fmt.Sprintf(`
		UPDATE %s AS t SET %s FROM json_to_recordset($1::json) AS n (id uuid, parent uuid, value text)
		WHERE t.id = n.id AND %s = n.parent`, m.table, set, m.parent), string(list))
	return err
}
