package records

import (
	"context"
	"iter"
	"reflect"
	"time"

	"partnerapi/db"
	"partnerapi/db/pg"
	"partnerapi/domain"
)

// Memberships is the kind of records of existing users who join the collections that the records name. Its export is
// empty: the records of Collections name the members.
var Memberships Kind = memberships{Users}

// memberships has the name and the type of Users, whose records name the collections of a user.
type memberships struct{ Kind }

func (memberships) Export(context.Context, *db.DB, domain.PartnerID) iter.Seq2[any, error] {
	return func(func(any, error) bool) {}
}

func (memberships) Import(ctx context.Context, d *db.DB, batch []any) ([]domain.ImportResult, error) {
	return importBatch(ctx, d, batch, func(ctx context.Context, c *db.Change, results []domain.ImportResult) error {
		return importMemberships(ctx, c, batch, results)
	})
}

// importMemberships imports a batch in one transaction, and sets the results.
func importMemberships(ctx context.Context, c *db.Change, batch []any, results []domain.ImportResult) error {
	found := objects{}
	for _, record := range batch {
		r := record.(*domain.UserRecord)
		found.want(r.ID)
		found.wantAll(reflect.ValueOf(&r.CollectionIDs).Elem())
	}
	// This lock also prevents the deletion of collections of these clients.
	err := c.LockAudiencesWhere(ctx, db.SharedAudiences, pg.SQL(
		"(SELECT DISTINCT client_id AS id FROM users WHERE id = ANY(?::uuid[])) AS l",
		found.ids(domain.UserID{}.Prefix())))
	if err != nil {
		return err
	}
	if err := lookUp(ctx, c, found); err != nil {
		return err
	}
	newMembers, err := lockNewMemberships(ctx, c, membershipsOf(c, batch, found, results))
	if err != nil || len(newMembers) == 0 {
		return err
	}

	c.WillLock(db.CollectionLocks)
	err = pg.Run(ctx, c, "lock collections", pg.SQL(
		"SELECT FROM collections WHERE id = ANY(?::uuid[]) ORDER BY client_id, id FOR NO KEY UPDATE",
		found.ids(domain.CollectionID{}.Prefix())))
	if err != nil {
		return err
	}
	joined := map[domain.UserID]bool{}
	for _, m := range newMembers {
		joined[m.UserID] = true
	}
	for i, record := range batch {
		if joined[record.(*domain.UserRecord).ID.ID] {
			results[i].Outcome = domain.ImportUpdated
		}
	}
	return joinAll(ctx, c, newMembers)
}

// membershipsOf returns the memberships that records name, and sets their results to unchanged. It refuses a record
// that names a collection that does not exist or belongs to another client, and leaves out records that are already
// refused.
func membershipsOf(c *db.Change, batch []any, found objects, results []domain.ImportResult) (list []membership) {
	for i, record := range batch {
		r := record.(*domain.UserRecord)
		client := domain.OrZero(found.find(r.ID)).ClientID
		for n, k := range r.CollectionIDs.Value {
			if !found.find(k).isOf(client) {
				results[i] = domain.RefuseImport("collection_ids[%d]: %s; the user was imported but not added to any collection", n,
					domain.NoSuchObject(k.Noun()))
			}
		}
		if results[i].Refusal != "" {
			continue
		}
		results[i].Outcome = domain.ImportUnchanged
		for _, k := range r.CollectionIDs.Value {
			list = append(list, membership{client, k.ID, r.ID.ID, c.At})
		}
	}
	return list
}

// membership is a user's membership in a collection of the same client.
type membership struct {
	ClientID     domain.ClientID
	CollectionID domain.CollectionID
	UserID       domain.UserID
	AddedAt      time.Time
}

// rowsOf returns memberships as an SQL FROM item with the alias w.
func rowsOf(list []membership) pg.Query {
	clients, collections, users := make([][16]byte, len(list)), make([][16]byte, len(list)), make([][16]byte, len(list))
	times := make([]time.Time, len(list))
	for i, m := range list {
		clients[i], collections[i], users[i], times[i] = m.ClientID, m.CollectionID, m.UserID, m.AddedAt
	}
	return pg.SQL(`unnest(?clients::uuid[], ?collections::uuid[], ?users::uuid[], ?times::timestamptz[])
		AS w (client_id, collection_id, user_id, added_at)`,
		pg.Named{"clients": clients, "collections": collections, "users": users, "times": times})
}

// lockNewMemberships returns those memberships of a list that are not stored yet, and locks their users.
func lockNewMemberships(ctx context.Context, c *db.Change, list []membership) ([]membership, error) {
	if len(list) == 0 {
		return nil, nil
	}
	newMembers, err := pg.All[membership](ctx, c, "look for members", pg.SQL(`
		SELECT w.client_id, w.collection_id, w.user_id, w.added_at FROM ? WHERE NOT EXISTS (
			SELECT FROM collection_members AS m
			WHERE m.client_id = w.client_id AND m.collection_id = w.collection_id AND m.user_id = w.user_id)`,
		rowsOf(list)))
	if err != nil || len(newMembers) == 0 {
		return nil, err
	}
	users := pg.MapRows(newMembers, func(m *membership) domain.UserID { return m.UserID })
	_, err = c.LockUserKeys(ctx, pg.SQL("u.id = ANY(?::uuid[])", pg.IDs(users)))
	return newMembers, err
}

// joinAll inserts the memberships of locked users in locked collections, and adds their effects to the change. The
// caller must hold a lock of the clients' audiences.
func joinAll(ctx context.Context, c *db.Change, list []membership) error {
	if len(list) == 0 {
		return nil
	}
	joined, err := c.JoinCollections(ctx, pg.SQL("SELECT * FROM ?", rowsOf(list)))
	if err != nil {
		return err
	}
	c.TouchUsers(joined...)
	c.PoliciesChanged("p.client_id = ANY(?::uuid[]) AND p.scope_type = 'collection' AND p.scope_id = ANY(?::uuid[])",
		pg.MapRows(list, func(m *membership) [16]byte { return m.ClientID }),
		pg.MapRows(list, func(m *membership) [16]byte { return m.CollectionID }))
	return c.EnterAudiences(ctx, joined)
}
