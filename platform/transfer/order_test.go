package transfer_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"partnerapi/db"
	"partnerapi/db/records"
	"partnerapi/domain"
	"partnerapi/platform/transfer"
)

// cutShort imports lines in batches of the given size, and is cut short after some more
// batches than the run before. It reports whether it was.
func (w *world) cutShort(lines []string, batch, batches int) bool {
	w.t.Helper()
	ctx, cut := context.WithCancel(w.t.Context())
	defer cut()
	w.applied += batches
	n := 0
	_, err := transfer.ImportIn(ctx, w.DB, strings.NewReader(strings.Join(lines, "\n")), transfer.Watcher{
		Refused: func(line int, reason string) { w.t.Errorf("line %d: %s: %s", line, reason, lines[line-1]) },
		Applied: func(int, int) {
			if n++; n == w.applied {
				cut()
			}
		},
	}, batch)
	if err != nil && !errors.Is(err, context.Canceled) {
		w.t.Fatal(err)
	}
	return err != nil
}

// TestOrderOfOneObject: the lines of one result are applied in their order, with the
// user or without, between those of other users and clients, in whatever batches.
func TestOrderOfOneObject(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(3, 10))
	w := newWorld(t)
	w.catalogues()
	own, err := db.OwnTemplates()
	w.must(err)
	const clients, each, times = 3, 5, 4
	lines := []string{ref("partner", 1, `'name':'One'`)}
	queues := map[int][]string{}
	for c := range clients {
		client := 100 * (c + 1)
		lines = append(lines, ref("client", client, fmt.Sprintf(`'partner':#1,'name':'Client %d'`, c)))
		for u := range each {
			user, result := client+10+u, client+50+u
			lines = append(lines, ref("user", user, fmt.Sprintf(`'client':#%d,'email':'u%d@x.example'`, client, u)))
			queues[result] = []string{
				ref("phishing_result", result, fmt.Sprintf(`'user':#%d,'template':'%s','sent_at':'2026-01-01T00:00:00Z'`, user, own[0].ID)),
				ref("phishing_result", result, `'opened_at':'2026-01-01T01:00:00Z'`),
				ref("phishing_result", result, fmt.Sprintf(`'user':#%d,'opened_at':'2026-01-01T02:00:00Z'`, user)),
				ref("phishing_result", result, `'opened_at':'2026-01-01T03:00:00Z'`),
			}
		}
	}
	r.Shuffle(len(lines), func(i, j int) { lines[i], lines[j] = lines[j], lines[i] })
	order := make([]int, 0, clients*each*times)
	for result := range queues {
		for range times {
			order = append(order, result)
		}
	}
	r.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
	for _, result := range order {
		lines, queues[result] = append(lines, queues[result][0]), queues[result][1:]
	}
	for w.cutShort(lines, 1+r.IntN(3), 40) {
	}
	w.is(fmt.Sprintf("(%d)", clients*each), "SELECT count(*) FROM phishing_results WHERE opened_at = '2026-01-01T03:00:00Z'")
}

// writer changes, as the API does, what an import changes too.
type writer struct {
	*db.DB
	client     domain.ClientID
	collection domain.CollectionID
	users      []domain.UserID
	r          *rand.Rand
}

// change makes a change to the client. That something is gone is an answer that a caller gets.
func (w *writer) change(ctx context.Context, fn func(context.Context, *db.Change, *db.Tenant) error) error {
	err := w.Change(ctx, func(ctx context.Context, c *db.Change) error {
		t, err := w.Tenant(ctx, w.client)
		if err != nil {
			return err
		}
		return fn(ctx, c, t)
	})
	if domain.IsCode(err, domain.NotFound) {
		return nil
	}
	return err
}

// write makes one change.
func (w *writer) write(ctx context.Context) error {
	user := w.users[w.r.IntN(len(w.users))]
	return w.change(ctx, func(ctx context.Context, c *db.Change, t *db.Tenant) error {
		switch w.r.IntN(4) {
		case 0:
			_, err := w.create(ctx, c, t)
			return err
		case 1:
			return w.update(ctx, c, user)
		case 2:
			if err := c.LockAudiencesShared(ctx, t.ID); err != nil {
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
}

func (w *writer) create(ctx context.Context, c *db.Change, t *db.Tenant) (id domain.UserID, err error) {
	if err := c.LockAudiencesShared(ctx, t.ID); err != nil {
		return id, err
	}
	id = db.NewID[domain.UserKind]()
	return id, t.InsertUser(ctx, c, domain.User{
		ID: id, Client: t.ID, Email: id.String() + "@x.example",
		Status: domain.Active, Role: domain.RoleStandard, Language: domain.English, Source: domain.FromAPI, Score: 750,
		CreatedAt: c.At, UpdatedAt: c.At,
	}, nil)
}

func (w *writer) update(ctx context.Context, c *db.Change, id domain.UserID) error {
	if err := c.LockAudiencesSharedOf(ctx, id); err != nil {
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

// TestTwo: one import at a time.
func TestTwo(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	_, err := records.WithLock(t.Context(), w.DB, func(ctx context.Context) error {
		_, err := transfer.Import(ctx, w.DB, transfer.Lines(strings.NewReader("")), transfer.Watcher{})
		return err
	})
	if !errors.Is(err, transfer.ErrImporting) {
		t.Error(err)
	}
}
