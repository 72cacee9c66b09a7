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
	"partnerapi/v2/op"
	"partnerapi/v2/op/ginop"
)

var (
	someClient = domain.ClientID{1}
	someUser   = domain.UserID{2}
	someGroup  = domain.GroupID{3}
)

type (
	clientInput struct {
		Path struct {
			ClientID domain.ClientID `path:"client_id"`
		}
	}
	userInput struct {
		Path struct {
			UserID domain.UserID `path:"user_id"`
		}
	}
	groupInput struct {
		Path struct {
			ClientID domain.ClientID `path:"client_id"`
			GroupID  domain.GroupID  `path:"group_id"`
		}
	}
	clientOutput struct {
		ID domain.ClientID `json:"id"`
	}
	userOutput struct {
		ID       domain.UserID   `json:"id"`
		ClientID domain.ClientID `json:"client_id"`
	}
	groupOutput struct {
		ID domain.GroupID `json:"id"`
	}
	sendOutput   struct{ client domain.ClientID }
	courseOutput struct {
		ID domain.CourseID `json:"id"`
	}
)

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
	declare(p, "clients.create", "POST", "/clients", 201, func(*empty) *clientOutput {
		return &clientOutput{ID: someClient}
	})
	declare(p, "clients.get", "GET", "/clients/:client_id", 200, func(*clientInput) *clientOutput {
		return &clientOutput{}
	})
	declare(p, "users.create", "POST", "/clients/:client_id/users", 201, func(in *clientInput) *userOutput {
		return &userOutput{ID: someUser, ClientID: in.Path.ClientID}
	})
	declare(p, "users.risk", "GET", "/users/:user_id/risk", 200, func(*userInput) *answer { return &answer{} })
	declare(p, "users.get", "GET", "/users/:user_id", 200, func(*userInput) *userOutput { return &userOutput{} })
	declare(p, "users.update", "PATCH", "/users/:user_id", 200, func(in *userInput) *userOutput {
		return &userOutput{ID: in.Path.UserID, ClientID: someClient}
	})
	declare(p, "groups.create", "POST", "/clients/:client_id/groups", 201, func(*clientInput) *groupOutput {
		return &groupOutput{ID: someGroup}
	})
	declare(p, "groups.delete", "DELETE", "/clients/:client_id/groups/:group_id", 204, func(*groupInput) *op.NoContent {
		return &op.NoContent{}
	})
	declare(p, "send", "POST", "/send", 202, func(*empty) *sendOutput { return &sendOutput{someClient} })
	declare(p, "courses.create", "POST", "/courses", 201, func(*empty) *courseOutput { return &courseOutput{} })

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
			ctx context.Context, key string, hash []byte, work func(context.Context) (domain.Outcome, error),
		) (domain.Outcome, error) {
			if first, ok := records[key]; ok && !bytes.Equal(first, hash) {
				return domain.Outcome{}, domain.ErrConflict("", "used with another request")
			} else if ok {
				return outcomes[key], nil
			}
			out, err := work(ctx)
			if err == nil {
				records[key], outcomes[key] = hash, out
			}
			return out, err
		}
	}, p.set)
	return p
}

type inTx struct{}

