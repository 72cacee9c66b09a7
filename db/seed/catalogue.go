package seed

import (
	"context"
	"fmt"
	"net/mail"

	"github.com/jackc/pgx/v5"

	"partnerapi/db"
	"partnerapi/domain"
)

// courseSpec is a course at its place in a program, or asked for by a framework.
type courseSpec struct {
	course   domain.CourseID
	position int
	dueAfter int         // days
	role     domain.Role // whose users a framework asks for it; empty for everybody's
	months   int         // until it is to be repeated
}

// frameworkPosition is the place of the courses that frameworks ask for, after
// those of any program.
const frameworkPosition = 1000

// catalogue is what all clients share.
type catalogue struct {
	program   []courseSpec
	required  map[string][]courseSpec // by framework
	templates map[domain.Language][]*template
	breaches  []breach
}

// template is one of the service's own templates of simulated mails, as far as
// results and sent mails show it.
type template struct {
	id            domain.TemplateID
	from, subject string
}

// readCatalogue reads the courses of the database, and adds this package's
// breaches where they are missing.
func readCatalogue(ctx context.Context, tx pgx.Tx) (*catalogue, error) {
	c := &catalogue{required: map[string][]courseSpec{}, templates: map[domain.Language][]*template{},
		breaches: breaches()}
	err := forEachCourse(ctx, tx, `
		SELECT '', p.course_id::text, p.position, p.due_after_days, c.renewal_months, ''
		FROM default_program AS p JOIN courses AS c ON c.id = p.course_id ORDER BY p.position`,
		func(_ string, l courseSpec) { c.program = append(c.program, l) })
	if err != nil {
		return nil, fmt.Errorf("read the program: %w", err)
	}
	err = forEachCourse(ctx, tx, `
		SELECT f.framework_id, f.course_id::text, $1::integer, f.due_after_days, c.renewal_months, coalesce(f.role, '')
		FROM framework_courses AS f JOIN courses AS c ON c.id = f.course_id ORDER BY f.framework_id, f.course_id`,
		func(framework string, l courseSpec) {
			l.position += len(c.required[framework]) // no two due on one day at one place
			c.required[framework] = append(c.required[framework], l)
		}, frameworkPosition)
	if err != nil {
		return nil, fmt.Errorf("read what frameworks ask for: %w", err)
	}
	if err := c.readTemplates(); err != nil {
		return nil, err
	}
	return c, c.addBreaches(ctx, tx)
}

// readTemplates takes the service's own templates, which inTx brought up to
// date in the database.
func (c *catalogue) readTemplates() error {
	own, err := db.OwnTemplates()
	if err != nil {
		return err
	}
	for i := range own {
		t := &own[i]
		from, err := mail.ParseAddress(t.From)
		if err != nil {
			return fmt.Errorf("the sender of the template %s: %w", t.Name, err)
		}
		c.templates[t.Language] = append(c.templates[t.Language], &template{id: t.ID, from: from.Address, subject: t.Subject})
	}
	return nil
}

func forEachCourse(ctx context.Context, tx pgx.Tx, query string, do func(framework string, l courseSpec),
	args ...any) error {
	rows, err := tx.Query(ctx, query, args...)
	if err != nil {
		return err
	}
	var framework, course string
	var l courseSpec
	_, err = pgx.ForEachRow(rows, []any{&framework, &course, &l.position, &l.dueAfter, &l.months, &l.role}, func() (err error) {
		l.course, err = domain.ParseUUID[domain.CourseKind](course)
		do(framework, l)
		return err
	})
	return err
}

func (c *catalogue) addBreaches(ctx context.Context, tx pgx.Tx) error {
	var present bool
	err := tx.QueryRow(ctx, "SELECT EXISTS (SELECT FROM breaches WHERE name = $1)", c.breaches[0].name).Scan(&present)
	if err != nil {
		return fmt.Errorf("look for the breaches: %w", err)
	}
	if present {
		return nil
	}
	w := &writer{tx: tx}
	w.copy(ctx, "breaches", "name title domain breach_on severity data_classes spam_list",
		each(c.breaches, func(b breach) []any {
			return []any{b.name, b.title, nullText(b.domain), nullDate(b.on), string(b.severity), b.classes, b.spam}
		}))
	return w.err
}
