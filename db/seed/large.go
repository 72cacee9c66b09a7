package seed

import (
	"context"
	"errors"
	"fmt"
	"math"

	"golang.org/x/sync/errgroup"

	"partnerapi/db"
	"partnerapi/domain"
)

// LargePartner is the partner that seeded clients belong to.
const LargePartner = "Seed Partner"

// Size says how much is to be seeded. Users are those of all clients together.
type Size struct{ Clients, Users int }

// batchUsers is how many users are held in memory before they are written; the
// users of one client are never parted.
const batchUsers = 4000

// Large adds clients with users, their training and phishing results, and some
// collections, policies and exposures, as of today by the database's clock. Few
// clients have most of the users, the first the most. The clients belong to
// LargePartner, which is made when missing, and are numbered on from those that
// it has. It is one transaction: all is added or nothing. progress, unless nil,
// is told how many of the clients and users together are written.
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
		return r.write(ctx, progress)
	})
	if err != nil {
		return err
	}
	return vacuumAnalyze(ctx, d)
}

// largeRun is one run of Large.
type largeRun struct {
	writer    *writer
	size      Size
	today     domain.Date
	catalogue *catalogue
	partner   domain.PartnerID
	existing  int // clients of the partner before
}

// openPartner finds the partner, or makes it, and counts its clients.
func (r *largeRun) openPartner(ctx context.Context) (err error) {
	if r.partner, err = partnerNamed(ctx, r.writer.db, LargePartner); err != nil {
		return err
	}
	if r.partner.IsZero() {
		g := &generator{random: newRandom(largeStream, 0), today: r.today}
		r.partner = g.newPartner(ctx, r.writer, LargePartner, "seed.example", oldestClient+30, domain.OwnerRole).ID
		return r.writer.err
	}
	r.existing, err = one[int](ctx, r.writer.db, "count the clients of "+LargePartner,
		"SELECT count(*) FROM clients WHERE partner_id = ?", r.partner)
	return err
}

// write makes the clients in batches and writes each while the next is made.
func (r *largeRun) write(ctx context.Context, progress func(done, total int)) error {
	group, ctx := errgroup.WithContext(ctx)
	batches := make(chan []*client)
	group.Go(func() error {
		defer close(batches)
		return r.batches(ctx, batches)
	})
	group.Go(func() error {
		done, total := 0, r.size.Clients+r.size.Users
		for batch := range batches {
			if err := r.writer.clients(ctx, batch, r.catalogue.program); err != nil {
				return err
			}
			done += len(batch)
			for _, c := range batch {
				done += len(c.users)
			}
			progress(done, total)
		}
		return nil
	})
	return group.Wait()
}

// batches makes the clients.
func (r *largeRun) batches(ctx context.Context, batches chan<- []*client) error {
	sizes := usersByClient(r.size)
	var batch []*client
	users := 0
	for i, n := range sizes {
		batch = append(batch, r.client(i, n))
		users += n
		if users < batchUsers && i < len(sizes)-1 {
			continue
		}
		select {
		case batches <- batch:
			batch, users = nil, 0
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// usersByClient deals users out to clients as in life: the client of rank r has a
// share in proportion to r^-1.1.
func usersByClient(size Size) []int {
	weights := make([]float64, size.Clients)
	sum := 0.0
	for i := range weights {
		weights[i] = math.Pow(float64(i+1), -1.1)
		sum += weights[i]
	}
	sizes := make([]int, size.Clients)
	dealt, weight := 0, 0.0
	for i := range sizes {
		weight += weights[i]
		upTo := int(math.Round(float64(size.Users) * weight / sum))
		sizes[i] = upTo - dealt
		dealt = upTo
	}
	return sizes
}

// The ages of seeded clients, in days.
const (
	oldestClient   = 480
	youngestClient = 20
)

// The words that the names of seeded clients are made of.
var (
	firstWords = []string{"Amber", "Birch", "Cedar", "Delta", "Ember", "Falcon", "Granite", "Harbor", "Indigo",
		"Juniper", "Keystone", "Lakeside", "Maple", "Northern"}
	secondWords = []string{"Analytics", "Builders", "Clinics", "Dental", "Engineering", "Foods", "Gardens", "Hotels",
		"Insurance", "Legal", "Logistics", "Media", "Pharmacy", "Textiles"}
)

// client makes one client of so many users. The i-th of a run is as old as its
// place says, so that the first is the oldest.
func (r *largeRun) client(i, users int) *client {
	number := r.existing + i + 1
	g := &generator{random: newRandom(largeStream, number), today: r.today, catalogue: r.catalogue}
	industry := oneOf(g.random, secondWords)
	spec := clientSpec{
		partner: r.partner, industry: industry,
		name:      fmt.Sprintf("%s %s %05d", oneOf(g.random, firstWords), industry, number),
		created:   r.today.AddDays(-oldestClient + ((oldestClient-youngestClient)*i+r.size.Clients-1)/r.size.Clients),
		directory: oneOf(g.random, []domain.Directory{domain.Microsoft, domain.Microsoft, domain.Google, ""}),
		noDarkWeb: g.chance(0.1),
		language: oneOf(g.random, []domain.Language{domain.English, domain.English, domain.English, domain.Spanish,
			domain.French}),
	}
	c := g.newClient(spec)
	g.addUsers(c, spec.language, users)
	if everybody := c.active(anyUser); len(everybody) > 4 {
		g.addCollection(c, "New starters", "", domain.ByDashboard, everybody[len(everybody)*9/10:])
		g.addPolicy(c, "Acceptable use", domain.TenantScope, c.ID, 2, everybody[:len(everybody)/4])
	}
	g.addHistory(c, 60)
	c.computeTotals(r.today)
	g.addScoreHistory(c)
	return c
}
