package db

import (
	"context"
	"errors"
	"time"

	"partnerapi/db/pg"
	"partnerapi/domain"
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

// objects are those that records refer to; nil where they are not there.
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

// want has the objects looked up that a value refers to.
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

// find is the object that a reference is to; nil where it is not there.
func (o objects) find(r reference) *foundObject { return o[objectKey{r.Prefix(), r.Bytes()}] }

// isOf reports whether an object is there and a client's.
func (f *foundObject) isOf(client domain.ClientID) bool { return f != nil && f.ClientID == client }

// lookUp finds the wanted objects, in one statement for each of their kinds.
func (c *Change) lookUp(ctx context.Context, wanted objects) error {
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

// importFirst says how templates come that are not there.
const importFirst = "; import the templates first: partnerapi templates import"

// noSuch refuses a record whose field refers to what is not there.
func noSuch(field string, to reference) error {
	reason := field + ": " + domain.NoSuchObject(to.Noun())
	if to.Prefix() == (domain.TemplateKind{}).Prefix() {
		reason += importFirst
	}
	return errors.New(reason)
}

// cannotChange refuses a record that says another thing than before of what stays as it
// is.
func cannotChange(field string) error { return errors.New(field + " cannot be changed") }

// missing refuses a new object that lacks a field.
func missing(field string) error { return errors.New(field + " is missing") }

// archivedClients are those of the clients that are archived: their changes are no
// events.
func (c *Change) archivedClients(ctx context.Context, ids []domain.ClientID) (map[domain.ClientID]bool, error) {
	return existing(ctx, c, "look for archived clients", "clients WHERE archived_at IS NOT NULL AND", sortedUnique(ids))
}
