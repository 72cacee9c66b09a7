package db

import (
	"context"
	"time"

	"github.com/google/uuid"

	"partnerapi/db/pg"
	"partnerapi/domain"
)

// This file reads the objects of events, for the service's own work: the clients may be any, and no caller's access is
// checked. Objects that no longer exist are omitted. The number of statements does not depend on that of the events.

// OutboxEvent is an event that waits to be published.
type OutboxEvent struct {
	domain.Event
	// Object is the UUID of the event's object; zero if that is the client or the user.
	Object uuid.UUID
	// Number is its place in the order in which events are written (event_numbers); 0 for one from before there were
	// numbers.
	Number int64
	// RecordedAt is the time at which it was inserted, by the clock of the database server.
	RecordedAt time.Time

	// Partner is the client's partner; nil if the client was archived.
	Partner *domain.PartnerID
}

// eventKeys returns the ids of the clients, users and objects of events as three parameters of type uuid[].
func eventKeys(events []OutboxEvent) (clients, users, objects [][16]byte) {
	for _, e := range events {
		clients, users, objects = append(clients, e.Client), append(users, e.User), append(objects, e.Object)
	}
	return clients, users, objects
}

// areObjects returns the condition that a row with an alias is an object of one of the events.
func areObjects(alias string, events []OutboxEvent) pg.Query {
	clients, _, ids := eventKeys(events)
	return pg.SQL("("+alias+".client_id, "+alias+".id) IN (SELECT * FROM unnest(?::uuid[], ?::uuid[]))", clients, ids)
}

// EventClients reads the clients of events that are not archived. It does not refresh their summaries.
func (d *DB) EventClients(ctx context.Context, events []OutboxEvent) (map[domain.ClientID]domain.Client, error) {
	ids := pg.MapRows(events, func(e *OutboxEvent) [16]byte { return e.Client })
	rows, err := pg.All[ClientRow](ctx, d, "read the clients of events",
		pg.Rows[ClientRow]().Apply(pg.Where("c.id = ANY(?::uuid[]) AND c.archived_at IS NULL", ids)))
	return pg.Index(rows, func(r *ClientRow) (domain.ClientID, domain.Client) { return r.ID, r.Client }), err
}

// EventResults reads the simulated emails of events.
func (d *DB) EventResults(ctx context.Context, events []OutboxEvent) (map[domain.ResultID]domain.Result, error) {
	rows, err := pg.All[ResultRow](ctx, d, "read the results of events",
		pg.Rows[ResultRow]().Where("?", areObjects("r", events)))
	return pg.Index(rows, func(r *ResultRow) (domain.ResultID, domain.Result) { return r.ID, r.Result }), err
}

// EventReportedEmails reads the reported emails of events.
func (d *DB) EventReportedEmails(
	ctx context.Context, events []OutboxEvent,
) (map[domain.ReportedEmailID]domain.ReportedEmail, error) {
	rows, err := pg.All[domain.ReportedEmail](ctx, d, "read the reported emails of events",
		pg.From("reported_emails AS e").ColumnExpr(selectReported).Where("?", areObjects("e", events)))
	return pg.Index(rows, func(r *domain.ReportedEmail) (domain.ReportedEmailID, domain.ReportedEmail) { return r.ID, *r }), err
}

// EventExposures reads the exposures of events, of clients that have Dark Web Monitoring, by their ids.
func (d *DB) EventExposures(ctx context.Context, events []OutboxEvent) (map[domain.ExposureID]domain.Exposure, error) {
	q := pg.From("exposures AS e").Where("?", areObjects("e", events)).
		Where("(SELECT c.dark_web_monitoring FROM clients AS c WHERE c.id = e.client_id)")
	selectExposures(q)
	clients, users, _ := eventKeys(events) // no index has the id; the primary key begins with these
	q.Apply(pg.Where("(e.client_id, e.user_id) IN (SELECT * FROM unnest(?::uuid[], ?::uuid[]))", clients, users))
	rows, err := pg.All[ExposureRow](ctx, d, "read the exposures of events", q)
	return pg.Index(rows, func(r *ExposureRow) (domain.ExposureID, domain.Exposure) { return r.ID, r.Exposure }), err
}

// SelectSyncRun selects domain.SyncRuns from sync_runs, alias r.
const SelectSyncRun = `r.client_id AS client, r.id, r.status, r.trigger, r.queued_at, r.started_at, r.finished_at, r.updated_at,
	r.created, r.updated, r.deactivated, r.merged, r.unchanged, r.without_email, r.skipped, r.error`

// EventSyncRuns reads the sync runs of events.
func (d *DB) EventSyncRuns(ctx context.Context, events []OutboxEvent) (map[domain.SyncRunID]domain.SyncRun, error) {
	rows, err := pg.All[domain.SyncRun](ctx, d, "read the sync runs of events",
		pg.From("sync_runs AS r").ColumnExpr(SelectSyncRun).Where("?", areObjects("r", events)))
	return pg.Index(rows, func(r *domain.SyncRun) (domain.SyncRunID, domain.SyncRun) { return r.ID, *r }), err
}

// EventReports reads the reports of events.
func (d *DB) EventReports(ctx context.Context, events []OutboxEvent) (map[domain.ReportID]domain.Report, error) {
	rows, err := pg.All[ReportRow](ctx, d, "read the reports of events",
		pg.Rows[ReportRow]().Where("?", areObjects("r", events)))
	return pg.Index(rows, func(r *ReportRow) (domain.ReportID, domain.Report) { return r.ID, r.report() }), err
}

// UserObject is the key of a course or policy of a user.
type UserObject struct {
	User   domain.UserID
	Object [16]byte
}

