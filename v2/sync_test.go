package v2_test

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"partnerapi/db/dirsync"
	"partnerapi/domain"
	"partnerapi/v2/v2test"
)

// connected is a service with a client that has a directory, and the path of its
// runs.
func connected(t *testing.T) (h *v2test.Harness, tenant v2test.Partner, client domain.ClientID, path string) {
	h = v2test.New(t, v2test.Options{Limits: v2test.Unlimited})
	tenant = h.AddPartner("Partner")
	client = h.AddClient(tenant, "Client").ID
	err := dirsync.Connect(t.Context(), h.DB, client, domain.Google, json.RawMessage("{}"), []byte("sealed"))
	if err != nil {
		t.Fatal(err)
	}
	return h, tenant, client, "/v2/clients/" + client.String() + "/sync/runs"
}

// TestStartSync: a run is queued once an hour for all keys together, and not while
// another is open.
func TestStartSync(t *testing.T) {
	t.Parallel()
	h, tenant, client, path := connected(t)
	second := h.AddKey(tenant, bothScopes, nil)
	r := h.Do("POST", path, tenant.Key, nil).Want(202)
	if r.Field("status") != "queued" || r.Field("queued_at") != "2026-06-15T12:00:00.000000Z" || len(r.JSON()) != 2 {
		t.Errorf("answers %s", r.Body)
	}
	checkError(t, h.Do("POST", path, second, nil), domain.Conflict)

	h.Clock.Advance(10 * time.Minute)
	lease, err := dirsync.Claim(t.Context(), h.DB, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	checkError(t, h.Do("POST", path, second, nil), domain.Conflict)
	if _, err := dirsync.Fail(t.Context(), h.DB, lease, "the directory is closed"); err != nil {
		t.Fatal(err)
	}
	r = h.Do("POST", path, second, nil).Want(429)
	if wait := r.Header.Get("Retry-After"); wait != "3000" || r.Code() != domain.RateLimited {
		t.Errorf("Retry-After %s: %s", wait, r.Body)
	}

	h.Clock.Advance(50 * time.Minute)
	h.Do("POST", path, second, nil).Want(202)
	items := h.Get(path, tenant.Key).Want(200).Field("data").([]any)
	if len(items) != 2 || items[0].(map[string]any)["status"] != "queued" {
		t.Fatalf("the runs are %v", items)
	}
	got, _ := json.Marshal(items[1])
	want := `{"created":0,"deactivated":0,"error":"the directory is closed","finished_at":"2026-06-15T12:10:00.000000Z","merged":0,` +
		`"queued_at":"2026-06-15T12:00:00.000000Z","skipped":[],"started_at":"2026-06-15T12:10:00.000000Z","status":"failed",` +
		`"trigger":"api","unchanged":0,"updated":0,"updated_at":"2026-06-15T12:10:00.000000Z"}`
	if string(got) != want {
		t.Errorf("the failed run is\n%s\nnot\n%s", got, want)
	}

	if err := dirsync.Disconnect(t.Context(), h.DB, client); err != nil {
		t.Fatal(err)
	}
	h.Clock.Advance(2 * time.Hour)
	checkError(t, h.Do("POST", path, tenant.Key, nil), domain.Conflict)
	demo := h.AddClient(tenant, "Shows a directory without a connection").ID
	h.Exec("UPDATE clients SET directory_sync = 'google' WHERE id = $1", demo)
	checkError(t, h.Do("POST", "/v2/clients/"+demo.String()+"/sync/runs", tenant.Key, nil), domain.Conflict)
}

// TestStartSyncAtOnce: of several requests at once one is accepted, and a replay of
// it is none.
func TestStartSyncAtOnce(t *testing.T) {
	t.Parallel()
	h, tenant, _, path := connected(t)
	answers := make([]int, 12)
	accepted := v2test.AtOnce(len(answers), func(i int) int {
		answers[i] = h.Do("POST", path, tenant.Key, nil, "Idempotency-Key", fmt.Sprint(i)).Status
		return answers[i]
	})
	if accepted[202] != 1 || accepted[409] != 11 || h.Number("SELECT count(*) FROM sync_runs") != 1 {
		t.Errorf("the answers are %v", accepted)
	}
	for i, status := range answers {
		if status == 202 {
			h.Do("POST", path, tenant.Key, nil, "Idempotency-Key", fmt.Sprint(i)).Want(202)
		}
	}
}
