package db

import (
	"context"
	"slices"
	"time"

	"github.com/uptrace/bun"

	"partnerapi/db/pg"
	"partnerapi/domain"
)

// Imports of clients, partners and admins.

// importedClient is what an import and an export have of a row of clients.
type importedClient struct {
	bun.BaseModel `bun:"table:clients,alias:c"`

	ID                domain.ClientID `bun:"id,pk"`
	PartnerID         domain.PartnerID
	Name              string
	NameKey           string
	Industry          *string
	ExternalID        *string
	DarkWebMonitoring bool
	SummarizedAt      time.Time
	CreatedAt         time.Time
	UpdatedAt         time.Time
	ArchivedAt        *time.Time

	Program string `bun:",scanonly"` // as JSON, where an export reads it
}

// programRow is a row of program_courses.
type programRow struct {
	bun.BaseModel `bun:"table:program_courses,alias:p"`

	ClientID     domain.ClientID
	Position     int
	CourseID     domain.CourseID
	DueAfterDays int
}

// historyRow is a row of risk_history.
type historyRow struct {
	bun.BaseModel `bun:"table:risk_history,alias:h"`

	ClientID     domain.ClientID
	Day          domain.Date
	AverageScore int
}

// importingClients is a batch of records of clients being applied.
type importingClients struct {
	*Change
	partners map[domain.PartnerID]bool
	courses  map[domain.CourseID]bool
	programs map[domain.ClientID][]programRow

	// planned are the clients whose program is replaced by program, and usual the new
	// ones that get the foundational one.
	planned []domain.ClientID
	program []programRow
	usual   []domain.ClientID
	groups  []groupRow
	first   []historyRow
	// watched are those whose Dark Web Monitoring is switched.
	watched []domain.ClientID
}

type appliedClient = applied[domain.ClientRecord, importedClient]

// ImportClients applies records of clients. A new one gets a group for users who are
// kept by hand, and the foundational program where it has none. A program concerns
// users who are enrolled later.
//
// Scores are computed again where Dark Web Monitoring is switched, in transactions of
// their own: where it comes to an end before that, the daily refresh does it.
func (d *DB) ImportClients(ctx context.Context, batch []domain.ClientRecord) ([]domain.ImportResult, error) {
	var watched []domain.ClientID
	results, err := importBatch(ctx, d, batch, func(
		c *Change, ctx context.Context, batch []domain.ClientRecord, results []domain.ImportResult,
	) error {
		m := &importingClients{Change: c}
		err := m.apply(ctx, batch, results)
		watched = m.watched
		return err
	})
	if err != nil {
		return nil, err
	}
	for _, id := range watched {
		if err := d.rescoreClient(ctx, id); err != nil {
			return nil, err
		}
	}
	return results, nil
}

func (m *importingClients) apply(
	ctx context.Context, batch []domain.ClientRecord, results []domain.ImportResult,
) error {
	m.Lock(ClientLocks)
	rows, err := lockRows[domain.ClientRecord, importedClient](ctx, m.Change, batch, "c.id")
	if err != nil {
		return err
	}
	if err := m.read(ctx, batch); err != nil {
		return err
	}
	k := kind[domain.ClientRecord, importedClient]{
		Change: m.Change, rows: rows, refuse: m.refusal, finish: m.finish, then: m.then,
		fresh: func(*domain.ClientRecord) importedClient {
			return importedClient{
				DarkWebMonitoring: true, CreatedAt: m.At, UpdatedAt: m.At,
				SummarizedAt: m.At.Add(-2 * domain.SummaryAge), // it was never made
			}
		},
		names: &names[importedClient]{
			column: "name_key",
			of: func(r *importedClient) (scope, key string) {
				if r.ArchivedAt != nil {
					return r.PartnerID.UUID(), ""
				}
				return r.PartnerID.UUID(), r.NameKey
			},
			query: `SELECT id, partner_id::text AS scope, name_key AS key FROM clients
				WHERE partner_id = ANY(?0::text[]::uuid[]) AND name_key = ANY(?1::text[]) AND archived_at IS NULL`,
			taken: func(by [16]byte) domain.ImportResult { return takenBy("name", domain.ClientID(by)) },
		},
	}
	if err := k.apply(ctx, batch, results); err != nil {
		return err
	}
	return m.writeParts(ctx)
}

