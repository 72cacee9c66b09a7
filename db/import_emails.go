package db

import (
	"cmp"
	"context"
	"encoding/json"
	"time"

	"partnerapi/db/pg"
	"partnerapi/domain"
)

// ImportSentEmails adds the mails of records, which were sent to users, and updates
// those that are there, in one transaction, and returns what became of each record.
// Nothing follows from a mail that was sent. Two users may have been sent mails of one
// id, so that each record names the user. It takes three statements for any number of
// records, and must not be called in a transaction.
func (d *DB) ImportSentEmails(ctx context.Context, batch []domain.SentEmailRecord) ([]domain.ImportResult, error) {
	return importBatch(ctx, d, batch, (*Change).importEmails)
}

// emailKey names a mail to a user.
type emailKey struct {
	user domain.UserID
	id   domain.MessageID
}

// emailRecord is a row of sent_emails, by its columns.
type emailRecord struct {
	ClientID    string             `json:"client_id"`
	UserID      string             `json:"user_id"`
	ID          string             `json:"id"`
	SentAt      time.Time          `json:"sent_at"`
	FromEmail   string             `json:"from_email"`
	Subject     string             `json:"subject"`
	SendMethod  domain.SendMethod  `json:"send_method"`
	MessageType domain.MessageType `json:"message_type"`
}

func (c *Change) importEmails(
	ctx context.Context, batch []domain.SentEmailRecord, results []domain.ImportResult,
) error {
	users, ids := make([]domain.UserID, len(batch)), make([]domain.MessageID, len(batch))
	for i := range batch {
		users[i], ids[i] = batch[i].User.Value.ID, batch[i].ID.ID
	}
	owners, err := c.anyUsers(ctx, users)
	if err != nil {
		return err
	}
	stored, err := c.lockEmails(ctx, owners, users, ids)
	if err != nil {
		return err
	}

	var added, changed []sentEmailRow
	for i := range batch {
		in := &batch[i]
		user := in.User.Value.ID
		client, found := owners[user]
		before, known := stored[emailKey{user, in.ID.ID}]
		switch {
		case !in.User.Has() || !known && in.Missing != "":
			results[i] = missing(cmp.Or(in.Missing, "user"))
			continue
		case !found:
			results[i] = noSuch("user", user.Noun())
			continue
		case !known:
			before = sentEmailRow{ClientID: client, UserID: user, ID: in.ID.ID}
		}
		after := emailAfter(before, in)
		results[i].Outcome = outcomeOf(!known, after != before)
		switch results[i].Outcome {
		case domain.ImportCreated:
			added = append(added, after)
		case domain.ImportUpdated:
			changed = append(changed, after)
		}
	}
	if err := c.addEmails(ctx, added); err != nil {
		return err
	}
	return c.changeEmails(ctx, changed)
}

// emailAfter is a mail after a record.
func emailAfter(row sentEmailRow, in *domain.SentEmailRecord) sentEmailRow {
	if in.EventTime.Has() {
		moveTime(&row.SentAt, in.EventTime.Value.Time)
	}
	in.FromEmail.Apply(&row.FromEmail)
	in.Subject.Apply(&row.Subject)
	in.SendMethod.Apply(&row.SendMethod)
	in.MessageType.Apply(&row.MessageType)
	return row
}

// outcomeOf is what became of a record of a new object, or of one that it changes.
func outcomeOf(isNew, changed bool) domain.ImportOutcome {
	switch {
	case isNew:
		return domain.ImportCreated
	case changed:
		return domain.ImportUpdated
	}
	return domain.ImportUnchanged
}

// lockEmails locks mails that were sent to users, whose clients are known. Each is
// looked up by its key: PostgreSQL would rather read all of a table that it knows
// little of yet.
func (c *Change) lockEmails(
	ctx context.Context, owners map[domain.UserID]domain.ClientID, users []domain.UserID, ids []domain.MessageID,
) (map[emailKey]sentEmailRow, error) {
	clients := make([]domain.ClientID, len(users))
	for i, user := range users {
		clients[i] = owners[user]
	}
	rows, err := pg.All[sentEmailRow](ctx, c, "lock sent mails", pg.SQL(`
		SELECT `+pg.Columns[sentEmailRow]()+`
		FROM (SELECT * FROM unnest(?::uuid[], ?::uuid[], ?::uuid[]) AS k (client_id, user_id, id) ORDER BY 1, 2, 3) AS l
		CROSS JOIN LATERAL (
			SELECT * FROM sent_emails WHERE client_id = l.client_id AND user_id = l.user_id AND id = l.id FOR NO KEY UPDATE
		) AS e`, pg.IDs(clients), pg.IDs(users), pg.IDs(ids)))
	stored := make(map[emailKey]sentEmailRow, len(rows))
	for _, r := range rows {
		stored[emailKey{r.UserID, r.ID}] = r
	}
	return stored, err
}

// addEmails stores new mails.
func (c *Change) addEmails(ctx context.Context, mails []sentEmailRow) error {
	if len(mails) == 0 {
		return nil
	}
	columns := []string{"client_id", "user_id", "id", "sent_at", "from_email", "subject", "send_method", "message_type"}
	return pg.Copy(ctx, c, "add sent mails", "sent_emails", columns, len(mails), func(i int) []any {
		r := &mails[i]
		return []any{
			[16]byte(r.ClientID), [16]byte(r.UserID), [16]byte(r.ID), r.SentAt, r.FromEmail, r.Subject,
			string(r.SendMethod), string(r.MessageType),
		}
	})
}

// changeEmails stores locked mails as they are now.
func (c *Change) changeEmails(ctx context.Context, mails []sentEmailRow) error {
	if len(mails) == 0 {
		return nil
	}
	records := make([]emailRecord, len(mails))
	for i := range mails {
		r := &mails[i]
		records[i] = emailRecord{
			ClientID: r.ClientID.UUID(), UserID: r.UserID.UUID(), ID: r.ID.UUID(), SentAt: r.SentAt,
			FromEmail: r.FromEmail, Subject: r.Subject, SendMethod: r.SendMethod, MessageType: r.MessageType,
		}
	}
	text, err := json.Marshal(records)
	if err != nil {
		return err
	}
	_, err = pg.Exec(ctx, c, "change sent mails", pg.SQL(`
		UPDATE sent_emails AS e SET (sent_at, from_email, subject, send_method, message_type) =
			(n.sent_at, n.from_email, n.subject, n.send_method, n.message_type)
		FROM json_populate_recordset(NULL::sent_emails, ?::json) AS n
		WHERE e.client_id = n.client_id AND e.user_id = n.user_id AND e.id = n.id`, string(text)))
	return err
}
