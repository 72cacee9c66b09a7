package db

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"time"

	"partnerapi/domain"
)

// AdvanceResults applies steps to simulated mails (domain.Result.Take), in the
// order of their times, and moves with them, in the same transaction, the
// counters of the days on which the mails were sent, the scores of their users
// and the events. Steps with a result that does not exist, or is an archived
// client's, are left out.
//
// It takes the same number of statements for any number of steps. It locks
// results, then users, then days, each in the order of their keys: a
// transaction that locks users before it calls this locks the results first
// (lockResults).
func (d *DB) AdvanceResults(ctx context.Context, steps []domain.ResultStep) error {
	if len(steps) == 0 {
		return nil
	}
	return d.Tx(ctx, func(ctx context.Context) error {
		rows, err := d.lockResults(ctx, steps)
		if err != nil {
			return err
		}
		changes := apply(steps, rows)
		if len(changes) == 0 {
			return nil
		}
		return d.storeResults(ctx, changes)
	})
}

// lockResults locks the results of steps, those of archived clients left out.
func (d *DB) lockResults(ctx context.Context, steps []domain.ResultStep) ([]resultRow, error) {
	ids := make([]domain.ResultID, len(steps))
	for i, s := range steps {
		ids[i] = s.Result
	}
	var rows []resultRow
	err := d.conn(ctx).NewSelect().Model(&rows).Where("r.id = ANY(?::uuid[])", uuids(ids)).
		Where("EXISTS (SELECT 1 FROM clients AS c WHERE c.id = r.client_id AND c.archived_at IS NULL)").
		OrderExpr("r.id").For("NO KEY UPDATE").Scan(ctx)
	return rows, d.bad("lock results", err)
}

// resultChange is a result before and after its steps.
type resultChange struct {
	client        domain.ClientID
	before, after domain.Result
}

// apply applies the steps to locked results, and returns those that changed.
func apply(steps []domain.ResultStep, rows []resultRow) []resultChange {
	results := make(map[domain.ResultID]*resultChange, len(rows))
	for i := range rows {
		r := rows[i].result()
		results[r.ID] = &resultChange{client: rows[i].ClientID, before: r, after: r}
	}
	ordered := slices.Clone(steps)
	slices.SortStableFunc(ordered, func(a, b domain.ResultStep) int { return a.At.Compare(b.At) })
	for _, s := range ordered {
		c := results[s.Result]
		if c == nil {
			continue
		}
		s.At = s.At.UTC().Truncate(time.Microsecond) // as it is stored
		c.after, _ = c.after.Take(s)
	}
	var changes []resultChange
	for i := range rows { // in the order of the lock
		if c := results[rows[i].ID]; c.after != c.before {
			changes = append(changes, *c)
		}
	}
	return changes
}

func (d *DB) storeResults(ctx context.Context, changes []resultChange) error {
	if err := d.writeResults(ctx, changes); err != nil {
		return err
	}
	days := map[dayKey]domain.PhishingCounts{}
	var users []domain.UserKey
	for i := range changes {
		c := &changes[i]
		delta := c.after.Counts().Minus(c.before.Counts())
		key := dayKey{c.client, domain.DateOf(*c.after.SentAt)}
		days[key] = days[key].Plus(delta)
		scored := c.before // who opens only is scored as before
		scored.Status, scored.OpenedAt = c.after.Status, c.after.OpenedAt
		if scored != c.after {
			users = append(users, domain.UserKey{Client: c.client, User: c.after.User})
		}
	}
	if err := d.rescoreUsers(ctx, users); err != nil {
		return err
	}
	return d.countDays(ctx, days)
}

