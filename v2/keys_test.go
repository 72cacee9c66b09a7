package v2_test

import (
	"strings"
	"testing"
	"time"

	"partnerapi/db"
	"partnerapi/domain"
	"partnerapi/v2/op/ginop"
	"partnerapi/v2/v2test"
)

// TestRevocation: a revoked key is refused once its memory has passed, which is
// within the 30 seconds of decisions 9.
func TestRevocation(t *testing.T) {
	t.Parallel()
	if ginop.KeyMemory > 30*time.Second {
		t.Errorf("keys are remembered for %s", ginop.KeyMemory)
	}
	w := newWorld(t, v2test.Options{})
	key := w.AddKey(w.tenant, bothScopes, nil)
	w.Get("/v2/clients", key).Want(200)
	if _, err := w.DB.RevokeKey(t.Context(), key[:13]); err != nil {
		t.Fatal(err)
	}
	w.Clock.Advance(ginop.KeyMemory - time.Microsecond)
	w.Get("/v2/clients", key).Want(200) // using a key does not lengthen its memory
	w.Clock.Advance(time.Microsecond)
	checkError(t, w.Get("/v2/clients", key), domain.Unauthorized)
	checkError(t, w.Get("/v2/clients", key), domain.Unauthorized)
	if _, err := w.DB.RevokeKey(t.Context(), key[:13]); !domain.IsCode(err, domain.NotFound) {
		t.Errorf("revoked twice: %v", err)
	}
}

// TestOlderKeys: a key that was made before keys had a checksum goes on to work, and is
// revoked by its own prefix; one with a wrong checksum is unknown. No key is stored.
func TestOlderKeys(t *testing.T) {
	t.Parallel()
	w := newWorld(t, v2test.Options{})
	if strings.Contains(w.Text("SELECT string_agg(k::text, '') FROM api_keys AS k"), w.tenant.Key[:15]) {
		t.Error("the database holds more of a key than its start")
	}
	made, old := w.AddKey(w.tenant, bothScopes, nil), "pk_"+strings.Repeat("aB3_-", 8)+"xyY"
	w.Exec("UPDATE api_keys SET digest = $1, prefix = $2 WHERE digest = $3", db.KeyDigest(old), old[:11], db.KeyDigest(made))
	w.Get("/v2/clients", old).Want(200)
	checkError(t, w.Get("/v2/clients", made[:40]+"00000"), domain.Unauthorized)
	if _, err := w.DB.RevokeKey(t.Context(), old[:11]); err != nil {
		t.Fatal(err)
	}
	w.Clock.Advance(ginop.KeyMemory)
	checkError(t, w.Get("/v2/clients", old), domain.Unauthorized)
}

// TestExpiry: a key ends at its time, remembered or not.
func TestExpiry(t *testing.T) {
	t.Parallel()
	w := newWorld(t, v2test.Options{})
	ends := w.Clock.Now().Add(time.Second)
	var keys []string
	for range 2 {
		key, err := w.DB.CreateKey(t.Context(), db.NewKey{Partner: w.tenant.ID, Name: "short", Scopes: bothScopes, ExpiresAt: &ends})
		if err != nil {
			t.Fatal(err)
		}
		keys = append(keys, key)
	}
	w.Get("/v2/clients", keys[0]).Want(200)
	w.Clock.Advance(time.Second - time.Microsecond)
	w.Get("/v2/clients", keys[0]).Want(200)
	w.Clock.Advance(time.Microsecond)
	for _, key := range keys {
		checkError(t, w.Get("/v2/clients", key), domain.Unauthorized)
	}
}

// TestNarrowedAccess: what a key reaches is asked for with every request.
func TestNarrowedAccess(t *testing.T) {
	t.Parallel()
	w := newWorld(t, v2test.Options{})
	key := w.AddKey(w.tenant, bothScopes, []domain.ClientID{w.client.ID})
	w.Get(w.clientPath(), key).Want(200)
	w.Exec("DELETE FROM api_key_clients")
	checkError(t, w.Get(w.clientPath(), key), domain.NotFound)
}

// TestLastUse records when a key was last used, the latest time of all.
func TestLastUse(t *testing.T) {
	t.Parallel()
	w := newWorld(t, v2test.Options{})
	lastUsed := func() (at *time.Time) {
		if err := w.DB.SQL().QueryRowContext(t.Context(), "SELECT last_used_at FROM api_keys WHERE digest = $1", db.KeyDigest(w.tenant.Key)).Scan(&at); err != nil {
			t.Fatal(err)
		}
		return at
	}
	touch := func(used map[domain.KeyID]time.Time) {
		if err := w.DB.TouchKeys(t.Context(), used); err != nil {
			t.Fatal(err)
		}
	}
	touch(nil)
	if at := lastUsed(); at != nil {
		t.Errorf("was used %s", at)
	}
	w.Get("/v2/clients", w.tenant.Key).Want(200)
	w.Clock.Advance(time.Second)
	w.Get("/v2/unknown", w.tenant.Key).Want(404) // a use, too
	last := w.Clock.Now()
	checkError(t, w.Get("/v2/clients", "pk_unknown"), domain.Unauthorized)
	used := w.Edge.Keys.Used()
	if len(used) != 1 {
		t.Errorf("%d keys were used", len(used))
	}
	touch(used)
	if at := lastUsed(); at == nil || !at.Equal(last) {
		t.Errorf("was used %v, not %s", at, last)
	}
	if again := w.Edge.Keys.Used(); len(again) != 0 {
		t.Errorf("uses are told twice: %v", again)
	}
	for id := range used { // a late report of another process
		touch(map[domain.KeyID]time.Time{id: last.Add(-time.Hour)})
	}
	if at := lastUsed(); !at.Equal(last) {
		t.Errorf("a late report set the last use to %s", at)
	}
}

// TestRequestIDs: one of the caller's is kept where it is well formed.
func TestRequestIDs(t *testing.T) {
	t.Parallel()
	w := newWorld(t, v2test.Options{})
	for given, kept := range map[string]bool{
		"a": true, "A.b_c-9": true, strings.Repeat("x", 128): true,
		strings.Repeat("x", 129): false, "a b": false, "a/b": false, "é": false, "a,b": false, "{}": false,
	} {
		for _, path := range []string{"/v2/clients", "/v2/unknown"} {
			got := w.Do("GET", path, w.tenant.Key, nil, "X-Request-Id", given).Header.Get("X-Request-Id")
			if (got == given) != kept || len(got) > 128 {
				t.Errorf("%.20q is answered with %q", given, got)
			}
		}
	}
	if a, b := w.Get("/v2/clients", w.tenant.Key), w.Get("/v2/clients", w.tenant.Key); a.Header.Get("X-Request-Id") == b.Header.Get("X-Request-Id") {
		t.Error("two requests have one id")
	}
}
