package v1compat

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"partnerapi/db"
	"partnerapi/domain"
	"partnerapi/v2/v2test"
)

func TestDarkWebExposures(t *testing.T) {
	t.Parallel()
	s := start(t, setup{})
	tenant := s.Tenant("Partner")
	client := s.Client(tenant, "Client")
	ada := s.User(tenant, client.ID, "a@example.com")
	s.Clock.Advance(time.Second)
	bob := s.User(tenant, client.ID, "b@example.com")
	s.Exec("INSERT INTO breaches (name, title, severity, data_classes) VALUES ('A', 'A', 'low', '{x}'), ('B', 'B', 'low', '{x}'), ('C', 'C', 'low', '{x}')")
	for breach, at := range map[string]string{"A": "2026-03-01T00:00:00Z", "B": "2026-03-02T23:59:59.999999Z", "C": "2026-03-03T00:00:00Z"} {
		seen, err := time.Parse(time.RFC3339Nano, at)
		if err != nil {
			t.Fatal(err)
		}
		s.Signal(domain.Signal{Type: domain.ExposureFound, User: ada.ID, Breach: breach, At: seen})
	}
	s.Signal(domain.Signal{Type: domain.ExposureResolved, User: ada.ID, Breach: "B", At: s.Clock.Now()})
	path := "/v1/clients/" + s.number(client.ID) + "/darkweb/exposures"
	got := s.Get(path, tenant.Key).Want(http.StatusOK)
	want := fmt.Sprintf(`{"items":[{"id":"%s","email":"a@example.com","first_name":"Ada","last_name":"Example","resolved_exposures":1,"unresolved_exposures":2},`+
		`{"id":"%s","email":"b@example.com","first_name":"Ada","last_name":"Example","resolved_exposures":0,"unresolved_exposures":0}],"limit":200,"offset":0,"total":2}`, ada.ID.UUID(), bob.ID.UUID())
	if string(got.Body) != want {
		t.Errorf("got  %s\nwant %s", got.Body, want)
	}
	for query, want := range map[string][2]float64{ // resolved and unresolved
		"start=2026-03-02":                {1, 1},
		"start=&end=":                     {1, 2},
		"start=&end=2026-03-01":           {0, 1},
		"end=2026-03-02":                  {1, 1},
		"start=2026-03-02&end=2026-03-02": {1, 0},
		"end=2026-03-01T00:00:00Z":        {0, 1},
		"end=2026-03-02T23:59:59Z":        {0, 1},
		"start=2026-03-03T00:00:00Z&end=2026-03-03T00:00:00Z":        {0, 1},
		"start=2026-03-02T23:59:59.999999Z&end=2026-03-02":           {1, 0},
		"start=2026-03-03T01:00:00%2B01:00&end=9999-12-31":           {0, 1},
		"start=2026-03-04&end=2026-03-05&limit=1":                    {0, 0},
		"start=2026-03-01T00:00:00.000001Z&end=2026-03-02T23:59:00Z": {0, 0},
	} {
		p := s.list(path+"?"+query, tenant.Key)
		if p.Total != 2 || p.Items[0]["resolved_exposures"] != want[0] || p.Items[0]["unresolved_exposures"] != want[1] {
			t.Errorf("%s: %+v, want %v", query, p, want)
		}
	}
	for query, field := range map[string]string{
		"start=yesterday": "start", "end=2026-02-30": "end", "start=0000-01-01T00:00:00Z": "start",
		"start=2026-03-02&end=2026-03-01":                     "start",
		"start=2026-03-03&end=2026-03-02":                     "start",
		"start=2026-03-03T00:00:01Z&end=2026-03-03T00:00:00Z": "start",
	} {
		message, _ := s.Get(path+"?"+query, tenant.Key).Want(http.StatusBadRequest).Field("message").(string)
		if !strings.HasPrefix(message, field+" ") {
			t.Errorf("%s: %s", query, message)
		}
	}
	s.Do("PATCH", "/v2/users/"+bob.ID.String(), tenant.Key, `{"status":"inactive"}`).Want(http.StatusOK)
	if p := s.list(path, tenant.Key); p.Total != 1 || len(p.Items) != 1 {
		t.Errorf("after one is inactive: %+v", p)
	}
	stranger := s.Tenant("Stranger")
	s.Get(path, stranger.Key).Want(http.StatusForbidden)
	s.Exec("UPDATE clients SET dark_web_monitoring = false")
	off := s.Get(path, tenant.Key).Want(http.StatusForbidden)
	if off.Field("error") != string(domain.Forbidden) || !strings.Contains(off.Field("message").(string), "not enabled") {
		t.Errorf("where it is not enabled: %s", off.Body)
	}
}

func TestDarkWebStatements(t *testing.T) {
	s := start(t, setup{})
	tenant := s.Tenant("Partner")
	client := s.Client(tenant, "Client")
	s.User(tenant, client.ID, v2test.Email(1))
	path := "/v1/clients/" + s.number(client.ID) + "/darkweb/exposures?limit=1000"
	measure := func(path string) int {
		return s.Statements.During(func() { s.Get(path, tenant.Key).Want(http.StatusOK) })
	}
	measure(path)
	few, underneath := measure(path), measure("/v2/clients/"+client.ID.String()+"/dark-web/users")
	for range 499 {
		s.insertUser(client.ID, db.NewID[domain.UserKind](), domain.Active, s.Clock.Now())
	}
	if many := measure(path); many != few || few > underneath+3 {
		t.Errorf("%d statements for one user, %d for 500, %d for v2", few, many, underneath)
	}
}
