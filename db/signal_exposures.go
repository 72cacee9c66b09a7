package db

import (
	"context"
	"encoding/json"
	"time"

	"github.com/uptrace/bun/dialect/pgdialect"

	"partnerapi/domain"
)

// breachNoun is what errors call a breach; it has a name in the place of an id.
const breachNoun = "breach"

// sighting is what a signal tells of an exposure, by the names that sightSQL
// has for it. That an exposure was resolved tells too that it was there, as
// the catalogue describes it.
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
func (d *DB) lockBreaches(ctx context.Context, names []string) (map[string]*breachRow, error) {
	if len(names) == 0 {
		return nil, nil
	}
	var rows []breachRow
	err := d.conn(ctx).NewSelect().Model(&rows).Where("b.name = ANY(?::text[])", pgdialect.Array(names)).
		OrderExpr("b.name").For("SHARE").Scan(ctx)
	breaches := make(map[string]*breachRow, len(rows))
	for i := range rows {
		breaches[rows[i].Name] = &rows[i]
	}
	return breaches, d.bad("lock breaches", err)
}

// sightSQL records the sightings ?0 as of the time ?1. The earliest describes
// the exposure; of two at one moment the worse, then by the data classes, so
// that the order in which they come is none of their differences. Of several
// times of resolving the earliest is kept. Clients that are not watched have no
// event.
const sightSQL = `
	WITH told AS (
		SELECT DISTINCT ON (client_id, user_id, breach_name) client_id, user_id, breach_name, severity, data_classes, at,
			min(at) FILTER (WHERE resolved) OVER w AS resolved_at, bool_or(NOT resolved) OVER w AS found
		FROM json_to_recordset(?0::json) AS t (client_id uuid, user_id uuid, breach_name text COLLATE "C",
			severity text, data_classes text[], at timestamptz, resolved boolean)
		WINDOW w AS (PARTITION BY client_id, user_id, breach_name)
		ORDER BY client_id, user_id, breach_name, at, array_position(?2::text[], severity), data_classes
	), stored AS (
		INSERT INTO exposures AS e (client_id, user_id, breach_name, severity, data_classes, first_seen_at, resolved_at, updated_at)
		SELECT client_id, user_id, breach_name, severity, data_classes, at, resolved_at, ?1 FROM told
		ON CONFLICT (client_id, user_id, breach_name) DO UPDATE SET
			(severity, data_classes, first_seen_at, resolved_at, updated_at) = (
				SELECT n.severity, n.data_classes, n.first_seen_at, least(e.resolved_at, excluded.resolved_at), excluded.updated_at
				FROM (VALUES (excluded.severity, excluded.data_classes, excluded.first_seen_at), (e.severity, e.data_classes, e.first_seen_at))
					AS n (severity, data_classes, first_seen_at)
				ORDER BY n.first_seen_at, array_position(?2::text[], n.severity), n.data_classes LIMIT 1)
		WHERE (excluded.first_seen_at, array_position(?2::text[], excluded.severity), excluded.data_classes)
			< (e.first_seen_at, array_position(?2::text[], e.severity), e.data_classes)
			OR excluded.resolved_at < coalesce(e.resolved_at, 'infinity')
		RETURNING client_id, user_id, breach_name, id, xmax = 0 AS added
	), announced AS (
		INSERT INTO events (client_id, id, type, user_id, object_id, created_at)
		SELECT s.client_id, uuid_v7(?1), ?3, s.user_id, s.id, ?1
		FROM stored AS s JOIN told AS t USING (client_id, user_id, breach_name)
		JOIN clients AS c ON c.id = s.client_id AND c.dark_web_monitoring
		WHERE s.added AND t.found
	), touched AS ( -- how many exposures there are is shown, whether or not they move the score
		UPDATE users AS u SET updated_at = ?1 FROM (SELECT DISTINCT client_id, user_id FROM stored) AS s
		WHERE u.client_id = s.client_id AND u.id = s.user_id
	)
	SELECT DISTINCT client_id, user_id FROM stored`

// sight records sightings of locked users, and returns those for whom something
// changed, whose scores are to follow.
func (d *DB) sight(ctx context.Context, list []sighting) ([]domain.UserKey, error) {
	if len(list) == 0 {
		return nil, nil
	}
	text, err := json.Marshal(list)
	if err != nil {
		return nil, err
	}
	var rows []struct {
		ClientID domain.ClientID
		UserID   domain.UserID
	}
	err = d.conn(ctx).NewRaw(sightSQL, string(text), d.Now(), pgdialect.Array(domain.SeverityCritical.Values()), domain.DataExposed).Scan(ctx, &rows)
	moved := make([]domain.UserKey, len(rows))
	for i, r := range rows {
		moved[i] = domain.UserKey{Client: r.ClientID, User: r.UserID}
	}
	return moved, d.bad("record exposures", err)
}
