package v2_test

import (
	"net/http"
	"strconv"
	"testing"
	"time"

	"partnerapi/db"
	"partnerapi/domain"
	"partnerapi/v2/op/ginop"
	"partnerapi/v2/v2test"
)

// rotate gives a key a new text.
func (w *world) rotate(text string, r db.Rotation) db.RotatedKey {
	w.T.Helper()
	k, err := w.DB.RotateKey(w.T.Context(), domain.APIKeyPrefix(text), r)
	if err != nil {
		w.T.Fatal(err)
	}
	return k
}

// TestRotatedKey verifies that both texts of a key are valid until the end of the old one, that they share the key's
// budget and idempotency, and that lists show the newest prefix and the audit trail the one that was used.
func TestRotatedKey(t *testing.T) {
	t.Parallel()
	limits := v2test.Unlimited
	limits.PerKey = 100
	w := newWorld(t, v2test.Options{Limits: limits, Audit: true})
	old := w.AddKey(w.tenant, bothScopes, nil)
	w.Get("/v2/key", old).Want(http.StatusOK)
	k := w.rotate(old, db.Rotation{OldFor: 7 * 24 * time.Hour})
	w.Clock.Advance(ginop.KeyMemory)

	end := k.OldUntil.UTC().Format("2006-01-02T15:04:05.000000Z")
	left := map[string]int{}
	for _, text := range []string{old, k.Text} {
		r := w.Get("/v2/key", text).Want(http.StatusOK)
		if r.Field("prefix") != domain.APIKeyPrefix(k.Text) || r.Field("expires_at") != nil {
			t.Errorf("with %s: %s", domain.APIKeyPrefix(text), r.Body)
		}
		left[text], _ = strconv.Atoi(r.Header.Get("X-RateLimit-Remaining"))
		if expires := r.Header.Get("X-API-Key-Expires"); (expires == end) != (text == old) || text != old && expires != "" {
			t.Errorf("with %s: expires %q", domain.APIKeyPrefix(text), expires)
		}
	}
	if left[old] != left[k.Text]+1 || left[old] != 98 {
		t.Errorf("the texts have budgets of their own: %v", left)
	}
	body := map[string]any{"name": "Made once"}
	first := w.Do("POST", "/v2/clients", old, body, "Idempotency-Key", "k").Want(http.StatusCreated)
	again := w.Do("POST", "/v2/clients", k.Text, body, "Idempotency-Key", "k").Want(http.StatusCreated)
	if again.Header.Get("Idempotent-Replayed") != "true" || string(again.Body) != string(first.Body) {
		t.Errorf("replays %s", again.Body)
	}
	w.Do("PATCH", first.Header.Get("Location"), k.Text, `{"name":"Renamed"}`).Want(http.StatusOK)
	for _, prefix := range []string{domain.APIKeyPrefix(old), domain.APIKeyPrefix(k.Text)} {
		var used []string
		err := w.DB.EachAuditEntry(t.Context(), domain.AuditFilter{Prefix: prefix}, func(e domain.AuditEntry) error {
			used = append(used, e.Prefix)
			return nil
		})
		if err != nil || len(used) != 2 || used[0] != domain.APIKeyPrefix(old) || used[1] != domain.APIKeyPrefix(k.Text) {
			t.Errorf("entries of %s: %v, %v", prefix, used, err)
		}
	}

	w.Clock.Advance(k.OldUntil.Sub(w.Clock.Now()))
	checkError(t, w.Get("/v2/key", old), domain.Unauthorized)
	if r := w.Get("/v2/key", k.Text).Want(http.StatusOK); r.Header.Get("X-API-Key-Expires") != "" {
		t.Errorf("the new text: %v", r.Header)
	}
}

