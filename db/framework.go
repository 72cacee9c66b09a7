package db

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/uptrace/bun"

	"partnerapi/db/pg"
	"partnerapi/domain"
)

// The catalogue of frameworks, and their assignments to audiences.

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

func (r *foundFramework) assignment() domain.FrameworkAssignment {
	framework, _ := domain.FrameworkByID(r.FrameworkID)
	return domain.FrameworkAssignment{
		ID: r.ID, Client: r.ClientID, Framework: framework,
		Audience: r.AudienceType, AudienceID: pg.Or(r.AudienceID, [16]byte{}), AudienceName: pg.Or(r.AudienceName, ""),
		Modules: domain.FrameworkModules{
			Training: r.Training, Phishing: r.Phishing, Policies: r.Policies, Reporting: r.Reporting,
		},
		Evaluation: evaluationOf(r.evaluationRow), CreatedAt: r.CreatedAt,
	}
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
	return pg.Map(rows, (*foundFramework).assignment), err
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
	return page.Rows[0].assignment(), nil
}

// AssignFramework assigns a framework to an audience and gives its courses to those
// who are in it: those of a large audience are noted, and AssignWaiting gives them.
// It returns how many users are given each course, by the courses' titles, without
// those that nobody is. Conflict when the framework is assigned to this audience
// already. The audiences of the client are locked (LockAudiences), and the audience
// is of all users or a collection.
func (t *Tenant) AssignFramework(
	ctx context.Context, c *Change, n domain.NewFrameworkAssignment,
) ([]domain.Scheduled, error) {
	row := frameworkRow{
		ClientID: t.ID, ID: n.ID, FrameworkID: n.Framework.ID, AudienceType: domain.FrameworkForAll,
		Training: n.Modules.Training, Phishing: n.Modules.Phishing, Policies: n.Modules.Policies,
		Reporting: n.Modules.Reporting, CreatedAt: c.At,
	}
	if n.Audience.Type == domain.OfCollection {
		row.AudienceType, row.AudienceID = domain.FrameworkForCollection, (*[16]byte)(&n.Audience.Collection)
	}

	later := n.Size > domain.AssignAtOnce
	if !later { // which locks nothing: what waits comes before users
		if _, err := t.LockAudience(ctx, c, n.Audience); err != nil {
			return nil, err
		}
	}
	if _, err := pg.Exec(ctx, c, "assign a framework", pg.Insert(row)); err != nil {
		return nil, err
	}
	c.frameworksMoved(t.ID)

	give := c.give
	if later {
		give = c.giveLater
	}
	rows, err := give(ctx, c.wantedBy(asked(pg.SQL("u.client_id = ? AND f.id = ?", t.ID, n.ID))))
	if err != nil {
		return nil, err
	}
	return t.scheduled(ctx, c, rows)
}

// scheduled says how many users are given each course.
func (t *Tenant) scheduled(ctx context.Context, c *Change, rows []gaveRow) ([]domain.Scheduled, error) {
	given := map[domain.CourseID]int{}
	var ids []domain.CourseID
	for _, r := range rows {
		if r.Given > 0 {
			given[r.CourseID] = r.Given
			ids = append(ids, r.CourseID)
		}
	}
	type titled struct {
		ID    domain.CourseID
		Title string
	}
	courses, err := pg.All[titled](ctx, c, "read the titles of courses",
		pg.SQL("SELECT id, title FROM courses WHERE id = ANY(?::uuid[]) ORDER BY title, id", pg.IDs(ids)))
	out := make([]domain.Scheduled, len(courses))
	for i, k := range courses {
		out[i] = domain.Scheduled{Course: k.ID, Title: k.Title, Users: given[k.ID]}
	}
	return out, err
}

// ReadFramework reads an assignment that the change made, as it is evaluated then.
func (t *Tenant) ReadFramework(
	ctx context.Context, c *Change, id domain.FrameworkAssignmentID,
) (domain.FrameworkAssignment, error) {
	if err := c.Evaluate(ctx, t, id); err != nil {
		return domain.FrameworkAssignment{}, err
	}
	return t.Framework(ctx, id)
}

// InsertFreeCollection adds a collection of users, who are locked, under its name,
// or where that is taken under the name with a number, and returns it as it is.
func (t *Tenant) InsertFreeCollection(
	ctx context.Context, c *Change, k domain.Collection, users []domain.UserID,
) (domain.Collection, error) {
	taken, err := pg.All[string](ctx, c, "look for names of collections", pg.SQL(
		"SELECT name_key FROM collections WHERE client_id = ? AND starts_with(name_key, ?)", t.ID, domain.SortKey(k.Name)))
	if err != nil {
		return k, err
	}
	used := map[string]bool{}
	for _, key := range taken {
		used[key] = true
	}

	plain := k.Name
	for n := 2; ; n++ {
		if !used[domain.SortKey(k.Name)] {
			inserted, err := pg.Exec(ctx, c, "insert a collection",
				pg.SQL("? ON CONFLICT (client_id, name_key) DO NOTHING", insertedCollection(t.ID, k)))
			if err != nil {
				return k, err
			}
			if inserted == 1 { // else another request took the name meanwhile
				break
			}
		}
		k.Name = fmt.Sprintf("%s (%d)", plain, n)
	}
	joined, err := t.join(ctx, c, []domain.CollectionID{k.ID}, users)
	c.touch(t.keysOf(joined)...)
	return k, err
}
