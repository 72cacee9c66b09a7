package database

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"partnerapi/cmd/internal/cli"
	"partnerapi/cmd/internal/output"
	"partnerapi/db"
	"partnerapi/db/pg"
	"partnerapi/domain"
)

// WithClient opens the database and runs work with the named client.
func (f Flags) WithClient(ctx context.Context, s cli.Env, name string, work func(*db.DB, db.ClientName) error) error {
	return f.With(ctx, s, func(d *db.DB) error {
		client, err := FindClient(ctx, d, domain.PartnerID{}, name)
		if err != nil {
			return err
		}
		return work(d, client)
	})
}

// WithPartner opens the database and runs work with the named partner; the only one if name is empty.
func (f Flags) WithPartner(ctx context.Context, s cli.Env, name string, work func(*db.DB, domain.PartnerID) error) error {
	return f.With(ctx, s, func(d *db.DB) error {
		partner, err := FindPartner(ctx, d, name)
		if err != nil {
			return err
		}
		return work(d, partner)
	})
}

// FindClient finds a client that is not archived by id (v2's form or a UUID) or by name: one of partner or, if that is
// zero, of any. The error about an ambiguous name lists the ids; that about an unknown name suggests the most similar one.
func FindClient(ctx context.Context, d *db.DB, partner domain.PartnerID, text string) (db.ClientName, error) {
	id, _ := ParseClientID(text) // zero for a name
	found, err := d.FindClients(ctx, partner, id, text)
	switch {
	case err != nil:
		return db.ClientName{}, err
	case len(found) == 0 && !partner.IsZero():
		if elsewhere, err := d.FindClients(ctx, domain.PartnerID{}, id, text); err != nil || len(elsewhere) > 0 {
			return db.ClientName{}, cmp.Or(err, fmt.Errorf("the client %q belongs to another partner: %s", text,
				strings.Join(pg.MapRows(elsewhere, func(c *db.ClientName) string { return c.Partner }), ", ")))
		}
		fallthrough
	case len(found) == 0:
		names, err := d.ClientNamesLike(ctx, partner, text, output.MaxEdits(domain.SortKey(text)))
		if err != nil {
			return db.ClientName{}, err
		}
		return db.ClientName{}, fmt.Errorf("there is no client %q, or it is archived; specify the client's ID, as returned by GET /v2/clients, "+
			"or its name%s", text, output.DidYouMean(text, names))
	case len(found) > 1:
		ids := pg.MapRows(found, func(c *db.ClientName) string { return fmt.Sprintf("%s (of %s)", c.ID, c.Partner) })
		return db.ClientName{}, fmt.Errorf("%d clients have the name %q; specify the ID of one: %s", len(found), text,
			strings.Join(ids, " or "))
	}
	return found[0], nil
}

// ParseClientID parses a client's id, in v2's form or as a UUID.
func ParseClientID(text string) (domain.ClientID, error) {
	id, err := domain.ParseID[domain.ClientKind](text)
	if err != nil {
		id, err = domain.ParseUUID[domain.ClientKind](strings.ToLower(text))
	}
	return id, err
}

// FindPartner finds a partner by id (v2's form or a UUID) or by name; if name is empty, the only one that is not
// archived. An unknown name is an error that suggests the most similar one.
func FindPartner(ctx context.Context, d *db.DB, name string) (domain.PartnerID, error) {
	all, err := d.Partners(ctx)
	if err != nil {
		return domain.PartnerID{}, err
	}
	if name == "" {
		all = slices.DeleteFunc(all, func(p db.PartnerSummary) bool { return p.ArchivedAt != nil })
		if len(all) == 1 {
			return all[0].ID, nil
		}
		return domain.PartnerID{}, fmt.Errorf("there are %d partners; choose one with --partner, or create one with "+
			"partners create", len(all))
	}
	names, byName := make([]string, len(all)), domain.PartnerID{}
	for i, p := range all {
		names[i] = p.Name
		switch {
		case p.ID.String() == name, strings.EqualFold(p.ID.UUID(), name):
			return p.ID, nil
		case domain.SortKey(p.Name) == domain.SortKey(name):
			byName = p.ID
		}
	}
	if byName.IsZero() {
		return byName, fmt.Errorf("there is no partner %q; partners list shows all%s", name,
			output.DidYouMean(name, names))
	}
	return byName, nil
}
