package retire

import (
	"context"
	"database/sql"
	"io"
	"log/slog"
	"strings"
	"testing"
	"time"

	"partnerapi/db"
	"partnerapi/db/dbtest"
	"partnerapi/domain"
	"partnerapi/idmap/idmaptest"
)

func TestMain(m *testing.M) { dbtest.Main(m) }

// world is a database of the test's own, at a clock that stands at noon.
type world struct {
	t     *testing.T
	sql   *sql.DB
	clock *domain.ManualClock
	*Store
}

func newWorld(t *testing.T) *world {
	t.Helper()
	return worldAt(t, dbtest.URL(t, idmaptest.Schema))
}

func worldAt(t *testing.T, url string) *world {
	t.Helper()
	d, err := db.Open(url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close() })
	w := &world{t: t, sql: d.SQL(), clock: domain.NewManualClock(noon)}
	w.Store = NewStore(d.DB, w.clock)
	return w
}

// holds is the state as the database has it.
func (w *world) holds() *State {
	w.t.Helper()
	s, err := w.Load(w.t.Context())
	if err != nil {
		w.t.Fatal(err)
	}
	return s
}

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

// refused wants an error that says all of the words.
func (w *world) refused(err error, words ...string) {
	w.t.Helper()
	for _, word := range words {
		if err == nil || !strings.Contains(err.Error(), word) {
			w.t.Errorf("the error %q does not say %q", err, word)
		}
	}
}

// date is a day.
func date(text string) time.Time {
	d, err := domain.ParseDate(text)
	if err != nil {
		panic(err)
	}
	return d.Time()
}

// watch runs a Keeper's Watch until the test ends; each value is a reading.
func (w *world) watch() (*Keeper, <-chan error) {
	w.t.Helper()
	k, err := NewKeeper(w.t.Context(), w.Store)
	w.must(err)
	read := make(chan error, 100)
	k.observe = func(err error) { read <- err }
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		k.Watch(ctx, slog.New(slog.NewTextHandler(io.Discard, nil)))
	}()
	w.t.Cleanup(func() {
		cancel()
		<-done
	})
	return k, read
}

// insertKey adds a key of a partner.
func (w *world) insertKey(n, partner byte) {
	w.t.Helper()
	_, err := w.sql.ExecContext(w.t.Context(), `INSERT INTO partners (id, name, name_key, created_at)
		VALUES ($1::uuid, $1, $1, now()) ON CONFLICT DO NOTHING`, domain.PartnerID{partner}.UUID())
	w.must(err)
	_, err = w.sql.ExecContext(w.t.Context(), `INSERT INTO api_keys
		(id, partner_id, name, prefix, digest, all_clients, scopes, created_at)
		VALUES ($1::uuid, $2::uuid, 'key', $1::text, convert_to($1::text, 'UTF8'), true, '{}', now())`,
		domain.KeyID{n}.UUID(), domain.PartnerID{partner}.UUID())
	w.must(err)
}
