package db

import (
	"context"
	"fmt"

	"partnerapi/db/pg"
	"partnerapi/domain"
)

// This file finds which of many objects a caller reaches. Only version 1 asks; the
// file is deleted with it.

// UUID is the id of an object of whichever kind.
type UUID = [16]byte

// A reachableKind says how objects of one kind are found by their ids, and who
// reaches them.
type reachableKind struct {
	// find selects the object whose id is w.id, its client and what else within asks
	// for: one probe of an index on the id alone. Those of collections, groups and
	// reports are made by idmap's migrations.
	find string
	// within is the condition that the caller reaches the object o, of the client c.
	within func(ctx context.Context) pg.Query
}

// reachable has each kind under its noun.
var reachable = map[string]reachableKind{
	domain.ClientKind{}.Noun():     {"SELECT w.id, w.id AS client_id", ofClients},
	domain.UserKind{}.Noun():       {"SELECT id, client_id FROM users WHERE id = w.id LIMIT 1", ofClients},
	domain.AdminKind{}.Noun():      {"SELECT id, client_id, partner_id FROM admins WHERE id = w.id LIMIT 1", ofClientsOrPartner},
	domain.CollectionKind{}.Noun(): {"SELECT id, client_id FROM collections WHERE id = w.id LIMIT 1", ofClients},
	domain.GroupKind{}.Noun():      {"SELECT id, client_id FROM groups WHERE id = w.id LIMIT 1", ofClients},
	domain.PolicyKind{}.Noun(): {
		"SELECT id, client_id, archived_at FROM policies WHERE id = w.id LIMIT 1", notArchived,
	},
	domain.ReportKind{}.Noun():   {"SELECT id, client_id FROM reports WHERE id = w.id LIMIT 1", ofClients},
	domain.TemplateKind{}.Noun(): {"SELECT id, NULL::uuid AS client_id FROM phishing_templates WHERE id = w.id LIMIT 1", ofEverybody},
}

// ofClients are within the reach of who reaches their client.
func ofClients(ctx context.Context) pg.Query { return WithinReach(ctx) }

// notArchived are so too, unless they were archived themselves.
func notArchived(ctx context.Context) pg.Query {
	return pg.SQL("o.archived_at IS NULL AND ?", WithinReach(ctx))
}

// ofClientsOrPartner are so too, or the partner's own.
func ofClientsOrPartner(ctx context.Context) pg.Query {
	return pg.SQL("(?) OR o.client_id IS NULL AND o.partner_id = ?", WithinReach(ctx), domain.CallerFrom(ctx).Partner)
}

// ofEverybody are within everybody's reach.
func ofEverybody(context.Context) pg.Query { return pg.SQL("true") }

// Reached returns which of the objects of one kind, given by its noun, are within
// the caller's reach, in no particular order. It takes one statement.
//
// Neither an archived client nor what belongs to it is, nor an archived policy. The
// admins of the partner are within the reach of all of its keys, also of those with
// listed clients, and templates within everybody's: so Partner and Templates show
// them.
func (d *DB) Reached(ctx context.Context, noun string, ids []UUID) ([]UUID, error) {
	kind, known := reachable[noun]
	if !known {
		return nil, fmt.Errorf("find what is reached: no kind is called %q", noun)
	}

	// The LIMITs keep the planner at one index probe per id and table: by stale
	// statistics of a table that was just filled it would read the whole table, or all
	// clients of the partner. What else is asked of a row comes after its probe.
	found, err := pg.All[domain.ClientID](ctx, d, "find which of the "+noun+"s are reached", pg.SQL(`
		SELECT o.id FROM unnest(?::uuid[]) AS w (id) CROSS JOIN LATERAL (`+kind.find+`) AS o
		LEFT JOIN LATERAL (SELECT id, partner_id, archived_at FROM clients WHERE id = o.client_id LIMIT 1) AS c ON true
		WHERE ?`, ids, kind.within(ctx)))
	reached := make([]UUID, len(found))
	for i, id := range found {
		reached[i] = UUID(id)
	}
	return reached, err
}
