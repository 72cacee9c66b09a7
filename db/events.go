package db

import (
	"context"
	"time"

	"github.com/google/uuid"

	"partnerapi/db/pg"
	"partnerapi/domain"
)

// This file reads what events are about, for the service's own work: objects of any
// clients, many at once, by their ids. An object that is not there is left out. Each
// read takes the same number of statements for any number of objects.

// OutboxEvent is an event that waits to be published.
type OutboxEvent struct {
	domain.Event
	// Object is the UUID of what it is about, where that is neither the client nor the
	// user; else zero.
	Object uuid.UUID
	// RecordedAt is when it was written, by the server's clock.
	RecordedAt time.Time

	// Partner is the client's; nil where the client was archived.
	Partner *domain.PartnerID
}

// object is the key of a row that belongs to a client.
type object struct {
	client domain.ClientID
	id     [16]byte
}

// isObject is the condition that a row, with its alias and its column of ids, is one
// of some objects. The columns are those of an index.
func isObject(alias, id string, objects []object) pg.Query {
	clients, ids := make([][16]byte, len(objects)), make([][16]byte, len(objects))
	for i, o := range objects {
		clients[i], ids[i] = o.client, o.id
	}
	return pg.SQL("("+alias+".client_id, "+alias+"."+id+") IN (SELECT * FROM unnest(?::uuid[], ?::uuid[]))", clients, ids)
}

// objectsOf are the objects that events are about.
func objectsOf(events []OutboxEvent) []object {
	list := make([]object, len(events))
	for i, e := range events {
		list[i] = object{e.Client, e.Object}
	}
	return list
}

// byID maps rows in the domain's terms by their ids.
func byID[Row any, ID comparable, T any](rows []Row, id func(*Row) ID, as func(*Row) T) map[ID]T {
	all := make(map[ID]T, len(rows))
	for i := range rows {
		all[id(&rows[i])] = as(&rows[i])
	}
	return all
}

// EventClients reads the clients of events, with their summaries as they are stored.
func (d *DB) EventClients(ctx context.Context, events []OutboxEvent) (map[domain.ClientID]domain.Client, error) {
	ids := make([]domain.ClientID, len(events))
	for i, e := range events {
		ids[i] = e.Client
	}
	rows, err := pg.All[clientRow](ctx, d, "read the clients of events", pg.From("clients AS c").
		Columns(pg.Columns[clientRow]()).Where("c.id = ANY(?::uuid[]) AND c.archived_at IS NULL", pg.IDs(ids)))
	return byID(rows, func(r *clientRow) domain.ClientID { return r.ID }, (*clientRow).client), err
}

// EventResults reads the simulated mails that events are about.
func (d *DB) EventResults(ctx context.Context, events []OutboxEvent) (map[domain.ResultID]domain.Result, error) {
	rows, err := pg.All[resultRow](ctx, d, "read the results of events", pg.From("phishing_results AS r").
		Columns(pg.Columns[resultRow]()).Where("?", isObject("r", "id", objectsOf(events))))
	return byID(rows, func(r *resultRow) domain.ResultID { return r.ID }, (*resultRow).result), err
}

// EventReportedEmails reads the reported emails that events are about.
func (d *DB) EventReportedEmails(
	ctx context.Context, events []OutboxEvent,
) (map[domain.ReportedEmailID]domain.ReportedEmail, error) {
	rows, err := pg.All[reportedEmailRow](ctx, d, "read the reported emails of events", pg.From("reported_emails AS e").
		Columns(pg.Columns[reportedEmailRow]()).Where("?", isObject("e", "id", objectsOf(events))))
	return byID(rows, func(r *reportedEmailRow) domain.ReportedEmailID { return r.ID }, (*reportedEmailRow).reported), err
}

// EventExposures reads the exposures that events are about, of clients that have Dark
// Web Monitoring.
func (d *DB) EventExposures(ctx context.Context, events []OutboxEvent) (map[domain.MessageID]domain.Exposure, error) {
	q := pg.From("exposures AS e").Where("?", isObject("e", "id", objectsOf(events))).
		Where("(SELECT c.dark_web_monitoring FROM clients AS c WHERE c.id = e.client_id)")
	selectExposures(q)
	users := make([]object, len(events)) // the key of the table begins with the user
	for i, e := range events {
		users[i] = object{e.Client, e.User}
	}
	q.Where("?", isObject("e", "user_id", users))
	rows, err := pg.All[exposureRow](ctx, d, "read the exposures of events", q)
	return byID(rows, func(r *exposureRow) domain.MessageID { return r.ID }, (*exposureRow).exposure), err
}

