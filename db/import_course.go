package db

import (
	"context"
	"encoding/json"
	"maps"
	"slices"

	"github.com/uptrace/bun"

	"partnerapi/domain"
)

// importedCourse is a row of courses with its titles by language, as JSON.
type importedCourse struct {
	bun.BaseModel `bun:"table:courses,alias:c"`
	courseRow
	Titles json.RawMessage `bun:"type:jsonb"`
}

// titles are the titles by language.
func (r *importedCourse) titles() (titles map[domain.Language]string, err error) {
	err = json.Unmarshal(r.Titles, &titles)
	return titles, err
}

// ImportCourses applies records of courses. What users were given stays theirs.
func (d *DB) ImportCourses(ctx context.Context, batch []domain.CourseRecord) ([]domain.ImportResult, error) {
	return importBatch(ctx, d, batch, (*Change).importCourses)
}

func (c *Change) importCourses(
	ctx context.Context, batch []domain.CourseRecord, results []domain.ImportResult,
) error {
	rows, err := lockRows[domain.CourseRecord, importedCourse](ctx, c, batch, "c.id")
	if err != nil {
		return err
	}
	k := kind[domain.CourseRecord, importedCourse]{
		Change: c, rows: rows, finish: finishCourse,
		fresh: func(*domain.CourseRecord) importedCourse {
			return importedCourse{Titles: json.RawMessage("{}"), courseRow: courseRow{
				RenewalMonths: 12, CreatedAt: c.At,
				Languages: []domain.Language{domain.English, domain.Spanish, domain.French},
			}}
		},
	}
	return k.apply(ctx, batch, results)
}

// finishCourse sets the titles: a course is available in the languages that they are
// in.
func finishCourse(a *applied[domain.CourseRecord, importedCourse]) (bool, error) {
	titles, err := a.after.titles()
	if err != nil || !a.record.Titles.Has() {
		return false, err
	}
	if languages := slices.Sorted(maps.Keys(a.record.Titles.Value)); !slices.Equal(languages, a.after.Languages) {
		a.after.Languages = languages
	}
	if !maps.Equal(titles, a.record.Titles.Value) {
		a.after.Titles, err = json.Marshal(a.record.Titles.Value)
	}
	return false, err
}
