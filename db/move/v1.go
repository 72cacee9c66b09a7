package move

import (
	"errors"
	"fmt"
	"time"

	"partnerapi/db/pg"
)

// The rows of version 1: the numbers of a partner's objects, the phases of its retirement, and its use.

var v1Tables = []table{
	// The current and former numbers of existing objects, of deleted objects, and of deleted collections and groups
	// that a policy shows. All ids are in one list, which PostgreSQL joins with id_registry. If the condition had a
	// second part, PostgreSQL would search the list for each number. A live number has no partner, unless an older
	// import left that of a deleted object.
	{name: "id_registry", keep: true, rows: `t.id IN (
			SELECT id FROM id_registry WHERE partner_id = $partner AND retired_at IS NOT NULL UNION ALL
			SELECT id FROM clients WHERE id = ANY($clients) UNION ALL
			SELECT id FROM collections WHERE client_id = ANY($clients) UNION ALL
			SELECT id FROM groups WHERE client_id = ANY($clients) UNION ALL
			SELECT id FROM policies WHERE client_id = ANY($clients) UNION ALL
			SELECT scope_id FROM policies WHERE client_id = ANY($clients) UNION ALL
			SELECT id FROM reports WHERE client_id = ANY($clients))`, last: true},
	{name: "v1_phases", rows: "(t.partner_id = $partner OR t.key_id = ANY($keys))", last: true, order: "t.id"},
	{name: "v1_rehearsals", rows: ofKeys, last: true},
	{name: "v1_usage", rows: ofKeys},
}

var v1Extension = extension{
	table: "id_registry",
	check: func(m *Move, source, target side, o ownedIDs) error {
		return errors.Join(m.checkNumbers(source, target, o), checkRetirement(source, target))
	},
	note:     (*Move).noteRetirement,
	activate: (*Move).carryAnnouncement,
}

// retirement is the state of the retirement of version 1 in a cell.
type retirement struct{ AnnouncedAt, SunsetAt, EndedAt *time.Time }

func (r retirement) announced() bool { return r.AnnouncedAt != nil }

func (r retirement) announcement() string {
	return fmt.Sprintf("announced on %s, sunset on %s", r.AnnouncedAt.UTC().Format(time.RFC3339), r.SunsetAt.UTC().Format(time.RFC3339))
}

// retirement reads the state of the retirement of version 1.
func (s side) retirement() (retirement, error) {
	return pg.One[retirement](s.ctx, s.DB, "read the retirement of version 1", pg.SQL("SELECT announced_at, sunset_at, ended_at FROM v1_state"))
}

// checkRetirement returns an error if the new cell has ended version 1 and the old cell has not, or if the new cell has
// announced an end of version 1 that the old cell has not announced, or has announced for another time.
func checkRetirement(source, target side) error {
	a, err := source.retirement()
	if err != nil {
		return err
	}
	b, err := target.retirement()
	switch {
	case err != nil:
		return err
	case b.EndedAt != nil && a.EndedAt == nil:
		return errors.New("version 1 has ended in the new cell but not in this cell")
	case !a.announced() && b.announced():
		return fmt.Errorf("the end of version 1 is announced in the new cell (%s) but not in this cell; announce it here too, or cancel it there",
			b.announcement())
	case a.announced() && b.announced() && (!a.AnnouncedAt.Equal(*b.AnnouncedAt) || !a.SunsetAt.Equal(*b.SunsetAt)):
		return fmt.Errorf("the end of version 1 in the new cell (%s) differs from this cell's (%s); make them the same "+
			"with partnerapi v1 cancel, announce and postpone", b.announcement(), a.announcement())
	}
	return nil
}

// noteRetirement returns a note that the new cell will take over the old cell's announcement of the end of version 1.
// It is empty if the old cell has none, or the new cell has one already.
func (m *Move) noteRetirement(source, target side) (string, error) {
	a, err := source.retirement()
	if err != nil || !a.announced() {
		return "", err
	}
	b, err := target.retirement()
	if err != nil || b.announced() {
		return "", err
	}
	return fmt.Sprintf("the new cell has announced no end of version 1, so it adopts this cell's announcement (%s) for all of its partners", a.announcement()), nil
}

// carryAnnouncement announces the end of version 1 in the new cell, if only the old cell has announced it. It first
// locks the row of v1_state, as all changes of it do, and repeats checkRetirement.
func (m *Move) carryAnnouncement(source, target side) error {
	if err := pg.Run(target.ctx, m.To, "lock the retirement of version 1", pg.SQL("SELECT FROM v1_state FOR UPDATE")); err != nil {
		return err
	}
	if err := checkRetirement(source, target); err != nil {
		return err
	}
	a, err := source.retirement()
	if err != nil || !a.announced() {
		return err
	}
	n, err := pg.Exec(target.ctx, m.To, "announce the end of version 1", pg.SQL(
		"UPDATE v1_state SET announced_at = ?, sunset_at = ? WHERE announced_at IS NULL", *a.AnnouncedAt, *a.SunsetAt))
	if err == nil && n > 0 {
		err = pg.Run(target.ctx, m.To, "notify of the announcement", pg.SQL("NOTIFY v1_retirement"))
	}
	return err
}

// checkNumbers compares the numbers of version 1. It returns an error if a number of one of the partner's objects
// belongs to another object in the new cell, or if a template that the partner uses has another number there.
func (m *Move) checkNumbers(source, target side, o ownedIDs) error {
	t := tableByName("id_registry")
	type entry struct {
		Kind, ID string
		Number   int
	}
	list := func(where string) (pg.Named, error) {
		var kinds, ids []string
		var numbers []int
		rows, err := pg.All[entry](source.ctx, m.From, "list numbers", pg.Raw("SELECT t.kind, t.id::text AS id, t.number FROM id_registry AS t WHERE "+where, nil))
		for _, r := range rows {
			kinds, ids, numbers = append(kinds, r.Kind), append(ids, r.ID), append(numbers, r.Number)
		}
		return pg.Named{"kinds": kinds, "ids": ids, "numbers": numbers}, err
	}
	const join = " FROM unnest(?kinds::text[], ?ids::uuid[], ?numbers::integer[]) AS w (kind, id, number) JOIN id_registry AS r ON "

	values, err := list(o.condition(t))
	if err != nil {
		return err
	}
	taken, err := pg.One[int](target.ctx, m.To, "look for numbers that are taken", pg.SQL(
		"SELECT count(*)"+join+"r.kind = w.kind AND r.number = w.number AND r.id <> w.id", values))
	if err != nil {
		return err
	}
	if taken > 0 {
		return fmt.Errorf("in the new cell, imports assigned %d of the partner's numeric IDs in version 1 to other objects", taken)
	}

	values, err = list("t.kind = 'template' AND t.retired_at IS NULL AND t.id IN (SELECT template_id FROM phishing_results AS t WHERE " + o.condition(tableByName("phishing_results")) + ")")
	if err != nil {
		return err
	}
	other, err := pg.One[int](target.ctx, m.To, "compare the numbers of templates", pg.SQL(
		"SELECT count(*)"+join+"r.kind = w.kind AND r.id = w.id AND r.retired_at IS NULL AND r.number <> w.number", values))
	if err == nil && other > 0 {
		err = fmt.Errorf("%d templates that the partner uses have different numeric IDs in version 1 of the new cell; copy this cell's numeric IDs "+
			"with partnerapi idmap export and idmap import", other)
	}
	return err
}
