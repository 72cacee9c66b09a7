package db

import (
	"context"
	"slices"
	"time"

	"partnerapi/db/pg"
	"partnerapi/domain"
)

// importedClient is what a record sets of a row of clients, by the columns.
type importedClient struct {
	ID                string     `json:"id"`
	PartnerID         string     `json:"partner_id"`
	Name              string     `json:"name"`
	NameKey           string     `json:"name_key"`
	Industry          *string    `json:"industry"`
	ExternalID        *string    `json:"external_id"`
	DarkWebMonitoring bool       `json:"dark_web_monitoring"`
	CreatedAt         time.Time  `json:"created_at"`
	UpdatedAt         time.Time  `json:"updated_at"`
	ArchivedAt        *time.Time `json:"archived_at"`
}

// newClient is a client whose summary was never made.
type newClient struct {
	importedClient
	SummarizedAt time.Time `json:"summarized_at"`
}

// storedClient is the same, as it is read.
type storedClient struct {
	ID                domain.ClientID
	PartnerID         domain.PartnerID
	Name              string
	NameKey           string
	Industry          *string
	ExternalID        *string
	DarkWebMonitoring bool
	CreatedAt         time.Time
	UpdatedAt         time.Time
	ArchivedAt        *time.Time
}

// importingClients is a batch of records of clients being applied.
type importingClients struct {
	*Change
	batch   []domain.ClientRecord
	results []domain.ImportResult

	before   map[domain.ClientID]storedClient
	partners map[domain.PartnerID]bool
	courses  map[domain.CourseID]bool
	programs map[domain.ClientID][]programRow

	made    []newClient
	changed []importedClient
	// planned are the clients whose program is replaced by program, and usual the new
	// ones that get the foundational one.
	planned []domain.ClientID
	program []programRow
	usual   []domain.ClientID
	groups  []importedGroup
	first   []historyRow
	// watched are those whose Dark Web Monitoring is switched.
	watched []domain.ClientID
}

// programRow is a row of program_courses.
type programRow struct {
	ClientID     domain.ClientID `json:"client_id"`
	Position     int             `json:"position"`
	CourseID     domain.CourseID `json:"course_id"`
	DueAfterDays int             `json:"due_after_days"`
}

// historyRow is a row of risk_history.
type historyRow struct {
	ClientID     string      `json:"client_id"`
	Day          domain.Date `json:"day"`
	AverageScore int         `json:"average_score"`
}

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
		m := &importingClients{Change: c, batch: batch, results: results}
		err := m.apply(ctx)
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

func (m *importingClients) apply(ctx context.Context) error {
	if err := m.read(ctx); err != nil {
		return err
	}
	named, err := m.judge(ctx)
	if err != nil {
		return err
	}
	for i := range m.batch {
		if m.results[i].Refusal == "" {
			m.decide(i)
		}
	}
	if err := m.giveUp(ctx, named, "clients", "name_key"); err != nil {
		return err
	}
	if err := updateRows(ctx, m.Change, "clients", "clients", m.changed, "id"); err != nil {
		return err
	}
	if err := insertRows(ctx, m.Change, "clients", "clients", m.made); err != nil {
		return err
	}
	return m.writeParts(ctx)
}

// read locks the clients that are there, and reads what the records refer to.
func (m *importingClients) read(ctx context.Context) error {
	var ids, programmed []domain.ClientID
	var partners []domain.PartnerID
	var courses []domain.CourseID
	for i := range m.batch {
		r := &m.batch[i]
		ids = append(ids, r.ID.ID)
		partners = append(partners, r.Partner.Value.ID)
		for _, p := range r.Program.Value {
			courses = append(courses, p.Course.ID)
		}
		if r.Program.Has() {
			programmed = append(programmed, r.ID.ID)
		}
	}
	m.lock(clientLocks)
	rows, err := pg.All[storedClient](ctx, m, "lock clients", pg.SQL(`
		SELECT id, partner_id, name, name_key, industry, external_id, dark_web_monitoring, created_at, updated_at,
			archived_at
		FROM clients WHERE id = ANY(?::uuid[]) ORDER BY id FOR NO KEY UPDATE`, pg.IDs(ids)))
	if err != nil {
		return err
	}
	m.before = mapped(rows, func(r *storedClient) domain.ClientID { return r.ID })
	if m.partners, err = existing(ctx, m.Change, "look for partners", "partners WHERE", partners); err != nil {
		return err
	}
	if m.courses, err = existing(ctx, m.Change, "look for courses", "courses WHERE", courses); err != nil {
		return err
	}
	return m.readPrograms(ctx, programmed)
}

