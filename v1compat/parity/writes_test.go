package parity

import (
	"strconv"
	"strings"
	"testing"

	"partnerapi/idmap"
	"partnerapi/v1compat/v1test"
)

// TestWrites: what is written through one version, the other shows; and little is left.
func TestWrites(t *testing.T) {
	t.Parallel()
	w := small(t)
	number := strconv.FormatInt(w.NumberIn(idmap.Client, idmap.UUID(w.client.ID)), 10)
	for _, client := range []string{number, w.client.ID.String()} {
		r, made, err := Writes(t.Context(), w.compare(w.URL), client)
		if err != nil {
			t.Fatal(err)
		}
		if r.Different() > 0 {
			t.Errorf("differences:\n%s", text(r))
		}
		if all := strings.Join(made, "\n"); len(made) != 4 || strings.Contains(all, "could not") {
			t.Errorf("made: %s", all)
		}
	}
	if n := w.Number("SELECT count(*) FROM collections WHERE name LIKE 'parity-%'"); n != 0 {
		t.Errorf("%d collections are left", n)
	}
	if n := w.Number("SELECT count(*) FROM users WHERE email LIKE 'parity-%' AND status = 'active'"); n != 0 {
		t.Errorf("%d users are active", n)
	}

	at := v1test.Proxy(t, w.URL, func(request string, a *v1test.Answer) {
		if strings.Contains(request, "GET /v2/") {
			a.Body = strings.ReplaceAll(a.Body, "made by partnerapi parity", "made")
		}
	})
	r, _, err := Writes(t.Context(), w.compare(at), number)
	if err != nil || r.Different() == 0 {
		t.Errorf("a description that v2 does not show: %v, %d differences", err, r.Different())
	}
	if _, _, err := Writes(t.Context(), w.compare(w.URL), "999999"); err == nil {
		t.Error("there is no client 999999")
	}
}
