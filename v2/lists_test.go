package v2_test

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"partnerapi/domain"
	"partnerapi/v2/op"
	"partnerapi/v2/v2test"
)

// TestSearch: q is a substring of the name's key, taken literally (decisions 3.4).
func TestSearch(t *testing.T) {
	t.Parallel()
	w := newWorld(t, v2test.Options{Limits: v2test.Unlimited})
	for _, name := range []string{"100% Pure", "100 Pure", "snake_case", "snakecase", `back\slash`, "ÄRZTE Übersee", "Ωmega", "it's", `"quoted"`, "日本語 株式会社", "a?b", "a $1 b"} {
		w.Client(w.tenant, name)
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
	if n := len(names(w.Get("/v2/clients?q=", w.tenant.Key))); n != 13 {
		t.Errorf("an empty q finds %d", n)
	}
	body := map[string]any{"email": "zoë.o_neil@example.com", "first_name": "ZOË", "last_name": "O'Neil"}
	w.Do("POST", w.usersPath(), w.tenant.Key, body).Want(201)
	for q, n := range map[string]int{"zoë o'n": 1, "O_NEIL@EX": 1, "_": 1, "example": 2, "ada": 1, "%": 0} {
		if got := len(column(w.Get(w.usersPath()+"?q="+url.QueryEscape(q), w.tenant.Key).Want(200), "id")); got != n {
			t.Errorf("q=%s finds %d users, not %d", q, got, n)
		}
	}
}

// TestIDs is the table of the filter ids (decisions 3.4).
func TestIDs(t *testing.T) {
	t.Parallel()
	w := newWorld(t, v2test.Options{Limits: v2test.Unlimited})
	subset, out := tenants(t, w)
	in := w.client.ID.String()
	unknown := make([]string, op.MaxIDs)
	for i := range unknown {
		unknown[i] = fmt.Sprint("x", i)
	}
	outside := []string{in}
	for _, at := range out {
		if id, err := url.PathUnescape(at["client_id"]); err == nil && utf8.ValidString(id) && !strings.ContainsRune(id, 0) {
			outside = append(outside, id)
		}
	}
	for query, want := range map[string]string{
		"ids=": "", "ids=,,": "", "ids=" + in: "Client", "ids=" + in + "," + in: "Client", "ids=%20" + in + "%20,": "Client",
		"ids=x": "", "ids=x&ids=" + in: "Client", "ids=" + strings.Join(unknown, ","): "",
		"ids=" + in + "," + strings.Join(unknown[1:], ","):   "Client",
		"ids=" + url.QueryEscape(strings.Join(outside, ",")): "Client",
		"ids=" + in + "&q=nobody":                            "", "ids=" + in + "&updated_since=2020-01-01T00:00:00Z&sort=-risk_score": "Client",
	} {
		if got := strings.Join(names(w.Get("/v2/clients?"+query, subset).Want(200)), ", "); got != want {
			t.Errorf("%.60s lists %q, not %q", query, got, want)
		}
	}
	checkInvalid(t, w.Get("/v2/clients?ids="+strings.Join(append(unknown, "x"), ","), subset), "ids", "500")
	checkInvalid(t, w.Get("/v2/clients?ids="+strings.Join(unknown, ",")+"&ids=x", subset), "ids", "500")
}

// TestCursors: a cursor is good for its own list only, with any limit
// (decisions 3.3), and for every key that asks for that list.
func TestCursors(t *testing.T) {
	t.Parallel()
	w := newWorld(t, v2test.Options{Limits: v2test.Unlimited})
	other := w.Client(w.tenant, "Other")
	w.Client(w.tenant, "Third")
	w.User(w.tenant, w.client.ID, "second@example.com")
	w.User(w.tenant, other.ID, "first@example.com")
	cursorOf := func(path string) string {
		return w.Get(path+"limit=1", w.tenant.Key).Want(200).Field("page.next_cursor").(string)
	}
	bad := func(path, cursor string) {
		t.Helper()
		checkInvalid(t, w.Get(path+"cursor="+url.QueryEscape(cursor), w.tenant.Key), "cursor")
	}
	clients := cursorOf("/v2/clients?")
	for _, limit := range []string{"1", "2", "500"} {
		w.Get("/v2/clients?limit="+limit+"&cursor="+clients, w.tenant.Key).Want(200)
	}
	w.Get("/v2/clients?sort=name&q=&cursor="+clients, w.tenant.Key).Want(200) // the defaults, said
	for _, query := range []string{"sort=-name&", "sort=created_at&", "q=e&", "ids=" + w.client.ID.String() + "&", "ids=&", "updated_since=2020-01-01T00:00:00Z&"} {
		bad("/v2/clients?"+query, clients)
	}
	users := cursorOf(w.usersPath() + "?")
	byEmail, err := base64.RawURLEncoding.DecodeString(cursorOf(w.usersPath() + "?sort=email&"))
	if err != nil || bytes.Contains(byEmail, []byte("example.com")) {
		t.Errorf("a cursor reads %q, %v", byEmail, err)
	}
	w.Get(w.usersPath()+"?limit=7&status=all&cursor="+users, w.tenant.Key).Want(200)
	for _, query := range []string{"status=active&", "role=hr&", "q=x&", "collection_id=x&", "sort=email&", "updated_since=2020-01-01T00:00:00Z&"} {
		bad(w.usersPath()+"?"+query, users)
	}
	bad("/v2/clients/"+other.ID.String()+"/users?", users)
	bad(w.usersPath()+"?", clients)
	bad("/v2/clients?", users)
	bad(w.clientPath()+"/admins?", users)
	raw, err := base64.RawURLEncoding.DecodeString(clients)
	if err != nil {
		t.Fatalf("%q is not base64url without padding", clients)
	}
	for i := range raw {
		forged := slices.Clone(raw)
		forged[i] ^= 1
		bad("/v2/clients?", base64.RawURLEncoding.EncodeToString(forged))
	}
	for n := 1; n < len(clients); n += 7 {
		bad("/v2/clients?", clients[:n])
	}
	for _, text := range []string{clients + "A", clients + "=", " " + clients, "\n" + clients, clients[:4] + "\r" + clients[4:], "null", "e30", strings.Repeat("A", 5000), "é"} {
		bad("/v2/clients?", text)
	}
	// A cursor says where to go on, not what may be seen.
	subset := w.NewKey(w.tenant, bothScopes, []domain.ClientID{w.client.ID})
	if r := w.Get("/v2/clients?cursor="+clients, subset).Want(200); len(names(r)) != 0 {
		t.Errorf("a cursor of another key shows %s", r.Body)
	}
}

func TestMalformedQuery(t *testing.T) {
	t.Parallel()
	h := v2test.New(t, v2test.Options{})
	tenant := h.Tenant("Partner")
	refused := h.Get("/v2/clients?limit=%zz", tenant.Key).Want(400)
	if fields, ok := refused.Field("error.fields").([]any); !ok || len(fields) != 1 {
		t.Errorf("refused with %s", refused.Body)
	}
}