// resultRecord is what changes in a row of phishing_results, by the names of
// the columns.
type resultRecord struct {
	ClientID               string              `json:"client_id"`
	ID                     string              `json:"id"`
	Status                 domain.ResultStatus `json:"status"`
	Reported               bool                `json:"reported"`
	Automated              bool                `json:"automated"`
	AutomatedReason        *string             `json:"automated_reason"`
	OpenedAt               *time.Time          `json:"opened_at"`
	AttachmentOpenedAt     *time.Time          `json:"attachment_opened_at"`
	ClickedAt              *time.Time          `json:"clicked_at"`
	CredentialsSubmittedAt *time.Time          `json:"credentials_submitted_at"`
	ReportedAt             *time.Time          `json:"reported_at"`
}

// writeResults stores results and an event for each.
func (d *DB) writeResults(ctx context.Context, changes []resultChange) error {
	records := make([]resultRecord, len(changes))
	for i := range changes {
		r := &changes[i].after
		records[i] = resultRecord{
			ClientID: changes[i].client.UUID(), ID: r.ID.UUID(), Status: r.Status, Reported: r.Reported, Automated: r.Automated,
			OpenedAt: r.OpenedAt, AttachmentOpenedAt: r.AttachmentOpenedAt, ClickedAt: r.ClickedAt,
			CredentialsSubmittedAt: r.CredentialsSubmittedAt, ReportedAt: r.ReportedAt,
		}
		if r.AutomatedReason != "" {
			records[i].AutomatedReason = &r.AutomatedReason
		}
	}
	text, err := json.Marshal(records)
	if err != nil {
		return err
	}
	_, err = d.conn(ctx).NewRaw(`
		WITH moved AS (
			UPDATE phishing_results AS r SET status = n.status, reported = n.reported, automated = n.automated,
				automated_reason = n.automated_reason, opened_at = n.opened_at,
				attachment_opened_at = n.attachment_opened_at, clicked_at = n.clicked_at,
				credentials_submitted_at = n.credentials_submitted_at, reported_at = n.reported_at, updated_at = ?1
			FROM json_populate_recordset(NULL::phishing_results, ?0::json) AS n
			WHERE r.client_id = n.client_id AND r.id = n.id RETURNING r.client_id, r.user_id, r.id
		)
		INSERT INTO events (client_id, id, type, user_id, object_id, created_at)
		SELECT client_id, uuid_v7(?1), ?2, user_id, id, ?1 FROM moved`, string(text), d.Now(), domain.ResultUpdated).Exec(ctx)
	return d.bad("store results", err)
}

// countDays adds to the counters of days. It comes last in a transaction, for
// all that happens to a client's mails meets in these rows.
func (d *DB) countDays(ctx context.Context, days map[dayKey]domain.PhishingCounts) error {
	var records []dayRecord
	for key, c := range days {
		if c != (domain.PhishingCounts{}) {
			records = append(records, dayRecord{key.client.UUID(), key.day, c.Sent, c.Opened, c.Clicked, c.Reported, c.CredentialsSubmitted, c.AttachmentsOpened})
		}
	}
	if records == nil {
		return nil
	}
	slices.SortFunc(records, func(a, b dayRecord) int {
		return cmp.Or(cmp.Compare(a.ClientID, b.ClientID), b.Day.DaysUntil(a.Day))
	})
	text, err := json.Marshal(records)
	if err != nil {
		return err
	}
	_, err = d.conn(ctx).NewRaw(`
		INSERT INTO phishing_days AS p (client_id, day, sent, opened, clicked, reported, credentials_submitted, attachments_opened)
		SELECT client_id, day, sent, opened, clicked, reported, credentials_submitted, attachments_opened
		FROM json_populate_recordset(NULL::phishing_days, ?::json) ORDER BY client_id, day
		ON CONFLICT (client_id, day) DO UPDATE SET sent = p.sent + excluded.sent, opened = p.opened + excluded.opened,
			clicked = p.clicked + excluded.clicked, reported = p.reported + excluded.reported,
			credentials_submitted = p.credentials_submitted + excluded.credentials_submitted,
			attachments_opened = p.attachments_opened + excluded.attachments_opened`, string(text)).Exec(ctx)
	return d.bad("count simulated mails", err)
}
