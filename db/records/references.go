package records

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"reflect"
	"time"

	"partnerapi/db"
	"partnerapi/db/pg"
	"partnerapi/domain"
	"partnerapi/domain/rule"
)

// The objects that records refer to, and unique names.

// objectKey identifies an object by the prefix of its kind and its id.
type objectKey struct {
	prefix string
	id     [16]byte
}

// foundObject is an object that records refer to.
type foundObject struct {
	ID        domain.ClientID // the id of any kind, not only of clients
	ClientID  domain.ClientID // the client that it belongs to; of a client, its own id
	PartnerID domain.PartnerID
	CreatedAt time.Time
	// Archived reports whether a partner is archived.
	Archived bool
	// ManualGroup is the Manual group of a client.
	ManualGroup *domain.GroupID
}

// objects are the objects that records refer to. The value is nil if the object does not exist.
type objects map[objectKey]*foundObject

// objectQueries are the queries of the kinds of objects that records may refer to, with the columns of foundObject.
var objectQueries = []struct{ prefix, query string }{
	{domain.PartnerID{}.Prefix(), "SELECT o.id, o.archived_at IS NOT NULL AS archived FROM partners AS o"},
	{domain.CourseID{}.Prefix(), "SELECT o.id FROM courses AS o"},
	{domain.TemplateID{}.Prefix(), "SELECT o.id FROM phishing_templates AS o"},
	{domain.ClientID{}.Prefix(), `SELECT o.id, o.id AS client_id, o.partner_id,
		(SELECT g.id FROM groups AS g WHERE g.client_id = o.id AND g.manual) AS manual_group FROM clients AS o`},
	{domain.GroupID{}.Prefix(), "SELECT o.id, o.client_id FROM groups AS o"},
	{domain.CollectionID{}.Prefix(), "SELECT o.id, o.client_id FROM collections AS o"},
	{domain.UserID{}.Prefix(), "SELECT o.id, o.client_id, o.created_at FROM users AS o"},
	{domain.FrameworkAssignmentID{}.Prefix(), "SELECT o.id, o.client_id FROM framework_assignments AS o"},
}

// want adds the objects that a field's value refers to, for lookUp. An AnyRef may refer to a group or a collection.
func (o objects) want(value any) {
	switch v := value.(type) {
	case reference:
		o[objectKey{v.Prefix(), v.Bytes()}] = nil
	case domain.AnyRef:
		o[objectKey{domain.GroupID{}.Prefix(), v.UUID}] = nil
		o[objectKey{domain.CollectionID{}.Prefix(), v.UUID}] = nil
	case domain.AudienceRecord:
		if v.ID != nil {
			o.want(*v.ID)
		}
	case []domain.ProgramCourse:
		for _, p := range v {
			o.want(p.Course)
		}
	case []domain.MemberRecord:
		for _, m := range v {
			o.want(m.User)
		}
	case []domain.TrainingReason:
		for _, r := range v {
			if !r.Framework.IsZero() {
				o.want(r.Framework)
			}
		}
	case []domain.Ref[domain.CollectionKind]:
		for _, r := range v {
			o.want(r)
		}
	}
}

// reference is any domain.Ref.
type reference interface {
	Prefix() string
	Noun() string
	Bytes() [16]byte
}

// ids returns the ids of the objects of a kind, by its prefix.
func (o objects) ids(prefix string) (ids [][16]byte) {
	for key := range o {
		if key.prefix == prefix {
			ids = append(ids, key.id)
		}
	}
	return ids
}

// find returns the object that a reference names, or nil if it does not exist.
func (o objects) find(r reference) *foundObject { return o[objectKey{r.Prefix(), r.Bytes()}] }

// isOf reports whether an object exists and belongs to a client.
func (f *foundObject) isOf(client domain.ClientID) bool { return f != nil && f.ClientID == client }

