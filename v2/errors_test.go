package v2_test

import (
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"partnerapi/db"
	"partnerapi/domain"
	"partnerapi/v2/op"
	"partnerapi/v2/v2test"
)

// provoker makes an operation fail, in every way in which it can fail with one
// code, and checks each response.
type provoker func(t *testing.T, o op.Operation)

// TestErrorMatrix provokes every code of every operation. A code that no
// provoker knows, or an operation that one cannot make fail, fails the test.
func TestErrorMatrix(t *testing.T) {
	t.Parallel()
	w := newWorld(t, v2test.Options{Limits: v2test.Unlimited})
	gated := newWorld(t, v2test.Options{Limits: v2test.Unlimited, Release: op.V2_0})
	tight := v2test.Unlimited
	tight.PerKey = 2
	small := newWorld(t, v2test.Options{Limits: tight})
	broken := brokenWorld(t)
	provokers := map[domain.Code]provoker{
		domain.Unauthorized:    w.provokeUnauthorized,
		domain.Forbidden:       w.provokeForbidden,
		domain.NotFound:        func(t *testing.T, o op.Operation) { provokeNotFound(t, w.in(t), gated.in(t), o) },
		domain.RateLimited:     small.provokeRateLimited,
		domain.InvalidRequest:  w.provokeInvalid,
		domain.RequestTimeout:  w.provokeTimeout,
		domain.PayloadTooLarge: w.provokeTooLarge,
		domain.UnsupportedEncoding: func(t *testing.T, o op.Operation) {
			w := w.in(t)
			checkError(t, w.send(o, w.tenant.Key, w.ids(), "Content-Encoding", "gzip"), domain.UnsupportedEncoding)
		},
		domain.Conflict: w.provokeConflict,
		domain.Internal: func(t *testing.T, o op.Operation) {
			r := checkError(t, broken.in(t).send(o, broken.tenant.Key, broken.ids()), domain.Internal)
			for _, word := range []string{"SQL", "relation", "clients", "partners", "42P01"} {
				if strings.Contains(string(r.Body), word) {
					t.Errorf("the answer shows internals: %s", r.Body)
				}
			}
		},
	}
	w.each(t, func(t *testing.T, _ *world, o op.Operation) {
		for _, code := range op.Codes(o) {
			if code == domain.Unavailable {
				continue // TestDatabaseUnreachable provokes it for every operation
			}
			t.Run(string(code), func(t *testing.T) {
				provoke, ok := provokers[code]
				if !ok {
					t.Fatalf("nothing provokes %s", code)
				}
				provoke(t, o)
			})
		}
	})
}

// brokenWorld is a service whose tables, all but those of keys, are not where it looks
// for them.
func brokenWorld(t *testing.T) *world {
	quiet := &strings.Builder{}
	w := newWorld(t, v2test.Options{Limits: v2test.Unlimited, Log: quiet})
	w.Get("/v2/clients", w.tenant.Key).Want(http.StatusOK) // the key is known from now on
	w.Exec(`DO $$ DECLARE t name; BEGIN
		CREATE SCHEMA elsewhere;
		FOR t IN SELECT tablename FROM pg_tables WHERE schemaname = 'public' AND tablename NOT LIKE 'api_key%' LOOP
			EXECUTE format('ALTER TABLE public.%I SET SCHEMA elsewhere', t);
		END LOOP;
	END $$`)
	return w
}

func (w *world) provokeUnauthorized(t *testing.T, o op.Operation) {
	w = w.in(t)
	yesterday := w.Clock.Now().Add(-24 * time.Hour)
	expired, err := w.DB.CreateKey(t.Context(), db.NewKey{Partner: w.tenant.ID, Name: "expired", Scopes: bothScopes, ExpiresAt: &yesterday})
	if err != nil {
		t.Fatal(err)
	}
	revoked, demo := w.AddKey(w.tenant, bothScopes, nil), w.AddKey(w.tenant, bothScopes, nil)
	w.Exec("UPDATE api_keys SET revoked_at = now() WHERE digest = $1", db.KeyDigest(revoked))
	w.Exec("UPDATE api_keys SET demo = true WHERE digest = $1", db.KeyDigest(demo))
	keys := map[string]string{
		"missing": "", "unknown": "pk_unknown", "cut": w.tenant.Key[:20], "longer": w.tenant.Key + "x",
		"expired": expired, "revoked": revoked, "demo": demo,
	}
	for name, key := range keys {
		t.Run(name, func(t *testing.T) {
			r := checkError(t, w.send(o, key, w.ids()), domain.Unauthorized)
			if key != "" && strings.Contains(string(r.Body), key) {
				t.Errorf("the answer shows the key: %s", r.Body)
			}
		})
	}
}