// EventAssignments reads the users' assignments of the courses of events.
func (d *DB) EventAssignments(ctx context.Context, events []OutboxEvent) (map[UserObject]domain.ClientAssignment, error) {
	clients, users, courses := eventKeys(events)
	// The view has a row per user and course. OFFSET 0 makes the planner evaluate it by user, not for all at once.
	rows, err := pg.All[domain.ClientAssignment](ctx, d, "read the courses of events", pg.SQL(`
		SELECT DISTINCT n.user_id AS "user", `+selectTraining+`
		FROM unnest(?clients::uuid[], ?users::uuid[], ?courses::uuid[]) AS n (client_id, user_id, course_id)
		CROSS JOIN LATERAL (
			SELECT * FROM user_training AS own WHERE own.client_id = n.client_id AND own.user_id = n.user_id OFFSET 0
		) AS t
		JOIN courses AS c ON c.id = t.course_id WHERE t.course_id = n.course_id`,
		pg.Named{"clients": clients, "users": users, "courses": courses}))
	return pg.Index(rows, func(a *domain.ClientAssignment) (UserObject, domain.ClientAssignment) {
		return UserObject{a.User, a.Course}, *a
	}), err
}

// EventSignature is a user's latest sign-off of a policy.
type EventSignature struct {
	UserID   domain.UserID
	PolicyID domain.PolicyID
	Version  int
	SignedAt time.Time
}

// EventSignatures reads the users' latest signatures of the policies of events, without signatures of versions later
// than the current one. Archived policies have none.
func (d *DB) EventSignatures(ctx context.Context, events []OutboxEvent) (map[UserObject]EventSignature, error) {
	clients, users, policies := eventKeys(events)
	rows, err := pg.All[EventSignature](ctx, d, "read the signatures of events", pg.SQL(`
		SELECT DISTINCT ON (s.client_id, s.user_id, s.policy_id) s.user_id, s.policy_id, s.version, s.signed_at
		FROM unnest(?clients::uuid[], ?users::uuid[], ?policies::uuid[]) AS n (client_id, user_id, policy_id)
		JOIN policies AS p ON p.client_id = n.client_id AND p.id = n.policy_id AND p.archived_at IS NULL
		JOIN policy_signatures AS s ON s.client_id = n.client_id AND s.user_id = n.user_id
			AND s.policy_id = n.policy_id AND s.version <= p.version
		ORDER BY s.client_id, s.user_id, s.policy_id, s.version DESC`,
		pg.Named{"clients": clients, "users": users, "policies": policies}))
	return pg.Index(rows, func(r *EventSignature) (UserObject, EventSignature) {
		return UserObject{r.UserID, r.PolicyID}, *r
	}), err
}

// EventUsers reads the users of events with their details, in four statements. It leaves out users without a score.
func (d *DB) EventUsers(ctx context.Context, events []OutboxEvent) (map[domain.UserID]domain.UserDetail, error) {
	set := map[domain.UserKey]struct{}{}
	for _, e := range events {
		set[domain.UserKey{Client: e.Client, User: e.User}] = struct{}{}
	}
	keys := sortedKeys(set)
	clients, users := KeyArrays(keys)
	rows, err := pg.All[UserRow](ctx, d, "read the users of events",
		selectUsers(pg.From("users AS u"), domain.DateOf(d.Now())).ColumnExpr("c.dark_web_monitoring AS dark_web").
			Join("JOIN clients AS c ON c.id = u.client_id").Where("?", haveKeys(keys)))
	if err != nil {
		return nil, err
	}
	risks, err := d.risksOf(ctx, keys)
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
			continue // User.Detail returns NotFound for such a user
		}
		detail := domain.UserDetail{User: r.ToUser(), Collections: collections[r.ID], Risk: risk}
		if r.DarkWeb {
			found := exposures[r.ID]
			detail.DarkWeb = &found
		}
		details[r.ID] = detail
	}
	return details, nil
}

// risksOf reads the stored risks of users. Users without one are omitted.
func (d *DB) risksOf(ctx context.Context, keys []domain.UserKey) (map[domain.UserID]domain.UserRisk, error) {
	type scored struct {
		ID   domain.UserID
		Role domain.Role
		storedRisk
		ComputedAt time.Time
	}
	rows, err := pg.All[scored](ctx, d, "read the risks of users", pg.From("users AS u").
		ColumnExpr("u.id, u.role, r.computed_at, "+pg.Columns[riskRow]()).
		Join("JOIN user_risks AS r ON r.client_id = u.client_id AND r.user_id = u.id").Where("?", haveKeys(keys)))
	return pg.Index(rows, func(r *scored) (domain.UserID, domain.UserRisk) {
		return r.ID, domain.UserRisk{Assessment: r.assessment(r.Role), ComputedAt: r.ComputedAt}
	}), err
}

// collectionsOf reads the collections of users, ordered by name.
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

// darkWebOf sums up the exposures of users. Users without exposures are omitted.
func (d *DB) darkWebOf(ctx context.Context, clients, users [][16]byte) (map[domain.UserID]domain.UserDarkWeb, error) {
	type sum struct {
		UserID domain.UserID
		domain.UserDarkWeb
	}
	rows, err := pg.All[sum](ctx, d, "read the exposures of users", pg.SQL(`
		SELECT user_id, `+userDarkWebSQL+` FROM exposures
		WHERE (client_id, user_id) IN (SELECT * FROM unnest(?::uuid[], ?::uuid[])) GROUP BY user_id`, clients, users))
	return pg.Index(rows, func(r *sum) (domain.UserID, domain.UserDarkWeb) { return r.UserID, r.UserDarkWeb }), err
}