// read reads what the records refer to, and the programs of those that name one.
func (m *importingClients) read(ctx context.Context, batch []domain.ClientRecord) (err error) {
	var programmed []domain.ClientID
	var courses []domain.CourseID
	for i := range batch {
		r := &batch[i]
		for _, p := range r.Program.Value {
			courses = append(courses, p.Course.ID)
		}
		if r.Program.Given {
			programmed = append(programmed, r.ID.ID)
		}
	}
	m.partners, err = existing(ctx, m.Change, "look for partners", "partners WHERE",
		refsOf(batch, func(r *domain.ClientRecord) domain.Optional[domain.Ref[domain.PartnerKind]] { return r.Partner }))
	if err != nil {
		return err
	}
	if m.courses, err = existing(ctx, m.Change, "look for courses", "courses WHERE", courses); err != nil {
		return err
	}
	if m.programs = map[domain.ClientID][]programRow{}; len(programmed) == 0 {
		return nil
	}
	rows, err := pg.All[programRow](ctx, m, "read programs", pg.Rows[programRow]().
		Where("p.client_id = ANY(?::uuid[])", pg.IDs(programmed)).OrderBy("p.client_id, p.position"))
	for _, r := range rows {
		m.programs[r.ClientID] = append(m.programs[r.ClientID], r)
	}
	return err
}

func (m *importingClients) refusal(r *domain.ClientRecord, _ *importedClient) domain.ImportResult {
	if r.Partner.Given && !m.partners[r.Partner.Value.ID] {
		return noSuch("partner", "partner")
	}
	seen := map[domain.CourseID]bool{}
	for _, p := range r.Program.Value {
		if !m.courses[p.Course.ID] {
			return noSuch("program", "course")
		}
		if seen[p.Course.ID] {
			return domain.RefuseImport("program has the course %s twice", p.Course)
		}
		seen[p.Course.ID] = true
	}
	return domain.ImportResult{}
}

// finish sets what a record says beside columns. Beside the row it may replace the
// program.
func (m *importingClients) finish(a *appliedClient) (beside bool, err error) {
	rename(a.record.Name, a.before == nil || a.before.Name != a.after.Name, &a.after.NameKey)
	m.archive(a.record.Archived, &a.after.ArchivedAt)
	return a.record.Program.Given && !slices.Equal(programOf(a.record), m.programs[a.record.ID.ID]), nil
}

// archive sets when an object was archived: now, where it was not before.
func (c *Change) archive(archived domain.Optional[bool], at **time.Time) {
	switch {
	case !archived.Or(*at != nil):
		*at = nil
	case *at == nil:
		*at = &c.At
	}
}

func programOf(r *domain.ClientRecord) []programRow {
	program := make([]programRow, len(r.Program.Value))
	for n, p := range r.Program.Value {
		program[n] = programRow{ClientID: r.ID.ID, Position: n + 1, CourseID: p.Course.ID, DueAfterDays: p.Days(n)}
	}
	return program
}

// then notes what follows from a client that is new or changes.
func (m *importingClients) then(a *appliedClient) {
	id := a.record.ID.ID
	if a.beside || a.before == nil && a.record.Program.Given {
		m.planned, m.program = append(m.planned, id), append(m.program, programOf(a.record)...)
	}
	if a.before == nil {
		m.first = append(m.first, historyRow{
			ClientID: id, Day: domain.DateOf(a.after.CreatedAt), AverageScore: domain.EmptySummary(m.At).AverageScore,
		})
		m.groups = append(m.groups, groupRow{
			ClientID: id, ID: NewID[domain.GroupKind](), Name: domain.ManualGroup, Manual: true, CreatedAt: a.after.CreatedAt,
		})
		if !a.record.Program.Given {
			m.usual = append(m.usual, id)
		}
		if a.after.ArchivedAt == nil {
			m.countClients(a.after.PartnerID, 1)
		}
		return
	}

	switch {
	case a.before.ArchivedAt == nil && a.after.ArchivedAt != nil:
		m.countClients(a.after.PartnerID, -1)
	case a.before.ArchivedAt != nil && a.after.ArchivedAt == nil:
		m.countClients(a.after.PartnerID, 1)
	}
	if a.before.DarkWebMonitoring != a.after.DarkWebMonitoring {
		m.watched = append(m.watched, id)
	}
	if a.changed {
		a.after.UpdatedAt = latest(a.after.UpdatedAt, m.At)
	}
}

// writeParts writes what belongs to clients.
func (m *importingClients) writeParts(ctx context.Context) error {
	if len(m.planned)+len(m.usual) > 0 {
		_, err := pg.Exec(ctx, m, "give clients the foundational program", pg.SQL(`
			WITH replaced AS (
				DELETE FROM program_courses WHERE client_id = ANY(?1::uuid[])
			)
			INSERT INTO program_courses (client_id, position, course_id, due_after_days)
			SELECT c.id, p.position, p.course_id, p.due_after_days
			FROM unnest(?0::uuid[]) AS c (id) CROSS JOIN default_program AS p`, pg.IDs(m.usual), pg.IDs(m.planned)))
		if err != nil {
			return err
		}
	}
	if err := pg.CopyRows(ctx, m, "insert imported programs", m.program); err != nil {
		return err
	}
	if err := pg.CopyRows(ctx, m, "insert imported histories", m.first); err != nil {
		return err
	}
	return pg.CopyRows(ctx, m, "insert imported groups", m.groups)
}

