package transfer_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"partnerapi/db"
	"partnerapi/db/records"
	"partnerapi/domain"
	"partnerapi/platform/transfer"
)

// writer changes, as the API does, what an import changes too.
type writer struct {
	*db.DB
	client     domain.ClientID
	collection domain.CollectionID
	users      []domain.UserID
	r          *rand.Rand
}

// write makes one change. A clash, and what is gone, are answers that a caller gets.
func (w *writer) write(ctx context.Context) error {
	user := w.users[w.r.IntN(len(w.users))]
	err := w.Change(ctx, func(ctx context.Context, c *db.Change) error {
		t, err := w.Tenant(ctx, w.client)
		if err != nil {
			return err
		}
		switch w.r.IntN(4) {
		case 0:
			return w.create(ctx, c, t)
		case 1:
			return w.update(ctx, c, user)
		case 2:
			if err := c.ShareAudiences(ctx, t.ID); err != nil {
				return err
			}
			if _, err := t.LockUsers(ctx, c, []domain.UserID{user}); err != nil {
				return err
			}
			if _, err := t.LockCollection(ctx, c, w.collection); err != nil {
				return err
			}
			_, err := t.AddMembers(ctx, c, w.collection, []domain.UserID{user})
			return err
		}
		if _, err := t.LockUsers(ctx, c, []domain.UserID{user}); err != nil {
			return err
		}
		return t.RemoveMember(ctx, c, w.collection, user)
	})
	if domain.IsCode(err, domain.Conflict) || domain.IsCode(err, domain.NotFound) {
		return nil
	}
	return err
}

func (w *writer) create(ctx context.Context, c *db.Change, t *db.Tenant) error {
	if err := c.ShareAudiences(ctx, t.ID); err != nil {
		return err
	}
	return t.InsertUser(ctx, c, domain.User{
		ID: db.NewID[domain.UserKind](), Client: t.ID, Email: fmt.Sprintf("n%d@x.example", w.r.IntN(1000)),
		Status: domain.Active, Role: domain.RoleStandard, Language: domain.English, Source: domain.FromAPI, Score: 750,
		CreatedAt: c.At, UpdatedAt: c.At,
	}, nil)
}

func (w *writer) update(ctx context.Context, c *db.Change, id domain.UserID) error {
	if err := c.ShareAudiencesOf(ctx, id); err != nil {
		return err
	}
	u, err := c.LockUser(ctx, id)
	if err != nil {
		return err
	}
	after := u.User
	after.Status = []domain.UserStatus{domain.Active, domain.Inactive}[w.r.IntN(2)]
	after.Role = []domain.Role{domain.RoleHR, domain.RoleFinance}[w.r.IntN(2)]
	return u.Update(ctx, c, after)
}

// TestWriters: imports and writers of the API neither block each other for good nor
// fail, and what is counted is right in the end.
func TestWriters(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const users = 60
	lines := func(run int) []string {
		list := []string{ref("partner", 1, `'name':'P'`), ref("client", 2, `'partner':#1,'name':'C'`)}
		var members []string
		for u := range users {
			list = append(list, ref("user", 10+u, fmt.Sprintf(`'client':#2,'email':'n%d@x.example','last_name':'%d','status':'%s'`,
				1000+u+run%2*users, run, []string{"active", "inactive"}[(u+run)%2])))
			members = append(members, fmt.Sprintf("#%d", 10+u))
		}
		return append(list, ref("collection", 5, `'client':#2,'name':'K','members':[`+strings.Join(members, ",")+`]`))
	}
	w.want(fmt.Sprintf("%d created, 0 updated, 0 unchanged", users+3), lines(0)...)

	ctx := domain.WithCaller(t.Context(), &domain.Caller{Partner: parsed[domain.PartnerKind](1), AllClients: true})
	// The writers end between two changes: one that is cancelled may still be committed
	// while the counts are read.
	var imported atomic.Bool
	var writers sync.WaitGroup
	for n := range uint64(3) {
		api := &writer{DB: w.DB, client: parsed[domain.ClientKind](2), collection: parsed[domain.CollectionKind](5), r: rand.New(rand.NewPCG(n, 1))}
		for u := range users {
			api.users = append(api.users, parsed[domain.UserKind](10+u))
		}
		writers.Go(func() {
			for !imported.Load() {
				if err := api.write(ctx); err != nil {
					t.Error("a writer:", err)
					return
				}
			}
		})
	}
	for run := 1; run < 6; run++ {
		report, err := transfer.ImportIn(t.Context(), w.DB, strings.NewReader(strings.Join(lines(run), "\n")), transfer.Watcher{}, 7)
		if err != nil || report.Refused > 0 {
			t.Error(report, err)
		}
	}
	imported.Store(true)
	writers.Wait()
	w.is(w.text(`SELECT count(*) FILTER (WHERE status = 'active'), count(*) FILTER (WHERE status <> 'active') FROM users`),
		"SELECT users_active, users_inactive FROM clients")
	w.is(w.text("SELECT count(*) FROM collection_members"), "SELECT member_count FROM collections")
}

// TestTwo: one import at a time.
func TestTwo(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	_, err := records.WithLock(t.Context(), w.DB, func(ctx context.Context) error {
		_, err := transfer.Import(ctx, w.DB, strings.NewReader(""), transfer.Watcher{})
		return err
	})
	if !errors.Is(err, transfer.ErrImporting) {
		t.Error(err)
	}
}
