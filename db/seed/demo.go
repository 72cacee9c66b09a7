package seed

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"partnerapi/db"
	"partnerapi/domain"
)

// The demonstration's partners. That the first is there says that the
// demonstration is.
const (
	DemoPartner      = "Northlight Demo MSP"
	OtherDemoPartner = "Tidewater Demo MSP"
)

// ErrNotEmpty says that a database holds something else than a demonstration.
var ErrNotEmpty = errors.New("the database holds other data: --demo needs an empty database, or one that it filled " +
	"itself")

// DemoKeys are the API keys of the demonstration (decisions 9). They are no
// secrets: a server refuses them unless it runs a demonstration.
type DemoKeys struct {
	All      string // every client of the first partner; read, write
	ReadOnly string // the same; read
	Subset   string // two clients of the first partner; read, write
	Other    string // the second partner; read, write
	// Client is the first partner's oldest and largest client, which has some
	// of everything; Subset reaches it too.
	Client domain.ClientID
}

// demoKeys are the keys' texts.
var demoKeys = DemoKeys{All: "pk_demo_all", ReadOnly: "pk_demo_readonly", Subset: "pk_demo_subset",
	Other: "pk_demo_other"}

// Demo fills an empty, migrated database with the demonstration, as of today by
// the database's clock. On a database that has it, it changes nothing. It
// returns ErrNotEmpty for a database with other partners only.
func Demo(ctx context.Context, d *db.DB) (DemoKeys, error) {
	keys, filled := demoKeys, false
	err := inTx(ctx, d, func(tx pgx.Tx) error {
		id, err := partnerNamed(ctx, tx, DemoPartner)
		if err == nil && id.IsZero() {
			err, filled = fillDemo(ctx, tx, domain.DateOf(d.Now())), true
		}
		if err != nil {
			return err
		}
		keys.Client, err = firstClient(ctx, tx)
		return err
	})
	if err != nil || !filled {
		return keys, err
	}
	return keys, vacuumAnalyze(ctx, d)
}

// firstClient finds the demonstration's oldest client; there may be none left.
func firstClient(ctx context.Context, tx pgx.Tx) (id domain.ClientID, err error) {
	var found string
	err = tx.QueryRow(ctx, `
		SELECT coalesce((
			SELECT c.id::text FROM clients AS c JOIN partners AS p ON p.id = c.partner_id
			WHERE p.name_key = $1 AND c.archived_at IS NULL ORDER BY c.created_at, c.id LIMIT 1
		), '')`, domain.SortKey(DemoPartner)).Scan(&found)
	if err != nil {
		return id, fmt.Errorf("look for the demonstration's first client: %w", err)
	}
	if found == "" {
		return id, nil
	}
	return domain.ParseUUID[domain.ClientKind](found)
}

func fillDemo(ctx context.Context, tx pgx.Tx, today domain.Date) error {
	var filled bool
	if err := tx.QueryRow(ctx, "SELECT EXISTS (SELECT FROM partners)").Scan(&filled); err != nil {
		return fmt.Errorf("look for partners: %w", err)
	}
	if filled {
		return ErrNotEmpty
	}
	if err := markRefreshed(ctx, tx, today); err != nil {
		return err
	}
	catalogue, err := readCatalogue(ctx, tx)
	if err != nil {
		return err
	}
	g := &generator{random: newRandom(demoStream, 0), today: today, catalogue: catalogue}
	w := &writer{tx: tx}
	first := g.newDemoPartner(DemoPartner, "northlight.example", 1100)
	second := g.newDemoPartner(OtherDemoPartner, "tidewater.example", 400)
	w.partner(ctx, first)
	w.partner(ctx, second)

	clients := g.newDemoClients(first.id, demoClients)
	others := g.newDemoClients(second.id, otherDemoClients)
	w.demoKeys(ctx, g, first, second, clients[:2])
	return w.clients(ctx, append(clients, others...), catalogue.program, today)
}

