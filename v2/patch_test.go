package v2_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"partnerapi/v2/op"
	"partnerapi/v2/v2test"
)

// TestPatchesNameWhatCannotBeChanged verifies for every PATCH that a field which only the creation accepts cannot be
// changed, and that no other field is said to be so.
func TestPatchesNameWhatCannotBeChanged(t *testing.T) {
	t.Parallel()
	w := newWorld(t, v2test.Options{Limits: v2test.Unlimited})
	fixed := map[string][]string{}
	w.each(t, func(t *testing.T, w *world, o op.Operation) {
		if o.Meta().Method != http.MethodPatch {
			return
		}
		creation := w.operation(strings.TrimSuffix(o.Meta().ID, ".update") + ".create")
		body := w.body(creation)
		changeable := members(o)
		for name, value := range body {
			is := func(m member) bool { return m.name == name }
			if slices.ContainsFunc(changeable, is) {
				continue
			}
			fixed[o.Meta().ID] = append(fixed[o.Meta().ID], name)
			patch := func(body map[string]any) v2test.Response {
				return w.Do(http.MethodPatch, pathOf(t, o, w.ids()), w.tenant.Key, body)
			}
			checkInvalid(t, patch(map[string]any{name: value}), name, "cannot be changed")
			checkInvalid(t, patch(map[string]any{name: nil}), name, "cannot be changed")
			whole := w.body(o)
			whole[name] = value
			checkInvalid(t, patch(whole), name, "cannot be changed")
			checkInvalid(t, patch(map[string]any{strings.ToUpper(name): value}), strings.ToUpper(name), "is unknown")
		}
		checkInvalid(t, w.Do(http.MethodPatch, pathOf(t, o, w.ids()), w.tenant.Key, `{"id":"x"}`), "id", "is unknown")
	})
	slices.Sort(fixed["users.update"])
	if got := fixed["users.update"]; !slices.Equal(got, []string{"collection_ids", "email", "send_welcome_email"}) {
		t.Errorf("of users, %q cannot be changed", got)
	}
	r := w.Do(http.MethodPost, "/v2/clients", w.tenant.Key, `{"name":"New","status":"active"}`)
	checkInvalid(t, r, "status", "is unknown") // a field of no request
}
