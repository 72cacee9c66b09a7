package v2_test

import (
	"testing"

	"partnerapi/db/dbtest"
	"partnerapi/v2/v2test"
)

func TestMain(m *testing.M) { dbtest.Main(m) }

func TestClientLife(t *testing.T) {
	h := v2test.New(t, v2test.Options{})
	tenant := h.Tenant("Partner")
	created := h.Do("POST", "/v2/clients", tenant.Key, map[string]any{"name": "Überwald", "external_id": "x-1"}).Want(201)
	id := created.Field("id").(string)
	got := h.Get("/v2/clients/"+id, tenant.Key).Want(200)
	if string(got.Body) != string(created.Body) {
		t.Errorf("read %s\nafter %s", got.Body, created.Body)
	}
	h.Do("POST", "/v2/clients", tenant.Key, map[string]any{"name": "ÜBERWALD"}).Want(409)
	patched := h.Do("PATCH", "/v2/clients/"+id, tenant.Key, `{"external_id":null,"industry":"retail"}`).Want(200)
	if patched.Field("external_id") != nil || patched.Field("industry") != "retail" {
		t.Errorf("patched to %s", patched.Body)
	}
	h.Do("PATCH", "/v2/clients/"+id, tenant.Key, `{"name":null}`).Want(400)
	h.Do("PATCH", "/v2/clients/"+id, tenant.Key, `{"name":" "}`).Want(400)
	h.Do("PATCH", "/v2/clients/"+id, tenant.Key, `{}`).Want(400)
	list := h.Get("/v2/clients?q=%C3%BCBER", tenant.Key).Want(200)
	if n := len(list.Field("data").([]any)); n != 1 {
		t.Errorf("found %d clients: %s", n, list.Body)
	}
	u := h.Do("POST", "/v2/clients/"+id+"/users", tenant.Key, map[string]any{"email": "A@Example.com", "job_title": "CFO", "send_welcome_email": true}).Want(201)
	if u.Field("role") != "executive" || u.Field("email") != "a@example.com" {
		t.Errorf("created %s", u.Body)
	}
	uid := u.Field("id").(string)
	d := h.Do("PATCH", "/v2/users/"+uid, tenant.Key, `{"status":"inactive","job_title":null}`).Want(200)
	t.Logf("%s", d.Body)
	h.Get("/v2/users/"+uid+"/risk", tenant.Key).Want(200)
	h.Get("/v2/clients/"+id+"/risk", tenant.Key).Want(200)
	h.Get("/v2/clients/"+id+"/users?sort=-risk_score", tenant.Key).Want(200)
	h.Get("/v2/clients/"+id+"/admins", tenant.Key).Want(200)
	h.Do("POST", "/v2/clients/"+id+"/admins/invites", tenant.Key, map[string]any{"email": "b@example.com"}).Want(202)
	h.Do("POST", "/v2/clients/"+id+"/admins/invites", tenant.Key, map[string]any{"email": "b@example.com"}).Want(409)
	h.Get("/v2/partner", tenant.Key).Want(200)
}
