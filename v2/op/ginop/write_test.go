package ginop_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"net/http/httptest"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/gin-gonic/gin"

	"partnerapi/domain"
	"partnerapi/v2/api"
	"partnerapi/v2/op"
	"partnerapi/v2/op/ginop"
)

var (
	someClient = domain.ClientID{1}
	someUser   = domain.UserID{2}
	someGroup  = domain.CollectionID{3}
)

// shown is the answer of an operation that shows an object.
type shown[ID any] struct {
	ID       ID              `json:"id"`
	ClientID domain.ClientID `json:"client_id,omitzero"`
}

// sendOutput is that of an operation that shows none.
type sendOutput struct{ client domain.ClientID }

// BudgetClient is the client whose users were sent something.
func (s sendOutput) BudgetClient() domain.ClientID { return s.client }

// platform is an edge of operations that write, on a database that is a list
// of what was written.
type platform struct {
	*edge
	trail    []domain.AuditEntry
	lost     error // what the look at the reach says
	refusing error // what the audit trail says
	fails    error // what a write says
	set      *op.Set
}

func newPlatform(t *testing.T) *platform {
	p := &platform{set: &op.Set{}}
	someone := func(in *api.GetClientInput) *shown[domain.UserID] {
		return &shown[domain.UserID]{someUser, in.Path.ClientID}
	}
	declare(p, "clients.create", "POST", "/clients", 201, give[empty](shown[domain.ClientID]{ID: someClient}))
	declare(p, "clients.get", "GET", "/clients/:client_id", 200, give[api.GetClientInput](shown[domain.ClientID]{}))
	declare(p, "users.create", "POST", "/clients/:client_id/users", 201, someone)
	declare(p, "users.risk", "GET", "/users/:user_id/risk", 200, give[api.GetUserInput](answer{}))
	declare(p, "users.get", "GET", "/users/:user_id", 200, give[api.GetUserInput](shown[domain.UserID]{}))
	declare(p, "users.update", "PATCH", "/users/:user_id", 200,
		give[api.GetUserInput](shown[domain.UserID]{someUser, someClient}))
	declare(p, "groups.create", "POST", "/clients/:client_id/groups", 201,
		give[api.GetClientInput](shown[domain.CollectionID]{ID: someGroup}))
	declare(p, "groups.delete", "DELETE", "/clients/:client_id/groups/:collection_id", 204,
		give[api.GetCollectionInput](op.NoContent{}))
	declare(p, "send", "POST", "/send", 202, give[empty](sendOutput{someClient}))
	declare(p, "courses.create", "POST", "/courses", 201, give[empty](shown[domain.CourseID]{}))

	records := map[string][]byte{}
	outcomes := map[string]domain.Outcome{}
	p.edge = newEdgeOf(t, func(c *ginop.Config) {
		c.Reach = func(_ context.Context, client domain.ClientID, user domain.UserID) error {
			if client != someClient && user != someUser {
				t.Errorf("the reach of %v and %v is looked at", client, user)
			}
			return p.lost
		}
		c.InTx = func(ctx context.Context, work func(context.Context) error) error {
			before := slices.Clone(p.trail)
			err := work(context.WithValue(ctx, inTx{}, true))
			if err != nil {
				p.trail = before
			}
			return err
		}
		c.Audit = func(ctx context.Context, entry domain.AuditEntry) error {
			if ctx.Value(inTx{}) == nil {
				t.Error("the trail is written outside the transaction")
			}
			p.trail = append(p.trail, entry)
			return p.refusing
		}
		c.Once = func(
			ctx context.Context, key string, request domain.RequestDigest, work func(context.Context) (domain.Outcome, error),
		) (domain.Outcome, error) {
			if first, ok := records[key]; ok && !bytes.Equal(first, request.Canonical) {
				return domain.Outcome{}, domain.ErrConflict("", "used with another request")
			} else if ok {
				return outcomes[key], nil
			}
			out, err := work(ctx)
			if err == nil {
				records[key], outcomes[key] = request.Canonical, out
			}
			return out, err
		}
	}, p.set)
	return p
}

type inTx struct{}

// give is an operation whose output does not depend on its input.
func give[In, Out any](out Out) func(*In) *Out { return func(*In) *Out { return &out } }

// declare adds an operation to the platform.
func declare[In, Out any](p *platform, id, method, path string, status int, run func(*In) *Out) {
	add(p.set, id, method, path, status, func(ctx context.Context, in *In) (*Out, error) {
		if method != "GET" && p.edge != nil && ctx.Value(inTx{}) == nil {
			return nil, errors.New("a write outside the transaction")
		}
		return run(in), p.fails
	})
}

// TestLocation: the answer to a creation says where the object is, in a replay too.
func TestLocation(t *testing.T) {
	p := newPlatform(t)
	client, user, group := "/v2/clients/"+someClient.String(), "/v2/users/"+someUser.String(), someGroup.String()
	for _, test := range []struct{ path, location string }{
		{"/v2/clients", client},
		{client + "/users", user},
		{client + "/groups", client + "/groups/" + group}, // which can be deleted, not read
		{"/v2/courses", ""},                               // nothing acts on one
	} {
		for n, w := range []*httptest.ResponseRecorder{
			p.do("POST", test.path, "pk_demo_good"), p.do("POST", test.path, "pk_demo_good", "Idempotency-Key", test.path),
			p.do("POST", test.path, "pk_demo_good", "Idempotency-Key", test.path),
		} {
			replayed := ""
			if n == 2 {
				replayed = "true"
			}
			if w.Code != 201 || w.Header().Get("Location") != test.location ||
				w.Header().Get("Idempotent-Replayed") != replayed {
				t.Errorf("%s, time %d: answers %d %v %s", test.path, n, w.Code, w.Header(), w.Body)
			}
		}
	}
	if w := p.do("PATCH", user, "pk_demo_good"); w.Code != 200 || w.Header().Get("Location") != "" {
		t.Errorf("a change answers %d %v", w.Code, w.Header())
	}
}