// declare adds an operation, of scope write where it is no GET.
func declare[In, Out any](p *platform, id, method, path string, status int, run func(*In) *Out) {
	scope := domain.Write
	if method == "GET" {
		scope = domain.Read
	}
	op.Add(p.set, op.Meta{
		ID: id, Method: method, Path: path, Scope: scope, Since: op.V2_0, Status: status, Summary: "s",
	}, func(ctx context.Context, in *In) (*Out, error) {
		if scope == domain.Write && p.edge != nil && ctx.Value(inTx{}) == nil {
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
	if w := p.do("POST", path, "pk_demo_good", "Idempotency-Key", "k"); w.Code != 201 {
		t.Fatalf("answers %d %s", w.Code, w.Body)
	}
	p.lost = domain.ErrNotFound("client")
	for _, at := range []string{path, other} { // the other would be a conflict
		w := p.do("POST", at, "pk_demo_good", "Idempotency-Key", "k")
		if w.Code != 404 || strings.Contains(w.Body.String(), someUser.String()) ||
			w.Header().Get("Location")+w.Header().Get("Idempotent-Replayed") != "" {
			t.Errorf("%s answers %d %v %s", at, w.Code, w.Header(), w.Body)
		}
	}
	p.lost = nil
	if w := p.do("POST", other, "pk_demo_good", "Idempotency-Key", "k"); w.Code != 409 {
		t.Errorf("a key that was used answers %d", w.Code)
	}
}

// TestAudit: every write leaves a line, with it or not at all.
func TestAudit(t *testing.T) {
	p := newPlatform(t)
	client, user := "/v2/clients/"+someClient.String(), "/v2/users/"+someUser.String()
	p.do("POST", "/v2/clients", "pk_demo_good7", "X-Request-Id", "r1")
	p.do("POST", client+"/users", "pk_demo_good", "Idempotency-Key", "k")
	p.do("POST", client+"/users", "pk_demo_good", "Idempotency-Key", "k") // a replay
	p.do("PATCH", user, "pk_demo_good")
	p.do("DELETE", client+"/groups/"+someGroup.String(), "pk_demo_good")
	p.do("POST", "/v2/send", "pk_demo_good")
	p.do("GET", user, "pk_demo_good")
	p.do("PATCH", user, "bad")
	p.fails = domain.ErrConflict("user", "m")
	p.do("PATCH", user, "pk_demo_good")
	p.fails, p.refusing = nil, errors.New("no such table")
	if w := p.do("PATCH", user, "pk_demo_good"); w.Code != 500 {
		t.Errorf("a write without its line answers %d", w.Code)
	}

	want := []domain.AuditEntry{
		{
			Operation: "clients.create", Method: "POST", Path: "/v2/clients",
			Partner: domain.PartnerID{1}, Client: someClient,
			Object: domain.AuditObject{Kind: "client", ID: someClient.String()},
		},
		{
			Operation: "users.create", Method: "POST", Path: client + "/users",
			Client: someClient, User: someUser, Object: domain.AuditObject{Kind: "user", ID: someUser.String()},
		},
		{
			Operation: "users.update", Method: "PATCH", Path: user,
			Client: someClient, User: someUser, Object: domain.AuditObject{Kind: "user", ID: someUser.String()},
		},
		{
			Operation: "groups.delete", Method: "DELETE", Path: client + "/groups/" + someGroup.String(),
			Client: someClient, Object: domain.AuditObject{Kind: "group", ID: someGroup.String()},
		},
		{Operation: "send", Method: "POST", Path: "/v2/send", Client: someClient},
	}
	if len(p.trail) != len(want) {
		t.Fatalf("the trail is %+v", p.trail)
	}
	if first := p.trail[0]; first.Prefix != "pk_good7" || first.Key != (domain.KeyID{8}) ||
		first.Address != netip.MustParseAddr("192.0.2.1") || first.RequestID != "r1" {
		t.Errorf("the first was %+v", first)
	}
	for i, got := range p.trail {
		if got.RequestID == "" {
			t.Errorf("line %d is %+v", i, got)
		}
		got.Key, got.Prefix, got.Address, got.RequestID = domain.KeyID{}, "", netip.Addr{}, ""
		if !reflect.DeepEqual(got, want[i]) {
			t.Errorf("line %d is\n%+v, not\n%+v", i, got, want[i])
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
	if w.Code != 500 || !strings.HasPrefix(w.Body.String(), `{"oops":`) || !strings.Contains(e.log.String(), "encode the answer") {
		t.Errorf("answers %d %s, logs %s", w.Code, w.Body, e.log)
	}
}