// EventSyncRuns reads the sync runs that events are about.
func (d *DB) EventSyncRuns(ctx context.Context, events []OutboxEvent) (map[domain.SyncRunID]domain.SyncRun, error) {
	rows, err := pg.All[syncRunRow](ctx, d, "read the sync runs of events",
		pg.Rows[syncRunRow]().Where("?", isObject("r", "id", objectsOf(events))))
	return byID(rows, func(r *syncRunRow) domain.SyncRunID { return r.ID }, (*syncRunRow).run), err
}

// EventReports reads the reports that events are about.
func (d *DB) EventReports(ctx context.Context, events []OutboxEvent) (map[domain.ReportID]domain.Report, error) {
	rows, err := pg.All[reportRow](ctx, d, "read the reports of events", pg.From("reports AS r").
		Columns(pg.Columns[reportRow]()).Where("?", isObject("r", "id", objectsOf(events))))
	return byID(rows, func(r *reportRow) domain.ReportID { return r.ID }, (*reportRow).report), err
}

// UserObject names an object that users have each for themselves: a course, or a
// policy.
type UserObject struct {
	User   domain.UserID
	Object [16]byte
}

// userObjects are the values of three uuid[]: the clients, users and objects of
// events.
func userObjects(events []OutboxEvent) (clients, users, objects [][16]byte) {
	for _, e := range events {
		clients, users, objects = append(clients, e.Client), append(users, e.User), append(objects, e.Object)
	}
	return clients, users, objects
}

// EventAssignments reads where the users of events stand with the courses that those
// are about.
func (d *DB) EventAssignments(ctx context.Context, events []OutboxEvent) (map[UserObject]domain.Assignment, error) {
	type row struct {
		UserID domain.UserID
		trainingRow
	}
	clients, users, courses := userObjects(events)
	// OFFSET keeps the view's places from being counted for all users there are.
	rows, err := pg.All[row](ctx, d, "read the courses of events", pg.SQL(`
		SELECT DISTINCT n.user_id, `+pg.Columns[trainingRow]()+`, c.title
		FROM unnest(?0::uuid[], ?1::uuid[], ?2::uuid[]) AS n (client_id, user_id, course_id)
		CROSS JOIN LATERAL (
			SELECT * FROM user_training AS own WHERE own.client_id = n.client_id AND own.user_id = n.user_id OFFSET 0
		) AS t
		JOIN courses AS c ON c.id = t.course_id WHERE t.course_id = n.course_id`, clients, users, courses))
	return byID(rows, func(r *row) UserObject { return UserObject{r.UserID, r.CourseID} },
		func(r *row) domain.Assignment { return r.assignment() }), err
}

// EventSignature is a user's sign-off of a policy, the latest there is.
type EventSignature struct {
	UserID   domain.UserID
	PolicyID domain.PolicyID
	Version  int
	SignedAt time.Time
}

// EventSignatures reads the latest signatures that the users of events have given the
// policies that those are about: none of a version that is still to be published.
func (d *DB) EventSignatures(ctx context.Context, events []OutboxEvent) (map[UserObject]EventSignature, error) {
	clients, users, policies := userObjects(events)
	rows, err := pg.All[EventSignature](ctx, d, "read the signatures of events", pg.SQL(`
		SELECT DISTINCT ON (s.client_id, s.user_id, s.policy_id) s.user_id, s.policy_id, s.version, s.signed_at
		FROM unnest(?0::uuid[], ?1::uuid[], ?2::uuid[]) AS n (client_id, user_id, policy_id)
		JOIN policies AS p ON p.client_id = n.client_id AND p.id = n.policy_id AND p.archived_at IS NULL
		JOIN policy_signatures AS s ON s.client_id = n.client_id AND s.user_id = n.user_id
			AND s.policy_id = n.policy_id AND s.version <= p.version
		ORDER BY s.client_id, s.user_id, s.policy_id, s.version DESC`, clients, users, policies))
	return byID(rows, func(r *EventSignature) UserObject { return UserObject{r.UserID, r.PolicyID} },
		func(r *EventSignature) EventSignature { return *r }), err
}

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
