package main

import (
	"context"
	"fmt"
	"strings"

	"partnerapi/db"
	"partnerapi/domain"
)

// withClient opens the database for work on the client that a command line names.
func (f databaseFlags) withClient(
	ctx context.Context, s streams, name string, work func(*db.DB, db.ClientName) error,
) (err error) {
	d, shut, err := f.open(ctx, s.err)
	if err != nil {
		return err
	}
	defer closing(shut, &err)
	of, err := clientCalled(ctx, d, domain.PartnerID{}, name)
	if err != nil {
		return err
	}
	return work(d, of)
}

// clientCalled finds a client by its id, as v2 shows it or as a UUID, or by its
// name; of one partner where that is not zero. Of a name that clients of several
// partners have, it lists their ids; of one that none has, the one that is likely meant.
func clientCalled(ctx context.Context, d *db.DB, partner domain.PartnerID, text string) (db.ClientName, error) {
	id, err := clientRead(text)
	if err != nil {
		id = domain.ClientID{}
	}
	found, err := d.ClientsCalled(ctx, partner, id, text)
	switch {
	case err != nil:
		return db.ClientName{}, err
	case len(found) == 0:
		names, err := d.ClientNamesLike(ctx, partner, text, mistakes(domain.SortKey(text)))
		if err != nil {
			return db.ClientName{}, err
		}
		return db.ClientName{}, fmt.Errorf("there is no client %q, or it was archived: name one by its id, as GET /v2/clients shows it, "+
			"or its name%s", text, didYouMean(text, names))
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

// clientRead reads the id of a client, as v2 shows it or as a UUID.
func clientRead(text string) (domain.ClientID, error) {
	id, err := domain.ParseID[domain.ClientKind](text)
	if err != nil {
		id, err = domain.ParseUUID[domain.ClientKind](strings.ToLower(text))
	}
	return id, err
}
