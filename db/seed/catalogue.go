package seed

import (
	"context"
	"fmt"
	"net/mail"

	"github.com/jackc/pgx/v5"

	"partnerapi/db"
	"partnerapi/domain"
)

// lesson is a course at its place in a program, or asked for by a framework.
type lesson struct {
	course   domain.CourseID
	position int
	dueAfter int // days
	months   int // until it is to be repeated
}

// frameworkPosition is the place of the courses that frameworks ask for, after
// those of any program.
const frameworkPosition = 1000

// catalogue is what all clients share.
type catalogue struct {
	program   []lesson
	required  map[string][]lesson // by framework
	templates map[domain.Language][]*template
	breaches  []breach
}

// openCatalogue reads the courses of the database, and adds this package's
// breaches where they are missing.
func openCatalogue(ctx context.Context, tx pgx.Tx) (*catalogue, error) {
	c := &catalogue{required: map[string][]lesson{}, templates: map[domain.Language][]*template{}, breaches: breaches()}
	err := eachLesson(ctx, tx, `
		SELECT '', p.course_id::text, p.position, p.due_after_days, c.renewal_months
		FROM default_program AS p JOIN courses AS c ON c.id = p.course_id ORDER BY p.position`,
		func(_ string, l lesson) { c.program = append(c.program, l) })
	if err != nil {
		return nil, fmt.Errorf("read the program: %w", err)
	}
	err = eachLesson(ctx, tx, `
		SELECT f.framework_id, f.course_id::text, $1::integer, f.due_after_days, c.renewal_months
		FROM framework_courses AS f JOIN courses AS c ON c.id = f.course_id ORDER BY f.framework_id, f.course_id`,
		func(framework string, l lesson) {
			l.position += len(c.required[framework]) // no two due on one day at one place
			c.required[framework] = append(c.required[framework], l)
		}, frameworkPosition)
	if err != nil {
		return nil, fmt.Errorf("read what frameworks ask for: %w", err)
	}
	if err := c.openTemplates(); err != nil {
		return nil, err
	}
	return c, c.addBreaches(ctx, tx)
}

// openTemplates takes the service's own templates, which inTx brought up to
// date in the database.
func (c *catalogue) openTemplates() error {
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

func eachLesson(ctx context.Context, tx pgx.Tx, query string, do func(framework string, l lesson), args ...any) error {
	rows, err := tx.Query(ctx, query, args...)
	if err != nil {
		return err
	}
	var framework, course string
	var l lesson
	_, err = pgx.ForEachRow(rows, []any{&framework, &course, &l.position, &l.dueAfter, &l.months}, func() (err error) {
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
	w.copy(ctx, "breaches", "name title domain breach_on severity data_classes spam_list", func(put put) {
		for i := range c.breaches {
			b := &c.breaches[i]
			put(b.name, b.title, text(b.domain), day(b.on), string(b.severity), b.classes, b.spam)
		}
	})
	return w.err
}

// breach is an invented breach of data.
type breach struct {
	name, title, domain string
	on                  domain.Date
	severity            domain.Severity
	classes             []string
	spam                bool // only a spam list
}

// breaches lists the invented breaches, of every severity.
func breaches() []breach {
	list := []struct {
		name, title, domain, on string
		spam                    bool
		classes                 []string
	}{
		{"ExampleForum", "Example Forum", "forum.example", "2021-03-14", false, []string{"Email addresses", "Passwords", "Usernames"}},
		{"ParcelPilot", "Parcel Pilot", "parcelpilot.example", "2022-07-02", false, []string{"Email addresses", "Names", "Physical addresses"}},
		{"TasteBoard", "Taste Board", "tasteboard.example", "2020-11-20", false, []string{"Email addresses", "Usernames", "IP addresses"}},
		{"MailMountain", "Mail Mountain list", "", "2023-01-09", true, []string{"Email addresses"}},
		{"QuickQuote", "Quick Quote", "quickquote.example", "2023-09-30", false, []string{"Dates of birth", "Email addresses", "Names", "Phone numbers"}},
		{"PixelPlaza", "Pixel Plaza", "pixelplaza.example", "2019-05-25", false, []string{"Email addresses", "Historical passwords", "Passwords"}},
		{"StayFinder", "Stay Finder", "stayfinder.example", "2024-02-11", false, []string{"Email addresses", "Names", "Passport numbers"}},
		{"EventBuzz", "Event Buzz", "eventbuzz.example", "2024-08-18", false, []string{"Email addresses", "Employers", "Job titles"}},
	}
	all := make([]breach, len(list))
	for i, b := range list {
		on, _ := domain.ParseDate(b.on) // the dates are those above
		all[i] = breach{name: b.name, title: b.title, domain: b.domain, on: on, classes: b.classes, spam: b.spam,
			severity: domain.SeverityOf(b.classes, false, b.spam)}
	}
	return all
}
