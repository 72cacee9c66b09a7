package v2_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	"partnerapi/db"
	"partnerapi/domain"
	"partnerapi/v2/v2test"
)

// checkClientTraining holds that the list of a client's training has what the lists of its
// users have, and what changed since then has the same items in both.
func checkClientTraining(t *testing.T, h *v2test.Harness, key, client, since string) {
	t.Helper()
	of := "/v2/clients/" + client
	listed := map[string]map[string]bool{}
	items := h.All(of+"/training/assignments?limit=500"+since, key)
	for _, item := range items {
		user := item["user_id"].(string)
		delete(item, "user_id")
		delete(item, "updated_at") // of a user's own list, also when the place in it moved
		if listed[user] == nil {
			listed[user] = map[string]bool{}
		}
		if listed[user][text(t, item)] {
			t.Errorf("%s of %s is there twice", text(t, item), user)
		}
		listed[user][text(t, item)] = true
	}
	for _, user := range h.All(of+"/users?limit=500", key) {
		id := user["id"].(string)
		own := h.All("/v2/users/"+id+"/training?limit=500"+since, key)
		for _, item := range own {
			delete(item, "updated_at")
			if !listed[id][text(t, item)] {
				t.Errorf("%s of %s is not in the client's list", text(t, item), id)
			}
		}
		if len(own) != len(listed[id]) {
			t.Errorf("%s has %d courses, and %d in the client's list", id, len(own), len(listed[id]))
		}
		delete(listed, id)
	}
	if len(listed) > 0 {
		t.Errorf("the client's list has others' courses: %v", listed)
	}
}

func text(t *testing.T, item map[string]any) string {
	t.Helper()
	b, err := json.Marshal(item)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// TestClientTrainingOfDemonstration: both lists say the same of the demonstration's clients,
// second rounds among them.
func TestClientTrainingOfDemonstration(t *testing.T) {
	t.Parallel()
	h := v2test.New(t, v2test.Options{Demo: true, Limits: v2test.Unlimited})
	e := v2test.NewExamples(h, "examples", false)
	if h.Number("SELECT count(*) FROM assignments WHERE client_id = $1 AND round > 1", e.Client) == 0 {
		t.Error("the demonstration has no second round")
	}
	checkClientTraining(t, h, e.Key, e.Client.String(), "")
	// What changed, or became overdue, since midnight, in weeks that are merged, and in more than those.
	path, today := "/v2/clients/"+e.Client.String()+"/training/assignments?limit=100", h.Clock.Now().Truncate(24*time.Hour)
	items := h.All(path, e.Key)
	var changed []int
	for _, since := range []time.Time{
		today, today.Add(time.Second), today.AddDate(0, 0, -21), today.AddDate(0, 0, -63), today.AddDate(0, 0, -370), today.AddDate(0, 0, -378),
	} {
		want := slices.DeleteFunc(slices.Clone(items), func(item map[string]any) bool {
			return item["updated_at"].(string) < since.Format("2006-01-02T15:04:05.000000Z")
		})
		if got := h.All(path+"&updated_since="+since.Format(time.RFC3339), e.Key); fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("since %s: %d changed, not %d", since, len(got), len(want))
		}
		changed = append(changed, len(want))
	}
	if changed = slices.Compact(changed); len(changed) < 4 {
		t.Errorf("as many changed since different times: %v", changed)
	}
}

// TestClientTrainingAfterChanges: courses that are renewed, completed without having been
// asked for, put before others, and withdrawn are in both lists alike, and so is what changed.
func TestClientTrainingAfterChanges(t *testing.T) {
	t.Parallel()
	w := newStaff(t, 3)
	client := w.client.ID.String()
	check := func() {
		t.Helper()
		since := "&updated_since=" + w.Clock.Now().Format("2006-01-02T15:04:05Z")
		checkClientTraining(t, w.Harness, w.tenant.Key, client, "")
		checkClientTraining(t, w.Harness, w.tenant.Key, client, since)
		w.Clock.Advance(1e9)
	}
	w.Clock.Advance(1e9)
	check()

	w.complete(w.users[0], 1, w.Clock.Now(), true)
	w.complete(w.users[0], 12, w.Clock.Now(), true) // which nobody asked for
	check()
	w.Exec("DELETE FROM assignments WHERE user_id = $1 AND position = 1", w.users[1].ID)
	w.complete(w.users[1], 1, w.Clock.Now(), true) // before all others
	check()
	w.Exec("DELETE FROM assignments WHERE user_id = $1 AND position = 1", w.users[2].ID)
	w.Do("PATCH", "/v2/users/"+w.users[2].ID.String(), w.tenant.Key, `{"status":"inactive"}`).Want(200)
	w.Do("PATCH", "/v2/users/"+w.users[2].ID.String(), w.tenant.Key, `{"status":"active"}`).Want(200)
	check()

	w.assign(fmt.Sprintf(`{"course_id":%q,"audience":{"type":"all"}}`, course(7))).Want(200)
	w.complete(w.users[0], 7, w.Clock.Now(), true)
	check()
	w.Clock.Advance(400 * 24 * 3600e9)
	w.renewAll(t)
	check()
	rounds := "SELECT count(*) FROM assignments WHERE superseded AND user_id = $1"
	if w.Number(rounds, w.users[0].ID) == 0 {
		t.Error("no course was renewed")
	}
	later := "UPDATE assignments SET direct = false, from_program = false, frameworks = '{}' WHERE user_id = $1 AND round = 2"
	before := w.Number(rounds, w.users[0].ID)
	id := db.NewID[domain.FrameworkAssignmentKind]()
	w.Exec(later, w.users[0].ID)
	w.Exec(`INSERT INTO framework_assignments (client_id, id, framework_id, audience_type, training, created_at)
		VALUES ($1, $2, 'hipaa', 'all', true, $3)`, w.client.ID, id, w.Clock.Now())
	w.Exec("UPDATE assignments SET frameworks = ARRAY[$2::uuid] WHERE user_id = $1 AND round = 2", w.users[0].ID, id)
	w.Do("DELETE", "/v2/clients/"+client+"/frameworks/"+id.String(), w.tenant.Key, nil).Want(204)
	check()
	if before == 0 || w.Number(rounds, w.users[0].ID) != 0 {
		t.Errorf("%d rounds are superseded after their later ones were withdrawn", w.Number(rounds, w.users[0].ID))
	}
}

// renewAll runs the daily refresh.
func (w *staff) renewAll(t *testing.T) {
	t.Helper()
	if _, err := w.DB.DailyRefresh(t.Context(), domain.DateOf(w.Clock.Now()), func(int, int) {}); err != nil {
		t.Fatal(err)
	}
}
