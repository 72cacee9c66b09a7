package v1compat

import (
	"fmt"
	"testing"

	"partnerapi/db"
	"partnerapi/domain"
	"partnerapi/v2/v2test"
)

// TestReports: the list without links, and one report as a page of its own
// (decisions 5.14).
func TestReports(t *testing.T) {
	t.Parallel()
	s := start(t, setup{})
	tenant := s.AddPartner("Partner")
	client := s.AddClient(tenant, "Client").ID
	id := db.NewID[domain.ReportKind]()
	s.insertReport(client, id, v2test.Noon)
	path := "/v1/clients/" + s.number(client) + "/reports"
	const report = `{"report_id":"1","report_type":"policy","created_date":"2026-06-15T12:00:00Z","updated_at":"2026-06-15T12:00:00Z"`
	linked := report + `,"download_link":"` + v2test.ReportLink + id.String() + `"}`
	for query, want := range map[string]string{
		"":                       fmt.Sprintf(`{"items":[%s}],"limit":20,"offset":0,"total":1}`, report),
		"?limit=99&offset=1":     `{"items":[],"limit":50,"offset":1,"total":1}`,
		"/1":                     fmt.Sprintf(`{"items":[%s],"limit":20,"offset":0,"total":1}`, linked),
		"/1?limit=7&offset=0":    fmt.Sprintf(`{"items":[%s],"limit":7,"offset":0,"total":1}`, linked),
		"/1?limit=0&offset=1":    `{"items":[],"limit":1,"offset":1,"total":1}`,
		"/1?limit=1000&offset=7": `{"items":[],"limit":50,"offset":7,"total":1}`,
	} {
		if got := s.Get(path+query, tenant.Key).Want(200); string(got.Body) != want {
			t.Errorf("%s: %s\nnot %s", query, got.Body, want)
		}
	}
}
