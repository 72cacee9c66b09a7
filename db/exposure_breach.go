package db

import (
	"context"
	"encoding/json"

	"github.com/uptrace/bun"

	"partnerapi/db/pg"
	"partnerapi/domain"
)

type breachRow struct {
	bun.BaseModel `bun:"table:breaches,alias:b"`

	Name        string          `bun:"name,pk" json:"name"`
	Title       string          `json:"title"`
	Domain      *string         `json:"domain"`
	BreachOn    *domain.Date    `json:"breach_on"`
	Severity    domain.Severity `json:"severity"`
	DataClasses []string        `bun:"data_classes,array" json:"data_classes"`
	Sensitive   bool            `json:"sensitive"`
	SpamList    bool            `json:"spam_list"`
}

// ImportBreaches adds breaches to the catalogue, and changes those that it has
// already. No two have one name. An exposure keeps the severity and the data
// classes that it was found with; one whose breach changed has changed too. It
// returns how many were added, and how many changed. It belongs to a command and
// is in no caller's reach.
func (d *DB) ImportBreaches(ctx context.Context, breaches []domain.Breach) (added, changed int, err error) {
	rows := make([]breachRow, len(breaches))
	for i, b := range breaches {
		rows[i] = breachRow{
			Name: b.Name, Title: b.Title, Domain: b.Domain, BreachOn: b.On, Severity: b.Severity,
			DataClasses: b.DataClasses, Sensitive: b.Sensitive, SpamList: b.SpamList,
		}
	}
	text, err := json.Marshal(rows)
	if err != nil {
		return 0, 0, err
	}

	err = d.Change(ctx, func(ctx context.Context, c *Change) error {
		c.Lock(ExposureLocks)
		n, err := pg.One[importedBreaches](ctx, c, "import breaches", pg.SQL(importBreachesSQL, string(text), c.At))
		added, changed = n.Added, n.Changed
		return err
	})
	return added, changed, err
}

type importedBreaches struct{ Added, Changed int }

// importBreachesSQL stores the breaches ?0 as of the time ?1. Breaches are locked
// by their names, and exposures by their keys after them.
const importBreachesSQL = `
	WITH given AS (
		SELECT name, title, domain, breach_on, severity, data_classes, sensitive, spam_list
		FROM json_populate_recordset(NULL::breaches, ?0::json)
	), stored AS (
		INSERT INTO breaches AS b (name, title, domain, breach_on, severity, data_classes, sensitive, spam_list)
		SELECT * FROM given ORDER BY name
		ON CONFLICT (name) DO UPDATE SET
			(title, domain, breach_on, severity, data_classes, sensitive, spam_list) =
			(excluded.title, excluded.domain, excluded.breach_on, excluded.severity, excluded.data_classes,
				excluded.sensitive, excluded.spam_list)
		WHERE b IS DISTINCT FROM excluded
		RETURNING name, xmax = 0 AS added
	), shown AS MATERIALIZED (
		SELECT client_id, user_id, breach_name FROM exposures
		WHERE breach_name IN (SELECT name FROM stored WHERE NOT added)
		ORDER BY client_id, user_id, breach_name FOR NO KEY UPDATE
	), touched AS (
		UPDATE exposures AS e SET updated_at = greatest(e.updated_at, ?1::timestamptz) FROM shown AS s
		WHERE e.client_id = s.client_id AND e.user_id = s.user_id AND e.breach_name = s.breach_name
	)
	SELECT count(*) FILTER (WHERE added) AS added, count(*) FILTER (WHERE NOT added) AS changed FROM stored`
