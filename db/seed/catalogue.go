package seed

import (
	"context"
	"fmt"
	"net/mail"

	"partnerapi/db"
	"partnerapi/db/pg"
	"partnerapi/domain"
)

// courseSpec is a course at its place in a program, or asked for by a framework.
type courseSpec struct {
	Framework    string // empty in a program
	CourseID     domain.CourseID
	Position     int
	DueAfterDays int
	Role         domain.Role // whose users a framework asks for it; empty for everybody's
	Months       int         // until it is to be repeated
}

// frameworkPosition is the first position of the courses that frameworks require, after
// those of any program.
const frameworkPosition = 1000

// catalogue is what all clients share.
type catalogue struct {
	program   []courseSpec
	required  map[string][]courseSpec // by framework
	templates map[domain.Language][]*template
	breaches  []db.BreachRow
}

// template is one of the service's own templates of simulated mails, as far as
// results and sent mails show it.
type template struct {
	id            domain.TemplateID
	from, subject string
}

// readCatalogue reads the courses of the database, and adds this package's
// breaches where they are missing.
func readCatalogue(ctx context.Context, d *db.DB) (c *catalogue, err error) {
	c = &catalogue{required: map[string][]courseSpec{}, breaches: breaches()}
	c.program, err = pg.All[courseSpec](ctx, d, "read the program", pg.SQL(`
		SELECT '' AS framework, p.course_id, p.position, p.due_after_days, '' AS role, c.renewal_months AS months
		FROM default_program AS p JOIN courses AS c ON c.id = p.course_id ORDER BY p.position`))
	if err != nil {
		return nil, err
	}
	required, err := pg.All[courseSpec](ctx, d, "read what frameworks ask for", pg.SQL(`
		SELECT f.framework_id AS framework, f.course_id, ?::integer AS position, f.due_after_days,
			coalesce(f.role, '') AS role, c.renewal_months AS months
		FROM framework_courses AS f JOIN courses AS c ON c.id = f.course_id ORDER BY f.framework_id, f.course_id`,
		frameworkPosition))
	if err != nil {
		return nil, err
	}
	for _, l := range required {
		l.Position += len(c.required[l.Framework]) // no two due on one day at one place
		c.required[l.Framework] = append(c.required[l.Framework], l)
	}
	if c.templates, err = ownTemplates(); err != nil {
		return nil, err
	}

	present, err := one[bool](ctx, d, "look for the breaches", "SELECT true FROM breaches WHERE name = ?",
		c.breaches[0].Name)
	if err == nil && !present {
		err = pg.CopyRows(ctx, d, "seed breaches", c.breaches)
	}
	return c, err
}

// ownTemplates are the service's own templates, which inTx brought up to date in the
// database.
func ownTemplates() (map[domain.Language][]*template, error) {
	own, err := db.OwnTemplates()
	templates := map[domain.Language][]*template{}
	for i := range own {
		t := &own[i]
		from, err := mail.ParseAddress(t.From)
		if err != nil {
			return nil, fmt.Errorf("the sender of the template %s: %w", t.Name, err)
		}
		templates[t.Language] = append(templates[t.Language], &template{id: t.ID, from: from.Address, subject: t.Subject})
	}
	return templates, err
}
