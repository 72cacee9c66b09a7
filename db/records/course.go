package records

import (
	"encoding/json"
	"maps"
	"slices"
	"time"

	"github.com/uptrace/bun"

	"partnerapi/domain"
)

// importedCourse is a row of courses with its titles by language, as JSON.
type importedCourse struct {
	bun.BaseModel `bun:"table:courses,alias:c"`
	ID            domain.CourseID `bun:"id,pk"`
	Title         string
	RenewalMonths int
	Languages     []domain.Language `bun:"languages,array"`
	CreatedAt     time.Time
	Titles        json.RawMessage `bun:"type:jsonb"`
}

// titles parses the titles by language.
func (r *importedCourse) titles() (titles map[domain.Language]string, err error) {
	err = json.Unmarshal(r.Titles, &titles)
	return titles, err
}

// Courses is the kind of the courses of the catalogue, which all partners share. Changing a course does not change
// existing assignments of it.
var Courses = declare[courses](kind[domain.CourseRecord, importedCourse]{
	object: "course", order: "c.created_at, c.id", locked: "c.id",
})

type courses struct {
	batch[domain.CourseRecord, importedCourse]
}

func (b *courses) create(in *domain.CourseRecord, row *importedCourse) {
	row.ID, row.CreatedAt = in.ID.ID, b.At
	row.Titles, row.RenewalMonths = json.RawMessage("{}"), 12
	row.Languages = []domain.Language{domain.English, domain.Spanish, domain.French}
}

// apply sets the titles by language, if they are given, and sets the course's languages to those of the titles. If they
// are not given, a new title also replaces the English one that was equal to the old one. It does not touch equal
// values, so that an unchanged course is not written.
func (b *courses) apply(in *domain.CourseRecord, before, row *importedCourse) error {
	titles, err := row.titles()
	if err != nil {
		return err
	}
	if !in.Titles.Given {
		if before != nil && row.Title != before.Title && titles[domain.English] == before.Title {
			titles[domain.English] = row.Title
			row.Titles, err = json.Marshal(titles)
		}
		return err
	}
	if languages := slices.Sorted(maps.Keys(in.Titles.Value)); !slices.Equal(languages, row.Languages) {
		row.Languages = languages
	}
	if !maps.Equal(titles, in.Titles.Value) {
		row.Titles, err = json.Marshal(in.Titles.Value)
	}
	return err
}

// complete sets the titles by language of an exported record. If a course has none, and is not in all languages, each of
// its languages gets the course's title, so that an import restores the languages.
func (b *courses) complete(row *importedCourse, out *domain.CourseRecord) error {
	titles, err := row.titles()
	if err != nil {
		return err
	}
	if len(titles) == 0 && len(row.Languages) < len(domain.English.Values()) {
		for _, language := range row.Languages {
			titles[language] = row.Title
		}
	}
	if len(titles) > 0 {
		out.Titles = domain.Give(titles)
	}
	return nil
}
