package move

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"partnerapi/db"
	"partnerapi/db/pg"
)

// catalogues are what the operator brings into each cell, and partners' objects name: by
// the table's key, and the rows of partners that name it.
var catalogues = []struct {
	noun, table, key string
	named            []naming
}{
	{"course", "courses", "id", []naming{
		{"assignments", "course_id"}, {"program_courses", "course_id"}, {"waiting_assignments", "course_id"}}},
	{"template", "phishing_templates", "id", []naming{{"phishing_results", "template_id"}, {"template_uses", "template_id"}}},
	{"breach", "breaches", "name", []naming{{"exposures", "breach_name"}}},
	{"framework's course", "framework_courses", "framework_id", []naming{{"framework_assignments", "framework_id"}}},
}

// naming is a column that names an object of a catalogue.
type naming struct{ table, column string }

// shown is how many of what is missing are named.
const shown = 10

// checkCatalogues reports an error that names what the new cell lacks.
func (m *Move) checkCatalogues(old, now side, o owned) error {
	var faults []error
	for _, c := range catalogues {
		var parts []string
		for _, n := range c.named {
			parts = append(parts, fmt.Sprintf("SELECT DISTINCT t.%s::text AS id FROM %s AS t WHERE %s", n.column, n.table, o.condition(tableCalled(n.table))))
		}
		text := strings.Join(parts, " UNION ")
		named, err := pg.All[string](old.ctx, m.From, "list what is named of catalogues", pg.Raw(
			"SELECT n.id FROM ("+text+") AS n WHERE EXISTS (SELECT FROM "+c.table+" AS c WHERE c."+c.key+"::text = n.id) ORDER BY n.id", nil))
		if err != nil {
			return err
		}
		missing, err := pg.All[string](now.ctx, m.To, "look for what is named of catalogues", pg.SQL(
			"SELECT n.id FROM unnest(?::text[]) AS n (id) WHERE NOT EXISTS (SELECT FROM "+c.table+" AS c WHERE c."+c.key+"::text = n.id)", named))
		if err != nil {
			return err
		}
		if len(missing) > 0 {
			faults = append(faults, fmt.Errorf("the new cell lacks %d of the catalogue that the partner's objects name, each a %s: %s; import them there first",
				len(missing), c.noun, strings.Join(missing[:min(len(missing), shown)], ", ")))
		}
	}
	return errors.Join(faults...)
}

func tableCalled(name string) table {
	return tables[slices.IndexFunc(tables, func(t table) bool { return t.name == name })]
}

// checks, notes and activations are those that parts of the program add which can be
// deleted; see v1.go. A note is said to the operator, and an activation is part of the last
// transaction.
var (
	checks      []func(m *Move, old, now side, o owned) error
	notes       []func(m *Move, old, now side, o owned) (string, error)
	activations []func(m *Move, old, now side) error
)

// Check reports everything that keeps the partner from being moved. It changes nothing.
func (m *Move) Check(ctx context.Context) error {
	_, cells := m.cells(ctx)
	role := m.To.DryRun(ctx, func(ctx context.Context) error { return replaceAs(side{ctx: ctx, DB: m.To}) })
	return errors.Join(cells, m.checkSteps(ctx), role, m.checkName(ctx), m.checkKeys(ctx, ctx), m.checkRows(ctx))
}

// DryRun is Check for an operator: it also looks whether another command moves the partner,
// and returns what is to be known of the move beside.
func (m *Move) DryRun(ctx context.Context) (notes []string, err error) {
	err = m.Check(ctx)
	if alone := m.alone(ctx, func(context.Context) error { return nil }); m.From != m.To && alone != nil {
		err = errors.Join(err, alone)
	}
	if m.tables != nil {
		var noting error
		notes, noting = m.notes(ctx)
		err = errors.Join(err, noting)
	}
	return notes, err
}

// notes is what is to be known of the move, after Check.
func (m *Move) notes(ctx context.Context) (said []string, err error) {
	o, err := ownedBy(ctx, m.From, m.Partner)
	if err != nil {
		return nil, err
	}
	for _, note := range notes {
		text, err := note(m, side{ctx: ctx, DB: m.From}, side{ctx: ctx, DB: m.To}, o)
		if err != nil {
			return said, err
		}
		if text != "" {
			said = append(said, text)
		}
	}
	return said, nil
}

