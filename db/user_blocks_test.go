package db_test

import (
	"context"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"partnerapi/db"
	"partnerapi/domain"
)

// blocks is a client of 12,000 users, of whom one in three is inactive, three each
// created at the same time, and who are divided into blocks.
type blocks struct {
	*world
	client domain.ClientID
}

func newBlocks(t *testing.T) *blocks {
	b := &blocks{world: newWorld(t)}
	b.client = b.AddClient()
	b.Add("groups", row{"client_id": b.client, "id": db.NewID[domain.GroupKind](), "name": "g", "manual": true, "created_at": noon})
	b.insert(12_000, noon)
	b.Exec("UPDATE clients SET dark_web_monitoring = true")
	b.Must(b.DivideUsers(t.Context()))
	return b
}

// insert adds n users, who were created before a time.
func (b *blocks) insert(n int, before time.Time) {
	b.Exec(`INSERT INTO users (client_id, id, email, first_name, last_name, name_key, status, role, preferred_language, source, score, created_at, updated_at)
		SELECT $1, gen_random_uuid(), gen_random_uuid() || '@example.com', 'A', 'B', 'a b', CASE n % 3 WHEN 0 THEN 'inactive' ELSE 'active' END,
			'standard', 'en', 'api', 750, $2::timestamptz - n / 3 * interval '10 seconds', $2 FROM generate_series(1, $3::integer) AS n`, b.client, before, n)
	b.Exec("UPDATE clients SET users_active = users_active + $1 / 3 * 2, users_inactive = users_inactive + $1 / 3", n)
}

// check compares rows at offsets, of every state, with a count of users.
func (b *blocks) check(when string) {
	b.T.Helper()
	ctx := b.As(b.T.Context())
	tenant, err := b.Tenant(ctx, b.client)
	b.Must(err)
	for _, status := range []domain.UserStatus{domain.Active, domain.Inactive, ""} {
		for range 40 {
			offset := rand.IntN(12_500)
			var want string
			b.Get(`SELECT coalesce((SELECT id::text FROM users WHERE client_id = $1 AND $2 IN ('', status)
				ORDER BY created_at, id OFFSET $3 LIMIT 1), '')`, []any{b.client, string(status), offset}, &want)

			window := domain.Window{Limit: 1, Skip: offset}
			users, err := tenant.Users(ctx, domain.UserFilter{Status: status, Sort: "created_at"}, window)
			b.Must(err)
			b.same(when, status, offset, want, idsOf(users, func(u domain.User) domain.UserID { return u.ID }))
			if status == domain.Active {
				counts, err := tenant.ExposureCounts(ctx, domain.Period{}, nil, window)
				b.Must(err)
				b.same(when, status, offset, want, idsOf(counts, func(c domain.ExposureCount) domain.UserID { return c.User }))
			}
		}
	}
}

func idsOf[T any](s domain.Slice[T], id func(T) domain.UserID) (text string) {
	for _, row := range s.Rows {
		text += id(row).UUID()
	}
	return text
}

func (b *blocks) same(when string, status domain.UserStatus, offset int, want, got string) {
	b.T.Helper()
	if got != want {
		b.T.Errorf("%s, offset %d of users %q is %q, not %q", when, offset, status, got, want)
	}
}

// change makes a user, or changes one of the client's.
func (b *blocks) change(do func(after *domain.User)) error {
	var id domain.UserID
	b.Get("SELECT id FROM users WHERE client_id = $1 ORDER BY random() LIMIT 1", []any{b.client}, &id)
	return b.Change(b.As(b.T.Context()), func(ctx context.Context, c *db.Change) error {
		if err := c.ShareAudiences(ctx, b.client); err != nil {
			return err
		}
		u, err := c.LockUser(ctx, id)
		if err != nil {
			return err
		}
		after := u.User
		do(&after)
		c.UserChanged(&u.User, &after)
		return db.ExecIn(ctx, c.DB, "UPDATE users SET status = ?, created_at = ? WHERE id = ?", after.Status, after.CreatedAt, id)
	})
}

func (b *blocks) add() error {
	return b.ChangeOf(b.T.Context(), b.client, func(ctx context.Context, c *db.Change, tenant *db.Tenant) error {
		if err := c.ShareAudiences(ctx, b.client); err != nil {
			return err
		}
		id := db.NewID[domain.UserKind]()
		return tenant.InsertUser(ctx, c, domain.User{ID: id, Client: b.client, Email: id.UUID() + "@example.com",
			Status: domain.Active, Role: domain.RoleStandard, Language: "en", Source: domain.FromAPI, Score: 750,
			CreatedAt: c.At, UpdatedAt: c.At}, nil)
	})
}

// turn changes the state of a user.
func turn(after *domain.User) {
	if after.Status == domain.Active {
		after.Status = domain.Inactive
	} else {
		after.Status = domain.Active
	}
}

// TestOffsetsByBlocks: an offset shows the row that counting users shows, after all that
// moves users from one block to another.
func TestOffsetsByBlocks(t *testing.T) {
	b := newBlocks(t)
	var n, largest int
	b.Get("SELECT count(*), max(active + inactive) FROM user_blocks", nil, &n, &largest)
	if n != 12 || largest != 1000 {
		t.Errorf("%d blocks, the largest of %d users", n, largest)
	}
	b.check("divided")

	for range 30 {
		b.Must(b.change(turn))
		b.Must(b.change(func(after *domain.User) { after.CreatedAt = noon.Add(-time.Duration(rand.IntN(12_000)) * time.Second) }))
		b.Must(b.add())
	}
	b.check("changed")

	b.insert(6000, noon.Add(day))
	b.Exec(`UPDATE user_blocks SET active = active + 4000, inactive = inactive + 2000
		WHERE after_id = (SELECT after_id FROM user_blocks ORDER BY after_at DESC, after_id DESC LIMIT 1)`)
	b.Get("SELECT max(active + inactive) FROM user_blocks", nil, &largest)
	b.Must(b.DivideUsers(t.Context()))
	var after int
	b.Get("SELECT max(active + inactive) FROM user_blocks", nil, &after)
	if largest <= 4000 || after > 4000 {
		t.Errorf("the largest block had %d users, then %d", largest, after)
	}
	b.check("divided again")
}

// TestBlocksBesideWriters: users come and go while blocks are made.
func TestBlocksBesideWriters(t *testing.T) {
	b := newBlocks(t)
	b.Exec("DELETE FROM user_blocks")
	var writers sync.WaitGroup
	for range 4 {
		writers.Go(func() {
			for range 10 {
				if err := b.add(); err != nil {
					t.Error(err)
				}
				if err := b.change(turn); err != nil {
					t.Error(err)
				}
			}
		})
	}
	for range 5 {
		if err := b.DivideUsers(t.Context()); err != nil {
			t.Error(err)
		}
		b.Exec("DELETE FROM user_blocks")
	}
	if err := b.DivideUsers(t.Context()); err != nil {
		t.Error(err)
	}
	writers.Wait()
	b.check("after the writers")
}
