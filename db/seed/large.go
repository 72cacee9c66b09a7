package seed

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"golang.org/x/sync/errgroup"

	"partnerapi/db"
	"partnerapi/db/pg"
	"partnerapi/domain"
)

// LargePartner is the name of the partner of the clients that Large adds.
const LargePartner = "Seed Partner"

// Size is the amount of data that Large adds. Users is the number of users of all clients together. If Mails is set, it also
// adds the emails sent to the users, some 18 for each; the other data do not depend on it.
type Size struct {
	Clients, Users int
	Mails          bool
}

// batchUsers is the number of users from which a batch of clients is complete. The last client of a batch may have any
// number.
const batchUsers = 4000

// Large adds clients with users, their training and phishing results, and some collections, policies and exposures, as
// of today by the database's clock. A few clients have most of the users. The clients belong to LargePartner, which is
// created if it is missing, and their numbers continue after its existing clients. All is written in one transaction,
// and then vacuumed. If there were no users, today's daily refresh is marked as done. progress, unless nil, is called
// with the number of clients and users written, and their total.
func Large(ctx context.Context, d *db.DB, size Size, progress func(done, total int)) error {
	if size.Clients < 0 || size.Users < 0 || size.Clients == 0 && size.Users > 0 {
		return errors.New("seed: the numbers of clients and users must not be negative, and users need a client")
	}
	if progress == nil {
		progress = func(int, int) {}
	}
	today := domain.DateOf(d.Now())
	err := inTx(ctx, d, func(ctx context.Context) error {
		if err := markRefreshed(ctx, d, today); err != nil {
			return err
		}
		catalogue, err := readCatalogue(ctx, d)
		if err != nil {
			return err
		}
		r := &largeRun{writer: &writer{db: d}, size: size, today: today, catalogue: catalogue}
		if err := r.openPartner(ctx); err != nil {
			return err
		}
		if err := r.write(ctx, progress); err != nil {
			return err
		}
		return addCounts(ctx, d)
	})
	if err != nil {
		return err
	}
	return vacuumAnalyze(ctx, d)
}

// largeRun is the state of a call of Large.
type largeRun struct {
	writer    *writer
	size      Size
	today     domain.Date
	catalogue *catalogue
	partner   domain.PartnerID
	existing  int // the number of clients that the partner had before
}

// openPartner sets partner to the id of LargePartner, and existing to the number of its clients. If the partner is
// missing, it creates one that is older than all clients.
func (r *largeRun) openPartner(ctx context.Context) (err error) {
	if r.partner, err = partnerNamed(ctx, r.writer.db, LargePartner); err != nil {
		return err
	}
	if r.partner.IsZero() {
		g := &generator{random: newRandom(largeStream, 0), today: r.today}
		r.partner = g.newPartner(ctx, r.writer, LargePartner, "seed.example", oldestClient+30, domain.OwnerRole).ID
		return r.writer.err
	}
	r.existing, err = pg.One[int](ctx, r.writer.db, "count the clients of "+LargePartner,
		pg.SQL("SELECT count(*) FROM clients WHERE partner_id = ?", r.partner))
	return err
}

// part is data that is written at once, in the order of the fields. begun are clients of which only the rows that come
// before those of users are written (writer.writeClients). users are users with their history. ended are clients whose
// users are all written, and which get the remaining rows (writer.completeClients).
type part struct {
	begun []*client
	users []*user
	ended []*client
}

