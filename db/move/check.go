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

// catalogues are the tables that an operator imports into each cell, with partners' columns that refer to their keys.
var catalogues = []struct {
	noun, table, key string
	referred         []reference
}{
	{"course", "courses", "id", []reference{
		{"assignments", "course_id"}, {"program_courses", "course_id"}, {"waiting_assignments", "course_id"}}},
	{"template", "phishing_templates", "id", []reference{{"phishing_results", "template_id"}, {"template_uses", "template_id"}}},
	{"breach", "breaches", "name", []reference{{"exposures", "breach_name"}}},
	{"framework's course", "framework_courses", "framework_id", []reference{{"framework_assignments", "framework_id"}}},
}

// reference is a column that refers to a row of a catalogue.
type reference struct{ table, column string }

// maxListed bounds the missing objects that an error names.
const maxListed = 10

// checkCatalogues returns an error that lists the catalogue rows that the partner's rows need and the new cell lacks.
func (m *Move) checkCatalogues(source, target side, o ownedIDs) error {
	var faults []error
	for _, c := range catalogues {
		var parts []string
		for _, r := range c.referred {
			parts = append(parts, fmt.Sprintf("SELECT DISTINCT t.%s::text AS id FROM %s AS t WHERE %s", r.column, r.table, o.condition(tableByName(r.table))))
		}
		used, err := pg.All[string](source.ctx, m.From, "list the catalogue rows in use", pg.Raw(
			"SELECT n.id FROM ("+strings.Join(parts, " UNION ")+") AS n WHERE EXISTS (SELECT FROM "+c.table+" AS c WHERE c."+c.key+"::text = n.id) ORDER BY n.id", nil))
		if err != nil {
			return err
		}
		missing, err := pg.All[string](target.ctx, m.To, "look for the catalogue rows in use", pg.SQL(
			"SELECT n.id FROM unnest(?::text[]) AS n (id) WHERE NOT EXISTS (SELECT FROM "+c.table+" AS c WHERE c."+c.key+"::text = n.id)", used))
		if err != nil {
			return err
		}
		if len(missing) > 0 {
			faults = append(faults, fmt.Errorf("the new cell's catalog lacks objects that the partner uses (%d of the kind %s): %s; import them there first",
				len(missing), c.noun, strings.Join(missing[:min(len(missing), maxListed)], ", ")))
		}
	}
	return errors.Join(faults...)
}

// tableByName returns the entry of tables with a name. It panics if there is none.
func tableByName(name string) table {
	return tables[slices.IndexFunc(tables, func(t table) bool { return t.name == name })]
}

// extension holds the additions of an optional part of the program to a move. They apply if both cells have table.
// note returns a text for the operator, which may be empty. activate runs in the last transaction.
type extension struct {
	table    string
	check    func(m *Move, source, target side, o ownedIDs) error
	note     func(m *Move, source, target side) (string, error)
	activate func(m *Move, source, target side) error
}

var allExtensions = []extension{
	v1Extension, // v1-line
}

// extensions returns the extensions whose tables both cells have.
func (m *Move) extensions() []extension {
	return slices.DeleteFunc(slices.Clone(allExtensions), func(x extension) bool {
		return !slices.ContainsFunc(m.tables, func(s shapedTable) bool { return s.name == x.table })
	})
}

// Check returns all reasons why the partner cannot be moved, joined, or nil. It changes nothing in the databases.
func (m *Move) Check(ctx context.Context) error {
	_, cellsErr := m.readCells(ctx)
	roleErr := m.To.DryRun(ctx, func(ctx context.Context) error { return disableTriggers(side{ctx: ctx, DB: m.To}) })
	keysErr := m.checkKeys(ctx, ctx) // ctx is for both databases, because it has no transaction
	return errors.Join(cellsErr, m.checkSteps(ctx), roleErr, m.checkName(ctx), keysErr, m.checkRows(ctx))
}

// DryRun calls Check, checks that no other command moves the partner, and returns the notes of extensions. If the
// cells have different tables there are no notes.
func (m *Move) DryRun(ctx context.Context) (notes []string, err error) {
	err = m.Check(ctx)
	// If both cells are one database, the second lock always fails: Check reports that case.
	if lockErr := m.withLock(ctx, func(context.Context) error { return nil }); m.From != m.To && lockErr != nil {
		err = errors.Join(err, lockErr)
	}
	if m.tables != nil {
		var notesErr error
		notes, notesErr = m.notes(ctx)
		err = errors.Join(err, notesErr)
	}
	return notes, err
}

// notes returns what the extensions tell the operator of the move. Check must have set m.tables.
func (m *Move) notes(ctx context.Context) (texts []string, err error) {
	for _, x := range m.extensions() {
		text, err := x.note(m, side{ctx: ctx, DB: m.From}, side{ctx: ctx, DB: m.To})
		if err != nil {
			return texts, err
		}
		if text != "" {
			texts = append(texts, text)
		}
	}
	return texts, nil
}