var bothScopes = []domain.Scope{domain.Read, domain.Write}

// keyWithout is a key that has all scopes but one; all, where any will do.
func (w *world) keyWithout(scope domain.Scope) string {
	scopes := slices.DeleteFunc(slices.Clone(bothScopes), func(s domain.Scope) bool { return s == scope })
	return w.AddKey(w.tenant, scopes, nil)
}

// checkScope checks the answer to a key without the operation's scope: Forbidden, or a
// success where any scope will do.
func checkScope(t *testing.T, o op.Operation, r v2test.Response) v2test.Response {
	t.Helper()
	if o.Meta().Scope == domain.AnyScope {
		return r.Want(o.Meta().Status)
	}
	return checkError(t, r, domain.Forbidden)
}

func (w *world) provokeForbidden(t *testing.T, o op.Operation) {
	w = w.in(t)
	checkError(t, w.send(o, w.keyWithout(o.Meta().Scope), w.ids()), domain.Forbidden)
}

// TestCreateClientNeedsAllClients: a client is created by a key for all clients alone, which is
// said before the body is read.
func TestCreateClientNeedsAllClients(t *testing.T) {
	t.Parallel()
	w := newWorld(t, v2test.Options{})
	for _, clients := range [][]domain.ClientID{{w.client.ID}, {}} {
		key := w.AddKey(w.tenant, bothScopes, clients)
		for _, body := range []string{`{"name":"New"}`, `{"name":" "}`} {
			r := checkError(t, w.Do("POST", "/v2/clients", key, body), domain.Forbidden)
			if got := r.Field("error.message"); got != "this operation needs a key with access to all clients" {
				t.Errorf("says %v", got)
			}
		}
	}
	if n := w.Number("SELECT count(*) FROM clients"); n != 1 {
		t.Errorf("there are %d clients", n)
	}
}

func provokeNotFound(t *testing.T, w, gated *world, o op.Operation) {
	if len(o.Input().Path) > 0 {
		checkError(t, w.send(o, w.tenant.Key, strangers()), domain.NotFound)
	}
	if o.Meta().Since > op.V2_0 {
		checkError(t, gated.send(o, gated.tenant.Key, gated.ids()), domain.NotFound)
	}
	checkOtherMethods(t, w, o, op.Latest)
	if o.Meta().Since <= op.V2_0 {
		checkOtherMethods(t, gated, o, op.V2_0)
	}
}

// checkOtherMethods verifies that a method that no release has on the path of o is MethodNotAllowed, with the methods of
// the served release in Allow, and that one of a later release is NotFound. Without a key it is Unauthorized.
func checkOtherMethods(t *testing.T, w *world, o op.Operation, served op.Release) {
	t.Helper()
	since := map[string]op.Release{}
	for _, other := range w.API.Set.All() {
		if m := other.Meta(); m.Path == o.Meta().Path {
			if since[m.Method] = m.Since; m.Method == "GET" {
				since["HEAD"] = m.Since
			}
		}
	}
	var allowed []string
	for method, release := range since {
		if release <= served {
			allowed = append(allowed, method)
		}
	}
	slices.Sort(allowed)
	path := pathOf(t, o, w.ids())
	for _, method := range []string{"GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE"} {
		switch release, known := since[method]; {
		case !known:
			r := checkError(t, w.Do(method, path, w.tenant.Key, nil), domain.MethodNotAllowed)
			if got := r.Header.Get("Allow"); got != strings.Join(allowed, ", ") {
				t.Errorf("%s %s: Allow is %q, want %q", method, path, got, allowed)
			}
			checkError(t, w.Do(method, path, "", nil), domain.Unauthorized)
		case release > served:
			checkError(t, w.Do(method, path, w.tenant.Key, nil), domain.NotFound)
		}
	}
}

