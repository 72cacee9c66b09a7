package records

import (
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

// What records refer to.

// objectKey names an object: the prefix of its kind, and its id.
type objectKey struct {
	prefix string
	id     [16]byte
}

// foundObject is an object that records refer to.
type foundObject struct {
	ID        domain.ClientID // of whichever kind
	ClientID  domain.ClientID // whose it is; a client's own
	PartnerID domain.PartnerID
	CreatedAt time.Time
	// ManualGroup is a client's group of users who are kept by hand.
	ManualGroup *domain.GroupID
}

// objects are the objects that records refer to; nil for one that does not exist.
type objects map[objectKey]*foundObject

// objectQueries find the objects of each kind that records refer to.
var objectQueries = []struct{ prefix, query string }{
	{domain.PartnerKind{}.Prefix(), "SELECT o.id FROM partners AS o"},
	{domain.CourseKind{}.Prefix(), "SELECT o.id FROM courses AS o"},
	{domain.TemplateKind{}.Prefix(), "SELECT o.id FROM phishing_templates AS o"},
	{domain.ClientKind{}.Prefix(), `SELECT o.id, o.id AS client_id, o.partner_id,
		(SELECT g.id FROM groups AS g WHERE g.client_id = o.id AND g.manual) AS manual_group FROM clients AS o`},
	{domain.GroupKind{}.Prefix(), "SELECT o.id, o.client_id FROM groups AS o"},
	{domain.CollectionKind{}.Prefix(), "SELECT o.id, o.client_id FROM collections AS o"},
	{domain.UserKind{}.Prefix(), "SELECT o.id, o.client_id, o.created_at FROM users AS o"},
}

// want adds the objects that a value refers to, for lookUp.
func (o objects) want(value any) {
	switch v := value.(type) {
	case reference:
		o[objectKey{v.Prefix(), v.Bytes()}] = nil
	case domain.AnyRef:
		o[objectKey{domain.GroupKind{}.Prefix(), v.UUID}] = nil
		o[objectKey{domain.CollectionKind{}.Prefix(), v.UUID}] = nil
	case domain.AudienceRecord:
		if v.ID != nil {
			o.want(*v.ID)
		}
	case []domain.ProgramCourse:
		for _, p := range v {
			o.want(p.Course)
		}
	case []domain.Ref[domain.UserKind]:
		for _, r := range v {
			o.want(r)
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

// ids are those of the wanted objects of a kind.
func (o objects) ids(prefix string) (ids [][16]byte) {
	for key := range o {
		if key.prefix == prefix {
			ids = append(ids, key.id)
		}
	}
	return ids
}

// find returns the object that a reference names; nil if it does not exist.
func (o objects) find(r reference) *foundObject { return o[objectKey{r.Prefix(), r.Bytes()}] }

// isOf reports whether an object exists and belongs to a client.
func (f *foundObject) isOf(client domain.ClientID) bool { return f != nil && f.ClientID == client }

// lookUp finds the wanted objects, in one statement for each of their kinds.
func lookUp(ctx context.Context, c *db.Change, wanted objects) error {
	for _, q := range objectQueries {
		ids := wanted.ids(q.prefix)
		if len(ids) == 0 {
			continue
		}
		rows, err := pg.All[foundObject](ctx, c, "look for what records refer to",
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
	if to.Prefix() == (domain.TemplateKind{}).Prefix() {
		reason += importFirst
	}
	return errors.New(reason)
}

// cannotChange returns the refusal of a record that changes a fixed field.
func cannotChange(field string) error { return errors.New(field + " cannot be changed") }

// missing returns the refusal of a new object that lacks a field.
func missing(field string) error { return errors.New(field + " " + rule.Required) }

// archivedClients returns which of the clients are archived: changes of their objects write
// no events.
func archivedClients(ctx context.Context, c *db.Change, ids []domain.ClientID) (map[domain.ClientID]bool, error) {
	return pg.Existing(ctx, c, "look for archived clients", "clients WHERE archived_at IS NOT NULL AND", sortedUnique(ids))
}

// names describes a name or address that must be unique.
type names[Row any] struct {
	field, column string
	// of returns the name of a row and its scope; the key is empty if the row has none.
	of func(*Row) name
	// held is the condition that an object of the table, alias t, has the name k.
	held string
}

// name is a name or an address within a scope, such as a client.
type name struct{ Scope, Key string }

// holderRow is an object that has a name.
type holderRow struct {
	ID domain.ClientID // of whichever kind
	name
}

// settleNames refuses records that claim another object's name. A name that its holder gives
// up in the batch is free; of several claims of a name the first one wins. Names that move
// from one object to another are given up first, for no two objects may have one even within
// a statement.
func (b *recordBatch[Record, Row]) settleNames(ctx context.Context) error {
	n := b.kind.names
	if n == nil {
		return nil
	}
	var claims []*recordChange[Record, Row]
	var scopes, keys []string
	moving := map[[16]byte]bool{} // objects that give up their names
	for _, a := range b.list {
		if a.refused() {
			continue
		}
		had, wanted := name{}, n.of(a.after)
		if a.before != nil {
			had = n.of(a.before)
		}
		if wanted == had || wanted.Key == "" && a.before == nil {
			continue
		}
		claims, moving[idOf(a.after)] = append(claims, a), true
		scopes, keys = append(scopes, wanted.Scope), append(keys, wanted.Key)
	}
	if len(claims) == 0 {
		return nil
	}
	rows, err := pg.All[holderRow](ctx, b, "look for names", pg.SQL(`
		SELECT t.id, k.scope, k.key FROM `+pg.Table[Row]()+` AS t
		JOIN unnest(?::text[], ?::text[]) AS k (scope, key) ON `+n.held, scopes, keys))
	if err != nil {
		return err
	}
	holders := pg.Index(rows, func(r *holderRow) (name, [16]byte) { return r.name, r.ID })
	giving := b.claim(claims, holders, moving)
	if len(giving) == 0 {
		return nil
	}
	_, err = pg.Exec(ctx, b, "take names away", pg.SQL(
		"UPDATE "+pg.Table[Row]()+" SET "+n.column+" = '~' || id WHERE id = ANY(?::uuid[])", giving))
	return err
}

// claim refuses the claims that cannot be met, and returns the objects whose names go to
// others. A refused object keeps its own name, which may refuse further claims.
func (b *recordBatch[Record, Row]) claim(
	claims []*recordChange[Record, Row], holders map[name][16]byte, moving map[[16]byte]bool,
) (giving [][16]byte) {
	for settled := false; !settled; {
		settled, giving = true, nil
		taken := map[name][16]byte{}
		for _, a := range claims {
			id, wanted := idOf(a.after), b.kind.names.of(a.after)
			if a.refused() || wanted.Key == "" {
				continue
			}
			holder, held := holders[wanted]
			other, lost := taken[wanted]
			if held && !moving[holder] {
				other, lost = holder, true
			}
			switch {
			case lost:
				a.refuse(takenBy[Record](b.kind.names.field, other))
				a.result.Clashes, moving[id], settled = true, false, false
				continue
			case held:
				giving = append(giving, holder)
			}
			taken[wanted] = id
		}
	}
	return giving
}

// takenBy returns the refusal of a record that claims the name of another object of its kind.
func takenBy[Record any](field string, other [16]byte) error {
	id := reflect.New(reflect.TypeFor[Record]()).Elem().FieldByName("ID")
	id.Field(0).Set(reflect.ValueOf(other).Convert(id.Field(0).Type()))
	return fmt.Errorf("%s: the %s %s has it already", field, id.Interface().(reference).Noun(), id.Interface())
}
