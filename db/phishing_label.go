package db

import (
	"context"
	"time"

	"github.com/uptrace/bun"

	"partnerapi/db/pg"
	"partnerapi/domain"
)

// Labels of simulated emails.

// LabelOf identifies a label: by its client and its key.
type LabelOf struct {
	Client domain.ClientID
	Key    string
}

// labelRow is a row of phishing_labels, or the differences that a change adds to one.
type labelRow struct {
	ClientID    domain.ClientID
	Key         string
	Label       string
	Sends       int
	Cancelled   int
	FirstSendAt time.Time
	LastSendAt  time.Time
	// stale is true if the dates of the label are to be determined from its results.
	stale bool
}

// CountSends counts new and changed results by their labels and by their templates. It returns the spellings of the
// labels, as CountLabels does.
func (c *Change) CountSends(ctx context.Context, results []ResultChange) (map[LabelOf]string, error) {
	spellings, err := c.CountLabels(ctx, results)
	if err != nil {
		return nil, err
	}
	return spellings, c.countTemplateUses(ctx, results)
}

// CountLabels counts new and changed results, of which only new ones may be missing in the table, by their labels. It
// returns the spelling of each label, which is that of its first send: a concurrent change that adds the same label
// waits here. It locks the labels in the order of their keys.
func (c *Change) CountLabels(ctx context.Context, results []ResultChange) (map[LabelOf]string, error) {
	differences := labelDifferences(results)
	if len(differences) == 0 {
		return nil, nil
	}
	c.WillLock(LabelLocks)
	stored, err := pg.All[labelRow](ctx, c, "count simulated emails by label", pg.SQL(`
		INSERT INTO phishing_labels AS l (client_id, key, label, sends, cancelled, first_send_at, last_send_at)
		SELECT client_id, key, label, sends, cancelled, first_send_at, last_send_at
		FROM json_populate_recordset(NULL::phishing_labels, ?::json) ORDER BY client_id, key
		ON CONFLICT (client_id, key) DO UPDATE SET sends = l.sends + excluded.sends, cancelled = l.cancelled + excluded.cancelled,
			first_send_at = CASE WHEN l.sends > 0 THEN least(l.first_send_at, excluded.first_send_at) ELSE excluded.first_send_at END,
			last_send_at = CASE WHEN l.sends > 0 THEN greatest(l.last_send_at, excluded.last_send_at) ELSE excluded.last_send_at END
		RETURNING client_id, key, label`, pg.Objects(differences)))
	if err != nil {
		return nil, err
	}
	spellings := pg.Index(stored, func(l *labelRow) (LabelOf, string) { return LabelOf{l.ClientID, l.Key}, l.Label })
	return spellings, c.dateLabels(ctx, differences)
}

// labelDifferences returns the differences that results make to the labels. Results without a label make none, nor do those
// that were neither added, nor cancelled, nor moved to another time.
func labelDifferences(results []ResultChange) []labelRow {
	rows := map[LabelOf]*labelRow{}
	for i := range results {
		r := &results[i]
		sends, cancelled := r.uses(), r.cancellations()
		if r.After.Label == "" || sends == 0 && cancelled == 0 && r.After.SendAt.Equal(r.Before.SendAt) {
			continue
		}
		key := LabelOf{r.Client, r.After.LabelKey}
		l := rows[key]
		if l == nil {
			l = &labelRow{ClientID: key.Client, Key: key.Key, Label: r.After.Label, FirstSendAt: r.After.SendAt, LastSendAt: r.After.SendAt}
			rows[key] = l
		}
		l.Sends, l.Cancelled = l.Sends+sends, l.Cancelled+cancelled
		l.stale = l.stale || sends != 1
		l.FirstSendAt = domain.Earlier(l.FirstSendAt, r.After.SendAt)
		l.LastSendAt = domain.Later(l.LastSendAt, r.After.SendAt)
	}
	all := make([]labelRow, 0, len(rows))
	for _, l := range rows {
		all = append(all, *l)
	}
	return all
}

