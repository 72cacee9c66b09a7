package db

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"partnerapi/db/pg"
	"partnerapi/domain"
)

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

// importedFramework is a framework assignment that a record names.
type importedFramework struct {
	before, after frameworkRow
	isNew         bool
}

// same reports whether both are the same: who it is for never changes.
func (f *importedFramework) same() bool {
	return f.before.Training == f.after.Training && f.before.Phishing == f.after.Phishing &&
		f.before.Policies == f.after.Policies && f.before.Reporting == f.after.Reporting &&
		f.before.CreatedAt.Equal(f.after.CreatedAt)
}

// frameworkUse is what is assigned to whom: a client has one assignment of it.
type frameworkUse struct {
	client    domain.ClientID
	framework string
	audience  domain.FrameworkAudienceType
	id        [16]byte // zero for all users
}

func (r *frameworkRow) use() frameworkUse {
	return frameworkUse{r.ClientID, r.FrameworkID, r.AudienceType, or(r.AudienceID, [16]byte{})}
}

// namedByFrameworks are the objects that records of framework assignments name.
type namedByFrameworks struct {
	assignments map[domain.FrameworkAssignmentID]*frameworkRow
	uses        map[frameworkUse]domain.FrameworkAssignmentID
	clients     map[domain.ClientID]bool
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
	known, err := c.lockForFrameworks(ctx, batch)
	if err != nil {
		return err
	}
	var added, changed []importedFramework
	for i := range batch {
		f, refusal := known.after(&batch[i], c.At)
		if f == nil {
			results[i] = refusal
			continue
		}
		results[i].Outcome = outcomeOf(f.isNew, !f.same())
		switch results[i].Outcome {
		case domain.ImportCreated:
			added = append(added, *f)
			known.uses[f.after.use()] = f.after.ID
		case domain.ImportUpdated:
			changed = append(changed, *f)
		}
	}
	if err := c.storeFrameworks(ctx, added, changed); err != nil {
		return err
	}
	return c.followFrameworks(ctx, added, changed)
}

// lockForFrameworks finds what records of framework assignments name, archived
// clients' objects too, and locks the audiences of their clients.
func (c *Change) lockForFrameworks(
	ctx context.Context, batch []domain.FrameworkAssignmentRecord,
) (*namedByFrameworks, error) {
	ids := make([]domain.FrameworkAssignmentID, len(batch))
	var clients []domain.ClientID
	var audiences [][16]byte
	for i := range batch {
		in := &batch[i]
		ids[i] = in.ID.ID
		if in.Client.Has() {
			clients = append(clients, in.Client.Value.ID)
		}
		if in.Audience.Has() && in.Audience.Value.ID != nil {
			audiences = append(audiences, in.Audience.Value.ID.UUID)
		}
	}
	c.lock(audienceLocks)
	err := c.lockAudiences(ctx, "pg_advisory_xact_lock", pg.SQL(`(
		SELECT unnest(?::uuid[]) AS id UNION SELECT client_id FROM framework_assignments WHERE id = ANY(?::uuid[])) AS l`,
		pg.IDs(clients), pg.IDs(ids)))
	if err != nil {
		return nil, err
	}

	known := &namedByFrameworks{
		assignments: map[domain.FrameworkAssignmentID]*frameworkRow{},
		uses:        map[frameworkUse]domain.FrameworkAssignmentID{}, audiences: map[[16]byte]audienceRow{},
	}
	rows, err := pg.All[frameworkRow](ctx, c, "read framework assignments", pg.From("framework_assignments AS f").
		Columns(pg.Columns[frameworkRow]()).Where("f.client_id = ANY(?::uuid[]) OR f.id = ANY(?::uuid[])",
		pg.IDs(clients), pg.IDs(ids)))
	if err != nil {
		return nil, err
	}
	for i := range rows {
		known.assignments[rows[i].ID] = &rows[i]
		known.uses[rows[i].use()] = rows[i].ID
	}
	found, err := pg.All[audienceRow](ctx, c, "look for groups and collections", pg.SQL(`
		SELECT id, 'group' AS type, client_id FROM groups WHERE client_id = ANY(?0::uuid[]) AND id = ANY(?1::uuid[])
		UNION ALL
		SELECT id, 'collection', client_id FROM collections WHERE client_id = ANY(?0::uuid[]) AND id = ANY(?1::uuid[])`,
		pg.IDs(clients), audiences))
	if err != nil {
		return nil, err
	}
	for _, a := range found {
		known.audiences[a.ID] = a
	}
	known.clients, err = existing(ctx, c, "look for clients", "clients WHERE", sortedUnique(clients))
	return known, err
}

// after is the framework assignment that a record names, as it leaves it; nil where
// the record is refused.
func (n *namedByFrameworks) after(
	in *domain.FrameworkAssignmentRecord, at time.Time,
) (*importedFramework, domain.ImportResult) {
	stored := n.assignments[in.ID.ID]
	f := &importedFramework{isNew: stored == nil}
	switch {
	case !f.isNew:
		f.before = *stored
		if field := movedField(in, stored); field != "" {
			return nil, cannotChange(field)
		}
	case in.Missing != "":
		return nil, missing(in.Missing)
	default:
		if err := n.begin(&f.before, in, at); err != nil {
			return nil, refused(err)
		}
		if other, taken := n.uses[f.before.use()]; taken {
			return nil, takenBy("audience", other)
		}
	}

	f.after = f.before
	if in.CreatedAt.Has() {
		f.after.CreatedAt = in.CreatedAt.Value.Time
	}
	for _, m := range []struct{ from, to *bool }{
		{in.Modules.Value.Training, &f.after.Training}, {in.Modules.Value.Phishing, &f.after.Phishing},
		{in.Modules.Value.Policies, &f.after.Policies}, {in.Modules.Value.Reporting, &f.after.Reporting},
	} {
		*m.to = or(m.from, *m.to)
	}
	return f, domain.ImportResult{}
}

