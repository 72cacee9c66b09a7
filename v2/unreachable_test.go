//go:build slow

package v2_test

import (
	"strings"
	"testing"

	"partnerapi/db/dbtest"
	"partnerapi/db/dbtest/worldtest"
	"partnerapi/domain"
	"partnerapi/v2/op"
	"partnerapi/v2/v2test"
)

// TestDatabaseUnreachable kills the database: every operation answers 503, with
// a key that is remembered and with one that is not, and works again when the
// database does, without anybody's help.
func TestDatabaseUnreachable(t *testing.T) {
	t.Parallel()
	server := dbtest.Private(t)
	if err := worldtest.Migrate(t.Context(), server.URL()); err != nil {
		t.Fatal(err)
	}
	w := newWorld(t, v2test.Options{Limits: v2test.Unlimited, URL: server.URL(), Log: &strings.Builder{}})
	cold := w.AddKey(w.tenant, bothScopes, nil)
	idle(w)
	server.Kill()
	w.AwaitOutage()
	w.each(t, func(t *testing.T, w *world, o op.Operation) {
		checkError(t, w.send(o, w.tenant.Key, w.ids()), domain.Unavailable)
		checkError(t, w.send(o, cold, w.ids()), domain.Unavailable)
		if o.Meta().Method == "POST" {
			checkError(t, w.send(o, w.tenant.Key, w.ids(), "Idempotency-Key", "k"), domain.Unavailable)
		}
	})
	server.Start()
	w.each(t, func(t *testing.T, w *world, o op.Operation) {
		w.send(o, w.tenant.Key, w.ids()).Want(o.Meta().Status)
	})
	// Connections that die while idle are replaced too: the requests
	// that meet one may be refused, but in the documented way.
	idle(w)
	server.Kill()
	server.Start()
	w.each(t, func(t *testing.T, w *world, o op.Operation) {
		for range 50 {
			r := w.send(o, w.tenant.Key, w.ids())
			if r.Status == o.Meta().Status {
				return
			}
			checkError(t, r, domain.Unavailable)
		}
		t.Error("does not recover")
	})
}

// idle leaves the service with several idle connections.
func idle(w *world) {
	done := make(chan int)
	for range 8 {
		go func() { done <- w.Get("/v2/clients", w.tenant.Key).Status }()
	}
	for range 8 {
		<-done
	}
}
