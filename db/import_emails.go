package db

import (
	"context"

	"partnerapi/db/pg"
	"partnerapi/domain"
)

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
