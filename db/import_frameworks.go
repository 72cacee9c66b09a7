package db

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/uptrace/bun"

	"partnerapi/db/pg"
	"partnerapi/domain"
)

// Imports of framework assignments and courses.

type appliedFramework = applied[domain.FrameworkAssignmentRecord, frameworkRow]

// ImportFrameworkAssignments adds the framework assignments of records and updates
// those that are there, in one transaction, and returns what became of each record. Who
// is in the audience of a new one is given its courses, as of when both the user and
// the assignment were there (decisions 7.7, 10); switching its training on gives them
// too, and off withdraws them. It takes the same number of statements for any number of
// records that switch nothing off, and must not be called in a transaction.
func (d *DB) ImportFrameworkAssignments(
	ctx context.Context, batch []domain.FrameworkAssignmentRecord,
) ([]domain.ImportResult, error) {
	return importBatch(ctx, d, batch, (*Change).importFrameworks)
}

// frameworkUse is what is assigned to whom: a client has one assignment of it.
type frameworkUse struct {
	client    domain.ClientID
	framework string
	audience  domain.FrameworkAudienceType
	id        [16]byte // zero for all users
}

func (r *frameworkRow) use() frameworkUse {
	return frameworkUse{r.ClientID, r.FrameworkID, r.AudienceType, pg.Or(r.AudienceID, [16]byte{})}
}

// importingFrameworks is a batch of records of framework assignments being applied.
type importingFrameworks struct {
	*Change
	rows    map[any]*frameworkRow
	uses    map[frameworkUse]domain.FrameworkAssignmentID
	clients map[domain.ClientID]bool
	// audiences are the groups and collections that are there, with their clients.
	audiences map[[16]byte]audienceRow
}

type audienceRow struct {
	ID       [16]byte
	Type     domain.FrameworkAudienceType
	ClientID domain.ClientID
}

func (c *Change) importFrameworks(
	ctx context.Context, batch []domain.FrameworkAssignmentRecord, results []domain.ImportResult,
) error {
	m := &importingFrameworks{Change: c}
	if err := m.read(ctx, batch); err != nil {
		return err
	}
	k := kind[domain.FrameworkAssignmentRecord, frameworkRow]{
		Change: c, rows: m.rows, refuse: m.refusal, finish: m.finish,
		fresh: func(r *domain.FrameworkAssignmentRecord) frameworkRow {
			row, _ := m.begin(r) // it was not refused
			return row
		},
	}
	made, changed, err := k.settle(ctx, batch, results)
	if err != nil {
		return err
	}
	if err := k.store(ctx, made, changed); err != nil {
		return err
	}
	if err := c.reevaluate(ctx, changed); err != nil {
		return err
	}
	return c.followFrameworks(ctx, made, changed)
}

// reevaluate has framework assignments evaluated anew.
func (c *Change) reevaluate(ctx context.Context, list []*appliedFramework) error {
	if len(list) == 0 {
		return nil
	}
	ids := make([]domain.FrameworkAssignmentID, len(list))
	for i, f := range list {
		ids[i] = f.after.ID
	}
	_, err := pg.Exec(ctx, c, "have framework assignments evaluated", pg.SQL(`
		UPDATE framework_assignments SET evaluated_at = 'epoch', changed_at = ?
		WHERE id = ANY(?::uuid[])`, c.At, pg.IDs(ids)))
	return err
}

// read finds what records of framework assignments name, archived clients' objects too,
// and locks the audiences of their clients.
func (m *importingFrameworks) read(ctx context.Context, batch []domain.FrameworkAssignmentRecord) error {
	ids := idsOf(batch)
	clients := refsOf(batch, func(r *domain.FrameworkAssignmentRecord) clientRef { return r.Client })
	clients = slices.DeleteFunc(clients, domain.ClientID.IsZero)
	m.Lock(AudienceLocks)
	err := m.lockAudiences(ctx, "pg_advisory_xact_lock", pg.SQL(`(
		SELECT unnest(?::uuid[]) AS id UNION SELECT client_id FROM framework_assignments WHERE id = ANY(?::uuid[])) AS l`,
		pg.IDs(clients), ids))
	if err != nil {
		return err
	}
	rows, err := pg.All[frameworkRow](ctx, m, "read framework assignments", pg.Rows[frameworkRow]().
		Where("f.client_id = ANY(?::uuid[]) OR f.id = ANY(?::uuid[])", pg.IDs(clients), ids))
	if err != nil {
		return err
	}
	m.rows, m.uses = rowsByID(rows), map[frameworkUse]domain.FrameworkAssignmentID{}
	for i := range rows {
		m.uses[rows[i].use()] = rows[i].ID
	}
	if err := m.readAudiences(ctx, batch, clients); err != nil {
		return err
	}
	m.clients, err = existing(ctx, m.Change, "look for clients", "clients WHERE", sortedUnique(clients))
	return err
}

