package db

import (
	"context"
	"iter"
	"reflect"
	"time"

	"partnerapi/db/pg"
	"partnerapi/domain"
)

// Users who join collections.

// MembershipRecords are records of users who are there: they put them into the
// collections that they name. An export has the members with their collections.
var MembershipRecords Records = memberships{}

type memberships struct{}

func (memberships) Object() string { return UserRecords.Object() }

func (memberships) Type() reflect.Type { return UserRecords.Type() }

func (memberships) Export(context.Context, *DB, domain.PartnerID) iter.Seq2[any, error] {
	return func(func(any, error) bool) {}
}

func (memberships) Import(ctx context.Context, d *DB, batch []any) ([]domain.ImportResult, error) {
	return importBatch(ctx, d, batch, func(ctx context.Context, c *Change, results []domain.ImportResult) error {
		return c.importMemberships(ctx, batch, results)
	})
}

func (c *Change) importMemberships(ctx context.Context, batch []any, results []domain.ImportResult) error {
	users, found := make([]domain.UserID, len(batch)), objects{}
	for i, record := range batch {
		r := record.(*domain.UserRecord)
		users[i] = r.ID.ID
		found.want(r.ID)
		found.want(r.CollectionIDs.Value)
	}
	// From here on no collection of theirs is deleted.
	err := c.lockAudiences(ctx, sharedLock, pg.SQL(
		"(SELECT DISTINCT client_id AS id FROM users WHERE id = ANY(?::uuid[])) AS l", pg.IDs(users)))
	if err != nil {
		return err
	}
	if err := c.lookUp(ctx, found); err != nil {
		return err
	}
	joining, err := c.lockJoining(ctx, c.membershipsOf(batch, found, results))
	if err != nil || len(joining) == 0 {
		return err
	}

	c.Lock(CollectionLocks)
	_, err = pg.Exec(ctx, c, "lock collections", pg.SQL(
		"SELECT FROM collections WHERE id = ANY(?::uuid[]) ORDER BY client_id, id FOR NO KEY UPDATE",
		found.ids(domain.CollectionKind{}.Prefix())))
	if err != nil {
		return err
	}
	joined := map[domain.UserID]bool{}
	for _, m := range joining {
		joined[m.UserID] = true
	}
	for i, user := range users {
		if joined[user] {
			results[i].Outcome = domain.ImportUpdated
		}
	}
	return c.joinAll(ctx, joining)
}

// membershipsOf are the memberships that records name. A record that names another
// client's collection, or one that is not there, is refused.
func (c *Change) membershipsOf(batch []any, found objects, results []domain.ImportResult) (list []membership) {
	for i, record := range batch {
		r := record.(*domain.UserRecord)
		client := pg.Or(found.find(r.ID), foundObject{}).ClientID
		for n, k := range r.CollectionIDs.Value {
			if !found.find(k).isOf(client) {
				results[i] = domain.RefuseImport("collection_ids[%d]: %s; the user is there without them", n,
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

// membership is that a user is to be in a collection of the same client.
type membership struct {
	ClientID     domain.ClientID
	CollectionID domain.CollectionID
	UserID       domain.UserID
	AddedAt      time.Time
}

// rowsOf are memberships as rows of a statement.
func rowsOf(list []membership) pg.Query {
	clients, collections, users := make([][16]byte, len(list)), make([][16]byte, len(list)), make([][16]byte, len(list))
	times := make([]time.Time, len(list))
	for i, m := range list {
		clients[i], collections[i], users[i], times[i] = m.ClientID, m.CollectionID, m.UserID, m.AddedAt
	}
	return pg.SQL(`unnest(?::uuid[], ?::uuid[], ?::uuid[], ?::timestamptz[])
		AS w (client_id, collection_id, user_id, added_at)`, clients, collections, users, times)
}

// lockJoining drops the memberships that are there already, and locks the users of the
// others.
func (c *Change) lockJoining(ctx context.Context, list []membership) ([]membership, error) {
	if len(list) == 0 {
		return nil, nil
	}
	joining, err := pg.All[membership](ctx, c, "look for members", pg.SQL(`
		SELECT w.client_id, w.collection_id, w.user_id, w.added_at FROM ? WHERE NOT EXISTS (
			SELECT FROM collection_members AS m
			WHERE m.client_id = w.client_id AND m.collection_id = w.collection_id AND m.user_id = w.user_id)`,
		rowsOf(list)))
	if err != nil || len(joining) == 0 {
		return nil, err
	}
	set := map[domain.UserKey]struct{}{}
	for _, m := range joining {
		set[domain.UserKey{Client: m.ClientID, User: m.UserID}] = struct{}{}
	}
	owners, members := keyLists(sortedKeys(set))
	_, err = c.lockUsers(ctx, pg.SQL(isKey, owners, members))
	return joining, err
}

// joinAll adds locked users to locked collections, and does what follows from it. The
// audiences of the clients are shared.
func (c *Change) joinAll(ctx context.Context, list []membership) error {
	if len(list) == 0 {
		return nil
	}
	joined, err := c.join(ctx, pg.SQL("SELECT * FROM ?", rowsOf(list)))
	if err != nil {
		return err
	}
	c.touch(joined...)
	clients, collections := make([][16]byte, len(list)), make([][16]byte, len(list))
	for i, m := range list {
		clients[i], collections[i] = m.ClientID, m.CollectionID
	}
	c.policiesOf("p.client_id = ANY(?::uuid[]) AND p.scope_type = 'collection' AND p.scope_id = ANY(?::uuid[])",
		clients, collections)
	return c.enterAudiences(ctx, joined)
}
