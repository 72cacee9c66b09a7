package db

import (
	"context"
	"fmt"

	"partnerapi/db/pg"
	"partnerapi/domain"
)

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
