package seed

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"time"

	"partnerapi/db"
	"partnerapi/db/pg"
	"partnerapi/domain"
)

// The demonstration's partners. A database that has the first partner has the demonstration.
const (
	DemoPartner      = "Northlight Demo MSP"
	OtherDemoPartner = "Tidewater Demo MSP"
)

// ExampleDay is the day on which the demonstration has the ids in the examples of the documentation.
var ExampleDay = domain.DateOf(time.Date(2026, time.June, 15, 0, 0, 0, 0, time.UTC))

// ErrNotEmpty reports that a database holds other data than the demonstration.
var ErrNotEmpty = errors.New("the database holds other data: --demo needs an empty database, or one that it filled " +
	"itself")

// DemoKeys are the API keys of the demonstration (decisions 9). They are not secret: a server refuses them unless it
// runs a demonstration.
type DemoKeys struct {
	All      string // all clients of the first partner; read and write
	ReadOnly string // all clients of the first partner; read
	Subset   string // two clients of the first partner; read and write
	Other    string // all clients of the second partner; read and write
	// Client is the first partner's oldest and largest client. It has all kinds of data, and Subset reaches it. It is
	// zero if the partner no longer has clients.
	Client domain.ClientID
}

// demoKeys are the texts of the keys.
var demoKeys = DemoKeys{All: "pk_demo_all", ReadOnly: "pk_demo_readonly", Subset: "pk_demo_subset",
	Other: "pk_demo_other"}

// Demo fills an empty, migrated database with the demonstration, as of today by the database's clock, and vacuums it.
// If the database has the demonstration already, it changes nothing, and returns its keys. If it only has other
// partners, the error is ErrNotEmpty.
func Demo(ctx context.Context, d *db.DB) (DemoKeys, error) {
	keys, filled := demoKeys, false
	err := inTx(ctx, d, func(ctx context.Context) error {
		id, err := partnerNamed(ctx, d, DemoPartner)
		if err == nil && id.IsZero() {
			err, filled = fillDemo(ctx, d, domain.DateOf(d.Now())), true
		}
		if err != nil {
			return err
		}
		oldest, err := pg.One[*domain.ClientID](ctx, d, "look for the demonstration's first client", pg.SQL(`
			SELECT (SELECT c.id FROM clients AS c JOIN partners AS p ON p.id = c.partner_id
				WHERE p.name_key = ? AND c.archived_at IS NULL ORDER BY c.created_at, c.id LIMIT 1)`, domain.SortKey(DemoPartner)))
		keys.Client = domain.OrZero(oldest) // zero if all are archived
		return err
	})
	if err != nil || !filled {
		return keys, err
	}
	return keys, vacuumAnalyze(ctx, d)
}

// fillDemo fills a database without partners, as of today. If there is a partner, the error is ErrNotEmpty.
func fillDemo(ctx context.Context, d *db.DB, today domain.Date) error {
	hasPartners, err := d.HasPartners(ctx)
	if err != nil {
		return err
	}
	if hasPartners {
		return ErrNotEmpty
	}
	if err := markRefreshed(ctx, d, today); err != nil {
		return err
	}
	catalogue, err := readCatalogue(ctx, d)
	if err != nil {
		return err
	}
	g := &generator{random: newRandom(demoStream, 0), today: today, catalogue: catalogue}
	g.shift = today.Time().Sub(ExampleDay.Time()) // so that the ids are the same on every day
	w := &writer{db: d}
	everyRole := []domain.AdminRole{domain.OwnerRole, domain.FullRole, domain.ViewerRole}
	first := g.newPartner(ctx, w, DemoPartner, "northlight.example", 1100 /* daysOld */, everyRole...)
	second := g.newPartner(ctx, w, OtherDemoPartner, "tidewater.example", 400 /* daysOld */, everyRole...)

	clients := g.newDemoClients(first.ID, demoClients)
	others := g.newDemoClients(second.ID, otherDemoClients)
	w.writeDemoKeys(ctx, g, first, second, clients[:2])
	w.writeAll(ctx, append(clients, others...), catalogue.program)
	w.writeShowcaseEvents(ctx, clients[0], today, g.shift)
	w.writeShowcaseAudit(ctx, clients[0], today, g.shift)
	w.writeBrands(ctx, g, first, second)
	if w.err != nil {
		return w.err
	}
	return addCounts(ctx, d)
}

