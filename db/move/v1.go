package move

import (
	"fmt"
	"slices"

	"partnerapi/db/pg"
)

// What version 1 keeps of a partner: numbers, how far its retirement is, and its use.

func init() {
	tables = append(tables,
		// Numbers of objects that are there, those that these had before, and those of the
		// collections and groups that are gone and a policy still shows.
		table{name: "id_registry", kept: true, rows: `t.id IN (
			SELECT id FROM clients WHERE id = ANY($clients) UNION ALL
			SELECT id FROM collections WHERE client_id = ANY($clients) UNION ALL
			SELECT id FROM groups WHERE client_id = ANY($clients) UNION ALL
			SELECT id FROM policies WHERE client_id = ANY($clients) UNION ALL
			SELECT scope_id FROM policies WHERE client_id = ANY($clients) UNION ALL
			SELECT id FROM reports WHERE client_id = ANY($clients))`, last: true},
		table{name: "v1_phases", rows: "(t.partner_id = $partner OR t.key_id = ANY($keys))", last: true},
		table{name: "v1_usage", rows: ofKeys},
	)
	checks = append(checks, (*Move).checkNumbers)
}

// checkNumbers reports numbers that the new cell has given to others, and templates that
// it has given other numbers.
func (m *Move) checkNumbers(old, now side, o owned) error {
	t := tableCalled("id_registry")
	if !slices.ContainsFunc(m.tables, func(s shaped) bool { return s.name == t.name }) {
		return nil
	}
	type entry struct {
		Kind, ID string
		Number   int
	}
	list := func(where string) (kinds, ids []string, numbers []int, err error) {
		rows, err := pg.All[entry](old.ctx, m.From, "list numbers", pg.Raw("SELECT t.kind, t.id::text AS id, t.number FROM id_registry AS t WHERE "+where, nil))
		for _, r := range rows {
			kinds, ids, numbers = append(kinds, r.Kind), append(ids, r.ID), append(numbers, r.Number)
		}
		return kinds, ids, numbers, err
	}
	const there = " FROM unnest(?0::text[], ?1::uuid[], ?2::integer[]) AS w (kind, id, number) JOIN id_registry AS r ON "

	kinds, ids, numbers, err := list(o.condition(t))
	if err != nil {
		return err
	}
	taken, err := pg.One[int](now.ctx, m.To, "look for numbers that are taken", pg.SQL(
		"SELECT count(*)"+there+"r.kind = w.kind AND r.number = w.number AND r.id <> w.id", kinds, ids, numbers))
	if err != nil {
		return err
	}
	if taken > 0 {
		return fmt.Errorf("%d numbers of version 1 that the partner's objects have are held by other objects of the new cell, as imports gave them", taken)
	}

	kinds, ids, numbers, err = list("t.kind = 'template' AND t.retired_at IS NULL AND t.id IN (SELECT template_id FROM phishing_results AS t WHERE " + o.condition(tableCalled("phishing_results")) + ")")
	if err != nil {
		return err
	}
	other, err := pg.One[int](now.ctx, m.To, "compare the numbers of templates", pg.SQL(
		"SELECT count(*)"+there+"r.kind = w.kind AND r.id = w.id AND r.retired_at IS NULL AND r.number <> w.number", kinds, ids, numbers))
	if err == nil && other > 0 {
		err = fmt.Errorf("%d templates that the partner uses have other numbers in version 1 of the new cell: give them those of this one, "+
			"with the commands idmap export and idmap import", other)
	}
	return err
}
