package db

import (
	"context"
	"slices"
	"time"

	"partnerapi/db/pg"
	"partnerapi/domain"
)

// membership is that a user is to be in a collection of the same client.
type membership struct {
	client     domain.ClientID
	collection domain.CollectionID
	user       domain.UserID
	at         time.Time
}

// memberKey names a membership.
type memberKey struct {
	CollectionID domain.CollectionID
	UserID       domain.UserID
}

// referredUser is a user that records refer to.
type referredUser struct {
	ID        domain.UserID
	ClientID  domain.ClientID
	CreatedAt time.Time
}

// usersCalled reads those of the users that are there.
func (c *Change) usersCalled(ctx context.Context, ids []domain.UserID) (map[domain.UserID]referredUser, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	rows, err := pg.All[referredUser](ctx, c, "look for users", pg.SQL(
		"SELECT id, client_id, created_at FROM users WHERE id = ANY(?::uuid[])", pg.IDs(sortedUnique(ids))))
	return mapped(rows, func(r *referredUser) domain.UserID { return r.ID }), err
}

// lockJoining drops the memberships that are there already, and locks the users of the
// others.
func (c *Change) lockJoining(ctx context.Context, list []membership) ([]membership, error) {
	if len(list) == 0 {
		return nil, nil
	}
	clients, collections, users := membershipLists(list)
	there, err := pg.All[memberKey](ctx, c, "look for members", pg.SQL(`
		SELECT m.collection_id, m.user_id FROM collection_members AS m
		JOIN unnest(?0::uuid[], ?1::uuid[], ?2::uuid[]) AS w (client_id, collection_id, user_id)
			ON m.client_id = w.client_id AND m.collection_id = w.collection_id AND m.user_id = w.user_id`,
		clients, collections, users))
	if err != nil {
		return nil, err
	}
	in := mapped(there, func(k *memberKey) memberKey { return *k })
	joining := slices.DeleteFunc(slices.Clone(list), func(m membership) bool {
		_, known := in[memberKey{m.collection, m.user}]
		return known
	})
	if len(joining) == 0 {
		return nil, nil
	}
	set := map[domain.UserKey]struct{}{}
	for _, m := range joining {
		set[domain.UserKey{Client: m.client, User: m.user}] = struct{}{}
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
	clients, collections, users := membershipLists(list)
	times := make([]time.Time, len(list))
	for i, m := range list {
		times[i] = m.at
	}
	joined, err := pg.All[domain.UserKey](ctx, c, "add imported members", pg.SQL(`
		WITH joined AS (
			INSERT INTO collection_members (client_id, collection_id, user_id, added_at)
			SELECT * FROM unnest(?0::uuid[], ?1::uuid[], ?2::uuid[], ?3::timestamptz[])
			ON CONFLICT DO NOTHING RETURNING client_id, collection_id, user_id
		), counted AS (
			UPDATE collections AS k SET member_count = k.member_count + j.n, updated_at = greatest(k.updated_at, ?4)
			FROM (SELECT client_id, collection_id, count(*) AS n FROM joined GROUP BY 1, 2) AS j
			WHERE k.client_id = j.client_id AND k.id = j.collection_id
		)
		SELECT DISTINCT client_id AS client, user_id AS "user" FROM joined`, clients, collections, users, times, c.At))
	if err != nil {
		return err
	}
	c.touch(joined...)
	c.policiesOf("p.client_id = ANY(?::uuid[]) AND p.scope_type = 'collection' AND p.scope_id = ANY(?::uuid[])",
		clients, collections)
	return c.enterAudiences(ctx, joined)
}

func membershipLists(list []membership) (clients, collections, users [][16]byte) {
	for _, m := range list {
		clients, collections, users = append(clients, m.client), append(collections, m.collection), append(users, m.user)
	}
	return clients, collections, users
}

// ImportMemberships puts the users of records, who are there, into the collections that
// the records name.
func (d *DB) ImportMemberships(ctx context.Context, batch []domain.UserRecord) ([]domain.ImportResult, error) {
	return importBatch(ctx, d, batch, (*Change).importMemberships)
}

func (c *Change) importMemberships(
	ctx context.Context, batch []domain.UserRecord, results []domain.ImportResult,
) error {
	ids, named := make([]domain.UserID, len(batch)), []domain.CollectionID{}
	for i := range batch {
		ids[i] = batch[i].ID.ID
		for _, k := range batch[i].CollectionIDs.Value {
			named = append(named, k.ID)
		}
	}
	users, err := c.usersCalled(ctx, ids)
	if err != nil {
		return err
	}
	clients := make([]domain.ClientID, 0, len(users))
	for _, u := range users {
		clients = append(clients, u.ClientID)
	}
	// From here on no collection of theirs is deleted.
	if err := c.ShareAudiences(ctx, sortedUnique(clients)...); err != nil {
		return err
	}
	owners, err := c.collectionOwners(ctx, named)
	if err != nil {
		return err
	}

	var list []membership
	for i := range batch {
		client := users[batch[i].ID.ID].ClientID
		for n, k := range batch[i].CollectionIDs.Value {
			if owner, there := owners[k.ID]; !there || owner != client {
				results[i] = domain.RefuseImport("collection_ids[%d]: %s; the user is there without them", n,
					domain.NoSuchObject(k.Noun()))
			}
		}
		if results[i].Refusal != "" {
			continue
		}
		results[i].Outcome = domain.ImportUnchanged
		for _, k := range batch[i].CollectionIDs.Value {
			list = append(list, membership{client, k.ID, batch[i].ID.ID, c.At})
		}
	}
	joining, err := c.lockJoining(ctx, list)
	if err != nil || len(joining) == 0 {
		return err
	}
	c.Lock(CollectionLocks)
	_, err = pg.Exec(ctx, c, "lock collections", pg.SQL(
		"SELECT FROM collections WHERE id = ANY(?::uuid[]) ORDER BY client_id, id FOR NO KEY UPDATE",
		pg.IDs(sortedUnique(named))))
	if err != nil {
		return err
	}
	joined := map[domain.UserID]bool{}
	for _, m := range joining {
		joined[m.user] = true
	}
	for i := range batch {
		if joined[batch[i].ID.ID] {
			results[i].Outcome = domain.ImportUpdated
		}
	}
	return c.joinAll(ctx, joining)
}

// collectionOwners reads whose the collections are that are there.
func (c *Change) collectionOwners(
	ctx context.Context, ids []domain.CollectionID,
) (map[domain.CollectionID]domain.ClientID, error) {
	rows, err := pg.All[collectionRow](ctx, c, "look for collections", pg.SQL(
		"SELECT id, client_id FROM collections WHERE id = ANY(?::uuid[])", pg.IDs(sortedUnique(ids))))
	owners := make(map[domain.CollectionID]domain.ClientID, len(rows))
	for _, r := range rows {
		owners[r.ID] = r.ClientID
	}
	return owners, err
}
