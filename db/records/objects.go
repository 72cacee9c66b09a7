package records

import (
	"context"
	"errors"
	"reflect"
	"time"

	"partnerapi/db"
	"partnerapi/db/pg"
	"partnerapi/domain"
	"partnerapi/domain/rule"
)

// The objects that records refer to.

// reference is any domain.Ref or domain.ID.
type reference interface {
	Prefix() string
	Noun() string
	Bytes() [16]byte
}

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

// isOf reports whether an object exists and belongs to a client.
func (f *foundObject) isOf(client domain.ClientID) bool { return f != nil && f.ClientID == client }

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

// want adds an object, for lookUp. It ignores the zero id.
func (o objects) want(r reference) {
	if r.Bytes() != [16]byte{} {
		o[objectKey{r.Prefix(), r.Bytes()}] = nil
	}
}

// wantAll adds the objects that an addressable value, its fields and its items refer to. An AnyRef may refer to a group
// or a collection.
func (o objects) wantAll(value reflect.Value) {
	switch value.Kind() {
	case reflect.Pointer:
		if !value.IsNil() {
			o.wantAll(value.Elem())
		}
	case reflect.Slice:
		for i := range value.Len() {
			o.wantAll(value.Index(i))
		}
	case reflect.Struct:
		switch to := value.Addr().Interface().(type) {
		case reference:
			o.want(to)
		case *domain.AnyRef:
			o.want(domain.GroupID(to.UUID))
			o.want(domain.CollectionID(to.UUID))
		default:
			for _, f := range value.Fields() {
				if f.CanInterface() {
					o.wantAll(f)
				}
			}
		}
	}
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
const importFirst = "; first, import the templates with partnerapi templates import"

// noSuch returns the refusal of a record whose field refers to an object that does not exist.
func noSuch(field string, to reference) error {
	reason := field + ": " + domain.NoSuchObject(to.Noun())
	if to.Prefix() == (domain.TemplateID{}).Prefix() {
		reason += importFirst
	}
	return errors.New(reason)
}

// noneOfClient returns the refusal of a record whose field refers to an object that its client does not have.
func noneOfClient(field, noun string) error {
	return errors.New(field + ": the client has no such " + noun)
}

// errOtherPartner refuses a client that is not of the record's partner.
var errOtherPartner = errors.New("client belongs to another partner")

// cannotChange returns the refusal of a record that changes a fixed field.
func cannotChange(field string) error { return errors.New(field + " cannot be changed") }

// missing returns the refusal of a new object that lacks a field.
func missing(field string) error { return errors.New(field + " " + rule.Required) }

// archivedClients returns the archived ones among clients. Changes of their objects write no events.
func archivedClients(ctx context.Context, c *db.Change, ids []domain.ClientID) (map[domain.ClientID]bool, error) {
	return pg.Existing(ctx, c, "look for archived clients", "clients WHERE archived_at IS NOT NULL AND", sortedUnique(ids))
}
