package db

import (
	"context"
	"errors"
	"time"

	"github.com/uptrace/bun"

	"partnerapi/db/pg"
	"partnerapi/domain"
)

// Imports of what happened to users: exposures, and mails that they were sent.

// importedExposure is a row of exposures.
type importedExposure struct {
	bun.BaseModel `bun:"table:exposures,alias:e"`

	ClientID    domain.ClientID `bun:"client_id,pk"`
	UserID      domain.UserID   `bun:"user_id,pk"`
	BreachName  string          `bun:"breach_name,pk"`
	Severity    domain.Severity
	DataClasses []string `bun:",array"`
	Found       bool
	FirstSeenAt time.Time
	NotifiedAt  *time.Time
	ResolvedAt  *time.Time
	UpdatedAt   time.Time
}

// exposureKey names a user's exposure in a breach.
type exposureKey struct {
	user   domain.UserID
	breach string
}

// importingExposures is a batch of records of exposures being applied.
type importingExposures struct {
	*Change
	owners    map[domain.UserID]domain.ClientID
	catalogue map[string]*breachRow
}

// ImportExposures adds the exposures of records and updates those that are there, in
// one transaction, and returns what became of each record. A user has one exposure in
// a breach, which each record names: an exposure has no id of its own. The users are
// scored again; there is no event and no notice (decisions 7.11). It takes the same
// number of statements for any number of records, and must not be called in a
// transaction.
func (d *DB) ImportExposures(ctx context.Context, batch []domain.ExposureRecord) ([]domain.ImportResult, error) {
	return importBatch(ctx, d, batch, (*Change).importExposures)
}

func (c *Change) importExposures(
	ctx context.Context, batch []domain.ExposureRecord, results []domain.ImportResult,
) (err error) {
	users, breaches := refsOf(batch, func(r *domain.ExposureRecord) userRef { return r.User }), make([]string, len(batch))
	for i := range batch {
		breaches[i] = batch[i].BreachName.Value
	}
	m := &importingExposures{Change: c}
	if m.owners, err = c.lockAnyUsers(ctx, users); err != nil {
		return err
	}
	if m.catalogue, err = c.lockBreaches(ctx, breaches); err != nil {
		return err
	}
	stored, err := c.lockExposures(ctx, users, breaches)
	if err != nil {
		return err
	}
	k := kind[domain.ExposureRecord, importedExposure]{
		Change: c, rows: stored, refuse: m.refusal, fresh: m.fresh, finish: m.finish, then: m.then,
		key: func(r *domain.ExposureRecord) any { return exposureKey{r.User.Value.ID, r.BreachName.Value} },
	}
	made, changed, err := k.settle(ctx, batch, results)
	if err != nil {
		return err
	}
	if err := k.store(ctx, made, changed); err != nil {
		return err
	}
	return c.exposed(ctx, append(after(made), after(changed)...))
}

func (m *importingExposures) refusal(r *domain.ExposureRecord, _ *importedExposure) domain.ImportResult {
	if _, found := m.owners[r.User.Value.ID]; !found {
		return noSuch("user", "user")
	}
	if m.catalogue[r.BreachName.Value] == nil {
		return domain.RefuseImport("breach_name: %s; import the breaches first: partnerapi breaches import",
			domain.NoSuchObject(breachNoun))
	}
	return domain.ImportResult{}
}

// fresh is a new exposure. What its record does not say is as the data classes or else
// the breach have it.
func (m *importingExposures) fresh(r *domain.ExposureRecord) importedExposure {
	b := m.catalogue[r.BreachName.Value]
	e := importedExposure{
		ClientID: m.owners[r.User.Value.ID], Severity: b.Severity, DataClasses: b.DataClasses, UpdatedAt: m.At,
	}
	if r.DataClasses.Given {
		e.Severity = domain.SeverityOf(r.DataClasses.Value, b.Sensitive, b.SpamList)
	}
	return e
}

func (m *importingExposures) finish(a *applied[domain.ExposureRecord, importedExposure]) (beside bool, err error) {
	switch e := a.after; {
	case e.NotifiedAt != nil && e.NotifiedAt.Before(e.FirstSeenAt):
		err = errors.New("notified_at is before first_seen_at")
	case e.ResolvedAt != nil && e.ResolvedAt.Before(e.FirstSeenAt):
		err = errors.New("resolved_at is before first_seen_at")
	}
	return false, err
}

func (m *importingExposures) then(a *applied[domain.ExposureRecord, importedExposure]) {
	e := a.after
	// One that is known by its resolving alone (sightSQL) shows by its times.
	e.Found = e.Found || e.ResolvedAt == nil || !e.ResolvedAt.Equal(e.FirstSeenAt)
	e.UpdatedAt = latest(e.UpdatedAt, m.At)
}

