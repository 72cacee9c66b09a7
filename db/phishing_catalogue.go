package db

import (
	"context"
	"time"

	"github.com/uptrace/bun"

	"partnerapi/db/pg"
	"partnerapi/domain"
)

type templateRow struct {
	bun.BaseModel `bun:"table:phishing_templates,alias:t"`

	ID          domain.TemplateID `bun:"id,pk"`
	Name        string
	Language    domain.Language
	Category    string
	Subject     string
	FromAddress string
	CreatedAt   time.Time
}

func (r *templateRow) template() domain.Template {
	return domain.Template{
		ID: r.ID, Name: r.Name, Language: r.Language, Category: r.Category, Subject: r.Subject, From: r.FromAddress,
		CreatedAt: r.CreatedAt,
	}
}

// Templates reads a page of the catalogue of simulated mails, by creation.
// since, if not nil, leaves those that were added or changed at or after it.
func (d *DB) Templates(ctx context.Context, since *time.Time, w domain.Window) (domain.Slice[domain.Template], error) {
	k := pg.Keyset[templateRow]{
		Table: "phishing_templates AS t", Key: "t.created_at", Cast: "timestamptz", ID: "t.id",
		Position: func(r *templateRow) domain.Position {
			return domain.Position{Key: pg.TimeKey(r.CreatedAt), ID: r.ID.UUID()}
		},
	}
	if since != nil {
		k.Where.Add("greatest(t.created_at, t.changed_at) >= ?", *since)
	}
	rows, err := pg.CountedPage(ctx, d, k, w)
	return pg.Map(rows, (*templateRow).template), err
}

// TemplateCategories reads the categories that templates have, sorted.
func (d *DB) TemplateCategories(ctx context.Context) ([]string, error) {
	return pg.All[string](ctx, d, "read the categories of templates", pg.SQL(
		`SELECT DISTINCT category COLLATE "C" AS category FROM phishing_templates ORDER BY category`))
}

// EnableCategories sets the categories of templates that a client may be sent;
// nil for all. NotFound where there is no such client. It is for the command
// line, which has no caller.
func (d *DB) EnableCategories(ctx context.Context, client domain.ClientID, categories []string) error {
	n, err := pg.Exec(ctx, d, "enable categories", pg.SQL(
		"UPDATE clients SET phishing_categories = ? WHERE id = ? AND archived_at IS NULL", categories, client))
	if err == nil && n == 0 {
		err = domain.ErrNotFound(client.Noun())
	}
	return err
}
