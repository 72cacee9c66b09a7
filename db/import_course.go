package db

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"time"

	"partnerapi/db/pg"
	"partnerapi/domain"
)

// importedCourse is a row of courses, by its columns.
type importedCourse struct {
	ID            string                     `json:"id"`
	Title         string                     `json:"title"`
	RenewalMonths int                        `json:"renewal_months"`
	Languages     []domain.Language          `json:"languages"`
	Titles        map[domain.Language]string `json:"titles"`
	CreatedAt     time.Time                  `json:"created_at"`
}

// ImportCourses applies records of courses. What users were given stays theirs.
func (d *DB) ImportCourses(ctx context.Context, batch []domain.CourseRecord) ([]domain.ImportResult, error) {
	return importBatch(ctx, d, batch, (*Change).importCourses)
}

func (c *Change) importCourses(
	ctx context.Context, batch []domain.CourseRecord, results []domain.ImportResult,
) error {
	before, err := c.coursesBefore(ctx, batch)
	if err != nil {
		return err
	}
	var made, changed []importedCourse
	for i := range batch {
		r := &batch[i]
		old, there := before[r.ID.ID]
		if !there {
			if r.Missing != "" {
				results[i] = missing(r.Missing)
				continue
			}
			old = importedCourse{
				ID: r.ID.UUID(), RenewalMonths: 12, CreatedAt: c.At,
				Languages: []domain.Language{domain.English, domain.Spanish, domain.French},
			}
		}
		after := old.with(r)
		switch {
		case !there:
			results[i].Outcome = domain.ImportCreated
			made = append(made, after)
		case after.same(&old):
			results[i].Outcome = domain.ImportUnchanged
		default:
			results[i].Outcome = domain.ImportUpdated
			changed = append(changed, after)
		}
	}
	if err := updateRows(ctx, c, "courses", "courses", changed, "id"); err != nil {
		return err
	}
	return insertRows(ctx, c, "courses", "courses", made)
}

// coursesBefore locks those of the courses that are there.
func (c *Change) coursesBefore(
	ctx context.Context, batch []domain.CourseRecord,
) (map[domain.CourseID]importedCourse, error) {
	ids := make([]domain.CourseID, len(batch))
	for i := range batch {
		ids[i] = batch[i].ID.ID
	}
	rows, err := pg.All[storedCourse](ctx, c, "lock courses", pg.SQL(`
		SELECT id, title, renewal_months, languages, titles::text AS titles, created_at FROM courses
		WHERE id = ANY(?::uuid[]) ORDER BY id FOR NO KEY UPDATE`, pg.IDs(ids)))
	before := make(map[domain.CourseID]importedCourse, len(rows))
	for _, r := range rows {
		row := importedCourse{r.ID.UUID(), r.Title, r.RenewalMonths, r.Languages, nil, r.CreatedAt}
		if err := json.Unmarshal([]byte(r.Titles), &row.Titles); err != nil {
			return nil, err
		}
		before[r.ID] = row
	}
	return before, err
}

type storedCourse struct {
	ID            domain.CourseID
	Title         string
	RenewalMonths int
	Languages     []domain.Language `bun:",array"`
	Titles        string
	CreatedAt     time.Time
}

// with is the course as a record has it.
func (k importedCourse) with(r *domain.CourseRecord) importedCourse {
	r.Title.Apply(&k.Title)
	r.RenewalMonths.Apply(&k.RenewalMonths)
	if r.Titles.Has() {
		k.Titles = r.Titles.Value
		k.Languages = slices.Sorted(maps.Keys(k.Titles))
	}
	if k.Titles == nil {
		k.Titles = map[domain.Language]string{}
	}
	k.CreatedAt = r.CreatedAt.Or(domain.Moment{Time: k.CreatedAt}).Time
	return k
}

func (k *importedCourse) same(o *importedCourse) bool {
	return k.Title == o.Title && k.RenewalMonths == o.RenewalMonths && maps.Equal(k.Titles, o.Titles) &&
		slices.Equal(k.Languages, o.Languages) && k.CreatedAt.Equal(o.CreatedAt)
}
