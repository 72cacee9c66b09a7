//go:build slow

package parity

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"testing"

	"partnerapi/db/seed"
	"partnerapi/domain"
	"partnerapi/idmap"
	"partnerapi/v1compat/v1test"
	"partnerapi/v2/v2test"
)

// TestMoveToAnotherInstallation verifies the whole move of the demonstration's partner: after an export, an import, and
// both for numbers, v1 responds in another installation as it did before, byte for byte.
func TestMoveToAnotherInstallation(t *testing.T) {
	t.Parallel()
	from, to := demo(t), v1test.Start(t, v2test.Options{Demo: true})
	keys, err := seed.Demo(t.Context(), from.DB) // which is there
	if err != nil {
		t.Fatal(err)
	}
	partner, err := domain.ParseUUID[domain.PartnerKind](from.Text("SELECT id::text FROM partners WHERE name = $1", seed.DemoPartner))
	if err != nil {
		t.Fatal(err)
	}
	v2test.Move(from.Harness, to.Harness, partner)
	var numbers bytes.Buffer
	if _, err := idmap.Export(t.Context(), from.DB.DB, []domain.PartnerID{partner}, &numbers, nil); err != nil {
		t.Fatal(err)
	}
	file := numbers.Bytes()
	report, err := idmap.Import(t.Context(), to.DB.DB, &numbers, false)
	if err != nil {
		t.Fatalf("%v: %v", err, report.Refused)
	}
	var again bytes.Buffer
	if _, err := idmap.Export(t.Context(), to.DB.DB, []domain.PartnerID{partner}, &again, nil); err != nil || !bytes.Equal(again.Bytes(), file) {
		t.Errorf("the numbers are exported as others: %v", err)
	}

	want, got := readV1(from, keys.All), readV1(to, keys.All)
	if len(want) < 100 || !slices.Equal(slices.Sorted(maps.Keys(want)), slices.Sorted(maps.Keys(got))) {
		t.Errorf("read %d paths, and %d after the move", len(want), len(got))
	}
	for path, body := range want {
		if got[path] != body {
			t.Errorf("%s:\n%s", path, v2test.Diff(body, got[path]))
		}
	}
	if from.Number(`SELECT count(*) FROM policies AS p WHERE p.scope_type = 'collection'
		AND NOT EXISTS (SELECT FROM collections AS k WHERE k.id = p.scope_id)`) == 0 {
		t.Error("the demonstration has no policy whose collection was deleted")
	}
}

// readV1 returns what v1 responds to a key, by path: clients, collections and their members, policies and their users,
// and the simulations of some users, which show groups and templates.
func readV1(s *v1test.Service, key string) map[string]string {
	s.T.Helper()
	found := map[string]string{}
	list := func(path string) (ids []string) {
		const limit = 100
		for offset := 0; ; offset += limit {
			page := fmt.Sprintf("/v1%s?limit=%d&offset=%d", path, limit, offset)
			r := s.Get(page, key)
			if r.Status != http.StatusOK { // a client without Dark Web Monitoring; the body has the request's id
				found[page] = fmt.Sprint(r.Status)
				return ids
			}
			found[page] = string(r.Body)
			var body struct {
				Items []struct {
					ID json.RawMessage `json:"id"`
				} `json:"items"`
			}
			r.Into(&body)
			for _, item := range body.Items {
				ids = append(ids, string(bytes.Trim(item.ID, `"`)))
			}
			if len(body.Items) < limit {
				return ids
			}
		}
	}
	found["/v1/partner"] = string(s.Get("/v1/partner", key).Want(http.StatusOK).Body)
	for n, client := range list("/clients") {
		of := "/clients/" + client
		for _, collection := range list(of + "/collections") {
			list(of + "/collections/" + collection + "/members")
		}
		for _, policy := range list(of + "/policies") {
			list(of + "/policies/" + policy + "/users")
		}
		list(of + "/darkweb/exposures")
		for i, user := range list(of + "/users") {
			if n > 0 && i > 1 || i > 10 {
				break
			}
			list("/users/" + user + "/phishing")
			list("/users/" + user + "/training")
		}
	}
	return found
}
