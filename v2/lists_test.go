package v2_test

import (
	"encoding/base64"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"

	"partnerapi/domain"
	"partnerapi/v2/op"
	"partnerapi/v2/v2test"
)

// TestSearch: q is a substring of the name's key, taken literally (decisions 3.4).
func TestSearch(t *testing.T) {
	t.Parallel()
	w := newWorld(t, v2test.Options{Limits: v2test.Unlimited})
	for _, name := range []string{"100% Pure", "100 Pure", "snake_case", "snakecase", `back\slash`, "ÄRZTE Übersee", "Ωmega", "it's", `"quoted"`, "日本語 株式会社", "a?b", "a $1 b"} {
		w.AddClient(w.tenant, name)
	}
	for q, want := range map[string]string{
		"%": "100% Pure", "_": "snake_case", "0% p": "100% Pure", `\`: `back\slash`, "ärzte": "ÄRZTE Übersee", "ÜBER": "ÄRZTE Übersee",
		"ω": "Ωmega", "'": "it's", `"Q`: `"quoted"`, "株式": "日本語 株式会社", "PURE": "100 Pure|100% Pure", "?": "a?b", "$1": "a $1 b",
		"nobody": "", "snake%case": "", " pure ": "100 Pure|100% Pure", "a  \t$1": "a $1 b", "u\u0308BER": "ÄRZTE Übersee",
		strings.Repeat("x", 500): "",
	} {
		got := strings.Join(names(w.Get("/v2/clients?q="+url.QueryEscape(q), w.tenant.Key).Want(200)), "|")
		if got != want {
			t.Errorf("q=%.20s finds %s, not %s", q, got, want)
		}
	}
	body := map[string]any{"email": "zoë.o_neil@example.com", "first_name": "ZOË", "last_name": "O'Neil"}
	w.Do("POST", w.usersPath(), w.tenant.Key, body).Want(201)
	for q, n := range map[string]int{"zoë o'n": 1, "O_NEIL@EX": 1, "_": 1, "example": 2, "ada": 1, "%": 0} {
		if got := len(column(w.Get(w.usersPath()+"?q="+url.QueryEscape(q), w.tenant.Key).Want(200), "id")); got != n {
			t.Errorf("q=%s finds %d users, not %d", q, got, n)
		}
	}
}

// TestClientsByExternalID: the filter is exact in every character, and several clients may
// share an identifier.
func TestClientsByExternalID(t *testing.T) {
	t.Parallel()
	w := newWorld(t, v2test.Options{})
	for name, external := range map[string]string{"A": "CRM-1", "B": "CRM-1", "C": "crm-1", "D": " CRM-1", "E": "e\u0301"} {
		w.Do("POST", "/v2/clients", w.tenant.Key, map[string]any{"name": name, "external_id": external}).Want(201)
	}
	for external, want := range map[string]string{
		"CRM-1": "A|B", "crm-1": "C", " CRM-1": "D", "e\u0301": "E", "\u00e9": "", "CRM-": "",
	} {
		got := strings.Join(names(w.Get("/v2/clients?external_id="+url.QueryEscape(external), w.tenant.Key).Want(200)), "|")
		if got != want {
			t.Errorf("external_id=%s lists %s, not %s", external, got, want)
		}
	}
}

// TestIDs is the table of the filter ids (decisions 3.4).
func TestIDs(t *testing.T) {
	t.Parallel()
	w := newWorld(t, v2test.Options{Limits: v2test.Unlimited})
	in := w.client.ID.String()
	unknown := make([]string, op.MaxIDs)
	for i := range unknown {
		unknown[i] = fmt.Sprint("x", i)
	}
	for query, want := range map[string]string{
		"ids=": "", "ids=,,": "", "ids=" + in: "Client", "ids=" + in + "," + in: "Client", "ids=%20" + in + "%20,": "Client",
		"ids=x": "", "ids=x&ids=" + in: "Client", "ids=" + strings.Join(unknown, ","): "",
		"ids=" + in + "," + strings.Join(unknown[1:], ","): "Client",
	} {
		if got := strings.Join(names(w.Get("/v2/clients?"+query, w.tenant.Key).Want(200)), ", "); got != want {
			t.Errorf("%.60s lists %q, not %q", query, got, want)
		}
	}
	checkInvalid(t, w.Get("/v2/clients?ids="+strings.Join(unknown, ",")+"&ids=x", w.tenant.Key), "ids", "500")
}

// TestCursors: a cursor is good for its own list only, with any limit
// (decisions 3.3), and for every key that asks for that list.
func TestCursors(t *testing.T) {
	t.Parallel()
	w := newWorld(t, v2test.Options{Limits: v2test.Unlimited})
	w.AddClient(w.tenant, "Third")
	bad := func(path, cursor string) {
		t.Helper()
		checkInvalid(t, w.Get(path+"cursor="+url.QueryEscape(cursor), w.tenant.Key), "cursor")
	}
	clients := w.Get("/v2/clients?limit=1", w.tenant.Key).Want(200).Field("page.next_cursor").(string)
	w.Get("/v2/clients?limit=500&sort=name&q=&cursor="+clients, w.tenant.Key).Want(200) // the defaults, given
	bad("/v2/clients?sort=-name&", clients)
	bad(w.usersPath()+"?", clients)
	raw, err := base64.RawURLEncoding.DecodeString(clients)
	if err != nil {
		t.Fatalf("%q is not base64url without padding", clients)
	}
	for i := range raw {
		forged := slices.Clone(raw)
		forged[i] ^= 1
		bad("/v2/clients?", base64.RawURLEncoding.EncodeToString(forged))
	}
	for _, text := range []string{
		clients + "A", clients + "=", " " + clients, "\n" + clients, clients[:4] + "\r" + clients[4:], clients[:8], "é",
	} {
		bad("/v2/clients?", text)
	}
	// A cursor says where to go on, not what may be seen.
	subset := w.AddKey(w.tenant, bothScopes, []domain.ClientID{w.client.ID})
	if r := w.Get("/v2/clients?cursor="+clients, subset).Want(200); len(names(r)) != 0 {
		t.Errorf("a cursor of another key shows %s", r.Body)
	}
}

func TestMalformedQuery(t *testing.T) {
	t.Parallel()
	h := v2test.New(t, v2test.Options{})
	tenant := h.AddPartner("Partner")
	refused := h.Get("/v2/clients?limit=%zz", tenant.Key).Want(400)
	if fields, ok := refused.Field("error.fields").([]any); !ok || len(fields) != 1 {
		t.Errorf("refused with %s", refused.Body)
	}
}
