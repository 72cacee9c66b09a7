//go:build slow

package parity

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"partnerapi/client"
	"partnerapi/db/dbtest"
	"partnerapi/domain"
	"partnerapi/idmap"
	"partnerapi/v1compat/v1test"
	"partnerapi/v2/v2test"
)

// writers change a tenant through both versions while it is compared.
type writers struct {
	s      *v1test.Service
	tenant v2test.Partner
	client domain.ClientID
	number string
	crews  []crew
	writes atomic.Int64
	ended  atomic.Bool
	group  sync.WaitGroup
	// moved is closed and made anew with each write.
	mu    sync.Mutex
	moved chan struct{}
}

// crew is a collection in both versions.
type crew struct {
	id     domain.CollectionID
	number int64
}

// wrote notes a write.
func (w *writers) wrote() {
	w.writes.Add(1)
	w.wake()
}

func (w *writers) wake() {
	w.mu.Lock()
	defer w.mu.Unlock()
	close(w.moved)
	w.moved = make(chan struct{})
}

// wait is a Wait that lasts until as many more writes were made as the pause has tenths
// of a second, or until the writers are done.
func (w *writers) wait(ctx context.Context, d time.Duration) error {
	until := w.writes.Load() + int64(d/(100*time.Millisecond))
	for {
		w.mu.Lock()
		moved := w.moved
		w.mu.Unlock()
		if w.writes.Load() >= until || w.ended.Load() {
			return ctx.Err()
		}
		select {
		case <-moved:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// do sends a write, which may be refused as others write too.
func (w *writers) do(method, path, body string) []byte {
	got, err := w.s.Caller(w.tenant.Key).Send(w.s.T.Context(), client.Request{Method: method, Path: path, Body: []byte(body)})
	if err != nil {
		w.s.T.Error(err)
		return nil
	}
	if got.Status >= 500 || got.Status == 400 {
		w.s.T.Errorf("%s %s: %d %s", method, path, got.Status, got.Body)
	}
	w.wrote()
	return got.Body
}

// write is the n-th write of a writer, to users of its own and to those that all share.
func (w *writers) write(who, n int, users []domain.UserID) {
	user := users[(who+n)%len(users)]
	status := []string{"inactive", "active"}[n/len(users)%2]
	to := w.crews[n%len(w.crews)]
	from := w.crews[(n+1)%len(w.crews)]
	switch n % 6 {
	case 0:
		w.do("POST", "/v1/users/"+user.UUID(), `{"status":"`+status+`"}`)
	case 1:
		w.do("PATCH", "/v2/users/"+user.String(), `{"status":"`+status+`","department":"D`+fmt.Sprint(n)+`"}`)
	case 2:
		w.do("POST", fmt.Sprintf("/v1/clients/%s/collections/%d/members", w.number, to.number), `{"user_infima_id":"`+user.UUID()+`"}`)
	case 3:
		w.do("DELETE", "/v2/clients/"+w.client.String()+"/collections/"+from.id.String()+"/members/"+user.String(), "")
	case 4:
		w.do("POST", "/v1/clients/"+w.number+"/users", fmt.Sprintf(`{"email":"v1-%d-%d@example.com"}`, who, n))
	case 5:
		w.do("POST", "/v2/clients/"+w.client.String()+"/users", fmt.Sprintf(`{"email":"v2-%d-%d@example.com","first_name":"V","last_name":"Two"}`, who, n))
	}
}

// TestBesideWriters: nothing that stays is called different while both versions are written
// to, and nothing at all when they are not any more.
func TestBesideWriters(t *testing.T) {
	t.Parallel()
	beside(t, dbtest.Times(1000))
}

// beside compares while three writers make so many writes each.
func beside(t *testing.T, each int) {
	s := v1test.Start(t, v2test.Options{})
	tenant := s.AddPartner("Northlight")
	c := s.AddClient(tenant, "Hollowbrook")
	w := &writers{s: s, tenant: tenant, client: c.ID, moved: make(chan struct{})}
	w.number = fmt.Sprint(s.NumberIn(idmap.Client, idmap.UUID(c.ID)))
	for _, name := range []string{"Crew", "Staff", "Board"} {
		id := s.AddCollection(c.ID, name)
		w.crews = append(w.crews, crew{id, s.NumberIn(idmap.Collection, idmap.UUID(id))})
	}
	var users []domain.UserID
	for i := range 7 {
		users = append(users, s.AddUser(tenant, c.ID, v2test.Email(i)).ID)
	}

	for who := range 3 {
		w.group.Go(func() {
			for n := range each {
				w.write(who, n, users)
			}
		})
	}
	go func() {
		w.group.Wait()
		w.ended.Store(true)
		w.wake()
	}()
	for last := false; !last; {
		last = w.ended.Load()
		for _, sample := range []int{0, 3} {
			config := config(s.URL, tenant.Key, s.Clock.Now())
			config.Wait, config.Sample = w.wait, sample
			r, err := Compare(t.Context(), config)
			if err != nil {
				t.Fatal(err)
			}
			for _, o := range r.Operations {
				if n := o.Different - o.Unsettled; n > 0 || last && o.Unsettled > 0 {
					_ = r.WriteText(t.Output())
					t.Fatalf("%s: %d false alarms with a sample of %d, %d kept changing", o.Operation, n, sample, o.Unsettled)
				}
			}
		}
	}
}