// write generates the clients, and writes each part while the next one is generated.
func (r *largeRun) write(ctx context.Context, progress func(done, total int)) error {
	group, ctx := errgroup.WithContext(ctx)
	parts := make(chan part)
	group.Go(func() error {
		defer close(parts)
		return r.generate(func(p part) error {
			select {
			case parts <- p:
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		})
	})
	group.Go(func() error {
		done, total := 0, r.size.Clients+r.size.Users
		for p := range parts {
			r.writer.writeClients(ctx, p.begun, r.catalogue.program)
			r.writer.writeUsers(ctx, p.users)
			r.writer.completeClients(ctx, p.ended)
			if r.writer.err != nil { // the first error: after it the writer does nothing
				return r.writer.err
			}
			if n := len(p.begun) + len(p.users); n > 0 {
				done += n
				progress(done, total)
			}
		}
		return nil
	})
	return group.Wait()
}

// generate generates the clients, in batches of about batchUsers users, and passes their parts to send.
func (r *largeRun) generate(send func(part) error) error {
	sizes := usersByClient(r.size)
	var batch []*largeClient
	users := 0
	for i, n := range sizes {
		batch = append(batch, r.client(i, n))
		users += n
		if users < batchUsers && i < len(sizes)-1 {
			continue
		}
		if err := r.generateBatch(batch, send); err != nil {
			return err
		}
		batch, users = nil, 0
	}
	return nil
}

// generateBatch generates the history of the users of a batch of clients, and passes the parts to send: first the
// clients, then their users, at last the clients again with their totals. Only copyAtOnce users with their history are
// in memory at a time.
func (r *largeRun) generateBatch(batch []*largeClient, send func(part) error) error {
	// The writer reads copies of the clients, as their users are counted meanwhile.
	clients, begun := make([]*client, len(batch)), make([]*client, len(batch))
	for i, c := range batch {
		clients[i], begun[i] = c.client, new(*c.client)
	}
	if err := send(part{begun: begun}); err != nil {
		return err
	}
	var users []*user
	for _, c := range batch {
		for len(c.users) > 0 {
			users = append(users, c.next(copyAtOnce-len(users))...)
			if len(users) == copyAtOnce {
				if err := send(part{users: users}); err != nil {
					return err
				}
				users = nil
			}
		}
		c.computeTotals(r.today)
		c.g.addScoreHistory(c.client)
	}
	return send(part{users: users, ended: clients})
}

// usersByClient returns the number of users of each client. It follows a Zipf distribution: the share of the client of
// rank r is proportional to r^-1.1.
func usersByClient(size Size) []int {
	weights := make([]float64, size.Clients)
	sum := 0.0
	for i := range weights {
		weights[i] = math.Pow(float64(i+1), -1.1)
		sum += weights[i]
	}
	sizes := make([]int, size.Clients)
	assigned, weight := 0, 0.0
	for i := range sizes {
		weight += weights[i]
		upTo := int(math.Round(float64(size.Users) * weight / sum))
		sizes[i] = upTo - assigned
		assigned = upTo
	}
	return sizes
}

// The ages of seeded clients, in days.
const (
	oldestClient   = 480
	youngestClient = 20
)

// The words of which the names of seeded clients consist.
var (
	firstWords = []string{"Amber", "Birch", "Cedar", "Delta", "Ember", "Falcon", "Granite", "Harbor", "Indigo",
		"Juniper", "Keystone", "Lakeside", "Maple", "Northern"}
	secondWords = []string{"Analytics", "Builders", "Clinics", "Dental", "Engineering", "Foods", "Gardens", "Hotels",
		"Insurance", "Legal", "Logistics", "Media", "Pharmacy", "Textiles"}
)

// largeClient is a client whose remaining users have no history yet.
type largeClient struct {
	*client
	g     *generator
	mails *generator // nil if no emails are added
}

// client generates the i-th client of a run, with a number of users without history and, if more than four are active,
// a collection and a policy. The clients were created at even intervals, from oldestClient to about youngestClient days
// ago. Random values for emails have their own stream, so that the other data are the same without emails.
func (r *largeRun) client(i, users int) *largeClient {
	number := r.existing + i + 1
	g := &generator{random: newRandom(largeStream, number), today: r.today, catalogue: r.catalogue}
	industry := oneOf(g.random, secondWords)
	younger := ((oldestClient-youngestClient)*i + r.size.Clients - 1) / r.size.Clients // in days, rounded up
	spec := clientSpec{
		partner: r.partner, industry: industry,
		name:      fmt.Sprintf("%s %s %05d", oneOf(g.random, firstWords), industry, number),
		created:   r.today.AddDays(younger - oldestClient),
		directory: oneOf(g.random, []domain.Directory{domain.Microsoft, domain.Microsoft, domain.Google, ""}),
		noDarkWeb: g.chance(0.1),
		language: oneOf(g.random, []domain.Language{domain.English, domain.English, domain.English, domain.Spanish,
			domain.French}),
	}
	c := g.newClient(spec)
	g.addUsers(c, spec.language, users)
	if everybody := c.active(anyUser); len(everybody) > 4 {
		g.addCollection(c, "New starters", "", domain.ByDashboard, everybody[len(everybody)*9/10:])
		g.addPolicy(c, "Acceptable use", domain.TenantScope, c.ID, 2 /* version */, everybody[:len(everybody)/4])
	}
	result := &largeClient{client: c, g: g}
	if r.size.Mails {
		result.mails = &generator{random: newRandom(mailStream, number), today: r.today, catalogue: r.catalogue}
	}
	return result
}

// next adds the history of the next n users, or of all remaining users if they are fewer, adds their totals to those of
// the client, removes them from it and returns them.
func (c *largeClient) next(n int) []*user {
	n = min(n, len(c.users))
	users := slices.Clone(c.users[:n])
	clear(c.users[:n]) // so that their memory can be reused after they are written
	c.users = c.users[n:]
	c.g.addHistory(c.client, users, 60)
	if c.mails != nil {
		c.mails.recordEmails(c.client, users)
	}
	c.count(users, c.g.today)
	return users
}
