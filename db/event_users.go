package db

import (
	"context"
	"time"

	"partnerapi/db/pg"
	"partnerapi/domain"
)

// EventUsers reads the users of events with all that a read of one user shows, in
// four statements.
func (d *DB) EventUsers(ctx context.Context, events []OutboxEvent) (map[domain.UserID]domain.UserDetail, error) {
	set := map[domain.UserKey]struct{}{}
	for _, e := range events {
		set[domain.UserKey{Client: e.Client, User: e.User}] = struct{}{}
	}
	clients, users := keyLists(sortedKeys(set))
	rows, err := pg.All[userRow](ctx, d, "read the users of events",
		shownUser(pg.From("users AS u"), domain.DateOf(d.Now())).Columns("c.dark_web_monitoring AS dark_web").
			Join("JOIN clients AS c ON c.id = u.client_id").Where(isKey, clients, users))
	if err != nil {
		return nil, err
	}
	risks, err := d.risksOf(ctx, clients, users)
	if err != nil {
		return nil, err
	}
	collections, err := d.collectionsOf(ctx, clients, users)
	if err != nil {
		return nil, err
	}
	exposures, err := d.darkWebOf(ctx, clients, users)
	if err != nil {
		return nil, err
	}

	details := make(map[domain.UserID]domain.UserDetail, len(rows))
	for i := range rows {
		r := &rows[i]
		risk, scored := risks[r.ID]
		if !scored {
			continue // as for a read: a user without a score is none
		}
		detail := domain.UserDetail{User: r.user(), Collections: collections[r.ID], Risk: risk}
		if r.DarkWeb {
			found := exposures[r.ID]
			detail.DarkWeb = &found
		}
		details[r.ID] = detail
	}
	return details, nil
}

func (d *DB) risksOf(ctx context.Context, clients, users [][16]byte) (map[domain.UserID]domain.UserRisk, error) {
	type scored struct {
		ID   domain.UserID
		Role domain.Role
		storedRisk
		ComputedAt time.Time
	}
	rows, err := pg.All[scored](ctx, d, "read the risks of users", pg.From("users AS u").
		Columns("u.id, u.role, r.computed_at, "+pg.Columns[riskRow]()).
		Join("JOIN user_risks AS r ON r.client_id = u.client_id AND r.user_id = u.id").Where(isKey, clients, users))
	return byID(rows, func(r *scored) domain.UserID { return r.ID }, func(r *scored) domain.UserRisk {
		return domain.UserRisk{Assessment: r.assessment(r.Role), ComputedAt: r.ComputedAt}
	}), err
}

func (d *DB) collectionsOf(
	ctx context.Context, clients, users [][16]byte,
) (map[domain.UserID][]domain.CollectionRef, error) {
	type member struct {
		UserID domain.UserID
		ID     domain.CollectionID
		Name   string
	}
	rows, err := pg.All[member](ctx, d, "read the collections of users", pg.SQL(`
		SELECT m.user_id, k.id, k.name FROM collection_members AS m
		JOIN collections AS k ON k.client_id = m.client_id AND k.id = m.collection_id
		WHERE (m.client_id, m.user_id) IN (SELECT * FROM unnest(?::uuid[], ?::uuid[]))
		ORDER BY m.user_id, k.name_key, k.id`, clients, users))
	all := map[domain.UserID][]domain.CollectionRef{}
	for _, r := range rows {
		all[r.UserID] = append(all[r.UserID], domain.CollectionRef{ID: r.ID, Name: r.Name})
	}
	return all, err
}

func (d *DB) darkWebOf(ctx context.Context, clients, users [][16]byte) (map[domain.UserID]domain.UserDarkWeb, error) {
	type sum struct {
		UserID domain.UserID
		domain.UserDarkWeb
	}
	rows, err := pg.All[sum](ctx, d, "read the exposures of users", pg.SQL(`
		SELECT user_id, `+userDarkWebSQL+` FROM exposures
		WHERE (client_id, user_id) IN (SELECT * FROM unnest(?::uuid[], ?::uuid[])) GROUP BY user_id`, clients, users))
	return byID(rows, func(r *sum) domain.UserID { return r.UserID },
		func(r *sum) domain.UserDarkWeb { return r.UserDarkWeb }), err
}
