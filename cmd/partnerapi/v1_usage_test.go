package main

import (
	"net/http"
	"testing"
)

// TestLastUseIsRecorded: what was counted since the last flush is written when the
// service stops, the last request included.
func TestLastUseIsRecorded(t *testing.T) {
	t.Parallel()
	flag := demonstration(t)
	first := serving(t, flag, "--demo")
	for range 3 {
		first.get("/v1/clients", "pk_demo_all").want(http.StatusOK)
	}
	first.get("/v2/clients", "pk_demo_all").want(http.StatusOK)
	first.finish()

	second := serving(t, flag, "--demo")
	items := usedBy(second, "pk_demo_all")
	if len(items) != 1 || items[0].Operation != "GET /v1/clients" || items[0].Calls != 3 {
		t.Errorf("used %+v", items)
	}
	if other := usedBy(second, "pk_demo_other"); len(other) != 0 {
		t.Errorf("the other key used %+v", other)
	}
}

// usedItem is an item of GET /v1/usage.
type usedItem struct {
	Operation       string
	Calls, Failures int
}

func usedBy(r *running, key string) []usedItem {
	r.t.Helper()
	return into[struct{ Items []usedItem }](r.get("/v1/usage", key).want(http.StatusOK)).Items
}
