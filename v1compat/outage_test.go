package v1compat

import (
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"partnerapi/db/dbtest"
	"partnerapi/domain"
	"partnerapi/idmap/idmaptest"
	"partnerapi/v2/v2test"
)

// wire is the way to a database, which a test can cut and mend.
type wire struct {
	t               *testing.T
	network, server string
	address         string

	mu       sync.Mutex
	listener net.Listener
	conns    []net.Conn
}

// wireTo lays a wire to the database and returns the URL by which it leads
// there.
func wireTo(t *testing.T, database string) (*wire, string) {
	config, err := pgconn.ParseConfig(database)
	if err != nil {
		t.Fatal(err)
	}
	u, err := url.Parse(database)
	if err != nil {
		t.Fatal(err)
	}
	w := &wire{t: t, address: "127.0.0.1:0"}
	w.network, w.server = pgconn.NetworkAddress(config.Host, config.Port)
	w.mend()
	t.Cleanup(w.cut)
	w.address = w.listener.Addr().String()
	u.Host = w.address
	query := u.Query()
	query.Del("host")
	query.Del("port")
	u.RawQuery = query.Encode()
	return w, u.String()
}

// mend lets connections through.
func (w *wire) mend() {
	listener, err := net.Listen("tcp", w.address)
	if err != nil {
		w.t.Fatal(err)
	}
	w.listener = listener
	go func() {
		for {
			near, err := listener.Accept()
			if err != nil {
				return
			}
			far, err := net.Dial(w.network, w.server)
			if err != nil {
				near.Close()
				continue
			}
			w.mu.Lock()
			w.conns = append(w.conns, near, far)
			w.mu.Unlock()
			go pass(near, far)
			go pass(far, near)
		}
	}()
}

func pass(from, to net.Conn) {
	_, _ = io.Copy(to, from)
	from.Close()
	to.Close()
}

// cut breaks all connections and refuses new ones.
func (w *wire) cut() {
	w.listener.Close()
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, conn := range w.conns {
		conn.Close()
	}
	w.conns = nil
}

// TestOutage: what the service gets wrong is a 500 that shows nothing of it; a
// database that cannot be reached is a 503, until it can (decisions 2.6).
func TestOutage(t *testing.T) {
	t.Parallel()
	w, database := wireTo(t, dbtest.URL(t, idmaptest.Schema))
	s := newScene(t, setup{Options: v2test.Options{URL: database, Log: io.Discard}})
	each := func(fn func(*route, v2test.Response)) {
		t.Helper()
		for _, r := range s.facade.routes {
			good := s.good(r)
			fn(r, s.Do(r.Method, good.path, s.Key, good.body))
		}
	}
	each(func(r *route, got v2test.Response) { got.Want(r.Status) })
	w.cut()
	for range 3 { // over connections that were open, and new ones
		each(func(r *route, got v2test.Response) {
			envelope(t, r.ID, got, 503, domain.Unavailable, "temporarily offline")
		})
	}
	w.mend()
	each(func(r *route, got v2test.Response) { got.Want(r.Status) })
	for _, table := range []string{"partners", "clients", "users", "v1_usage", "v1_rehearsals"} {
		s.Exec("ALTER TABLE " + table + " RENAME TO lost_" + table)
	}
	each(func(r *route, got v2test.Response) {
		envelope(t, r.ID, got, http.StatusInternalServerError, domain.Internal, "something went wrong on our side")
		if strings.Contains(string(got.Body), "lost") || strings.Contains(string(got.Body), "relation") {
			t.Errorf("%s shows %s", r.ID, got.Body)
		}
	})
}