// markRefreshed records that today's daily refresh has nothing to do, where no
// users are but those that are to be seeded now.
func markRefreshed(ctx context.Context, tx pgx.Tx, today domain.Date) error {
	_, err := tx.Exec(ctx, `INSERT INTO daily_refreshes (day, finished_at)
		SELECT $1::date, $2::timestamptz WHERE NOT EXISTS (SELECT FROM users)
		ON CONFLICT DO NOTHING`, today.Time(), today.Time())
	if err != nil {
		return fmt.Errorf("mark the daily refresh as done: %w", err)
	}
	return nil
}

func (g *generator) newDemoPartner(name, domainName string, daysOld int) *partner {
	at := g.at(g.today.AddDays(-daysOld))
	p := &partner{id: newID[domain.PartnerKind](g.random, at), name: name, createdAt: at}
	for i, role := range []domain.AdminRole{domain.OwnerRole, domain.FullRole, domain.ViewerRole} {
		p.admins = append(p.admins, g.newAdmin(nil, domainName, role, at.AddDate(0, 0, 30*i)))
	}
	return p
}

func (g *generator) newDemoClients(partner domain.PartnerID, list []demoClient) []*client {
	clients := make([]*client, len(list))
	for i, d := range list {
		c := g.newClient(clientSpec{
			partner: partner, name: d.name, industry: d.industry, created: g.today.AddDays(-d.daysOld),
			directory: d.directory, noDarkWeb: d.noDarkWeb, language: d.language,
		})
		if i%3 == 0 {
			external := fmt.Sprintf("PSA-%04d", 1001+i)
			c.ExternalID = &external
		}
		g.addUsers(c, d.language, d.users)
		if d.showcase {
			g.addShowcase(c)
		} else {
			g.addStandardData(c)
		}
		c.computeTotals(g.today)
		g.addScoreHistory(c)
		clients[i] = c
	}
	return clients
}

// addStandardData gives a client what most clients have.
func (g *generator) addStandardData(c *client) {
	everybody := c.active(anyUser)
	if len(everybody) > 10 {
		g.addCollection(c, "New starters", "", "dashboard", everybody[len(everybody)*3/4:])
		g.addPolicy(c, "Acceptable use", "tenant", uuid(c.ID), 1, everybody)
	}
	if len(everybody) > 0 {
		c.admins = append(c.admins, g.newAdmin(&c.ID, c.domain, domain.FullRole, c.CreatedAt))
		if g.chance(0.4) {
			g.addFramework(c, oneOf(g.random, []string{"soc2", "gdpr", "ftc_safeguards", "cis_v8"}), "all", nil, false,
				g.between(40, 200))
		}
	}
	g.addHistory(c, 45)
	g.recordEmails(c)
}

// demoKey is an API key of the demonstration; its clients are nil for all.
type demoKey struct {
	id      domain.KeyID
	at      time.Time
	text    string
	partner domain.PartnerID
	clients []*client
	scopes  []string
}

// demoKeys adds the demonstration's API keys.
func (w *writer) demoKeys(ctx context.Context, g *generator, first, second *partner, subset []*client) {
	read, both := []string{string(domain.Read)}, []string{string(domain.Read), string(domain.Write)}
	var keys []demoKey
	add := func(text string, p *partner, clients []*client, scopes []string) {
		k := demoKey{text: text, partner: p.id, clients: clients, scopes: scopes}
		k.at = p.createdAt.Add(time.Duration(len(keys)+1) * time.Minute)
		k.id = newID[domain.KeyKind](g.random, k.at)
		keys = append(keys, k)
	}
	add(demoKeys.All, first, nil, both)
	add(demoKeys.ReadOnly, first, nil, read)
	add(demoKeys.Subset, first, subset, both)
	add(demoKeys.Other, second, nil, both)

	w.copy(ctx, "api_keys", "id partner_id name prefix digest all_clients scopes demo created_at",
		each(keys, func(k demoKey) []any {
			digest := sha256.Sum256([]byte(k.text))
			// The whole text is the prefix: there is nothing to hide, and no
			// two begin alike.
			return []any{uuid(k.id), uuid(k.partner), k.text, k.text, digest[:], k.clients == nil, k.scopes, true, k.at}
		}))
	for _, k := range keys {
		w.copy(ctx, "api_key_clients", "key_id client_id", each(k.clients, func(c *client) []any {
			return []any{uuid(k.id), uuid(c.ID)}
		}))
	}
}
