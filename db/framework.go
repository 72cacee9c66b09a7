package db

import (
	"context"
	"fmt"
	"slices"
	"sort"
	"time"

	"github.com/uptrace/bun"

	"partnerapi/db/pg"
	"partnerapi/domain"
)

// The catalogue of frameworks, and their assignments to audiences.

// Frameworks reads a page of the catalogue, in the order of the frameworks' ids.
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
			domain.RequiredCourse{Course: r.CourseID, Title: r.Title, Role: domain.OrZero(r.Role)})
	}

	return pg.Map(frameworkPage(w), func(f *domain.Framework) domain.CatalogueFramework {
		return domain.CatalogueFramework{Framework: *f, Courses: courses[f.ID]}
	}), nil
}

// frameworkPage returns a page of domain.Frameworks, which are sorted by id. w.After.Key is the id before the page.
func frameworkPage(w domain.Window) domain.Slice[domain.Framework] {
	rest := domain.Frameworks
	if w.After != nil {
		rest = rest[sort.Search(len(rest), func(i int) bool { return rest[i].ID > w.After.Key }):]
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

// FrameworkRow is a row of framework_assignments.
type FrameworkRow struct {
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

// assignedFramework is a framework assignment with its evaluation.
type assignedFramework struct {
	FrameworkRow
	evaluationRow
	AudienceName *string
	UpdatedAt    time.Time
}

func (r *assignedFramework) assignment() domain.FrameworkAssignment {
	framework, _ := domain.FrameworkByID(r.FrameworkID) // zero if only a later release knows it
	return domain.FrameworkAssignment{
		ID: r.ID, Client: r.ClientID, Framework: framework,
		Audience: r.AudienceType, AudienceID: domain.OrZero(r.AudienceID), AudienceName: domain.OrZero(r.AudienceName),
		Modules: domain.FrameworkModules{
			Training: r.Training, Phishing: r.Phishing, Policies: r.Policies, Reporting: r.Reporting,
		},
		Evaluation: evaluationOf(r.evaluationRow), CreatedAt: r.CreatedAt, UpdatedAt: r.UpdatedAt,
	}
}

// frameworkList returns the list of the client's framework assignments, in the order of creation. If an assignment was
// never evaluated, its evaluated_at is the time of its creation.
func (t *Tenant) frameworkList() pg.Keyset[assignedFramework] {
	k := pg.ByTime("f.created_at", "f.id", func(r *assignedFramework) (time.Time, domain.FrameworkAssignmentID) {
		return r.CreatedAt, r.ID
	})
	k.Table = "framework_assignments AS f"
	k.Select = func(q *bun.SelectQuery) {
		q.ColumnExpr(pg.Columns[FrameworkRow]()).
			ColumnExpr("f.requirements, f.met, f.total, greatest(f.evaluated_at, f.created_at) AS evaluated_at").
			ColumnExpr("coalesce(g.name, k.name) AS audience_name").
			ColumnExpr("greatest(f.changed_at, f.created_at, k.updated_at, CASE WHEN f.changed_at IS NULL THEN f.evaluated_at END) AS updated_at").
			Join(`LEFT JOIN groups AS g
				ON f.audience_type = 'group' AND g.client_id = f.client_id AND g.id = f.audience_id`).
			Join(`LEFT JOIN collections AS k
				ON f.audience_type = 'collection' AND k.client_id = f.client_id AND k.id = f.audience_id`)
	}
	k.Where.Add("f.client_id = ?", t.ID)
	return k
}

// frameworkChanged is the time of the last change of a framework assignment, alias f, or of its collection. In rows of
// earlier releases, changed_at is NULL.
const frameworkChanged = `greatest(coalesce(f.changed_at, f.evaluated_at), f.created_at, (
	SELECT named.updated_at FROM collections AS named
	WHERE f.audience_type = 'collection' AND named.client_id = f.client_id AND named.id = f.audience_id))`

// Frameworks reads a page of the client's framework assignments, in the order of creation, with their last evaluations.
// If since is not nil, it selects only assignments that changed, or whose collection changed, at or after since. An
// evaluation with the same result is no change.
func (t *Tenant) Frameworks(
	ctx context.Context, since *time.Time, w domain.Window,
) (domain.Slice[domain.FrameworkAssignment], error) {
	k := t.frameworkList()
	delta, err := pg.DeltaOf(ctx, t.db.DB, since, &w)
	if err != nil {
		return domain.Slice[domain.FrameworkAssignment]{}, err
	}
	k.Where.Changed(delta, frameworkChanged)
	rows, err := pg.CountedPage(ctx, t.db, k, w)
	return pg.Map(rows, (*assignedFramework).assignment), err
}

// Framework reads one of the client's framework assignments, with its last evaluation.
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

// AssignFramework assigns a framework to an audience, all users or a collection, and enrolls the audience in its
// courses. If the audience is larger than domain.AssignAtOnce, it queues the enrolments for AssignWaiting. It returns
// the number of users enrolled in each course, ordered by title, without courses that enroll no user, or Conflict if the
// framework is already assigned to the audience. The client's audiences must be locked (LockAudiences).
func (t *Tenant) AssignFramework(
	ctx context.Context, c *Change, n domain.NewFrameworkAssignment,
) ([]domain.Scheduled, error) {
	row := FrameworkRow{
		ClientID: t.ID, ID: n.ID, FrameworkID: n.Framework.ID, AudienceType: domain.FrameworkForAll,
		Training: n.Modules.Training, Phishing: n.Modules.Phishing, Policies: n.Modules.Policies,
		Reporting: n.Modules.Reporting, CreatedAt: c.At,
	}
	if n.Audience.Type == domain.OfCollection {
		row.AudienceType, row.AudienceID = domain.FrameworkForCollection, (*[16]byte)(&n.Audience.Collection)
	}

	later := n.Size > domain.AssignAtOnce
	if !later { // enrolLater locks no users: they come after WaitingLocks in the lock order
		if _, err := t.LockAudience(ctx, c, n.Audience); err != nil {
			return nil, err
		}
	}
	if err := pg.Run(ctx, c, "assign a framework", pg.Insert(row)); err != nil {
		return nil, err
	}
	c.FrameworksChanged(t.ID)

	enroll := c.enroll
	if later {
		enroll = c.enrolLater
	}
	rows, err := enroll(ctx, c.wantedAssignments(requiredCourses(pg.SQL("u.client_id = ? AND f.id = ?", t.ID, n.ID))))
	if err != nil {
		return nil, err
	}
	return t.countByCourse(ctx, c, rows)
}

// countByCourse returns the number of users enrolled in each course, ordered by title, without courses that enroll
// no one. Given is set in the one row of each course that has no user, and 0 in the rows of its users.
func (t *Tenant) countByCourse(ctx context.Context, c *Change, rows []enrolledRow) ([]domain.Scheduled, error) {
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
	return pg.MapRows(courses, func(k *titled) domain.Scheduled {
		return domain.Scheduled{Course: k.ID, Title: k.Title, Users: given[k.ID]}
	}), err
}

// ReadFramework evaluates and reads a framework assignment that the change has inserted.
func (t *Tenant) ReadFramework(
	ctx context.Context, c *Change, id domain.FrameworkAssignmentID,
) (domain.FrameworkAssignment, error) {
	if err := c.Evaluate(ctx, t, id); err != nil {
		return domain.FrameworkAssignment{}, err
	}
	return t.Framework(ctx, id)
}

// InsertCollectionUniquely inserts a collection with locked users as members, and returns the collection. If the name
// is taken, it appends the first number, from 2, with which the name is free.
func (t *Tenant) InsertCollectionUniquely(
	ctx context.Context, c *Change, k domain.Collection, users []domain.UserID,
) (domain.Collection, error) {
	taken, err := pg.All[string](ctx, c, "look for names of collections", pg.SQL(
		"SELECT name_key FROM collections WHERE client_id = ? AND starts_with(name_key, ?)", t.ID, domain.SortKey(k.Name)))
	if err != nil {
		return k, err
	}
	base := k.Name
	for n := 2; ; n++ {
		if !slices.Contains(taken, domain.SortKey(k.Name)) {
			inserted, err := pg.Exec(ctx, c, "insert a collection",
				pg.SQL("? ON CONFLICT (client_id, name_key) DO NOTHING", collectionInsert(t.ID, k)))
			if err != nil {
				return k, err
			}
			if inserted == 1 { // 0 if a concurrent request took the name
				break
			}
		}
		k.Name = fmt.Sprintf("%s (%d)", base, n)
	}
	joined, err := t.join(ctx, c, []domain.CollectionID{k.ID}, users)
	c.TouchUsers(t.keysOf(joined)...)
	return k, err
}
