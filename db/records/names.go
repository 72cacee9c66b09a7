package records

import (
	"context"
	"reflect"

	"partnerapi/db"
	"partnerapi/db/pg"
	"partnerapi/domain"
)

// Names and email addresses that only one object may have.

// unique describes a name that must be unique (steps.nameOf).
type unique struct {
	field, column string // the field of the record, for errors, and the column of the row
	// held is the SQL condition that a row, alias t, has the name k (scope, key, email).
	held string
}

// uniqueEmail describes the addresses of a table, which are unique within a client, by their keys. Rows may have the
// same key with several addresses if they were stored before keys were compared; they keep it.
var uniqueEmail = &unique{
	field: "email", column: "email", held: "t.client_id = k.scope::uuid AND " + db.EmailKeyOf("t") + " IN (k.key, k.email)",
}

// name is a name, or the key of an email address, within a scope, such as a client. The key is empty if the row needs
// no unique name.
type name struct{ Scope, Key string }

// holderRow is an object that has a name.
type holderRow struct {
	ID   domain.ClientID // the id of any kind, not only of clients
	Text string          // the column of the name
	name
}

// claim is a record that changes the name of its object, or gives one to a new object.
type claim struct {
	*domain.ImportResult
	id     reference
	isNew  bool
	wanted name
	email  string // the address, if the name is the key of one
	// respelled is true if the object has the name already, and only the address changes.
	respelled bool
}

// settleNames refuses records that claim a name that another object has. A name is free if another record of the batch
// makes its holder give it up. Of several claims of a name the first one wins. The unique index is checked for each row
// even within a statement, so names that pass from one object to another are first replaced by unique placeholders.
func (b *batch[Record, Row]) settleNames(ctx context.Context) error {
	if b.kind.unique == nil {
		return nil
	}
	var claims []claim
	var scopes, keys, emails []string
	for _, a := range b.list {
		if a.refused() {
			continue
		}
		c := claim{ImportResult: a.result, id: idOf(a.in), isNew: a.before == nil}
		c.wanted, c.email = b.steps.nameOf(a.after)
		if !c.isNew {
			before, email := b.steps.nameOf(a.before)
			if c.respelled = c.wanted == before; c.respelled && c.email == email {
				continue // keeps its name
			}
		} else if c.wanted.Key == "" {
			continue // needs none
		}
		claims = append(claims, c) // with an empty key it only gives its old name up
		scopes, keys, emails = append(scopes, c.wanted.Scope), append(keys, c.wanted.Key), append(emails, c.email)
	}
	if len(claims) == 0 {
		return nil
	}
	rows, err := pg.All[holderRow](ctx, b, "look for names", pg.SQL(`
		SELECT DISTINCT t.id, t.`+b.kind.unique.column+`::text AS text, k.scope, k.key FROM `+pg.Table[Row]()+` AS t
		JOIN unnest(?scopes::text[], ?keys::text[], ?emails::text[]) AS k (scope, key, email) ON `+b.kind.unique.held,
		pg.Named{"scopes": scopes, "keys": keys, "emails": emails}))
	if err != nil {
		return err
	}
	holders := map[name][]holderRow{}
	for _, h := range rows {
		holders[h.name] = append(holders[h.name], h)
	}
	return b.releaseNames(ctx, claims, refuseTaken(claims, holders, b.kind.unique.field))
}

// refuseTaken refuses the records whose names are taken, and returns the objects whose names pass to others. An object
// whose record is refused keeps its name, so that claims of that name are refused too: this repeats until nothing
// changes.
func refuseTaken(claims []claim, holders map[name][]holderRow, field string) (passing [][16]byte) {
	changing := map[[16]byte]*claim{} // the objects that change their names
	for i := range claims {
		changing[claims[i].id.Bytes()] = &claims[i]
	}
	for stable := false; !stable; {
		stable, passing = true, nil
		claimed := map[name][16]byte{}
		for _, c := range claims {
			if c.Refusal != "" || c.wanted.Key == "" { // it claims no name
				continue
			}
			id, wanted := c.id.Bytes(), c.wanted
			if c.respelled { // it has the key, and claims the address only
				wanted.Key = "=" + c.email
			}
			other, refuse := claimed[wanted] // an earlier record claims the name
			for _, h := range holders[c.wanted] {
				if h.ID == id || c.respelled && h.Text != c.email {
					continue
				}
				if holder := changing[h.ID]; holder != nil && (c.respelled || !holder.respelled) {
					passing = append(passing, h.ID)
				} else if !refuse {
					other, refuse = h.ID, true
				}
			}
			if refuse {
				*c.ImportResult = domain.RefuseImport("%s is already used by the %s %s", field, c.id.Noun(), like(c.id, other))
				c.Clashes, stable = true, false
				delete(changing, id) // the object keeps its name
				continue
			}
			claimed[wanted] = id
		}
	}
	return passing
}

// like returns the reference to another object of the same kind.
func like(ref reference, id [16]byte) reference {
	other := reflect.New(reflect.TypeOf(ref)).Elem()
	other.Field(0).Set(reflect.ValueOf(id).Convert(other.Field(0).Type())) // Field(0) is the id in a domain.Ref
	return other.Interface().(reference)
}

// releaseNames replaces names by placeholders: those that pass to others or, of addresses, all that change.
func (b *batch[Record, Row]) releaseNames(ctx context.Context, claims []claim, passing [][16]byte) error {
	if b.kind.unique != uniqueEmail {
		if len(passing) == 0 {
			return nil
		}
		return pg.Run(ctx, b, "replace names by placeholders", pg.SQL(
			"UPDATE "+pg.Table[Row]()+" SET "+b.kind.unique.column+" = '~' || id WHERE id = ANY(?::uuid[])", passing))
	}
	var all, respelled [][16]byte
	for _, c := range claims {
		if c.isNew || c.Refusal != "" {
			continue
		}
		if all = append(all, c.id.Bytes()); c.respelled {
			respelled = append(respelled, c.id.Bytes())
		}
	}
	return b.ChangeEmails(ctx, pg.Table[Row](), all, respelled)
}
