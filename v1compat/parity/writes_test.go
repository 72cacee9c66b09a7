package parity

import (
	"strconv"
	"strings"
	"testing"

	"partnerapi/idmap"
)

// TestWrites: what is written through one version, the other shows; and little is left.
func TestWrites(t *testing.T) {
	t.Parallel()
	w := small(t)
	number := strconv.FormatInt(w.NumberIn(idmap.Client, idmap.UUID(w.client.ID)), 10)
	for _, client := range []string{number, w.client.ID.String()} {
		r, made, err := Writes(t.Context(), config(w.URL, w.tenant.Key, w.Clock.Now()), client)
		if err != nil {
			t.Fatal(err)
		}
		if r.Different() > 0 {
			_ = r.WriteText(t.Output())
			t.Errorf("%d differences", r.Different())
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

	at := proxy(t, w.URL, func(request string, a *answered) {
		if strings.Contains(request, "GET /v2/") {
			a.body = strings.ReplaceAll(a.body, "made by partnerapi parity", "made")
		}
	})
	r, _, err := Writes(t.Context(), config(at, w.tenant.Key, w.Clock.Now()), number)
	if err != nil || r.Different() == 0 {
		t.Errorf("a description that v2 does not show: %v, %d differences", err, r.Different())
	}
	if _, _, err := Writes(t.Context(), config(w.URL, w.tenant.Key, w.Clock.Now()), "999999"); err == nil {
		t.Error("there is no client 999999")
	}
}
