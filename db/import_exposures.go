package db

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"partnerapi/db/pg"
	"partnerapi/domain"
)

// ImportExposures adds the exposures of records and updates those that are there, in
// one transaction, and returns what became of each record. A user has one exposure in
// a breach, which each record names: an exposure has no id of its own. The users are
// scored again; there is no event and no notice (decisions 7.11). It takes the same
// number of statements for any number of records, and must not be called in a
// transaction.
func (d *DB) ImportExposures(ctx context.Context, batch []domain.ExposureRecord) ([]domain.ImportResult, error) {
	return importBatch(ctx, d, batch, (*Change).importExposures)
}

// exposureKey names a user's exposure in a breach.
type exposureKey struct {
	user   domain.UserID
	breach string
}

// storedExposure is a row of exposures, by its columns.
type storedExposure struct {
	ClientID    domain.ClientID `json:"-"`
	UserID      domain.UserID   `json:"-"`
	Client      string          `json:"client_id" bun:"-"`
	User        string          `json:"user_id" bun:"-"`
	BreachName  string          `json:"breach_name"`
	Severity    domain.Severity `json:"severity"`
	DataClasses []string        `json:"data_classes" bun:",array"`
	Found       bool            `json:"found"`
	FirstSeenAt time.Time       `json:"first_seen_at"`
	NotifiedAt  *time.Time      `json:"notified_at"`
	ResolvedAt  *time.Time      `json:"resolved_at"`
	UpdatedAt   time.Time       `json:"updated_at"`
}

func (e *storedExposure) same(o *storedExposure) bool {
	return e.Severity == o.Severity && slices.Equal(e.DataClasses, o.DataClasses) && e.FirstSeenAt.Equal(o.FirstSeenAt) &&
		e.NotifiedAt == o.NotifiedAt && e.ResolvedAt == o.ResolvedAt
}

// exposureAfter is an exposure after a record, or why that is refused. What it does
// not say of a new one is as its data classes or else the breach have it.
func exposureAfter(e storedExposure, in *domain.ExposureRecord, b *breachRow, isNew bool) (storedExposure, error) {
	if isNew {
		e.Severity, e.DataClasses = b.Severity, b.DataClasses
		if in.DataClasses.Has() {
			e.Severity = domain.SeverityOf(in.DataClasses.Value, b.Sensitive, b.SpamList)
		}
	}
	if in.FirstSeenAt.Has() {
		moveTime(&e.FirstSeenAt, in.FirstSeenAt.Value.Time)
	}
	in.DataClasses.Apply(&e.DataClasses)
	in.Severity.Apply(&e.Severity)
	applyMoment(&e.NotifiedAt, in.NotifiedAt)
	applyMoment(&e.ResolvedAt, in.ResolvedAt)
	switch {
	case e.NotifiedAt != nil && e.NotifiedAt.Before(e.FirstSeenAt):
		return e, errors.New("notified_at is before first_seen_at")
	case e.ResolvedAt != nil && e.ResolvedAt.Before(e.FirstSeenAt):
		return e, errors.New("resolved_at is before first_seen_at")
	}
	return e, nil
}

func (c *Change) importExposures(
	ctx context.Context, batch []domain.ExposureRecord, results []domain.ImportResult,
) error {
	users, breaches := make([]domain.UserID, len(batch)), make([]string, len(batch))
	for i := range batch {
		users[i], breaches[i] = batch[i].User.Value.ID, batch[i].BreachName.Value
	}
	owners, err := c.lockAnyUsers(ctx, users)
	if err != nil {
		return err
	}
	catalogue, err := c.lockBreaches(ctx, breaches)
	if err != nil {
		return err
	}
	stored, err := c.lockExposures(ctx, users, breaches)
	if err != nil {
		return err
	}

	moved := map[exposureKey]bool{}
	var order []exposureKey // several records may be of one exposure
	for i := range batch {
		in := &batch[i]
		key := exposureKey{in.User.Value.ID, in.BreachName.Value}
		client, found := owners[key.user]
		before, known := stored[key]
		switch {
		case !in.User.Has() || !in.BreachName.Has() || !known && in.Missing != "":
			results[i] = missing(in.Missing)
			continue
		case !found:
			results[i] = noSuch("user", key.user.Noun())
			continue
		case catalogue[key.breach] == nil:
			results[i] = domain.RefuseImport("breach_name: %s; import the breaches first: partnerapi breaches import",
				domain.NoSuchObject(breachNoun))
			continue
		case !known:
			before = &storedExposure{ClientID: client, UserID: key.user, BreachName: key.breach}
		}
		after, err := exposureAfter(*before, in, catalogue[key.breach], !known)
		if err != nil {
			results[i] = refused(err)
			continue
		}
		results[i].Outcome = outcomeOf(!known, !after.same(before))
		if results[i].Outcome != domain.ImportUnchanged {
			if !moved[key] {
				order = append(order, key)
			}
			stored[key], moved[key] = &after, true
		}
	}
	return c.storeExposures(ctx, order, stored)
}

