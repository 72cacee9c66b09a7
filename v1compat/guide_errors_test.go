package v1compat

import (
	"strings"
	"testing"

	"partnerapi/domain"
)

// TestGuideErrors: v1 and v2 answer as the guide's notes on errors say.
func TestGuideErrors(t *testing.T) {
	t.Parallel()
	s := newScene(t, setup{})
	stranger := s.service.Tenant("Stranger")
	foreign := s.Client(stranger, "Own").ID
	unusedID := "/v2/clients/" + s.client.String() + "/phishing/results?user_id=" + domain.UserID{0: 9}.String()
	darkWeb := "/v2/clients/" + s.client.String() + "/dark-web/users"

	s.Get("/v1/users/"+domain.UserID{0: 9}.UUID()+"/phishing", s.Key).Want(404)
	if got := s.Get(unusedID, s.Key).Want(200); !strings.Contains(string(got.Body), `"data":[]`) {
		t.Errorf("results of a user who does not exist: %s", got.Body)
	}
	s.Get("/v1/clients/"+s.clientNo+"/darkweb/exposures", s.Key).Want(200)
	s.Exec("UPDATE clients SET dark_web_monitoring = false")
	s.Get("/v1/clients/"+s.clientNo+"/darkweb/exposures", s.Key).Want(403)
	s.Get(darkWeb, s.Key).Want(403)
	s.Get("/v1/clients/"+s.number(foreign)+"/darkweb/exposures", s.Key).Want(403)
	s.Get(strings.ReplaceAll(darkWeb, s.client.String(), foreign.String()), s.Key).Want(404)
	s.Do("POST", "/v1/sentemails", s.Key, `{"email_address":"nobody@example.com"}`).Want(404)
}
