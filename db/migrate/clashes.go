package migrate

import (
	"context"
	"encoding/json"
	"fmt"

	"partnerapi/db"
	"partnerapi/db/pg"
	"partnerapi/domain"
)

// Clash is a row that has the name or the address of another one under the rules of
// decisions 2.8, and had it before there were these rules. Both stay as they are.
type Clash struct {
	// Kind is that of both, as in "client".
	Kind string `json:"kind"`
	// ID and Value are the row's, Other and OtherValue those of the one that the name or
	// the address belongs to. Ids are v2's.
	ID         string `json:"id"`
	Value      string `json:"value"`
	Other      string `json:"other"`
	OtherValue string `json:"other_value"`
	// Do says what ends the clash.
	Do string `json:"do"`
}

// String is the clash as a line.
func (c Clash) String() string {
	return fmt.Sprintf("%s %s (%q) has the name or address of %[1]s %[4]s (%[5]q); both stay, and are found as before. %[6]s",
		c.Kind, c.ID, c.Value, c.Other, c.OtherValue, c.Do)
}

// clashRow is a clash as it is stored.
type clashRow struct{ ID, Value, Other, OtherValue string }

// keptApart are the kinds of rows whose names clash: the key of the one ends with its
// id (withID). live is the condition of those whose names are unique.
var keptApart = []struct {
	kind, table, parent, live, do string
	show                          func(uuid string) string
}{
	{"partner", "partners", "true", "id IS NOT NULL", "Nothing has to be done: commands take the other one for the name.",
		shown[domain.PartnerKind]},
	{"client", "clients", "o.partner_id = t.partner_id", "archived_at IS NULL", "Rename one of them: PATCH /v2/clients/{client_id}.",
		shown[domain.ClientKind]},
	{"collection", "collections", "o.client_id = t.client_id", "id IS NOT NULL",
		"Members are found by the id; to have one name once, move the members and delete one of them.", shown[domain.CollectionKind]},
}

// shown is the v2 id of a UUID.
func shown[K domain.Kind](uuid string) string {
	id, err := domain.ParseUUID[K](uuid)
	if err != nil {
		return uuid
	}
	return id.String()
}

// Clashes lists the rows that were kept apart when the keys of names and the addresses
// were made by new rules, as long as both are there and neither has changed.
func Clashes(ctx context.Context, d *db.DB) (clashes []Clash, err error) {
	for _, k := range keptApart {
		rows, err := pg.All[clashRow](ctx, d, "list clashes of "+k.table, pg.SQL(fmt.Sprintf(`
			SELECT t.id::text AS id, t.name AS value, o.id::text AS other, o.name AS other_value
			FROM %s AS t JOIN %[1]s AS o ON %s AND o.name_key = left(t.name_key, -37)
			WHERE right(t.name_key, 37) = ' ' || t.id AND t.%s AND o.%[3]s ORDER BY t.created_at, t.id`, k.table, k.parent, k.live)))
		if err != nil {
			return nil, err
		}
		for _, r := range rows {
			clashes = append(clashes, Clash{k.kind, k.show(r.ID), r.Value, k.show(r.Other), r.OtherValue, k.do})
		}
	}
	addresses, err := clashingAddresses(ctx, d)
	return append(clashes, addresses...), err
}

// plainAddress matches what no rule changes.
const plainAddress = `^[a-z0-9.!#$%&'*+/=?^_{|}~-]+@[a-z0-9-]+([.][a-z0-9-]+)+$`

// clashingAddresses lists the users who kept an address that another one has.
func clashingAddresses(ctx context.Context, d *db.DB) (clashes []Clash, err error) {
	type kept struct {
		ID     string `json:"id"`
		Client string `json:"client"`
		Email  string `json:"email"`
		Made   string `json:"made" bun:"-"`
	}
	rows, err := pg.All[kept](ctx, d, "list addresses", pg.SQL(
		"SELECT id::text, client_id::text AS client, email FROM users WHERE email !~ ?", plainAddress))
	if err != nil {
		return nil, err
	}
	changed := rows[:0]
	for _, r := range rows {
		if r.Made = cleanEmail(r.Email); r.Made != r.Email {
			changed = append(changed, r)
		}
	}
	list, err := json.Marshal(changed)
	if err != nil || len(changed) == 0 {
		return nil, err
	}
	found, err := pg.All[clashRow](ctx, d, "list clashing addresses", pg.SQL(`
		SELECT n.id::text AS id, n.email AS value, o.id::text AS other, o.email AS other_value
		FROM json_to_recordset(?::json) AS n (id uuid, client uuid, email text, made text)
		JOIN users AS o ON o.client_id = n.client AND o.email = n.made ORDER BY n.id`, string(list)))
	for _, r := range found {
		clashes = append(clashes, Clash{"user", shown[domain.UserKind](r.ID), r.Value, shown[domain.UserKind](r.Other), r.OtherValue,
			`Deactivate the one that is not used: PATCH /v2/users/{user_id} {"status":"inactive"}.`})
	}
	return clashes, err
}