// begin fills in a new framework assignment, with the modules that the API has by
// default.
func (n *namedByFrameworks) begin(row *frameworkRow, in *domain.FrameworkAssignmentRecord, at time.Time) error {
	*row = frameworkRow{
		ClientID: in.Client.Value.ID, ID: in.ID.ID, FrameworkID: in.Framework.Value, AudienceType: domain.FrameworkForAll,
		Training: true, Phishing: true, Reporting: true, CreatedAt: at,
	}
	if !n.clients[row.ClientID] {
		return errors.New("client: " + domain.NoSuchObject(row.ClientID.Noun()))
	}
	if _, found := domain.FrameworkByID(row.FrameworkID); !found {
		return errors.New("framework must be a framework of the catalogue, such as hipaa")
	}
	if !in.Audience.Has() {
		return nil
	}
	return n.audience(row, in.Audience.Value)
}

// audience sets whom an assignment is for. A collection that was deleted is nobody's
// (decisions 7.7), and has to be said to be that.
func (n *namedByFrameworks) audience(row *frameworkRow, a domain.AudienceRecord) error {
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
	found, there := n.audiences[a.ID.UUID]
	there = there && found.Type == a.Type && found.ClientID == row.ClientID
	switch {
	case there && a.Deleted:
		return errors.New("audience: the collection is there, and not deleted")
	case !there && !a.Deleted:
		return fmt.Errorf("audience: there is no such %s of the client", a.Type)
	}
	return nil
}

// movedField is the field of a record that says another thing of an assignment than
// what it is; empty for none.
func movedField(in *domain.FrameworkAssignmentRecord, stored *frameworkRow) string {
	var audience [16]byte
	if in.Audience.Value.ID != nil {
		audience = in.Audience.Value.ID.UUID
	}
	switch {
	case in.Client.Has() && in.Client.Value.ID != stored.ClientID:
		return "client"
	case in.Framework.Has() && in.Framework.Value != stored.FrameworkID:
		return "framework"
	case in.Audience.Has() && (in.Audience.Value.Type != stored.AudienceType || audience != or(stored.AudienceID, [16]byte{})):
		return "audience"
	}
	return ""
}

// frameworkRecord is a row of framework_assignments, by its columns.
type frameworkRecord struct {
	ClientID     string                       `json:"client_id"`
	ID           string                       `json:"id"`
	FrameworkID  string                       `json:"framework_id"`
	AudienceType domain.FrameworkAudienceType `json:"audience_type"`
	AudienceID   *string                      `json:"audience_id"`
	Training     bool                         `json:"training"`
	Phishing     bool                         `json:"phishing"`
	Policies     bool                         `json:"policies"`
	Reporting    bool                         `json:"reporting"`
	CreatedAt    time.Time                    `json:"created_at"`
}

// storeFrameworks stores framework assignments, to be evaluated anew.
func (c *Change) storeFrameworks(ctx context.Context, added, changed []importedFramework) error {
	if len(added)+len(changed) == 0 {
		return nil
	}
	var records []frameworkRecord
	for _, f := range slices.Concat(added, changed) {
		r := &f.after
		record := frameworkRecord{
			ClientID: r.ClientID.UUID(), ID: r.ID.UUID(), FrameworkID: r.FrameworkID, AudienceType: r.AudienceType,
			Training: r.Training, Phishing: r.Phishing, Policies: r.Policies, Reporting: r.Reporting, CreatedAt: r.CreatedAt,
		}
		if r.AudienceID != nil {
			record.AudienceID = new(domain.GroupID(*r.AudienceID).UUID())
		}
		records = append(records, record)
		if f.isNew {
			c.frameworksMoved(r.ClientID)
		}
	}
	text, err := json.Marshal(records)
	if err != nil {
		return err
	}
	_, err = pg.Exec(ctx, c, "store framework assignments", pg.SQL(`
		INSERT INTO framework_assignments
			(client_id, id, framework_id, audience_type, audience_id, training, phishing, policies, reporting, created_at)
		SELECT client_id, id, framework_id, audience_type, audience_id, training, phishing, policies, reporting, created_at
		FROM json_populate_recordset(NULL::framework_assignments, ?::json) ORDER BY client_id, id
		ON CONFLICT (client_id, id) DO UPDATE SET (training, phishing, policies, reporting, created_at, evaluated_at) =
			(excluded.training, excluded.phishing, excluded.policies, excluded.reporting, excluded.created_at, 'epoch')`,
		string(text)))
	return err
}

// followFrameworks gives and withdraws what follows from assignments.
func (c *Change) followFrameworks(ctx context.Context, added, changed []importedFramework) error {
	var on []domain.FrameworkAssignmentID
	off := map[domain.ClientID][]domain.FrameworkAssignmentID{}
	for i := range added {
		on = append(on, added[i].after.ID)
	}
	for i := range changed {
		switch f := &changed[i]; {
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
