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
	stored, err := c.lockEmails(ctx, users, ids)
	if err != nil {
		return err
	}
	owners, err := c.anyUsers(ctx, users)
	if err != nil {
		return err
	}

	var mails []sentEmailRow
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
		if results[i].Outcome != domain.ImportUnchanged {
			mails = append(mails, after)
		}
	}
	return c.storeEmails(ctx, mails)
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

// lockEmails locks mails that were sent to users.
func (c *Change) lockEmails(
	ctx context.Context, users []domain.UserID, ids []domain.MessageID,
) (map[emailKey]sentEmailRow, error) {
	rows, err := pg.All[sentEmailRow](ctx, c, "lock sent mails", pg.SQL(`
		SELECT `+pg.Columns[sentEmailRow]()+` FROM unnest(?::uuid[], ?::uuid[]) AS l (user_id, id)
		JOIN users AS u ON u.id = l.user_id
		JOIN sent_emails AS e ON e.client_id = u.client_id AND e.user_id = l.user_id AND e.id = l.id
		ORDER BY e.client_id, e.user_id, e.id FOR NO KEY UPDATE OF e`, pg.IDs(users), pg.IDs(ids)))
	stored := make(map[emailKey]sentEmailRow, len(rows))
	for _, r := range rows {
		stored[emailKey{r.UserID, r.ID}] = r
	}
	return stored, err
}

// storeEmails stores mails, those that are there already as they are now.
func (c *Change) storeEmails(ctx context.Context, mails []sentEmailRow) error {
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
	_, err = pg.Exec(ctx, c, "store sent mails", pg.SQL(`
		INSERT INTO sent_emails (client_id, user_id, id, sent_at, from_email, subject, send_method, message_type)
		SELECT client_id, user_id, id, sent_at, from_email, subject, send_method, message_type
		FROM json_populate_recordset(NULL::sent_emails, ?::json)
		ON CONFLICT (client_id, user_id, id) DO UPDATE SET
			(sent_at, from_email, subject, send_method, message_type) =
			(excluded.sent_at, excluded.from_email, excluded.subject, excluded.send_method, excluded.message_type)`,
		string(text)))
	return err
}