// lookUp reads the wanted objects into the map, with one statement for each kind. Missing ones stay nil.
func lookUp(ctx context.Context, c *db.Change, wanted objects) error {
	for _, q := range objectQueries {
		ids := wanted.ids(q.prefix)
		if len(ids) == 0 {
			continue
		}
		rows, err := pg.All[foundObject](ctx, c, "look up the objects of references",
			pg.SQL(q.query+" WHERE o.id = ANY(?::uuid[])", ids))
		if err != nil {
			return err
		}
		for i := range rows {
			wanted[objectKey{q.prefix, rows[i].ID}] = &rows[i]
		}
	}
	return nil
}

// importFirst tells how to add missing templates.
const importFirst = "; import the templates first: partnerapi templates import"

// noSuch returns the refusal of a record whose field refers to an object that does not exist.
func noSuch(field string, to reference) error {
	reason := field + ": " + domain.NoSuchObject(to.Noun())
	if to.Prefix() == (domain.TemplateID{}).Prefix() {
		reason += importFirst
	}
	return errors.New(reason)
}

// cannotChange returns the refusal of a record that changes a fixed field.
func cannotChange(field string) error { return errors.New(field + " cannot be changed") }

// missing returns the refusal of a new object that lacks a field.
func missing(field string) error { return errors.New(field + " " + rule.Required) }

// archivedClients returns the archived ones among clients. Changes of their objects write no events.
func archivedClients(ctx context.Context, c *db.Change, ids []domain.ClientID) (map[domain.ClientID]bool, error) {
	return pg.Existing(ctx, c, "look for archived clients", "clients WHERE archived_at IS NOT NULL AND", sortedUnique(ids))
}

// names describes a name or address that must be unique.
type names[Row any] struct {
	field, column string // the field of the record, for errors, and the column of the row
	// nameOf returns the name of a row and its scope. The key is empty if the row needs no unique name.
	nameOf func(*Row) name
	// held is the SQL condition that a row, alias t, has the name k (scope, key, email).
	held string
	// emailOf returns the address of a row if the name is the key of one. Rows may have the same key with several
	// addresses if they were stored before keys were compared; they keep it. Nil for other names.
	emailOf func(*Row) string
}

// name is a name, or the key of an address, within a scope, such as a client.
type name struct{ Scope, Key string }

// emailNames describes the addresses of the rows of a table, which are unique within a client, by their keys.
func emailNames[Row any](clientOf func(*Row) *domain.ClientID, emailOf func(*Row) string) *names[Row] {
	return &names[Row]{
		field: "email", column: "email", emailOf: emailOf,
		held: "t.client_id = k.scope::uuid AND " + db.EmailKeyOf("t") + " IN (k.key, k.email)",
		nameOf: func(r *Row) name {
			client := clientOf(r)
			if client == nil { // an admin of a partner
				return name{domain.ClientID{}.UUID(), ""}
			}
			return name{client.UUID(), domain.EmailKey(emailOf(r))}
		},
	}
}

// holderRow is an object that has a name.
type holderRow struct {
	ID   domain.ClientID // the id of any kind, not only of clients
	Text string          // the column of the name
	name
}

// claim is a record that changes the name of its object, or gives one to a new object.
type claim[Record, Row any] struct {
	*recordChange[Record, Row]
	id     [16]byte
	wanted name
	email  string // the address, if the name is the key of one
	// respelled is true if the object has the name already, and only the address changes.
	respelled bool
}