// checkRows returns the reasons why the partner's rows cannot be copied, joined. It sets m.tables if both cells have
// the same tables, and to nil otherwise.
func (m *Move) checkRows(ctx context.Context) (err error) {
	if m.tables, err = shapes(ctx, m.From, tables); err != nil {
		return err
	}
	if err := m.checkShapes(ctx); err != nil {
		m.tables = nil
		return err
	}
	o, err := readOwnedIDs(ctx, m.From, m.Partner)
	if err != nil {
		return err
	}
	source, target := side{ctx: ctx, DB: m.From}, side{ctx: ctx, DB: m.To}
	faults := []error{m.checkCatalogues(source, target, o)}
	for _, x := range m.extensions() {
		faults = append(faults, x.check(m, source, target, o))
	}
	return errors.Join(faults...)
}

var (
	errNotServedByOld = errors.New("this cell does not serve the partner; partnerapi move status shows which cell does")
	errServedByNew    = errors.New("the new cell already serves the partner or is moving it elsewhere; run the move from there")
)

// checkSteps returns errNotServedByOld, errServedByNew or both if start would refuse the move because of a cell's step.
// A move that only has to be detached is allowed.
func (m *Move) checkSteps(ctx context.Context) error {
	var steps [2]Step // of the old and the new cell; empty without a row
	for i, d := range []*db.DB{m.From, m.To} {
		found, err := pg.All[Step](ctx, d, "look at the move", pg.SQL("SELECT step FROM moves WHERE partner_id = ?", m.Partner))
		if err != nil {
			return err
		}
		if len(found) > 0 {
			steps[i] = found[0]
		}
	}
	if steps[1] == Active && slices.Contains([]Step{Frozen, HandingOver, Detached, Cleaned}, steps[0]) {
		return nil // only detach remains to be done
	}
	var faults []error
	if slices.Contains([]Step{Detached, Cleaned, Arriving}, steps[0]) {
		faults = append(faults, errNotServedByOld)
	}
	if slices.Contains([]Step{Active, Copying, Frozen, HandingOver}, steps[1]) {
		faults = append(faults, errServedByNew)
	}
	return errors.Join(faults...)
}

// checkKeys returns an error if the partner's secrets cannot be sealed for the new cell (CheckKeys, if not nil). The
// contexts are for the databases of the old and the new cell, and may hold their transactions.
func (m *Move) checkKeys(source, target context.Context) error {
	if m.CheckKeys == nil {
		return nil
	}
	o, err := readOwnedIDs(source, m.From, m.Partner)
	if err != nil {
		return err
	}
	var parts []string
	for _, c := range db.SealedColumns {
		parts = append(parts, "EXISTS (SELECT FROM "+c.Table+" AS t WHERE "+c.HoldsSecret()+" AND "+o.condition(tableByName(c.Table))+")")
	}
	secrets, err := pg.One[bool](source, m.From, "look for the partner's secrets", pg.Raw("SELECT "+strings.Join(parts, " OR "), nil))
	if err != nil {
		return err
	}
	return m.CheckKeys(source, target, secrets)
}

// checkShapes returns errOtherTables if the tables or columns of a cell differ from m.tables. copyDifferences calls it
// again, because a migration may have run since Check.
func (m *Move) checkShapes(ctx context.Context) error {
	for _, d := range []*db.DB{m.From, m.To} {
		existing, err := shapes(ctx, d, tables)
		if err != nil {
			return err
		}
		if !slices.EqualFunc(m.tables, existing, func(a, b shapedTable) bool { return a.name == b.name && slices.Equal(a.columns, b.columns) }) {
			return errOtherTables
		}
	}
	return nil
}

// checkName returns an error if another partner of the new cell has the partner's name.
func (m *Move) checkName(ctx context.Context) error {
	name, err := pg.One[string](ctx, m.From, "read the partner's name", pg.SQL("SELECT name_key FROM partners WHERE id = ?", m.Partner))
	if err != nil {
		return err
	}
	taken, err := pg.One[bool](ctx, m.To, "look for the partner's name", pg.SQL(
		"SELECT EXISTS (SELECT FROM partners WHERE name_key = ? AND id <> ?)", name, m.Partner))
	if err == nil && taken {
		err = errors.New("the new cell has another partner with this name; rename one of them with partnerapi partners rename")
	}
	return err
}

// Size is the number of rows of a table that a move copies.
type Size struct {
	Table string
	Rows  int64
}

// Sizes counts the partner's rows in each table of the old cell, for a dry run.
func (m *Move) Sizes(ctx context.Context) (sizes []Size, err error) {
	o, err := readOwnedIDs(ctx, m.From, m.Partner)
	if err != nil {
		return nil, err
	}
	existing, err := shapes(ctx, m.From, tables)
	if err != nil {
		return nil, err
	}
	for _, t := range existing {
		n, err := pg.One[int64](ctx, m.From, "count "+t.name, pg.Raw("SELECT count(*) FROM "+t.name+" AS t WHERE "+o.condition(t.table), nil))
		if err != nil {
			return nil, err
		}
		sizes = append(sizes, Size{t.name, n})
	}
	return sizes, nil
}