func (w *world) provokeRateLimited(t *testing.T, o op.Operation) {
	w = w.in(t)
	key := w.keyWithout(o.Meta().Scope) // rate comes before scope
	for left := 1; left >= 0; left-- {
		r := checkScope(t, o, w.send(o, key, w.ids()))
		if number(t, r, "X-Ratelimit-Limit") != 2 || number(t, r, "X-Ratelimit-Remaining") != left {
			t.Errorf("with %d left, the headers are %v", left, r.Header)
		}
	}
	r := checkError(t, w.send(o, key, w.ids()), domain.RateLimited)
	if number(t, r, "X-Ratelimit-Limit") != 2 || number(t, r, "X-Ratelimit-Remaining") != 0 {
		t.Errorf("the headers of the refusal are %v", r.Header)
	}
	checkError(t, w.Get("/v2/unknown", key), domain.NotFound) // unknown routes come before the rate
}

// provokeTimeout sends a body that does not arrive in time.
func (w *world) provokeTimeout(t *testing.T, o op.Operation) {
	r := httptest.NewRequest(o.Meta().Method, pathOf(t, o, w.ids()), iotest.ErrReader(os.ErrDeadlineExceeded))
	r.Header.Set("X-API-Key", w.tenant.Key)
	answer := httptest.NewRecorder()
	w.Engine.ServeHTTP(answer, r)
	if answer.Code != http.StatusRequestTimeout || !strings.Contains(answer.Body.String(), `"code":"request_timeout"`) {
		t.Errorf("answers %d %s", answer.Code, answer.Body)
	}
}

func (w *world) provokeTooLarge(t *testing.T, o op.Operation) {
	w = w.in(t)
	path := pathOf(t, o, w.ids())
	exact := `{"x":"` + strings.Repeat("a", op.MaxBody-8) + `"}`
	if len(exact) != op.MaxBody {
		t.Fatalf("the body has %d bytes", len(exact))
	}
	if r := w.Do(o.Meta().Method, path, w.tenant.Key, exact); r.Status == http.StatusRequestEntityTooLarge {
		t.Errorf("a body of exactly 1 MiB is too large")
	}
	checkError(t, w.Do(o.Meta().Method, path, w.tenant.Key, exact+" "), domain.PayloadTooLarge)
}

// provokeConflict repeats the Idempotency-Key of a POST with another request. The other conflicts of an operation are
// those of TestConflictsNameTheirCause, which needs a case for an operation that declares Conflict.
func (w *world) provokeConflict(t *testing.T, o op.Operation) {
	w = w.in(t)
	ofOperation := func(c conflict) bool { return c.operation == o.Meta().ID }
	if slices.Contains(o.Meta().Fails, domain.Conflict) && !slices.ContainsFunc(conflicts, ofOperation) {
		t.Fatal("no request conflicts: see conflicts")
	}
	if o.Meta().Method != "POST" {
		return
	}
	at := w.ids()
	path, key := pathOf(t, o, at), []string{"Idempotency-Key", o.Meta().ID}
	if o.Input().Body == nil { // the parameters distinguish two requests
		w.Do("POST", path, w.tenant.Key, nil, key...).Want(o.Meta().Status)
		checkConflict(t, w.Do("POST", pathOf(t, o, at, "another=1"), w.tenant.Key, nil, key...), "Idempotency-Key")
		checkInvalid(t, w.Do("POST", path, w.tenant.Key, "{}"), "body", "must be empty")
		return
	}
	w.Do("POST", path, w.tenant.Key, w.body(o), key...).Want(o.Meta().Status)
	checkConflict(t, w.send(o, w.tenant.Key, w.ids(), key...), "Idempotency-Key")
}