// settleNames refuses records that claim a name that another object has. A name is free if another record of the batch
// makes its holder give it up. Of several claims of a name the first one wins. The unique index is checked for each row
// even within a statement, so names that pass from one object to another are first replaced by unique placeholders.
func (b *recordBatch[Record, Row]) settleNames(ctx context.Context) error {
	n := b.kind.names
	if n == nil {
		return nil
	}
	var claims []claim[Record, Row]
	var scopes, keys, emails []string
	for _, a := range b.list {
		if a.refused() {
			continue
		}
		c := claim[Record, Row]{recordChange: a, id: idOf(a.after), wanted: n.nameOf(a.after)}
		before, emailBefore := name{}, ""
		if n.emailOf != nil {
			c.email = n.emailOf(a.after)
		}
		if a.before != nil {
			before = n.nameOf(a.before)
			if n.emailOf != nil {
				emailBefore = n.emailOf(a.before)
			}
		}
		if c.respelled = c.wanted == before; c.respelled && c.email == emailBefore || c.wanted.Key == "" && a.before == nil {
			continue // keeps its name, or needs none
		}
		claims = append(claims, c) // with an empty key it only gives its old name up
		scopes, keys, emails = append(scopes, c.wanted.Scope), append(keys, c.wanted.Key), append(emails, c.email)
	}
	if len(claims) == 0 {
		return nil
	}
	rows, err := pg.All[holderRow](ctx, b, "look for names", pg.SQL(`
		SELECT DISTINCT t.id, t.`+n.textColumn()+`::text AS text, k.scope, k.key FROM `+pg.Table[Row]()+` AS t
		JOIN unnest(?::text[], ?::text[], ?::text[]) AS k (scope, key, email) ON `+n.held, scopes, keys, emails))
	if err != nil {
		return err
	}
	holders := map[name][]holderRow{}
	for _, h := range rows {
		holders[h.name] = append(holders[h.name], h)
	}
	return b.releaseNames(ctx, claims, b.claim(claims, holders))
}

// textColumn returns a column with the text of the name.
func (n *names[Row]) textColumn() string { return cmp.Or(n.column, "id") }

// releaseNames replaces names by placeholders: those that pass to others or, of addresses, all that change.
func (b *recordBatch[Record, Row]) releaseNames(ctx context.Context, claims []claim[Record, Row], passing [][16]byte) error {
	if b.kind.names.emailOf == nil {
		if len(passing) == 0 {
			return nil
		}
		return pg.Run(ctx, b, "replace names by placeholders", pg.SQL(
			"UPDATE "+pg.Table[Row]()+" SET "+b.kind.names.column+" = '~' || id WHERE id = ANY(?::uuid[])", passing))
	}
	var changed, respelled [][16]byte
	for _, c := range claims {
		if c.before == nil || c.refused() {
			continue
		}
		if changed = append(changed, c.id); c.respelled {
			respelled = append(respelled, c.id)
		}
	}
	return b.ChangeEmails(ctx, pg.Table[Row](), changed, respelled)
}

// claim refuses the records whose names are taken, and returns the objects whose names pass to others. An object whose
// record is refused keeps its name, so that claims of that name are refused too: claim repeats until nothing changes.
func (b *recordBatch[Record, Row]) claim(claims []claim[Record, Row], holders map[name][]holderRow) (passing [][16]byte) {
	changing := map[[16]byte]*claim[Record, Row]{} // the objects that change their names
	for i := range claims {
		changing[claims[i].id] = &claims[i]
	}
	for stable := false; !stable; {
		stable, passing = true, nil
		claimed := map[name][16]byte{}
		for _, c := range claims {
			if c.refused() || c.wanted.Key == "" { // it claims no name
				continue
			}
			wanted := c.wanted
			if c.respelled { // it has the key, and claims the address only
				wanted.Key = "=" + c.email
			}
			other, refuse := claimed[wanted] // an earlier record claims the name
			for _, h := range holders[c.wanted] {
				if h.ID == c.id || c.respelled && h.Text != c.email {
					continue
				}
				if holder := changing[h.ID]; holder != nil && (c.respelled || !holder.respelled) {
					passing = append(passing, h.ID)
				} else if !refuse {
					other, refuse = h.ID, true
				}
			}
			if refuse {
				c.refuse(takenBy[Record](b.kind.names.field, other))
				c.result.Clashes, stable = true, false
				delete(changing, c.id) // the object keeps its name
				continue
			}
			claimed[wanted] = c.id
		}
	}
	return passing
}

// takenBy returns the refusal of a record that claims the name of another object of its kind.
func takenBy[Record any](field string, other [16]byte) error {
	id := reflect.New(reflect.TypeFor[Record]()).Elem().FieldByName("ID")
	id.Field(0).Set(reflect.ValueOf(other).Convert(id.Field(0).Type())) // Field(0) is the id in a domain.Ref
	return fmt.Errorf("%s: the %s %s has it already", field, id.Interface().(reference).Noun(), id.Interface())
}