func (m *importingFrameworks) readAudiences(
	ctx context.Context, batch []domain.FrameworkAssignmentRecord, clients []domain.ClientID,
) error {
	var ids [][16]byte
	for i := range batch {
		if id := batch[i].Audience.Value.ID; id != nil {
			ids = append(ids, id.UUID)
		}
	}
	found, err := pg.All[audienceRow](ctx, m, "look for groups and collections", pg.SQL(`
		SELECT id, 'group' AS type, client_id FROM groups WHERE client_id = ANY(?0::uuid[]) AND id = ANY(?1::uuid[])
		UNION ALL
		SELECT id, 'collection', client_id FROM collections WHERE client_id = ANY(?0::uuid[]) AND id = ANY(?1::uuid[])`,
		pg.IDs(clients), ids))
	m.audiences = mapped(found, func(a *audienceRow) [16]byte { return a.ID })
	return err
}

func (m *importingFrameworks) refusal(
	r *domain.FrameworkAssignmentRecord, before *frameworkRow,
) domain.ImportResult {
	if before != nil {
		var id [16]byte
		if r.Audience.Value.ID != nil {
			id = r.Audience.Value.ID.UUID
		}
		if r.Audience.Given && (r.Audience.Value.Type != before.AudienceType || id != pg.Or(before.AudienceID, [16]byte{})) {
			return cannotChange("audience")
		}
		return domain.ImportResult{}
	}
	row, err := m.begin(r)
	if err != nil {
		return refused(err)
	}
	if other, taken := m.uses[row.use()]; taken {
		return takenBy("audience", other)
	}
	return domain.ImportResult{}
}

// begin is a new framework assignment, with the modules that the API has by default.
func (m *importingFrameworks) begin(r *domain.FrameworkAssignmentRecord) (frameworkRow, error) {
	row := frameworkRow{
		ClientID: r.Client.Value.ID, FrameworkID: r.Framework.Value, AudienceType: domain.FrameworkForAll,
		Training: true, Phishing: true, Reporting: true, CreatedAt: m.At,
	}
	if !m.clients[row.ClientID] {
		return row, errors.New("client: " + domain.NoSuchObject(row.ClientID.Noun()))
	}
	if _, found := domain.FrameworkByID(row.FrameworkID); !found {
		return row, errors.New("framework must be a framework of the catalogue, such as hipaa")
	}
	if !r.Audience.Given {
		return row, nil
	}
	return row, m.audience(&row, r.Audience.Value)
}

// finish switches the modules.
func (m *importingFrameworks) finish(a *appliedFramework) (beside bool, err error) {
	modules := a.record.Modules.Value
	for _, module := range []struct{ from, to *bool }{
		{modules.Training, &a.after.Training}, {modules.Phishing, &a.after.Phishing},
		{modules.Policies, &a.after.Policies}, {modules.Reporting, &a.after.Reporting},
	} {
		*module.to = pg.Or(module.from, *module.to)
	}
	if a.before == nil {
		m.uses[a.after.use()] = a.after.ID
		m.frameworksMoved(a.after.ClientID)
	}
	return false, nil
}

// audience sets whom an assignment is for. A collection that was deleted is no one's
// (decisions 7.7), and has to be said to be that.
func (m *importingFrameworks) audience(row *frameworkRow, a domain.AudienceRecord) error {
	row.AudienceType = a.Type
	switch {
	case a.Type == domain.FrameworkForAll && (a.ID != nil || a.Deleted):
		return errors.New("audience: that of all users has a type alone")
	case a.Type == domain.FrameworkForAll:
		return nil
	case a.ID == nil:
		return errors.New("audience: needs the id of the " + string(a.Type))
	case a.Deleted && a.Type != domain.FrameworkForCollection:
		return errors.New("audience: only a collection may be deleted")
	}
	row.AudienceID = &a.ID.UUID
	found, there := m.audiences[a.ID.UUID]
	there = there && found.Type == a.Type && found.ClientID == row.ClientID
	switch {
	case there && a.Deleted:
		return errors.New("audience: the collection is there, and not deleted")
	case !there && !a.Deleted:
		return fmt.Errorf("audience: there is no such %s of the client", a.Type)
	}
	return nil
}

// followFrameworks gives and withdraws what follows from assignments.
func (c *Change) followFrameworks(ctx context.Context, added, changed []*appliedFramework) error {
	var on []domain.FrameworkAssignmentID
	off := map[domain.ClientID][]domain.FrameworkAssignmentID{}
	for i := range added {
		on = append(on, added[i].after.ID)
	}
	for i := range changed {
		switch f := changed[i]; {
		case f.after.Training && !f.before.Training:
			on = append(on, f.after.ID)
		case f.before.Training && !f.after.Training:
			off[f.after.ClientID] = append(off[f.after.ClientID], f.after.ID)
		}
	}
	for _, withdraw := range []func(*Tenant, context.Context, *Change, []domain.FrameworkAssignmentID) error{
		(*Tenant).withdrawWaiting, (*Tenant).withdrawGiven, // of all, in the lock order
	} {
		for _, client := range sortedIDs(off) {
			t := &Tenant{Client: domain.Client{ID: client}, db: c.DB}
			if err := withdraw(t, ctx, c, off[client]); err != nil {
				return err
			}
		}
	}
	return c.giveSince(ctx, on)
}