// TestRotationEnds verifies which texts of a key end: of two rotations the first text, at a rotation without a time or by
// EndOldText the old one, and all when the key is revoked or expires. A clock that is set back revives none.
func TestRotationEnds(t *testing.T) {
	t.Parallel()
	w := newWorld(t, v2test.Options{})
	valid := func(when string, text string, want bool) {
		t.Helper()
		if _, err := w.DB.CallerByDigest(t.Context(), db.KeyDigest(text)); (err == nil) != want {
			t.Errorf("%s: %v", when, err)
		}
	}
	first := w.AddKey(w.tenant, bothScopes, nil)
	second := w.rotate(first, db.Rotation{OldFor: time.Hour})
	third := w.rotate(first, db.Rotation{OldFor: time.Hour}) // by the prefix of a text that is old
	if third.Ended != domain.APIKeyPrefix(first) || third.OldPrefix != domain.APIKeyPrefix(second.Text) {
		t.Errorf("the second rotation ended %q and replaced %q", third.Ended, third.OldPrefix)
	}
	valid("the first of three", first, false)
	valid("the second of three", second.Text, true)
	valid("the third of three", third.Text, true)
	if _, ended, err := w.DB.EndOldText(t.Context(), third.Prefix); err != nil || ended != third.OldPrefix {
		t.Errorf("ended %q: %v", ended, err)
	}
	if _, ended, err := w.DB.EndOldText(t.Context(), third.Prefix); err != nil || ended != "" {
		t.Errorf("ended %q again: %v", ended, err)
	}
	w.Clock.Advance(-30 * time.Minute)
	valid("ended, and the clock set back", second.Text, false)
	fourth := w.rotate(third.Text, db.Rotation{})
	valid("replaced at once", third.Text, false)
	w.Clock.Advance(-30 * time.Minute)
	valid("replaced at once, and the clock set back", third.Text, false)

	end := w.Clock.Now().Add(time.Hour)
	fifth := w.rotate(fourth.Text, db.Rotation{OldFor: 24 * time.Hour, ExpiresAt: &end})
	if r := w.Get("/v2/key", fourth.Text); r.Header.Get("X-API-Key-Expires") != end.UTC().Format("2006-01-02T15:04:05.000000Z") {
		t.Errorf("an old text that the key ends before its time: %v", r.Header)
	}
	w.Clock.Advance(time.Hour)
	valid("the old text of a key that expired", fourth.Text, false)
	if _, err := w.DB.RotateKey(t.Context(), fifth.Prefix, db.Rotation{OldFor: time.Hour}); !domain.IsCode(err, domain.Conflict) {
		t.Errorf("rotates a key that has expired: %v", err)
	}
	later := w.Clock.Now().Add(24 * time.Hour)
	sixth := w.rotate(fifth.Text, db.Rotation{OldFor: time.Hour, ExpiresAt: &later})
	valid("the text that had expired", fifth.Text, false)
	valid("the text of a key with a later expiry", sixth.Text, true)

	seventh := w.rotate(sixth.Text, db.Rotation{OldFor: time.Hour})
	if _, err := w.DB.RevokeKey(t.Context(), sixth.Prefix); err != nil { // by the old prefix
		t.Fatal(err)
	}
	valid("the old text of a revoked key", sixth.Text, false)
	valid("the text of a revoked key", seventh.Text, false)
	if _, err := w.DB.RotateKey(t.Context(), seventh.Prefix, db.Rotation{}); !domain.IsCode(err, domain.Conflict) {
		t.Errorf("rotates a revoked key: %v", err)
	}
	if _, err := w.DB.RotateKey(t.Context(), "papi_00nobody", db.Rotation{}); !domain.IsCode(err, domain.NotFound) {
		t.Errorf("rotates no key: %v", err)
	}
}

// TestRotationsAtOnce verifies that of concurrent rotations of a key two texts are valid in the end.
func TestRotationsAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t, v2test.Options{})
	first := w.AddKey(w.tenant, bothScopes, nil)
	texts := make([]string, 8)
	v2test.AtOnce(len(texts), func(i int) int {
		k, err := w.DB.RotateKey(t.Context(), domain.APIKeyPrefix(first), db.Rotation{OldFor: time.Hour})
		texts[i] = k.Text
		if err != nil {
			t.Error(err)
		}
		return 0
	})
	valid := 0
	for _, text := range append(texts, first) {
		if w.Get("/v2/key", text).Status == http.StatusOK {
			valid++
		}
	}
	if valid != 2 {
		t.Errorf("%d texts are valid", valid)
	}
}
