package v2_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"partnerapi/db"
	"partnerapi/db/dbtest"
	"partnerapi/db/dbtest/worldtest"
	"partnerapi/domain"
	"partnerapi/platform/transfer"
	v2 "partnerapi/v2"
	"partnerapi/v2/api"
	"partnerapi/v2/op"
)

// deltaWorld is a client with users, served by several processes by the server's clock.
type deltaWorld struct {
	*testing.T
	replicas []*v2.API
	db       *db.DB // of the first replica
	ctx      context.Context
	client   domain.ClientID
	users    []domain.UserID
}

// newDeltaWorld adds n users. Two replicas have pools of their own or, if pooled is true, each a PgBouncer in transaction
// mode.
func newDeltaWorld(t *testing.T, n int, pooled bool) *deltaWorld {
	t.Helper()
	w := &deltaWorld{T: t}
	url := dbtest.URL(t, worldtest.Schema)
	for range 2 {
		address, options := url, []db.Option{db.WithStrictLocks()}
		if pooled {
			address = dbtest.PgBouncer(t, url, "transaction", 8)
			options = append(options, db.WithPooler(url, false))
		}
		d, err := db.Open(address, options...)
		w.must(err)
		t.Cleanup(func() { _ = d.Close() })
		secret, err := d.CursorSecret(t.Context())
		w.must(err)
		w.replicas = append(w.replicas, v2.New(d, secret))
		w.db = d
	}

	partner, err := w.db.InsertPartner(t.Context(), "Northwind")
	w.must(err)
	w.ctx = domain.WithCaller(t.Context(), &domain.Caller{Partner: partner, AllClients: true, Scopes: []domain.Scope{domain.Read, domain.Write}})
	create := &api.CreateClientInput{}
	create.Body.Name = "Acme"
	client, err := op.Call(w.ctx, &w.replicas[0].Set, api.CreateClient, create)
	w.must(err)
	w.client = client.ID
	for range n {
		w.users = append(w.users, db.NewID[domain.UserKind]())
	}
	w.importUsers("start")
	return w
}

func (w *deltaWorld) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

// importUsers imports all users, with a department.
func (w *deltaWorld) importUsers(department string) {
	var lines strings.Builder
	for _, id := range w.users {
		fmt.Fprintf(&lines, `{"object":"user","id":%q,"client":%q,"email":"%s@acme.example","department":%q}`+"\n",
			id.UUID(), w.client.UUID(), id.UUID(), department)
	}
	report, err := transfer.Import(w.Context(), w.db, transfer.Lines(strings.NewReader(lines.String())), transfer.Watcher{})
	if err != nil || report.Created+report.Updated != len(w.users) {
		w.Errorf("the import reports %+v, %v", report, err)
	}
}

// list reads a page of the users that changed since a time, on one of the replicas.
func (w *deltaWorld) list(replica int, since *domain.Time, cursor string, limit int) (*op.Page[api.User], error) {
	in := &api.ListUsersInput{}
	in.Path.ClientID = w.client
	in.Query.Limit, in.Query.Cursor, in.Query.UpdatedSince, in.Query.Sort, in.Query.Status = limit, cursor, since, "created_at", "all"
	return op.Call(w.ctx, &w.replicas[replica%len(w.replicas)].Set, api.ListUsers, in)
}

// tap keeps a copy of the users, and polls from the greatest updated_at that it has seen, as ETL tools do.
type tap struct {
	copy     map[domain.UserID]api.User
	greatest time.Time
	polls    int
	lag      time.Duration // the longest time that a horizon was behind the clock
}

func (p *tap) poll(w *deltaWorld) error {
	since, cursor := domain.At(p.greatest), ""
	for {
		p.polls++
		page, err := w.list(p.polls, &since, cursor, 500)
		if err != nil {
			return err
		}
		if cursor == "" {
			p.lag = max(p.lag, w.db.Now().Sub(page.Page.AsOf.Time))
		}
		for _, u := range page.Data {
			p.copy[u.ID] = u
			p.greatest = domain.Later(p.greatest, u.UpdatedAt.Time)
		}
		if page.Page.NextCursor == nil {
			return nil
		}
		cursor = *page.Page.NextCursor
	}
}

// stale returns how many users the tap's copy lacks or has with an old value.
func (p *tap) stale(w *deltaWorld) (n int) {
	whole := tap{copy: map[domain.UserID]api.User{}}
	for cursor := ""; ; {
		page, err := w.list(0, nil, cursor, 500)
		w.must(err)
		for _, u := range page.Data {
			whole.copy[u.ID] = u
		}
		if page.Page.NextCursor == nil {
			break
		}
		cursor = *page.Page.NextCursor
	}
	if len(whole.copy) != len(w.users) {
		w.Errorf("the list has %d users, want %d", len(whole.copy), len(w.users))
	}
	for id, u := range whole.copy {
		if mine := p.copy[id]; !mine.UpdatedAt.Time.Equal(u.UpdatedAt.Time) || *mine.Department != *u.Department {
			n++
		}
	}
	return n
}

// patch changes the department of a user.
func (w *deltaWorld) patch(replica int, user domain.UserID, department string) error {
	in := &api.UpdateUserInput{}
	in.Path.UserID, in.Body.Department = user, domain.Give(&department)
	_, err := op.Call(w.ctx, &w.replicas[replica%len(w.replicas)].Set, api.UpdateUser, in)
	return err
}

// round imports a change of all users, and changes single users, while the tap polls. It returns how many users are
// stale in the tap's copy afterwards.
func (w *deltaWorld) round(p *tap, name string) int {
	var group errgroup.Group
	imported := make(chan struct{})
	group.Go(func() error {
		defer close(imported)
		w.importUsers("import " + name)
		return nil
	})
	for n := range w.replicas {
		group.Go(func() error {
			for i := n; ; i += len(w.replicas) {
				select {
				case <-imported:
					return nil
				default:
				}
				user := w.users[(i*37)%len(w.users)] // not in the order of the import
				if err := w.patch(n, user, fmt.Sprintf("patch %s %d", name, i)); err != nil {
					return err
				}
			}
		})
	}
	group.Go(func() error {
		for {
			select {
			case <-imported:
				return nil
			default:
			}
			if err := p.poll(w); err != nil {
				return err
			}
		}
	})
	w.must(group.Wait())
	w.must(p.poll(w))
	return p.stale(w)
}

// sign returns what precedes another parameter of a path.
func sign(path string) string {
	if strings.Contains(path, "?") {
		return "&"
	}
	return "?"
}

// TestTap verifies that a program that polls from the greatest updated_at that it has seen misses no change, while an
// import changes all users and single users change.
func TestTap(t *testing.T) {
	t.Parallel()
	w := newDeltaWorld(t, 1200, false /* no pooler */)
	p := &tap{copy: map[domain.UserID]api.User{}}
	w.must(p.poll(w))
	for round := range 2 {
		if n := w.round(p, fmt.Sprint(round)); n > 0 {
			t.Errorf("round %d: %d of %d users are stale, after %d pages", round, n, len(w.users), p.polls)
		}
	}
}