// markRefreshed marks today's daily refresh as done if the database has no users: the seeded data need no refresh.
func markRefreshed(ctx context.Context, d *db.DB, today domain.Date) error {
	return pg.Run(ctx, d, "mark the daily refresh as done", pg.SQL(`INSERT INTO daily_refreshes (day, finished_at)
		SELECT ?0::date, ?1::timestamptz WHERE NOT EXISTS (SELECT FROM users)
		ON CONFLICT DO NOTHING`, today, today.Time()))
}

// newPartner creates a partner with an admin for each of roles, and writes them. w keeps an error.
func (g *generator) newPartner(
	ctx context.Context, w *writer, name, domainName string, daysOld int, roles ...domain.AdminRole,
) db.PartnerRow {
	at := g.at(g.today.AddDays(-daysOld))
	p := db.PartnerRow{ID: newID[domain.PartnerKind](g.random, at), Name: name, NameKey: domain.SortKey(name), CreatedAt: at}
	var admins []db.AdminRow
	for i, role := range roles {
		admins = append(admins, g.newAdmin(p.ID, nil /* client */, domainName, role, at.AddDate(0, 0, 30*i)))
	}
	copyAll(ctx, w, p)
	copyAll(ctx, w, admins...)
	return p
}

// newDemoClients creates the clients of a list, with their users and history.
func (g *generator) newDemoClients(partner domain.PartnerID, list []demoClient) []*client {
	clients := make([]*client, len(list))
	for i, d := range list {
		c := g.newClient(clientSpec{
			partner: partner, name: d.name, industry: d.industry, created: g.today.AddDays(-d.daysOld),
			directory: d.directory, noDarkWeb: d.noDarkWeb, language: d.language,
		})
		if i%3 == 0 { // some have an external id
			c.ExternalID = new(fmt.Sprintf("PSA-%04d", 1001+i))
		}
		g.addUsers(c, d.language, d.users)
		if d.showcase {
			g.addShowcase(c)
		} else {
			g.addStandardData(c)
		}
		c.count(c.users, g.today)
		c.computeTotals(g.today)
		g.addScoreHistory(c)
		clients[i] = c
	}
	return clients
}

// addStandardData adds the data of an ordinary client: an admin and sometimes a framework if it has active users, a
// collection and a policy if it has more than ten, and the history and emails of its users.
func (g *generator) addStandardData(c *client) {
	everybody := c.active(anyUser)
	if len(everybody) > 10 {
		g.addCollection(c, "New starters", "", domain.ByDashboard, everybody[len(everybody)*3/4:])
		g.addPolicy(c, "Acceptable use", domain.TenantScope, c.ID, 1, everybody)
	}
	if len(everybody) > 0 {
		c.admins = append(c.admins, g.newAdmin(c.Partner, &c.ID, c.domain, domain.FullRole, c.CreatedAt))
		if g.chance(0.4) {
			g.addFramework(c, oneOf(g.random, []string{"soc2", "gdpr", "ftc_safeguards", "cis_v8"}),
				domain.FrameworkForAll, nil, false /* policies */, g.between(40, 200))
		}
	}
	g.addHistory(c, c.users, 45)
	g.recordEmails(c, c.users)
}

// writeDemoKeys writes the demonstration's API keys. subset are the clients that the key Subset reaches.
func (w *writer) writeDemoKeys(ctx context.Context, g *generator, first, second db.PartnerRow, subset []*client) {
	read, both := []string{string(domain.Read)}, []string{string(domain.Read), string(domain.Write)}
	for i, k := range []struct {
		text    string
		partner db.PartnerRow
		clients []*client // nil for all
		scopes  []string
	}{
		{demoKeys.All, first, nil, both},
		{demoKeys.ReadOnly, first, nil, read},
		{demoKeys.Subset, first, subset, both},
		{demoKeys.Other, second, nil, both},
	} {
		at := k.partner.CreatedAt.Add(time.Duration(i+1) * time.Minute)
		id := newID[domain.KeyKind](g.random, at)
		// The whole text is the prefix, because the key is not secret and short prefixes of the keys would be equal.
		copyAll(ctx, w, db.KeyRow{
			ID: id, PartnerID: k.partner.ID, Name: k.text, Prefix: k.text, Digest: db.KeyDigest(k.text),
			AllClients: k.clients == nil, Scopes: k.scopes, Networks: []netip.Prefix{}, Demo: true, CreatedAt: at,
		})
		copyRows(ctx, w, k.clients, func(c *client) []keyClient { return just(keyClient{KeyID: id, ClientID: c.ID}) })
	}
}
