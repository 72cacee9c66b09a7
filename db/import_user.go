package db

import (
	"context"
	"slices"
	"time"

	"partnerapi/db/pg"
	"partnerapi/domain"
)

// importingUsers is a batch of records of users being applied.
type importingUsers struct {
	*Change
	batch   []domain.UserRecord
	results []domain.ImportResult

	before  map[domain.UserID]domain.User
	clients map[domain.ClientID]referredClient
	groups  map[domain.GroupID]domain.ClientID
	// manual are the groups of clients for users who are kept by hand.
	manual map[domain.ClientID]domain.GroupID

	created []domain.User
	changed []userChange
}

// ImportUsers applies records of users, without the collections that they name
// (ImportMemberships). New users are enrolled as of their creation: courses that are
// past their due date by now are overdue, and no event says so. A role is an override
// where the source is not a directory.
func (d *DB) ImportUsers(ctx context.Context, batch []domain.UserRecord) ([]domain.ImportResult, error) {
	return importBatch(ctx, d, batch, func(
		c *Change, ctx context.Context, batch []domain.UserRecord, results []domain.ImportResult,
	) error {
		return (&importingUsers{Change: c, batch: batch, results: results}).apply(ctx)
	})
}

func (m *importingUsers) apply(ctx context.Context) error {
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
	if err := m.giveUp(ctx, named, "users", "email"); err != nil {
		return err
	}
	if err := m.write(ctx); err != nil {
		return err
	}
	return m.effects(ctx)
}

// read locks the users that are there, and reads what the records refer to. The
// audiences of all clients that it concerns are shared first.
func (m *importingUsers) read(ctx context.Context) error {
	ids := make([]domain.UserID, len(m.batch))
	var clients []domain.ClientID
	var groups []domain.GroupID
	for i := range m.batch {
		r := &m.batch[i]
		ids[i] = r.ID.ID
		clients = append(clients, r.Client.Value.ID)
		if r.Group.Has() {
			groups = append(groups, r.Group.Value.ID)
		}
	}
	there, err := pg.All[domain.UserKey](ctx, m, "look for users", pg.SQL(
		`SELECT client_id AS client, id AS "user" FROM users WHERE id = ANY(?::uuid[])`, pg.IDs(ids)))
	if err != nil {
		return err
	}
	for _, k := range there {
		clients = append(clients, k.Client)
	}
	clients = sortedUnique(clients)
	if err := m.ShareAudiences(ctx, clients...); err != nil {
		return err
	}
	if m.before, err = m.lockBefore(ctx, there); err != nil {
		return err
	}
	if m.clients, err = clientsOf(ctx, m.Change, clients, func(id *domain.ClientID) domain.ClientID { return *id }); err != nil {
		return err
	}
	return m.readGroups(ctx, clients, groups)
}

// lockBefore locks users and reads them.
func (c *Change) lockBefore(ctx context.Context, keys []domain.UserKey) (map[domain.UserID]domain.User, error) {
	before := make(map[domain.UserID]domain.User, len(keys))
	if len(keys) == 0 {
		return before, nil
	}
	clients, users := keyLists(keys)
	if _, err := c.lockUsers(ctx, pg.SQL(isKey, clients, users)); err != nil {
		return nil, err
	}
	rows, err := pg.All[userRow](ctx, c, "read users", pg.From("users AS u").Columns(pg.Columns[userRow]()).
		Where(isKey, clients, users))
	for i := range rows {
		before[rows[i].ID] = rows[i].user()
	}
	return before, err
}

func (m *importingUsers) readGroups(ctx context.Context, clients []domain.ClientID, groups []domain.GroupID) error {
	rows, err := pg.All[storedGroup](ctx, m, "look for groups", pg.SQL(`
		SELECT client_id, id, manual FROM groups WHERE id = ANY(?0::uuid[])
		UNION SELECT client_id, id, manual FROM groups WHERE manual AND client_id = ANY(?1::uuid[])`,
		pg.IDs(groups), pg.IDs(clients)))
	m.groups, m.manual = map[domain.GroupID]domain.ClientID{}, map[domain.ClientID]domain.GroupID{}
	for _, g := range rows {
		m.groups[g.ID] = g.ClientID
		if g.Manual {
			m.manual[g.ClientID] = g.ID
		}
	}
	return err
}

// judge refuses what cannot be applied, and settles who gets which address.
func (m *importingUsers) judge(ctx context.Context) (settledClaims, error) {
	var claims []claim
	for i := range m.batch {
		r := &m.batch[i]
		if m.results[i] = m.refusal(r); m.results[i].Refusal != "" {
			continue
		}
		old, there := m.before[r.ID.ID]
		if client := r.Client.Value.ID; !there {
			claims = append(claims, claim{id: r.ID.Bytes(), scope: client.UUID(), key: r.Email.Value})
		} else if r.Email.Or(old.Email) != old.Email {
			claims = append(claims, claim{id: r.ID.Bytes(), scope: old.Client.UUID(), key: r.Email.Value})
		}
	}
	named, err := m.settleClaims(ctx, claims, `SELECT u.id, u.client_id::text AS scope, u.email AS key FROM users AS u
		JOIN unnest(?0::text[]::uuid[], ?1::text[]) AS k (client_id, email)
			ON u.client_id = k.client_id AND u.email = k.email`)
	for i := range m.batch {
		if holder, lost := named.lost[m.batch[i].ID.Bytes()]; lost {
			m.results[i] = takenBy("email", domain.UserID(holder))
		}
	}
	return named, err
}

