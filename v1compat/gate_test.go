package v1compat

import (
	"context"
	"runtime"
	"sync"
	"testing"

	"partnerapi/db/pg"
	"partnerapi/domain"
	"partnerapi/idmap"
	"partnerapi/v2/v2test"
)

// TestLockedRegistry: while the registry cannot be read and 40 look-ups of a partner
// wait for it, the service is ready, and another partner reads what needs no registry.
// The look-ups are answered once it can be read.
func TestLockedRegistry(t *testing.T) {
	t.Parallel()
	s := start(t, setup{Options: v2test.Options{Limits: v2test.Unlimited}})
	busy, other := s.AddPartner("Busy"), s.AddPartner("Other")
	client, theirs := s.AddClient(busy, "Client"), s.AddClient(other, "Client of another")
	key := idmap.IDKey{Kind: idmap.Client, ID: idmap.UUID(client.ID)}
	read := func() { s.Do("GET", "/v2/clients/"+theirs.ID.String(), other.Key, nil).Want(200) }
	read() // the key is known from now on
	ctx := domain.WithCaller(t.Context(), &domain.Caller{Partner: busy.ID})

	var lookUps sync.WaitGroup
	err := s.DB.Tx(t.Context(), func(locked context.Context) error {
		if _, err := pg.Exec(locked, s.DB, "lock the registry", pg.SQL("LOCK TABLE id_registry IN ACCESS EXCLUSIVE MODE")); err != nil {
			return err
		}
		for range 40 {
			lookUps.Go(func() {
				if found, err := s.registry.Numbers(ctx, []idmap.IDKey{key}); err != nil || found[key] == 0 {
					t.Errorf("a look-up: %v, %v", found, err)
				}
			})
		}
		for s.DB.Stats().InUse < s.DB.Stats().Max*3/4+1 { // the partner's share, and this transaction
			runtime.Gosched()
		}
		if err := s.DB.Ping(t.Context()); err != nil {
			t.Errorf("not ready: %v", err)
		}
		read()
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	lookUps.Wait()
}