func (m *importingClients) readPrograms(ctx context.Context, of []domain.ClientID) error {
	if len(of) == 0 {
		return nil
	}
	rows, err := pg.All[programRow](ctx, m, "read programs", pg.SQL(`
		SELECT client_id, position, course_id, due_after_days FROM program_courses
		WHERE client_id = ANY(?::uuid[]) ORDER BY client_id, position`, pg.IDs(of)))
	m.programs = map[domain.ClientID][]programRow{}
	for _, r := range rows {
		m.programs[r.ClientID] = append(m.programs[r.ClientID], r)
	}
	return err
}

// judge refuses what cannot be applied, and settles who gets which name.
func (m *importingClients) judge(ctx context.Context) (settledClaims, error) {
	var claims []claim
	for i := range m.batch {
		r := &m.batch[i]
		if m.results[i] = m.refusal(r); m.results[i].Refusal != "" {
			continue
		}
		old, there := m.before[r.ID.ID]
		after := m.after(r)
		scope := after.PartnerID
		switch {
		case after.ArchivedAt != nil:
			claims = append(claims, claim{id: r.ID.Bytes(), scope: scope})
		case !there || old.ArchivedAt != nil || old.NameKey != after.NameKey:
			claims = append(claims, claim{id: r.ID.Bytes(), scope: scope, key: after.NameKey})
		}
	}
	named, err := m.settleClaims(ctx, claims, `SELECT id, partner_id::text AS scope, name_key AS key FROM clients
		WHERE partner_id = ANY(?0::text[]::uuid[]) AND name_key = ANY(?1::text[]) AND archived_at IS NULL`)
	for i := range m.batch {
		if holder, lost := named.lost[m.batch[i].ID.Bytes()]; lost {
			m.results[i] = takenBy("name", domain.ClientID(holder))
		}
	}
	return named, err
}

