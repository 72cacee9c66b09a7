package db

import (
	"context"
	"encoding/json"

	"github.com/uptrace/bun"

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

// Breach reads a breach of the catalogue.
func (d *DB) Breach(ctx context.Context, name string) (domain.Breach, error) {
	var row breachRow
	err := d.one(ctx, d.conn(ctx).NewSelect().Model(&row).Where("b.name = ?", name), breachNoun)
	return domain.Breach{
		Name: row.Name, Title: row.Title, Domain: row.Domain, On: row.BreachOn, Severity: row.Severity,
		DataClasses: row.DataClasses, Sensitive: row.Sensitive, SpamList: row.SpamList,
	}, err
}

// ImportBreaches adds breaches to the catalogue, and changes those that it has
// already, in one statement. No two have one name. An exposure keeps the
// severity and the data classes that it was found with. It returns how many
// were added, and how many changed.
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
	err = d.conn(ctx).NewRaw(`
		WITH given AS (
			SELECT name, title, domain, breach_on, severity, data_classes, sensitive, spam_list
			FROM json_populate_recordset(NULL::breaches, ?0::json)
		), stored AS (
			INSERT INTO breaches AS b (name, title, domain, breach_on, severity, data_classes, sensitive, spam_list)
			SELECT * FROM given ORDER BY name
			ON CONFLICT (name) DO UPDATE SET
				(title, domain, breach_on, severity, data_classes, sensitive, spam_list) =
				(excluded.title, excluded.domain, excluded.breach_on, excluded.severity, excluded.data_classes, excluded.sensitive, excluded.spam_list)
			WHERE b IS DISTINCT FROM excluded
			RETURNING name, xmax = 0 AS added
		), shown AS MATERIALIZED ( -- locked in the order of their keys, as wherever many are
			SELECT client_id, user_id, breach_name FROM exposures WHERE breach_name IN (SELECT name FROM stored WHERE NOT added)
			ORDER BY client_id, user_id, breach_name FOR NO KEY UPDATE
		), touched AS (
			UPDATE exposures AS e SET updated_at = ?1 FROM shown AS s
			WHERE e.client_id = s.client_id AND e.user_id = s.user_id AND e.breach_name = s.breach_name
		)
		SELECT count(*) FILTER (WHERE added), count(*) FILTER (WHERE NOT added) FROM stored`,
		string(text), d.Now()).Scan(ctx, &added, &changed)
	return added, changed, d.bad("import breaches", err)
}