// TestReplayNeedsReach: a key that has lost the client gets no replay of what was done for it.
func TestReplayNeedsReach(t *testing.T) {
	p := newPlatform(t)
	path, other := "/v2/clients/"+someClient.String()+"/users", "/v2/clients/"+someClient.String()+"/groups"
	wantStatus(t, p.do("POST", path, "pk_demo_good", "Idempotency-Key", "k"), 201)
	p.lost = domain.ErrNotFound("client")
	for _, at := range []string{path, other} { // the other would be a conflict
		w := p.do("POST", at, "pk_demo_good", "Idempotency-Key", "k")
		wantError(t, w, domain.NotFound)
		if h := w.Header(); strings.Contains(w.Body.String(), someUser.String()) || h.Get("Location")+h.Get("Idempotent-Replayed") != "" {
			t.Errorf("%s answers %v %s", at, h, w.Body)
		}
	}
	p.lost = nil
	wantStatus(t, p.do("POST", other, "pk_demo_good", "Idempotency-Key", "k"), 409)
}

// TestAudit: every write leaves a line, with it or not at all.
func TestAudit(t *testing.T) {
	p := newPlatform(t)
	client, user := "/v2/clients/"+someClient.String(), "/v2/users/"+someUser.String()
	group := client + "/groups/" + someGroup.String()
	p.do("POST", "/v2/clients", "pk_demo_good7", "X-Request-Id", "r1")
	p.do("POST", client+"/users", "pk_demo_good", "Idempotency-Key", "k")
	p.do("POST", client+"/users", "pk_demo_good", "Idempotency-Key", "k") // a replay
	p.do("PATCH", user, "pk_demo_good")
	p.do("DELETE", group, "pk_demo_good")
	p.do("POST", "/v2/send", "pk_demo_good")
	p.do("GET", user, "pk_demo_good")
	p.do("PATCH", user, "bad")
	p.fails = domain.ErrConflict("user", "m")
	p.do("PATCH", user, "pk_demo_good")
	p.fails, p.refusing = nil, errors.New("no such table")
	wantStatus(t, p.do("PATCH", user, "pk_demo_good"), 500) // without its line there is no write

	want := []domain.AuditEntry{
		{Operation: "clients.create", Method: "POST", Path: "/v2/clients", Object: op.ObjectOf(someClient)},
		{Operation: "users.create", Method: "POST", Path: client + "/users", User: someUser, Object: op.ObjectOf(someUser)},
		{Operation: "users.update", Method: "PATCH", Path: user, User: someUser, Object: op.ObjectOf(someUser)},
		{Operation: "groups.delete", Method: "DELETE", Path: group, Object: op.ObjectOf(someGroup)},
		{Operation: "send", Method: "POST", Path: "/v2/send"},
	}
	if len(p.trail) != len(want) {
		t.Fatalf("the trail is %+v", p.trail)
	}
	if first := p.trail[0]; first.Prefix != "pk_good7" || first.Key != (domain.KeyID{8}) || first.RequestID != "r1" ||
		first.Partner != (domain.PartnerID{1}) || first.Address != netip.MustParseAddr("192.0.2.1") {
		t.Errorf("the first was %+v", first)
	}
	for i, got := range p.trail {
		if got.RequestID == "" {
			t.Errorf("line %d is %+v", i, got)
		}
		want := want[i]
		want.Client, want.Partner, want.Key = someClient, got.Partner, got.Key
		want.Prefix, want.Address, want.RequestID = got.Prefix, got.Address, got.RequestID
		if !reflect.DeepEqual(got, want) {
			t.Errorf("line %d is\n%+v, not\n%+v", i, got, want)
		}
	}
}

// TestEncode: invalid UTF-8 in an answer or an error is U+FFFD, on every surface: an error may
// repeat what a caller sent. What cannot be encoded is a failure in the surface's own words.
func TestEncode(t *testing.T) {
	e := newEdge(t, nil, nil)
	s := e.Surface(e.engine, "/v0", func(c *gin.Context, err *domain.Error) error {
		return ginop.WriteJSON(c, op.StatusOf(err.Code), map[string]string{"oops": err.Message})
	})
	s.Handle("GET", "/invalid", "invalid", func(c *gin.Context) error { return ginop.WriteJSON(c, 200, "a\xff") })
	s.Handle("GET", "/error", "error", func(*gin.Context) error { return domain.ErrInvalid("name", "is not \xff") })
	for path, want := range map[string]string{"/v0/invalid": "200 \"a\ufffd\"", "/v0/error": "400 {\"oops\":\"name is not \ufffd\"}"} {
		w := e.do("GET", path, "pk_demo_good")
		if got := fmt.Sprint(w.Code, " ", w.Body); got != want {
			t.Errorf("%s answers %s", path, got)
		}
	}
	s.Handle("GET", "/nan", "nan", func(c *gin.Context) error { return ginop.WriteJSON(c, 200, math.NaN()) })
	w := e.do("GET", "/v0/nan", "pk_demo_good")
	if w.Code != 500 || !strings.HasPrefix(w.Body.String(), `{"oops":`) || !strings.Contains(e.log.String(), "encode the response") {
		t.Errorf("answers %d %s, logs %s", w.Code, w.Body, e.log)
	}
}
