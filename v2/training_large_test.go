package v2_test

import (
	"fmt"
	"testing"

	"partnerapi/domain"
)

// TestAssignTrainingLarge: for a large audience the answer counts at once, and the
// background work gives the course once to each who is still to have it.
func TestAssignTrainingLarge(t *testing.T) {
	t.Parallel()
	w := newStaff(t, 5)
	w.Exec("UPDATE clients SET users_active = $2 WHERE id = $1", w.client.ID, domain.AssignAtOnce+1)
	inactive, leaving := w.users[4], w.users[3]
	w.Exec("UPDATE users SET status = 'inactive' WHERE id = $1", inactive.ID)

	body := fmt.Sprintf(`{"course_id":%q,"audience":{"type":"all"},"due_on":"2026-07-01"}`, course(7))
	r := w.assign(body).Want(200)
	if !saysAssigned(r, 4, 4, 0, 1) {
		t.Fatalf("assigned %s", r.Body)
	}
	skipped := r.Field("skipped").([]any)[0].(map[string]any)
	if skipped["user_id"] != inactive.ID.String() || skipped["reason"] != "inactive" {
		t.Errorf("skipped %s", r.Body)
	}
	if again := w.assign(body).Want(200); !saysAssigned(again, 0, 0, 4, 1) {
		t.Errorf("again: %s", again.Body)
	}
	if n := w.Number("SELECT count(*) FROM assignments WHERE course_id = $1", course(7)); n != 0 {
		t.Fatalf("%d are given the course by the request", n)
	}

	w.Exec("UPDATE users SET status = 'inactive' WHERE id = $1", leaving.ID)
	for _, want := range []int{4, 0} {
		if n, err := w.DB.AssignWaiting(t.Context()); n != want || err != nil {
			t.Errorf("a batch of %d, %v; want %d", n, err, want)
		}
	}
	given := "SELECT count(*) FROM assignments WHERE course_id = $1 AND due_on = '2026-07-01' AND user_id = ANY($2::uuid[])"
	if n := w.Number(given, course(7), []string{w.users[0].ID.UUID(), w.users[1].ID.UUID(), w.users[2].ID.UUID()}); n != 3 {
		t.Errorf("%d are given the course", n)
	}
	if n := w.Number("SELECT count(*) FROM assignments WHERE course_id = $1", course(7)); n != 3 {
		t.Errorf("%d are given the course, with those who are inactive", n)
	}
	if n := w.Number("SELECT count(*) FROM outbox"); n != 3 {
		t.Errorf("%d mails are queued", n)
	}
	if after := w.assign(body).Want(200); !saysAssigned(after, 0, 0, 3, 2) {
		t.Errorf("after the work: %s", after.Body)
	}
}

// TestAssignWaitingArchived: no user of a client that was archived meanwhile is given
// a course.
func TestAssignWaitingArchived(t *testing.T) {
	t.Parallel()
	w := newStaff(t, 2)
	w.Exec("UPDATE clients SET users_active = $2 WHERE id = $1", w.client.ID, domain.AssignAtOnce+1)
	w.assign(fmt.Sprintf(`{"course_id":%q,"audience":{"type":"all"}}`, course(7))).Want(200)
	w.Exec("UPDATE clients SET archived_at = now() WHERE id = $1", w.client.ID)
	if n, err := w.DB.AssignWaiting(t.Context()); n != 2 || err != nil {
		t.Errorf("a batch of %d, %v", n, err)
	}
	if n := w.Number("SELECT (SELECT count(*) FROM assignments WHERE course_id = $1) + (SELECT count(*) FROM waiting_assignments)", course(7)); n != 0 {
		t.Errorf("%d are given the course, or wait", n)
	}
}