func (m *importingClients) refusal(r *domain.ClientRecord) domain.ImportResult {
	old, there := m.before[r.ID.ID]
	switch {
	case !there && r.Missing != "":
		return missing(r.Missing)
	case there && r.Partner.Has() && r.Partner.Value.ID != old.PartnerID:
		return cannotChange("partner")
	case r.Partner.Has() && !m.partners[r.Partner.Value.ID]:
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

// after is the client as a record has it.
func (m *importingClients) after(r *domain.ClientRecord) importedClient {
	old, there := m.before[r.ID.ID]
	if !there {
		old = storedClient{PartnerID: r.Partner.Value.ID, DarkWebMonitoring: true, CreatedAt: m.At, UpdatedAt: m.At}
	}
	after := importedClient{
		ID: r.ID.UUID(), PartnerID: old.PartnerID.UUID(), Name: r.Name.Or(old.Name), NameKey: old.NameKey,
		Industry: old.Industry, ExternalID: old.ExternalID,
		DarkWebMonitoring: r.DarkWebMonitoring.Or(old.DarkWebMonitoring),
		CreatedAt:         r.CreatedAt.Or(domain.Moment{Time: old.CreatedAt}).Time, UpdatedAt: old.UpdatedAt,
		ArchivedAt: old.ArchivedAt,
	}
	if after.Name != old.Name { // one that stays keeps its key, which a migration may have made
		after.NameKey = domain.SortKey(after.Name)
	}
	r.Industry.ApplyNull(&after.Industry)
	r.ExternalID.ApplyNull(&after.ExternalID)
	switch archived := r.Archived.Or(old.ArchivedAt != nil); {
	case !archived:
		after.ArchivedAt = nil
	case old.ArchivedAt == nil:
		after.ArchivedAt = &m.At
	}
	return after
}

// decide says what becomes of a record that is not refused.
func (m *importingClients) decide(i int) {
	r := &m.batch[i]
	old, there := m.before[r.ID.ID]
	after := m.after(r)
	program := make([]programRow, len(r.Program.Value))
	for n, p := range r.Program.Value {
		program[n] = programRow{r.ID.ID, n + 1, p.Course.ID, p.Days(n)}
	}
	replanned := r.Program.Has() && !slices.Equal(program, m.programs[r.ID.ID])
	if replanned || !there && r.Program.Has() {
		m.planned, m.program = append(m.planned, r.ID.ID), append(m.program, program...)
	}
	if !there {
		m.create(r, after)
		m.results[i].Outcome = domain.ImportCreated
		return
	}

	switch same := old.same(&after); {
	case same && !replanned:
		m.results[i].Outcome = domain.ImportUnchanged
		return
	case !same:
		after.UpdatedAt = latest(old.UpdatedAt, m.At)
		m.changed = append(m.changed, after)
	}
	m.results[i].Outcome = domain.ImportUpdated
	switch {
	case old.ArchivedAt == nil && after.ArchivedAt != nil:
		m.countClients(old.PartnerID, -1)
	case old.ArchivedAt != nil && after.ArchivedAt == nil:
		m.countClients(old.PartnerID, 1)
	}
	if old.DarkWebMonitoring != after.DarkWebMonitoring {
		m.watched = append(m.watched, r.ID.ID)
	}
}

func (m *importingClients) create(r *domain.ClientRecord, after importedClient) {
	m.made = append(m.made, newClient{after, m.At.Add(-2 * domain.SummaryAge)})
	m.first = append(m.first, historyRow{
		after.ID, domain.DateOf(after.CreatedAt), domain.EmptySummary(m.At).AverageScore,
	})
	m.groups = append(m.groups, importedGroup{
		after.ID, NewID[domain.GroupKind]().UUID(), domain.ManualGroup, true, after.CreatedAt,
	})
	if !r.Program.Has() {
		m.usual = append(m.usual, r.ID.ID)
	}
	if after.ArchivedAt == nil {
		m.countClients(r.Partner.Value.ID, 1)
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
	program := make([]importedProgram, len(m.program))
	for i, p := range m.program {
		program[i] = importedProgram{p.ClientID.UUID(), p.Position, p.CourseID.UUID(), p.DueAfterDays}
	}
	if err := insertRows(ctx, m.Change, "programs", "program_courses", program); err != nil {
		return err
	}
	if err := insertRows(ctx, m.Change, "histories", "risk_history", m.first); err != nil {
		return err
	}
	return insertRows(ctx, m.Change, "groups", "groups", m.groups)
}

// importedProgram is a row of program_courses, by its columns.
type importedProgram struct {
	ClientID     string `json:"client_id"`
	Position     int    `json:"position"`
	CourseID     string `json:"course_id"`
	DueAfterDays int    `json:"due_after_days"`
}

func (s *storedClient) same(a *importedClient) bool {
	return s.Name == a.Name && sameValue(s.Industry, a.Industry) && sameValue(s.ExternalID, a.ExternalID) &&
		s.DarkWebMonitoring == a.DarkWebMonitoring && s.CreatedAt.Equal(a.CreatedAt) &&
		(s.ArchivedAt == nil) == (a.ArchivedAt == nil)
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

// sameValue reports whether two values that may be nil are equal.
func sameValue[T comparable](a, b *T) bool { return a == b || a != nil && b != nil && *a == *b }

// latest is the later one of two times.
func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
