package database

import (
	"context"
	"fmt"
	"strings"

	"partnerapi/cmd/internal/cli"
	"partnerapi/cmd/internal/output"
	"partnerapi/db"
	"partnerapi/domain"
)

// WithClient opens the database for work on the client that a command line names.
func (f Flags) WithClient(
	ctx context.Context, s cli.Env, name string, work func(*db.DB, db.ClientName) error,
) error {
	return f.With(ctx, s, func(d *db.DB) error {
		of, err := ClientCalled(ctx, d, domain.PartnerID{}, name)
		if err != nil {
			return err
		}
		return work(d, of)
	})
}

// ClientCalled finds a client by its id, as v2 shows it or as a UUID, or by its
// name; of one partner where that is not zero. Of a name that clients of several
// partners have, it lists their ids; of one that none has, the one that is likely meant.
func ClientCalled(ctx context.Context, d *db.DB, partner domain.PartnerID, text string) (db.ClientName, error) {
	id, err := ClientRead(text)
	if err != nil {
		id = domain.ClientID{}
	}
	found, err := d.ClientsCalled(ctx, partner, id, text)
	switch {
	case err != nil:
		return db.ClientName{}, err
	case len(found) == 0:
		names, err := d.ClientNamesLike(ctx, partner, text, output.Mistakes(domain.SortKey(text)))
		if err != nil {
			return db.ClientName{}, err
		}
		return db.ClientName{}, fmt.Errorf("there is no client %q, or it was archived: name one by its id, as GET /v2/clients shows it, "+
			"or its name%s", text, output.DidYouMean(text, names))
	case len(found) > 1:
		ids := make([]string, len(found))
		for i, c := range found {
			ids[i] = fmt.Sprintf("%s (of %s)", c.ID, c.Partner)
		}
		return db.ClientName{}, fmt.Errorf("%d clients are called %q: name one by its id, %s", len(found), text,
			strings.Join(ids, " or "))
	}
	return found[0], nil
}

// ClientRead reads the id of a client, as v2 shows it or as a UUID.
func ClientRead(text string) (domain.ClientID, error) {
	id, err := domain.ParseID[domain.ClientKind](text)
	if err != nil {
		id, err = domain.ParseUUID[domain.ClientKind](strings.ToLower(text))
	}
	return id, err
}