// checkRows reports what is in the way of the partner's rows. It notes the tables of both
// cells, where they are the same.
func (m *Move) checkRows(ctx context.Context) (err error) {
	if m.tables, err = shapes(ctx, m.From, tables); err != nil {
		return err
	}
	if err := m.checkShapes(ctx); err != nil {
		m.tables = nil
		return err
	}
	o, err := ownedBy(ctx, m.From, m.Partner)
	if err != nil {
		return err
	}
	old, now := side{ctx: ctx, DB: m.From}, side{ctx: ctx, DB: m.To}
	faults := []error{m.checkCatalogues(old, now, o)}
	for _, check := range checks {
		faults = append(faults, check(m, old, now, o))
	}
	return errors.Join(faults...)
}

var (
	errNotHere = errors.New("this cell does not serve the partner: the command move status says which one does")
	errThere   = errors.New("the new cell serves the partner, or moves it on: run the move from there")
)

// checkSteps reports that a cell has another part in a move of the partner; see begin.
func (m *Move) checkSteps(ctx context.Context) error {
	var steps [2]Step
	for i, d := range []*db.DB{m.From, m.To} {
		found, err := pg.All[Step](ctx, d, "look at the move", pg.SQL("SELECT step FROM moves WHERE partner_id = ?", m.Partner))
		if err != nil {
			return err
		}
		if len(found) > 0 {
			steps[i] = found[0]
		}
	}
	if steps[1] == Here && slices.Contains([]Step{Holding, Handing, Gone, Cleaned}, steps[0]) {
		return nil // all that is left is to note here that it has gone
	}
	var faults []error
	if slices.Contains([]Step{Gone, Cleaned, Arriving}, steps[0]) {
		faults = append(faults, errNotHere)
	}
	if slices.Contains([]Step{Here, Copying, Holding, Handing}, steps[1]) {
		faults = append(faults, errThere)
	}
	return errors.Join(faults...)
}

// checkKeys reports that the partner's secrets cannot be sealed for the new cell. The
// contexts are of the two cells, and may have transactions of theirs.
func (m *Move) checkKeys(old, now context.Context) error {
	if m.CheckKeys == nil {
		return nil
	}
	o, err := ownedBy(old, m.From, m.Partner)
	if err != nil {
		return err
	}
	var parts []string
	for _, c := range db.SealedColumns {
		parts = append(parts, "EXISTS (SELECT FROM "+c.Table+" AS t WHERE t."+c.Column+" IS NOT NULL AND "+o.condition(tableCalled(c.Table))+")")
	}
	secrets, err := pg.One[bool](old, m.From, "look for the partner's secrets", pg.Raw("SELECT "+strings.Join(parts, " OR "), nil))
	if err != nil {
		return err
	}
	return m.CheckKeys(old, now, secrets)
}

// checkShapes reports that a cell's tables are others than those that are copied: a
// migration may have come since Check.
func (m *Move) checkShapes(ctx context.Context) error {
	for _, d := range []*db.DB{m.From, m.To} {
		there, err := shapes(ctx, d, tables)
		if err != nil {
			return err
		}
		if !slices.EqualFunc(m.tables, there, func(a, b shaped) bool { return a.name == b.name && slices.Equal(a.columns, b.columns) }) {
			return errOtherTables
		}
	}
	return nil
}

// checkName reports that another partner of the new cell has the partner's name.
func (m *Move) checkName(ctx context.Context) error {
	name, err := pg.One[string](ctx, m.From, "read the partner's name", pg.SQL("SELECT name_key FROM partners WHERE id = ?", m.Partner))
	if err != nil {
		return err
	}
	taken, err := pg.One[bool](ctx, m.To, "look for the partner's name", pg.SQL(
		"SELECT EXISTS (SELECT FROM partners WHERE name_key = ? AND id <> ?)", name, m.Partner))
	if err == nil && taken {
		err = fmt.Errorf("the new cell has another partner of this name")
	}
	return err
}

// Size is how much of a table a move brings over.
type Size struct {
	Table string
	Rows  int64
}

// Sizes counts the partner's rows, for a dry run.
func (m *Move) Sizes(ctx context.Context) (sizes []Size, err error) {
	o, err := ownedBy(ctx, m.From, m.Partner)
	if err != nil {
		return nil, err
	}
	there, err := shapes(ctx, m.From, tables)
	if err != nil {
		return nil, err
	}
	for _, t := range there {
		n, err := pg.One[int64](ctx, m.From, "count "+t.name, pg.Raw("SELECT count(*) FROM "+t.name+" AS t WHERE "+o.condition(t.table), nil))
		if err != nil {
			return nil, err
		}
		sizes = append(sizes, Size{t.name, n})
	}
	return sizes, nil
}
