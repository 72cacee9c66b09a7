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

// sightSQL records the sightings ?0 as of the time ?1. The worst finding by ?2
// describes the exposure, of two of one severity that with the lesser list of
// data classes; while there is no finding, a resolving does, as the catalogue
// has it. Of the times of all that was told, and of those of resolving, the
// earliest is kept. So nothing depends on the order in which they come.
//
// The first finding of an exposure is an event, also where its resolving was
// told of before. To clients that are not watched nothing of this is shown.
const sightSQL = `
	WITH told AS MATERIALIZED (
		SELECT DISTINCT ON (client_id, user_id, breach_name) client_id, user_id, breach_name, severity, data_classes,
			NOT resolved AS found, min(at) OVER w AS first_seen_at, min(at) FILTER (WHERE resolved) OVER w AS resolved_at
		FROM json_to_recordset(?0::json) AS t (client_id uuid, user_id uuid, breach_name text COLLATE "C",
			severity text, data_classes text[], at timestamptz, resolved boolean)
		WINDOW w AS (PARTITION BY client_id, user_id, breach_name)
		ORDER BY client_id, user_id, breach_name, resolved, array_position(?2::text[], severity), data_classes
	), stored AS (
		INSERT INTO exposures AS e (client_id, user_id, breach_name, severity, data_classes, found, first_seen_at, resolved_at, updated_at)
		SELECT client_id, user_id, breach_name, severity, data_classes, found, first_seen_at, resolved_at, ?1 FROM told
		ON CONFLICT (client_id, user_id, breach_name) DO UPDATE SET
			(severity, data_classes) = (
				SELECT n.severity, n.data_classes
				FROM (VALUES (excluded.found, excluded.severity, excluded.data_classes), (e.found, e.severity, e.data_classes))
					AS n (found, severity, data_classes)
				ORDER BY NOT n.found, array_position(?2::text[], n.severity), n.data_classes LIMIT 1),
			found = e.found OR excluded.found, first_seen_at = least(e.first_seen_at, excluded.first_seen_at),
			resolved_at = least(e.resolved_at, excluded.resolved_at), updated_at = excluded.updated_at
		WHERE (NOT excluded.found, array_position(?2::text[], excluded.severity), excluded.data_classes)
			< (NOT e.found, array_position(?2::text[], e.severity), e.data_classes)
			OR excluded.first_seen_at < e.first_seen_at OR excluded.resolved_at < coalesce(e.resolved_at, 'infinity')
		RETURNING client_id, user_id, breach_name, id
	), watched AS (
		SELECT s.client_id, s.user_id, s.breach_name, s.id
		FROM stored AS s JOIN clients AS c ON c.id = s.client_id AND c.dark_web_monitoring
	), announced AS (
		INSERT INTO events (client_id, id, type, user_id, object_id, created_at)
		SELECT w.client_id, uuid_v7(?1), ?3, w.user_id, w.id, ?1
		FROM watched AS w JOIN told AS t USING (client_id, user_id, breach_name)
		LEFT JOIN exposures AS e USING (client_id, user_id, breach_name) -- as it was before
		WHERE t.found AND e.found IS NOT TRUE
	), touched AS ( -- how many exposures there are is shown, whether or not they move the score
		UPDATE users AS u SET updated_at = ?1 FROM (SELECT DISTINCT client_id, user_id FROM watched) AS w
		WHERE u.client_id = w.client_id AND u.id = w.user_id
	)
	SELECT DISTINCT client_id, user_id FROM watched`

// sight records sightings of locked users, and returns those for whom something
// changed that counts, whose scores are to follow.
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