// lockExposures locks exposures of locked users.
func (c *Change) lockExposures(
	ctx context.Context, users []domain.UserID, breaches []string,
) (map[any]*importedExposure, error) {
	c.Lock(ExposureLocks)
	rows, err := pg.All[importedExposure](ctx, c, "lock exposures", pg.SQL(`
		SELECT `+pg.Columns[importedExposure]()+`
		FROM (SELECT DISTINCT user_id, breach_name FROM unnest(?::uuid[], ?::text[]) AS l (user_id, breach_name)) AS l
		JOIN users AS u ON u.id = l.user_id
		JOIN exposures AS e ON e.client_id = u.client_id AND e.user_id = l.user_id AND e.breach_name = l.breach_name
		ORDER BY e.client_id, e.user_id, e.breach_name FOR NO KEY UPDATE OF e`, pg.IDs(users), breaches))
	stored := make(map[any]*importedExposure, len(rows))
	for i := range rows {
		stored[exposureKey{rows[i].UserID, rows[i].BreachName}] = &rows[i]
	}
	return stored, err
}

// exposed notes what follows from exposures that moved. To clients without Dark Web
// Monitoring nothing of them is shown.
func (c *Change) exposed(ctx context.Context, list []importedExposure) error {
	clients := make([]domain.ClientID, len(list))
	for i := range list {
		clients[i] = list[i].ClientID
	}
	shown, err := existing(ctx, c, "look for clients with Dark Web Monitoring", "clients WHERE dark_web_monitoring AND",
		sortedUnique(clients))
	for i := range list {
		if user := (domain.UserKey{Client: list[i].ClientID, User: list[i].UserID}); shown[user.Client] {
			c.Rescore(user)
			c.touch(user)
		}
	}
	return err
}

// ImportSentEmails adds the mails of records, which were sent to users, and updates
// those that are there, in one transaction, and returns what became of each record.
// Nothing follows from a mail that was sent. Two users may have been sent mails of one
// id, so that each record names the user. It takes the same number of statements for
// any number of records, and must not be called in a transaction.
func (d *DB) ImportSentEmails(ctx context.Context, batch []domain.SentEmailRecord) ([]domain.ImportResult, error) {
	return importBatch(ctx, d, batch, (*Change).importEmails)
}

// emailKey names a mail to a user.
type emailKey struct {
	user domain.UserID
	id   domain.MessageID
}

func (c *Change) importEmails(
	ctx context.Context, batch []domain.SentEmailRecord, results []domain.ImportResult,
) error {
	users := refsOf(batch, func(r *domain.SentEmailRecord) userRef { return r.User })
	owners, err := c.anyUsers(ctx, users)
	if err != nil {
		return err
	}
	stored, err := c.lockEmails(ctx, owners, users, idsOf(batch))
	if err != nil {
		return err
	}
	k := kind[domain.SentEmailRecord, sentEmailRow]{
		Change: c, rows: stored,
		key: func(r *domain.SentEmailRecord) any { return emailKey{r.User.Value.ID, r.ID.ID} },
		refuse: func(r *domain.SentEmailRecord, _ *sentEmailRow) domain.ImportResult {
			if _, found := owners[r.User.Value.ID]; !found {
				return noSuch("user", "user")
			}
			return domain.ImportResult{}
		},
		fresh: func(r *domain.SentEmailRecord) sentEmailRow {
			return sentEmailRow{ClientID: owners[r.User.Value.ID]}
		},
	}
	return k.apply(ctx, batch, results)
}

// lockEmails locks mails that were sent to users, whose clients are known. Each is
// looked up by its key: PostgreSQL would rather read all of a table that it knows
// little of yet.
func (c *Change) lockEmails(
	ctx context.Context, owners map[domain.UserID]domain.ClientID, users []domain.UserID, ids [][16]byte,
) (map[any]*sentEmailRow, error) {
	clients := make([]domain.ClientID, len(users))
	for i, user := range users {
		clients[i] = owners[user]
	}
	rows, err := pg.All[sentEmailRow](ctx, c, "lock sent mails", pg.SQL(`
		SELECT `+pg.Columns[sentEmailRow]()+`
		FROM (SELECT * FROM unnest(?::uuid[], ?::uuid[], ?::uuid[]) AS k (client_id, user_id, id) ORDER BY 1, 2, 3) AS l
		CROSS JOIN LATERAL (
			SELECT * FROM sent_emails WHERE client_id = l.client_id AND user_id = l.user_id AND id = l.id FOR NO KEY UPDATE
		) AS e`, pg.IDs(clients), pg.IDs(users), ids))
	stored := make(map[any]*sentEmailRow, len(rows))
	for i := range rows {
		stored[emailKey{rows[i].UserID, rows[i].ID}] = &rows[i]
	}
	return stored, err
}
