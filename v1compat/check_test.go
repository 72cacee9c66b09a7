package v1compat

import (
	"net/http"
	"strings"
	"testing"

	"partnerapi/v2/api"
)

// TestStartUpCheck: a route that its operation does not fit is found when the
// service starts, not when a caller meets it.
func TestStartUpCheck(t *testing.T) {
	t.Parallel()
	good := Meta{
		ID: "create-client", Method: "POST", Path: "/clients", Status: http.StatusCreated, Summary: "Create Client",
		Fails: []int{400, 409, 413}, Fields: map[string]string{"name": "company_name"},
	}
	undocumented, unknown, noBody := good, good, good
	undocumented.Fails = []int{400, 413}
	unknown.Fields = map[string]string{"title": "company_name"}
	noBody.Fields = map[string]string{"body": "company_name"}
	for _, c := range []struct {
		meta Meta
		want string
	}{
		{good, ""},
		{undocumented, "operation clients.create fails with conflict, for which the route has no status"},
		{unknown, "operation clients.create has no field title"},
		{noBody, "operation clients.create has no field body"},
	} {
		got := refusal(func() {
			f := &Facade{}
			addCall(f, c.meta, api.CreateClient, fillCreateClient, toCreatedClient, nil)
		})
		if c.want == "" && got != "" || !strings.Contains(got, c.want) {
			t.Errorf("%v: %q, not %q", c.meta, got, c.want)
		}
	}
}

func refusal(fn func()) (text string) {
	defer func() { text, _ = recover().(string) }()
	fn()
	return ""
}
