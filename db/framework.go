package db

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/uptrace/bun"

	"partnerapi/db/pg"
	"partnerapi/domain"
)

// Frameworks reads a page of the catalogue, by the frameworks' ids.
func (d *DB) Frameworks(ctx context.Context, w domain.Window) (domain.Slice[domain.CatalogueFramework], error) {
	type courseOf struct {
		FrameworkID string
		CourseID    domain.CourseID
		Title       string
		Role        *domain.Role
	}
	rows, err := pg.All[courseOf](ctx, d, "read the courses of frameworks", pg.Prepared(pg.SQL(`
		SELECT r.framework_id, r.course_id, c.title, r.role
		FROM framework_courses AS r JOIN courses AS c ON c.id = r.course_id
		ORDER BY r.role IS NOT NULL, c.title, c.id`)))
	if err != nil {
		return domain.Slice[domain.CatalogueFramework]{}, err
	}
	courses := map[string][]domain.RequiredCourse{}
	for _, r := range rows {
		courses[r.FrameworkID] = append(courses[r.FrameworkID],
			domain.RequiredCourse{Course: r.CourseID, Title: r.Title, Role: pg.Or(r.Role, "")})
	}

	page := frameworkPage(w)
	out := domain.Slice[domain.CatalogueFramework]{
		Rows: make([]domain.CatalogueFramework, len(page.Rows)), More: page.More, End: page.End, Total: page.Total,
	}
	for i, f := range page.Rows {
		out.Rows[i] = domain.CatalogueFramework{Framework: f, Courses: courses[f.ID]}
	}
	return out, nil
}

// frameworkPage is a window of the catalogue.
func frameworkPage(w domain.Window) domain.Slice[domain.Framework] {
	rest := domain.Frameworks
	if w.After != nil {
		rest = rest[sortedAfter(rest, w.After.Key):]
	}
	rest = rest[min(w.Skip, len(rest)):]
	page := domain.Slice[domain.Framework]{
		Rows: rest[:min(w.Limit, len(rest))], More: len(rest) > w.Limit, Total: len(domain.Frameworks),
	}
	if n := len(page.Rows); n > 0 {
		page.End = &domain.Position{Key: page.Rows[n-1].ID}
	}
	return page
}

// sortedAfter is the place of the first framework after an id.
func sortedAfter(list []domain.Framework, id string) int {
	i, found := slices.BinarySearchFunc(list, id, func(f domain.Framework, id string) int {
		return strings.Compare(f.ID, id)
	})
	if found {
		i++
	}
	return i
}

// frameworkRow is a framework assignment.
type frameworkRow struct {
	bun.BaseModel `bun:"table:framework_assignments,alias:f"`

	ClientID     domain.ClientID              `bun:"client_id,pk"`
	ID           domain.FrameworkAssignmentID `bun:"id,pk"`
	FrameworkID  string
	AudienceType domain.FrameworkAudienceType
	AudienceID   *[16]byte
	Training     bool
	Phishing     bool
	Policies     bool
	Reporting    bool
	CreatedAt    time.Time
}

// foundFramework is a framework assignment as it is read.
type foundFramework struct {
	frameworkRow
	evaluationRow
	AudienceName *string
}

func (r *foundFramework) assignment() (domain.FrameworkAssignment, error) {
	evaluation, err := evaluationOf(r.evaluationRow)
	framework, _ := domain.FrameworkByID(r.FrameworkID)
	return domain.FrameworkAssignment{
		ID: r.ID, Client: r.ClientID, Framework: framework,
		Audience: r.AudienceType, AudienceID: pg.Or(r.AudienceID, [16]byte{}), AudienceName: pg.Or(r.AudienceName, ""),
		Modules: domain.FrameworkModules{
			Training: r.Training, Phishing: r.Phishing, Policies: r.Policies, Reporting: r.Reporting,
		},
		Evaluation: evaluation, CreatedAt: r.CreatedAt,
	}, err
}

// frameworkList is the list of the client's framework assignments, by creation. One
// that was never evaluated is as of when it was made.
func (t *Tenant) frameworkList() pg.Keyset[foundFramework] {
	k := pg.Keyset[foundFramework]{
		Table: "framework_assignments AS f", Key: "f.created_at", Cast: "timestamptz", ID: "f.id",
		Select: func(q *pg.Select) {
			q.Columns(pg.Columns[frameworkRow]()).
				Columns("f.requirements, f.met, f.total, greatest(f.evaluated_at, f.created_at) AS evaluated_at").
				Columns("coalesce(g.name, k.name) AS audience_name").
				Join(`LEFT JOIN groups AS g
					ON f.audience_type = 'group' AND g.client_id = f.client_id AND g.id = f.audience_id`).
				Join(`LEFT JOIN collections AS k
					ON f.audience_type = 'collection' AND k.client_id = f.client_id AND k.id = f.audience_id`)
		},
		Position: func(r *foundFramework) domain.Position {
			return domain.Position{Key: pg.TimeKey(r.CreatedAt), ID: r.ID.UUID()}
		},
	}
	k.Where.Add("f.client_id = ?", t.ID)
	return k
}

// Frameworks reads a page of the client's framework assignments, by creation, as
// they were evaluated last. since, if not nil, leaves those of which more than the time
// of the evaluation changed since then, and those whose collection did.
func (t *Tenant) Frameworks(
	ctx context.Context, since *time.Time, w domain.Window,
) (domain.Slice[domain.FrameworkAssignment], error) {
	k := t.frameworkList()
	if since != nil {
		k.Where.Add(`coalesce(f.changed_at, greatest(f.evaluated_at, f.created_at)) >= ?0 OR f.created_at >= ?0 OR EXISTS (
			SELECT 1 FROM collections AS named WHERE f.audience_type = 'collection' AND named.client_id = f.client_id
			AND named.id = f.audience_id AND named.updated_at >= ?0)`, *since)
	}
	rows, err := pg.CountedPage(ctx, t.db, k, w)
	out := domain.Slice[domain.FrameworkAssignment]{More: rows.More, End: rows.End, Total: rows.Total}
	for i := 0; i < len(rows.Rows) && err == nil; i++ {
		var a domain.FrameworkAssignment
		a, err = rows.Rows[i].assignment()
		out.Rows = append(out.Rows, a)
	}
	return out, err
}

// Framework reads one of the client's framework assignments, as it was evaluated last.
func (t *Tenant) Framework(ctx context.Context, id domain.FrameworkAssignmentID) (domain.FrameworkAssignment, error) {
	k := t.frameworkList()
	k.Where.Add("f.id = ?", id)
	page, err := pg.Page(ctx, t.db, k, domain.Window{Limit: 1})
	if err == nil && len(page.Rows) == 0 {
		err = domain.ErrNotFound(id.Noun())
	}
	if err != nil {
		return domain.FrameworkAssignment{}, err
	}
	return page.Rows[0].assignment()
}
