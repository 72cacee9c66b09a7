package seed

import (
	"context"
	"fmt"
	"net/mail"

	"partnerapi/db"
	"partnerapi/db/pg"
	"partnerapi/domain"
)

// courseSpec is a course of the default program, or a course that a framework requires.
type courseSpec struct {
	Framework    string // empty in the program
	CourseID     domain.CourseID
	Position     int
	DueAfterDays int
	Role         domain.Role // the role for which a framework requires it; empty for all
	Months       int         // its renewal time; 0 for none
}

// frameworkPosition is the first position of the courses that frameworks require, after those of the program.
const frameworkPosition = 1000

// catalogue is the data that all clients share.
type catalogue struct {
	program   []courseSpec
	required  map[string][]courseSpec // by framework
	templates map[domain.Language][]*template
	breaches  []db.BreachRow
}

// template is one of the service's own templates, with the fields that results and sent emails need.
type template struct {
	id            domain.TemplateID
	from, subject string
}

// readCatalogue reads the courses of the database and the service's own templates, and inserts this package's breaches
// if they are missing.
func readCatalogue(ctx context.Context, d *db.DB) (c *catalogue, err error) {
	c = &catalogue{required: map[string][]courseSpec{}, breaches: breaches()}
	c.program, err = pg.All[courseSpec](ctx, d, "read the program", pg.SQL(`
		SELECT '' AS framework, p.course_id, p.position, p.due_after_days, '' AS role, c.renewal_months AS months
		FROM default_program AS p JOIN courses AS c ON c.id = p.course_id ORDER BY p.position`))
	if err != nil {
		return nil, err
	}
	required, err := pg.All[courseSpec](ctx, d, "read the courses of frameworks", pg.SQL(`
		SELECT f.framework_id AS framework, f.course_id, ?::integer AS position, f.due_after_days,
			coalesce(f.role, '') AS role, c.renewal_months AS months
		FROM framework_courses AS f JOIN courses AS c ON c.id = f.course_id ORDER BY f.framework_id, f.course_id`,
		frameworkPosition))
	if err != nil {
		return nil, err
	}
	for _, spec := range required {
		spec.Position += len(c.required[spec.Framework]) // unique, to order courses that are due on one day
		c.required[spec.Framework] = append(c.required[spec.Framework], spec)
	}
	if c.templates, err = ownTemplates(); err != nil {
		return nil, err
	}

	// All breaches are present if the first one is.
	present, err := pg.One[bool](ctx, d, "look for the breaches", pg.SQL(
		"SELECT EXISTS (SELECT FROM breaches WHERE name = ?)", c.breaches[0].Name))
	if err == nil && !present {
		err = pg.CopyRows(ctx, d, "seed breaches", c.breaches)
	}
	return c, err
}

// ownTemplates returns the service's own templates by language, without those that only version 1.0 had (they have no
// cues). inTx has loaded them into the database.
func ownTemplates() (map[domain.Language][]*template, error) {
	own, err := db.OwnTemplates()
	if err != nil {
		return nil, err
	}
	templates := map[domain.Language][]*template{}
	for i := range own {
		t := &own[i]
		if db.TemplateCues(t.ID, t.Language) == nil {
			continue
		}
		from, err := mail.ParseAddress(t.From)
		if err != nil {
			return nil, fmt.Errorf("the sender of the template %s: %w", t.Name, err)
		}
		templates[t.Language] = append(templates[t.Language], &template{id: t.ID, from: from.Address, subject: t.Subject})
	}
	return templates, nil
}
