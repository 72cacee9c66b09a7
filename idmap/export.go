package idmap

import (
	"context"
	"encoding/csv"
	"io"
	"strconv"

	"partnerapi/db/pg"
	"partnerapi/domain"
)

// progressEvery is the number of lines between two calls of progress.
const progressEvery = 1000

// Export writes numbers in the format of Import: a header, then lines of kind,number,id, by kind and number. It skips
// tombstones, because an import would refuse them, except those that v1 still shows: a policy names its group or
// collection after that was deleted (decisions 7.6). It returns the number of lines without the header. Every
// progressEvery lines and at the end it calls progress, unless nil, with the number of lines written so far and the
// number of all lines.
//
// Without partners it writes the number of every object, with the id in the form of v2. With partners, the file is for
// another installation to which their objects have been exported: it has the objects of these partners without reports,
// which an export does not have, and all templates, with language:name as the id of an imported one, whose id differs
// there.
//
// It reads everything in one snapshot, which stays open until the last line is written.
func Export(
	ctx context.Context, d *pg.DB, partners []domain.PartnerID, to io.Writer, progress func(done, total int),
) (lines int, err error) {
	const action = "export numbers"
	if progress == nil {
		progress = func(int, int) {}
	}
	condition := pg.SQL("true")
	if len(partners) > 0 {
		condition = pg.SQL(ofPartners, pg.IDs(partners))
	}
	exported := pg.SQL(exportedNumbers, condition)
	err = d.Snapshot(ctx, func(ctx context.Context) error {
		total, err := pg.One[int](ctx, d, action, pg.SQL("SELECT count(*) FROM (?) AS e", exported))
		if err != nil {
			return err
		}
		out := csv.NewWriter(to)
		if err := out.Write([]string{"kind", "number", "id"}); err != nil {
			return err
		}
		for r, err := range pg.Each[exportedNumber](ctx, d, action, pg.SQL("? ORDER BY kind, number", exported)) {
			if err != nil {
				return err
			}
			id, err := r.shownID(len(partners) > 0)
			if err != nil {
				return err
			}
			if err := out.Write([]string{r.Kind, strconv.FormatInt(r.Number, 10), id}); err != nil {
				return err
			}
			if lines++; lines%progressEvery == 0 {
				progress(lines, total)
			}
		}
		progress(lines, total)
		out.Flush()
		return out.Error()
	})
	return lines, err
}

// exportedNumbers selects the numbers that match a condition on the registry, alias r, and that v1 shows.
const exportedNumbers = `
	SELECT r.kind, r.number, r.id, t.language, t.name FROM id_registry AS r
	LEFT JOIN phishing_templates AS t ON r.kind = 'template' AND t.id = r.id AND NOT t.own
	WHERE (r.retired_at IS NULL OR ` + shownTombstone + `) AND ?`

// shownTombstone is the condition that an entry of the registry, alias r, is the last number of a deleted group or
// collection that a policy names. v1 shows such a number, as that of the policy's scope.
const shownTombstone = `r.retired_at IS NOT NULL
	AND (r.kind, r.id) IN (SELECT ` + scopeKind + `, p.scope_id FROM policies AS p WHERE p.scope_type <> 'tenant')
	AND NOT EXISTS (SELECT FROM id_registry AS later WHERE later.kind = r.kind AND later.id = r.id
		AND (later.retired_at IS NULL OR later.retired_at > r.retired_at))`

// scopeKind is the kind of the object that a policy, alias p, is for.
const scopeKind = `CASE p.scope_type WHEN 'collection' THEN 'collection' ELSE 'group' END`

// ofPartners is the condition that an entry of the registry, alias r, is of a template or of an object of the partners ?
// that an export of objects has, or is the scope of such a policy.
const ofPartners = `CASE r.kind
	WHEN 'client' THEN r.id IN (SELECT id FROM clients WHERE partner_id = ANY(?0::uuid[]))
	WHEN 'policy' THEN r.id IN (SELECT p.id FROM policies AS p JOIN clients AS c ON c.id = p.client_id
		WHERE c.partner_id = ANY(?0::uuid[]))
	WHEN 'collection' THEN r.id IN (SELECT o.id FROM collections AS o JOIN clients AS c ON c.id = o.client_id
		WHERE c.partner_id = ANY(?0::uuid[])
		UNION SELECT p.scope_id FROM policies AS p JOIN clients AS c ON c.id = p.client_id
		WHERE c.partner_id = ANY(?0::uuid[]))
	WHEN 'group' THEN r.id IN (SELECT o.id FROM groups AS o JOIN clients AS c ON c.id = o.client_id
		WHERE c.partner_id = ANY(?0::uuid[])
		UNION SELECT p.scope_id FROM policies AS p JOIN clients AS c ON c.id = p.client_id
		WHERE c.partner_id = ANY(?0::uuid[]))
	ELSE r.kind = 'template' END`

// exportedNumber is a row of exportedNumbers. Language and Name are those of an imported template.
type exportedNumber struct {
	Kind           string
	Number         int64
	ID             anyID
	Language, Name *string
}

// shownID returns the id as the file has it: in the form of v2 or, with byName, the name of an imported template.
func (r *exportedNumber) shownID(byName bool) (string, error) {
	if byName && r.Name != nil {
		return *r.Language + nameSeparator + *r.Name, nil
	}
	kind, err := ParseKind(r.Kind)
	if err != nil {
		return "", err
	}
	return kindInfos[kind].show(UUID(r.ID)), nil
}
