package db

import (
	"context"
	"encoding/json"
	"time"

	"partnerapi/db/pg"
	"partnerapi/domain"
)

// breachNoun is what errors call a breach; it has a name in the place of an id.
const breachNoun = "breach"

// sighting is what a signal tells of an exposure, by the names that sightSQL
// has for it. That an exposure was resolved tells too that it was there, as
// the catalogue describes it until a finding does.
type sighting struct {
	ClientID    string          `json:"client_id"`
	UserID      string          `json:"user_id"`
	BreachName  string          `json:"breach_name"`
	Severity    domain.Severity `json:"severity"`
	DataClasses []string        `json:"data_classes"`
	At          time.Time       `json:"at"`
	Resolved    bool            `json:"resolved"`
}

// sighting is what a signal tells of a user's exposure in this breach. What it
// does not say is as the data classes or else the breach have it.
func (b *breachRow) sighting(user domain.UserKey, s *domain.Signal) sighting {
	out := sighting{
		ClientID: user.Client.UUID(), UserID: user.User.UUID(), BreachName: b.Name,
		Severity: b.Severity, DataClasses: b.DataClasses, At: s.At, Resolved: s.Type == domain.ExposureResolved,
	}
	if s.DataClasses != nil {
		out.Severity, out.DataClasses = domain.SeverityOf(s.DataClasses, b.Sensitive, b.SpamList), s.DataClasses
	}
	if s.Severity != "" {
		out.Severity = s.Severity
	}
	return out
}

// lockBreaches reads breaches by their names, and keeps an import from changing
// them meanwhile.
func (c *Change) lockBreaches(ctx context.Context, names []string) (map[string]*breachRow, error) {
	if len(names) == 0 {
		return nil, nil
	}
	rows, err := pg.All[breachRow](ctx, c, "lock breaches",
		pg.From("breaches AS b").Columns(pg.Columns[breachRow]()).Where("b.name = ANY(?::text[])", names).
			OrderBy("b.name").For("SHARE"))
	breaches := make(map[string]*breachRow, len(rows))
	for i := range rows {
		breaches[rows[i].Name] = &rows[i]
	}
	return breaches, err
}

// sightSQL records the sightings ?0 as of the time ?1. The worst finding by ?2
// describes the exposure, of two of one severity that with the lesser list of
// data classes; while there is no finding, a resolving does, as the catalogue has
// it. Of the times of all that was told, and of those of resolving, the earliest
// is kept. So nothing depends on the order in which they come.
//
// It returns the exposures that changed of clients with Dark Web Monitoring; to
// the others nothing of this is shown.
const sightSQL = `
	WITH told AS MATERIALIZED (
		SELECT DISTINCT ON (client_id, user_id, breach_name) client_id, user_id, breach_name, severity, data_classes,
			NOT resolved AS found, min(at) OVER w AS first_seen_at, min(at) FILTER (WHERE resolved) OVER w AS resolved_at,
			min(at) FILTER (WHERE NOT resolved) OVER w AS found_at
		FROM json_to_recordset(?0::json) AS t (client_id uuid, user_id uuid, breach_name text COLLATE "C",
			severity text, data_classes text[], at timestamptz, resolved boolean)
		WINDOW w AS (PARTITION BY client_id, user_id, breach_name)
		ORDER BY client_id, user_id, breach_name, resolved, array_position(?2::text[], severity), data_classes
	), stored AS (
		INSERT INTO exposures AS e
			(client_id, user_id, breach_name, severity, data_classes, found, first_seen_at, resolved_at, updated_at)
		SELECT client_id, user_id, breach_name, severity, data_classes, found, first_seen_at, resolved_at, ?1::timestamptz
		FROM told
		ON CONFLICT (client_id, user_id, breach_name) DO UPDATE SET
			(severity, data_classes) = (
				SELECT n.severity, n.data_classes
				FROM (VALUES (excluded.found, excluded.severity, excluded.data_classes), (e.found, e.severity, e.data_classes))
					AS n (found, severity, data_classes)
				ORDER BY NOT n.found, array_position(?2::text[], n.severity), n.data_classes LIMIT 1),
			found = e.found OR excluded.found, first_seen_at = least(e.first_seen_at, excluded.first_seen_at),
			resolved_at = least(e.resolved_at, excluded.resolved_at),
			updated_at = greatest(e.updated_at, excluded.updated_at)
		WHERE (NOT excluded.found, array_position(?2::text[], excluded.severity), excluded.data_classes)
			< (NOT e.found, array_position(?2::text[], e.severity), e.data_classes)
			OR excluded.first_seen_at < e.first_seen_at OR excluded.resolved_at < coalesce(e.resolved_at, 'infinity')
		RETURNING client_id, user_id, breach_name, id, resolved_at
	)
	SELECT s.client_id, s.user_id, s.breach_name, s.id, t.found AND e.found IS NOT TRUE AS announced, t.found_at,
		s.resolved_at IS NULL AS open
	FROM stored AS s JOIN clients AS c ON c.id = s.client_id AND c.dark_web_monitoring
	JOIN told AS t USING (client_id, user_id, breach_name)
	LEFT JOIN exposures AS e USING (client_id, user_id, breach_name) -- as it was before`

type sightedRow struct {
	ClientID   domain.ClientID
	UserID     domain.UserID
	BreachName string
	ID         domain.MessageID
	// Announced says that this is the first finding, also where the exposure's
	// resolving was told of before; FoundAt is when it was.
	Announced bool
	FoundAt   *time.Time
	Open      bool
}

// sight records sightings of locked users. The first finding is an event, and has a
// notice unless the exposure is resolved. How many exposures a user has is shown,
// whether or not they move the score.
func (c *Change) sight(ctx context.Context, list []sighting) error {
	if len(list) == 0 {
		return nil
	}
	text, err := json.Marshal(list)
	if err != nil {
		return err
	}
	c.Lock(ExposureLocks)
	rows, err := pg.All[sightedRow](ctx, c, "record exposures",
		pg.SQL(sightSQL, string(text), c.At, domain.SeverityCritical.Values()))
	for _, row := range rows {
		user := domain.UserKey{Client: row.ClientID, User: row.UserID}
		c.Rescore(user)
		c.touch(user)
		if row.Announced {
			c.ObjectEvent(domain.DataExposed, user, row.ID.UUID())
		}
		if row.Announced && row.Open {
			c.mailNotice(user, row.BreachName, *row.FoundAt)
		}
	}
	return err
}
