package db_test

import (
	"context"
	"encoding/json"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"partnerapi/db"
	"partnerapi/db/doctor"
	"partnerapi/domain"
)

// blocks is a client of 12,000 users, of whom one in three is inactive, three each
// created at the same time, and who are divided into blocks.
type blocks struct {
	*world
	client domain.ClientID
	policy domain.PolicyID // for all users
}

func newBlocks(t *testing.T) *blocks {
	b := &blocks{world: newWorld(t)}
	b.client = b.AddClient()
	b.Add("groups", row{"client_id": b.client, "id": db.NewID[domain.GroupKind](), "name": "g", "manual": true, "created_at": noon})
	b.policy = db.NewID[domain.PolicyKind]()
	b.Add("policies", row{"client_id": b.client, "id": b.policy, "scope_id": b.client})
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

// offsets are some of each block of users of a state: its first ones, and one within; and
// one past the end.
func (b *blocks) offsets(status domain.UserStatus) (offsets []int) {
	var before []int
	var text string
	b.Get(`SELECT json_agg(n ORDER BY n)::text FROM (SELECT sum(CASE $2 WHEN 'active' THEN active WHEN 'inactive' THEN inactive
		ELSE active + inactive END) OVER (ORDER BY after_at, after_id) AS n FROM user_blocks WHERE client_id = $1) AS b`,
		[]any{b.client, string(status)}, &text)
	b.Must(json.Unmarshal([]byte(text), &before))
	for _, n := range before {
		offsets = append(offsets, n-1, n, n+1, rand.IntN(n))
	}
	return append(offsets, before[len(before)-1]+500)
}

// check compares rows at offsets, of every state, with a count of users.
func (b *blocks) check(when string) {
	b.T.Helper()
	ctx := b.As(b.T.Context())
	tenant, err := b.Tenant(ctx, b.client)
	b.Must(err)
	policy, err := tenant.Policy(ctx, b.policy)
	b.Must(err)
	for _, status := range []domain.UserStatus{domain.Active, domain.Inactive, ""} {
		total := map[domain.UserStatus]int{domain.Active: tenant.ActiveUsers, domain.Inactive: tenant.InactiveUsers}[status]
		if status == "" {
			total = tenant.ActiveUsers + tenant.InactiveUsers
		}
		var ids string
		b.Get("SELECT string_agg(id::text, ' ' ORDER BY created_at, id) FROM users WHERE client_id = $1 AND $2 IN ('', status)",
			[]any{b.client, string(status)}, &ids)
		all := strings.Fields(ids)
		for _, offset := range b.offsets(status) {
			want := ""
			if offset < len(all) {
				want = all[offset]
			}
			window := domain.Window{Limit: 1, Skip: offset, Total: true}
			users, err := tenant.Users(ctx, domain.UserFilter{Status: status, Sort: "created_at"}, window)
			b.Must(err)
			b.same(when, status, offset, want, idsOf(users, func(u domain.User) domain.UserID { return u.ID }))
			if users.Total != total {
				b.T.Errorf("%s, the total of users %q is %d, not %d", when, status, users.Total, total)
			}
			if status == domain.Active {
				counts, err := tenant.ExposureCounts(ctx, domain.Period{}, nil, window)
				b.Must(err)
				b.same(when, status, offset, want, idsOf(counts, func(c domain.ExposureCount) domain.UserID { return c.User }))
				signers, err := policy.Users(ctx, domain.SignAll, nil, window)
				b.Must(err)
				b.same(when, status, offset, want, idsOf(signers, func(u domain.PolicyUser) domain.UserID { return u.User }))
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

// TestBlocksBesideWriters: users come and go while blocks are made, and counted again.
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
		var dividers sync.WaitGroup
		for range 2 {
			dividers.Go(func() {
				if err := b.DivideUsers(t.Context()); err != nil {
					t.Error(err)
				}
			})
		}
		dividers.Wait()
		b.Exec("UPDATE user_blocks SET active = 0 WHERE after_at > '-infinity'")
		if _, err := doctor.Recount(t.Context(), b.DB, "users of blocks"); err != nil {
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

// TestBlocksOfArrivals: blocks of a client that is not there yet, as where a partner
// arrives from another cell, and of an archived one, are left alone.
func TestBlocksOfArrivals(t *testing.T) {
	w := newWorld(t)
	archived := w.AddClient()
	w.Exec("UPDATE clients SET archived_at = $1, users_active = 20000", noon)
	w.Exec("INSERT INTO user_blocks VALUES ($1, '-infinity', $1, 5000, 0)", archived)
	w.Exec("ALTER TABLE user_blocks DROP CONSTRAINT user_blocks_client_id_fkey")
	w.Exec("INSERT INTO user_blocks VALUES (gen_random_uuid(), '-infinity', $1, 5000, 0)", archived)
	w.Must(w.DivideUsers(t.Context()))
	var n int
	if w.Get("SELECT count(*) FROM user_blocks", nil, &n); n != 2 {
		t.Errorf("%d blocks", n)
	}
}

// TestBlocksOfImports: an import counts users where they were created, and one that
// changes nothing but that leaves updated_at of the client.
func TestBlocksOfImports(t *testing.T) {
	b := newBlocks(t)
	small := b.AddClient()
	b.Add("groups", row{"client_id": small, "id": db.NewID[domain.GroupKind](), "name": "g", "manual": true, "created_at": noon})
	of := func(client domain.ClientID, ago time.Duration) domain.UserRecord {
		id := db.NewID[domain.UserKind]()
		return domain.UserRecord{ID: domain.RefTo(id), Client: domain.Give(domain.RefTo(client)),
			Email: domain.Give(id.UUID() + "@example.com"), CreatedAt: moment(ago)}
	}
	records := []domain.UserRecord{of(b.client, day), of(small, day), of(b.client, time.Hour)}
	results, err := db.ImportAll(t.Context(), b.DB, db.UserRecords, records)
	wantImport(t, results, err, "created", "created", "created")
	b.check("imported")

	b.Exec("UPDATE clients SET updated_at = $1", noon.Add(-day))
	for i := range records {
		records[i].CreatedAt = moment(6 * time.Hour)
	}
	results, err = db.ImportAll(t.Context(), b.DB, db.UserRecords, records)
	wantImport(t, results, err, "updated", "updated", "updated")
	b.check("imported anew")
	for _, client := range []domain.ClientID{b.client, small} {
		if at := b.UpdatedAt("clients", client); !at.Equal(noon.Add(-day)) {
			t.Errorf("the client was updated at %v", at)
		}
	}
}