// dateLabels determines the dates of the locked labels that are stale. It is a separate statement because its snapshot
// then has the results of transactions that ended while CountLabels waited for the locks.
func (c *Change) dateLabels(ctx context.Context, differences []labelRow) error {
	var clients [][16]byte
	var keys []string
	for _, l := range differences {
		if l.stale {
			clients, keys = append(clients, l.ClientID), append(keys, l.Key)
		}
	}
	if len(keys) == 0 {
		return nil
	}
	return pg.Run(ctx, c, "determine the dates of labels", pg.SQL(`
		UPDATE phishing_labels AS l SET first_send_at = coalesce(`+labelDate("min", KeptSend)+`, `+labelDate("min", "true")+`, l.first_send_at),
			last_send_at = coalesce(`+labelDate("max", KeptSend)+`, `+labelDate("max", "true")+`, l.last_send_at)
		FROM unnest(?::uuid[], ?::text[]) AS k (client_id, key) WHERE l.client_id = k.client_id AND l.key = k.key`, clients, keys))
}

// KeptSend is the condition that a result is not cancelled, as the index phishing_results_label_kept has it.
const KeptSend = "failure IS DISTINCT FROM '" + domain.FailureCancelled + "'"

// labelDate returns a subquery for the first or last send_at, by min or max, of the results of a label, alias l, that
// match a condition.
func labelDate(aggregate, condition string) string {
	return "(SELECT " + aggregate + "(r.send_at) FROM phishing_results AS r WHERE r.client_id = l.client_id AND r.label_key = l.key AND " +
		condition + ")"
}

// Labels reads a page of the labels of the client's simulated emails, the latest first send first. The counts are those
// of all days.
func (t *Tenant) Labels(ctx context.Context, w domain.Window) (domain.Slice[domain.PhishingLabel], error) {
	k := pg.Keyset[domain.PhishingLabel]{
		Table: "phishing_labels AS l", Key: "l.first_send_at", Cast: "timestamptz", ID: "l.id", Desc: true, OneIndex: true,
		Select: func(q *bun.SelectQuery) {
			q.ColumnExpr("l.id, l.label, l.sends, l.first_send_at, l.last_send_at, n.*").
				Join("CROSS JOIN LATERAL (SELECT " + sumCounts + " FROM phishing_label_days AS p " +
					"WHERE p.client_id = l.client_id AND p.label_key = l.key) AS n")
		},
		Position: func(l *domain.PhishingLabel) domain.Position {
			return domain.Position{Key: pg.TimeKey(l.FirstSendAt), ID: l.ID.UUID()}
		},
	}
	k.Where.Add("l.client_id = ?", t.ID)
	return pg.CountedPage(ctx, t.db, k, w)
}

// ScheduledWithLabel returns the first n of the client's scheduled results with a label, by their ids, after an id.
func (t *Tenant) ScheduledWithLabel(
	ctx context.Context, key string, after domain.ResultID, n int,
) ([]domain.ResultID, error) {
	return pg.All[domain.ResultID](ctx, t.db, "look for scheduled emails of a label", pg.SQL(`
		SELECT id FROM phishing_results
		WHERE client_id = ?client AND label_key = ?key AND status = 'scheduled' AND id > ?after ORDER BY id LIMIT ?n`,
		pg.Named{"client": t.ID, "key": key, "after": after, "n": n}))
}

// LabelSends are the simulated emails of a label by whether they are cancelled.
type LabelSends struct{ Sends, Cancelled int }

// LabelSends counts the client's simulated emails with a label; zero for an unknown one.
func (t *Tenant) LabelSends(ctx context.Context, key string) (LabelSends, error) {
	rows, err := pg.All[LabelSends](ctx, t.db, "read the counts of a label", pg.SQL(
		"SELECT sends, cancelled FROM phishing_labels WHERE client_id = ? AND key = ?", t.ID, key))
	if err != nil || len(rows) == 0 {
		return LabelSends{}, err
	}
	return rows[0], nil
}

// KeptSends returns the first n of the client's results with a label that are not cancelled, in the order of send_at.
func (t *Tenant) KeptSends(ctx context.Context, key string, n int) ([]domain.Result, error) {
	rows, err := pg.All[ResultRow](ctx, t.db, "read results of a label", pg.Limit(pg.Rows[ResultRow]().
		Apply(pg.Where("r.client_id = ? AND r.label_key = ?", t.ID, key)).Where(KeptSend).OrderExpr("r.send_at, r.id"), n))
	return pg.MapRows(rows, func(r *ResultRow) domain.Result { return r.Result }), err
}