// rescoreClient computes the scores of a client's users again, a batch in each
// transaction.
func (d *DB) rescoreClient(ctx context.Context, client domain.ClientID) error {
	for last := (domain.UserID{}); ; {
		var batch []domain.UserKey
		err := d.Change(ctx, func(ctx context.Context, c *Change) (err error) {
			batch, err = c.lockUsers(ctx, pg.SQL(`(u.client_id, u.id) IN (
				SELECT client_id, id FROM users WHERE client_id = ? AND id > ? ORDER BY id LIMIT ?)`,
				client, last, refreshBatch))
			c.Rescore(batch...)
			return err
		})
		if err != nil || len(batch) == 0 {
			return err
		}
		last = batch[len(batch)-1].User
	}
}

// ImportPartners applies records of partners. Their names are unique.
func (d *DB) ImportPartners(ctx context.Context, batch []domain.PartnerRecord) ([]domain.ImportResult, error) {
	return importBatch(ctx, d, batch, (*Change).importPartners)
}

func (c *Change) importPartners(
	ctx context.Context, batch []domain.PartnerRecord, results []domain.ImportResult,
) error {
	c.Lock(PartnerLocks)
	rows, err := lockRows[domain.PartnerRecord, partnerRow](ctx, c, batch, "p.id")
	if err != nil {
		return err
	}
	k := kind[domain.PartnerRecord, partnerRow]{
		Change: c, rows: rows,
		fresh: func(*domain.PartnerRecord) partnerRow { return partnerRow{CreatedAt: c.At} },
		finish: func(a *applied[domain.PartnerRecord, partnerRow]) (bool, error) {
			rename(a.record.Name, a.before == nil || a.before.Name != a.after.Name, &a.after.NameKey)
			return false, nil
		},
		names: &names[partnerRow]{
			column: "name_key",
			of:     func(r *partnerRow) (scope, key string) { return "", r.NameKey },
			query:  "SELECT id, '' AS scope, name_key AS key FROM partners WHERE name_key = ANY(?1::text[])",
			taken:  func(by [16]byte) domain.ImportResult { return takenBy("name", domain.PartnerID(by)) },
		},
	}
	return k.apply(ctx, batch, results)
}

// rename sets the key of a name that changed. One that stays keeps its key, which a
// migration may have made.
func rename(name domain.Optional[string], changed bool, key *string) {
	if changed {
		*key = domain.SortKey(name.Value)
	}
}

// ImportAdmins applies records of admins. The emails of a client's are unique.
func (d *DB) ImportAdmins(ctx context.Context, batch []domain.AdminRecord) ([]domain.ImportResult, error) {
	return importBatch(ctx, d, batch, (*Change).importAdmins)
}

func (c *Change) importAdmins(ctx context.Context, batch []domain.AdminRecord, results []domain.ImportResult) error {
	rows, err := lockRows[domain.AdminRecord, adminRow](ctx, c, batch, "a.id")
	if err != nil {
		return err
	}
	partners, err := existing(ctx, c, "look for partners", "partners WHERE",
		refsOf(batch, func(r *domain.AdminRecord) domain.Optional[domain.Ref[domain.PartnerKind]] { return r.Partner }))
	if err != nil {
		return err
	}
	clients, err := c.clientsCalled(ctx,
		refsOf(batch, func(r *domain.AdminRecord) clientRef { return r.Client }))
	if err != nil {
		return err
	}
	for i := range batch {
		if !batch[i].Client.Given && !batch[i].Partner.Given {
			batch[i].Missing = "partner or client"
		}
	}

	k := kind[domain.AdminRecord, adminRow]{
		Change: c, rows: rows,
		fresh: func(r *domain.AdminRecord) adminRow {
			return adminRow{PartnerID: clients[r.Client.Value.ID].PartnerID, CreatedAt: c.At}
		},
		refuse: func(r *domain.AdminRecord, _ *adminRow) domain.ImportResult {
			client := clients[r.Client.Value.ID]
			switch {
			case r.Client.Given && !client.There:
				return noSuch("client", "client")
			case r.Partner.Given && !partners[r.Partner.Value.ID]:
				return noSuch("partner", "partner")
			case r.Client.Given && r.Partner.Given && client.PartnerID != r.Partner.Value.ID:
				return domain.RefuseImport("client: it is another partner's")
			}
			return domain.ImportResult{}
		},
		names: &names[adminRow]{
			column: "email",
			of: func(r *adminRow) (scope, key string) {
				if r.ClientID == nil {
					return "", ""
				}
				return r.ClientID.UUID(), r.Email
			},
			query: `SELECT id, client_id::text AS scope, email AS key FROM admins
				WHERE client_id = ANY(?0::text[]::uuid[]) AND email = ANY(?1::text[])`,
			taken: func(by [16]byte) domain.ImportResult { return takenBy("email", domain.AdminID(by)) },
		},
	}
	return k.apply(ctx, batch, results)
}