// lockExposures locks exposures of locked users.
func (c *Change) lockExposures(
	ctx context.Context, users []domain.UserID, breaches []string,
) (map[exposureKey]*storedExposure, error) {
	c.lock(exposureLocks)
	rows, err := pg.All[storedExposure](ctx, c, "lock exposures", pg.SQL(`
		SELECT e.client_id, e.user_id, e.breach_name, e.severity, e.data_classes, e.found, e.first_seen_at,
			e.notified_at, e.resolved_at, e.updated_at
		FROM (SELECT DISTINCT user_id, breach_name FROM unnest(?::uuid[], ?::text[]) AS l (user_id, breach_name)) AS l
		JOIN users AS u ON u.id = l.user_id
		JOIN exposures AS e ON e.client_id = u.client_id AND e.user_id = l.user_id AND e.breach_name = l.breach_name
		ORDER BY e.client_id, e.user_id, e.breach_name FOR NO KEY UPDATE OF e`, pg.IDs(users), breaches))
	stored := make(map[exposureKey]*storedExposure, len(rows))
	for i := range rows {
		stored[exposureKey{rows[i].UserID, rows[i].BreachName}] = &rows[i]
	}
	return stored, err
}

// storeExposures stores exposures of locked users. To clients without Dark Web
// Monitoring nothing of this is shown.
func (c *Change) storeExposures(
	ctx context.Context, order []exposureKey, exposures map[exposureKey]*storedExposure,
) error {
	if len(order) == 0 {
		return nil
	}
	records := make([]storedExposure, len(order))
	for i, key := range order {
		e := *exposures[key]
		e.Client, e.User, e.UpdatedAt = e.ClientID.UUID(), e.UserID.UUID(), c.At
		// One that is known by its resolving alone (sightSQL) shows by its times.
		e.Found = e.Found || e.ResolvedAt == nil || !e.ResolvedAt.Equal(e.FirstSeenAt)
		records[i] = e
	}
	text, err := json.Marshal(records)
	if err != nil {
		return err
	}
	shown, err := pg.All[domain.UserKey](ctx, c, "store exposures", pg.SQL(`
		WITH stored AS (
			INSERT INTO exposures AS e (client_id, user_id, breach_name, severity, data_classes, found, first_seen_at,
				notified_at, resolved_at, updated_at)
			SELECT client_id, user_id, breach_name, severity, data_classes, found, first_seen_at, notified_at, resolved_at,
				updated_at
			FROM json_populate_recordset(NULL::exposures, ?::json)
			ON CONFLICT (client_id, user_id, breach_name) DO UPDATE SET
				(severity, data_classes, found, first_seen_at, notified_at, resolved_at) = (excluded.severity,
					excluded.data_classes, excluded.found, excluded.first_seen_at, excluded.notified_at, excluded.resolved_at),
				updated_at = greatest(e.updated_at, excluded.updated_at)
			RETURNING client_id, user_id
		)
		SELECT DISTINCT s.client_id AS client, s.user_id AS "user" FROM stored AS s
		JOIN clients AS c ON c.id = s.client_id AND c.dark_web_monitoring`, string(text)))
	c.Rescore(shown...)
	c.touch(shown...)
	return err
}