func (m *importingUsers) refusal(r *domain.UserRecord) domain.ImportResult {
	old, there := m.before[r.ID.ID]
	client := old.Client
	if !there {
		client = r.Client.Value.ID
	}
	switch {
	case !there && r.Missing != "":
		return missing(r.Missing)
	case there && r.Client.Has() && r.Client.Value.ID != old.Client:
		return cannotChange("client")
	case !m.clients[client].There:
		return noSuch("client", "client")
	case r.Group.Has() && m.groups[r.Group.Value.ID] != client:
		return noSuch("group", "group")
	}
	return domain.ImportResult{}
}

// decide says what becomes of a record that is not refused.
func (m *importingUsers) decide(i int) {
	r := &m.batch[i]
	before, there := m.before[r.ID.ID]
	if !there {
		m.results[i].Outcome = domain.ImportCreated
		m.created = append(m.created, m.newUser(r))
		return
	}
	after := importedUser(before, r)
	if sameRecord(&before, &after) && before.CreatedAt.Equal(after.CreatedAt) &&
		slices.Equal(before.Overrides, after.Overrides) {
		m.results[i].Outcome = domain.ImportUnchanged
		return
	}
	m.results[i].Outcome = domain.ImportUpdated
	m.changed = append(m.changed, userChange{before, after})
}

// newUser is the user of a record who is not there yet.
func (m *importingUsers) newUser(r *domain.UserRecord) domain.User {
	client := r.Client.Value.ID
	u := importedUser(domain.User{
		ID: r.ID.ID, Client: client, Status: domain.Active, Language: domain.English, Source: domain.FromHand,
		CreatedAt: m.At, UpdatedAt: m.At,
	}, r)
	if id, there := m.manual[client]; there && u.Group == nil {
		u.Group = &domain.Group{ID: id}
	}
	if u.Role == "" {
		u.Role = classified(&u)
	}
	u.Score = u.Role.Baseline()
	return u
}

// importedUser is a user as a record has it.
func importedUser(before domain.User, r *domain.UserRecord) domain.User {
	u := before
	r.Email.Apply(&u.Email)
	r.FirstName.Apply(&u.FirstName)
	r.LastName.Apply(&u.LastName)
	r.Department.ApplyNull(&u.Department)
	r.JobTitle.ApplyNull(&u.JobTitle)
	r.ManagerEmail.ApplyNull(&u.ManagerEmail)
	r.Role.Apply(&u.Role)
	r.PreferredLanguage.Apply(&u.Language)
	r.Status.Apply(&u.Status)
	r.Source.Apply(&u.Source)
	if r.Group.Has() {
		u.Group = &domain.Group{ID: r.Group.Value.ID}
	}
	u.CreatedAt = r.CreatedAt.Or(domain.Moment{Time: u.CreatedAt}).Time

	if r.Overrides.Has() {
		u.Overrides = make([]string, len(r.Overrides.Value))
		for i, field := range r.Overrides.Value {
			u.Overrides[i] = string(field)
		}
	}
	byHand := !r.Overrides.Has() && (u.Source == domain.FromHand || u.Source == domain.FromAPI)
	overridden := slices.Contains(u.Overrides, "role")
	switch {
	case r.Role.Has() && byHand && !overridden:
		u.Overrides = append(slices.Clone(u.Overrides), "role")
	case !r.Role.Has() && !overridden && before.Role != "" && (before.Email != u.Email ||
		!sameValue(before.JobTitle, u.JobTitle) || !sameValue(before.Department, u.Department)):
		u.Role = classified(&u)
	}
	return u
}

// classified is the role that a user's title, department and email speak of.
func classified(u *domain.User) domain.Role {
	title, department := "", ""
	if u.JobTitle != nil {
		title = *u.JobTitle
	}
	if u.Department != nil {
		department = *u.Department
	}
	return domain.ClassifyRole(title, department, u.Email)
}

// sameRecord reports whether two states of a user's record are those of one.
func sameRecord(a, b *domain.User) bool {
	return a.SameShown(b) && a.Email == b.Email && a.Source == b.Source && sameGroup(a.Group, b.Group)
}

// importedUserRow is what a record sets of a row of users, by the columns.
type importedUserRow struct {
	ClientID string `json:"client_id"`
	syncedRecord
	Overrides []string  `json:"overrides"`
	CreatedAt time.Time `json:"created_at"`
	UpdatedAt time.Time `json:"updated_at"`
}

func importedUserRowOf(u *domain.User) importedUserRow {
	if u.Overrides == nil {
		u.Overrides = []string{}
	}
	return importedUserRow{u.Client.UUID(), syncedRecordOf(*u), u.Overrides, u.CreatedAt, u.UpdatedAt}
}

// write writes the users, the changed ones first: they may give up addresses that new
// ones have.
func (m *importingUsers) write(ctx context.Context) error {
	var made, changed []importedUserRow
	for i := range m.changed {
		before, after := &m.changed[i].before, &m.changed[i].after
		if !sameRecord(before, after) || !before.CreatedAt.Equal(after.CreatedAt) {
			after.UpdatedAt = latest(after.UpdatedAt, m.At)
		}
		changed = append(changed, importedUserRowOf(after))
	}
	for i := range m.created {
		made = append(made, importedUserRowOf(&m.created[i]))
	}
	if err := updateRows(ctx, m.Change, "users", "users", changed, "client_id", "id"); err != nil {
		return err
	}
	return insertRows(ctx, m.Change, "users", "users", made)
}