// giveSince gives the courses of framework assignments to those who are in their
// audiences, as of when both were there.
func (c *Change) giveSince(ctx context.Context, ids []domain.FrameworkAssignmentID) error {
	if len(ids) == 0 {
		return nil
	}
	users, err := c.lockUsers(ctx, pg.SQL(`u.status = 'active' AND EXISTS (
		SELECT 1 FROM framework_assignments AS f JOIN framework_courses AS r ON r.framework_id = f.framework_id
		WHERE f.client_id = u.client_id AND f.id = ANY(?::uuid[]) AND `+frameworkAsks+`)`, pg.IDs(ids)))
	if err != nil || len(users) == 0 {
		return err
	}
	_, err = c.give(ctx, pg.SQL(`
		SELECT client_id, user_id, course_id, false AS from_program, false AS direct,
			array_agg(framework) AS frameworks, min(since + due_after_days) AS due_on, false AS notify
		FROM (?) AS asked JOIN LATERAL (
			SELECT greatest(u.created_at, f.created_at)::date AS since
			FROM users AS u, framework_assignments AS f
			WHERE u.client_id = asked.client_id AND u.id = asked.user_id AND f.client_id = asked.client_id AND f.id = asked.framework
		) AS both_there ON true
		GROUP BY client_id, user_id, course_id`, asked(pg.SQL("f.id = ANY(?::uuid[])", pg.IDs(ids)))))
	if err != nil {
		return err
	}
	// What was given just now is as old as its reasons, and what is overdue of it is
	// history: no event (decisions 8.2).
	clients, keys := keyLists(users)
	_, err = pg.Exec(ctx, c, "date courses back", pg.SQL(`
		UPDATE assignments AS a SET overdue_noted = a.due_on < ?3::date, assigned_at = (
			SELECT min(greatest(u.created_at, f.created_at)) FROM framework_assignments AS f
			JOIN users AS u ON u.client_id = a.client_id AND u.id = a.user_id
			WHERE f.client_id = a.client_id AND f.id = ANY (a.frameworks))
		FROM unnest(?0::uuid[], ?1::uuid[]) AS k (client_id, user_id)
		WHERE a.client_id = k.client_id AND a.user_id = k.user_id AND a.assigned_at = ?2 AND a.completed_at IS NULL
			AND a.frameworks && ?4::uuid[]`, clients, keys, c.At, domain.DateOf(c.At), pg.IDs(ids)))
	return err
}

// importedCourse is a row of courses with its titles by language, as JSON.
type importedCourse struct {
	bun.BaseModel `bun:"table:courses,alias:c"`
	courseRow
	Titles json.RawMessage `bun:"type:jsonb"`
}

// titles are the titles by language.
func (r *importedCourse) titles() (titles map[domain.Language]string, err error) {
	err = json.Unmarshal(r.Titles, &titles)
	return titles, err
}

// ImportCourses applies records of courses. What users were given stays theirs.
func (d *DB) ImportCourses(ctx context.Context, batch []domain.CourseRecord) ([]domain.ImportResult, error) {
	return importBatch(ctx, d, batch, (*Change).importCourses)
}

func (c *Change) importCourses(
	ctx context.Context, batch []domain.CourseRecord, results []domain.ImportResult,
) error {
	rows, err := lockRows[domain.CourseRecord, importedCourse](ctx, c, batch, "c.id")
	if err != nil {
		return err
	}
	k := kind[domain.CourseRecord, importedCourse]{
		Change: c, rows: rows, finish: finishCourse,
		fresh: func(*domain.CourseRecord) importedCourse {
			return importedCourse{Titles: json.RawMessage("{}"), courseRow: courseRow{
				RenewalMonths: 12, CreatedAt: c.At,
				Languages: []domain.Language{domain.English, domain.Spanish, domain.French},
			}}
		},
	}
	return k.apply(ctx, batch, results)
}

// finishCourse sets the titles: a course is available in the languages that they are
// in.
func finishCourse(a *applied[domain.CourseRecord, importedCourse]) (bool, error) {
	titles, err := a.after.titles()
	if err != nil || !a.record.Titles.Given {
		return false, err
	}
	if languages := slices.Sorted(maps.Keys(a.record.Titles.Value)); !slices.Equal(languages, a.after.Languages) {
		a.after.Languages = languages
	}
	if !maps.Equal(titles, a.record.Titles.Value) {
		a.after.Titles, err = json.Marshal(a.record.Titles.Value)
	}
	return false, err
}
