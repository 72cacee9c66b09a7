package transfer_test

import "testing"

// TestTrainingAssignments verifies that rounds of a course are imported in any order, that a later round waits for the
// one before it, and what is refused. Nothing causes an event or an email.
func TestTrainingAssignments(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.want("5 created, 0 updated, 0 unchanged",
		line("partner", 1, `'name':'P'`), ref("client", 2, `'partner':#1,'name':'C','program':[]`),
		ref("user", 3, `'client':#2,'email':'a@example.com','created_at':'2025-01-01T00:00:00Z'`),
		ref("client", 4, `'partner':#1,'name':'D'`), ref("framework_assignment", 5, `'client':#4,'framework':'gdpr'`))
	const course = `'user':#3,'course':'019b7740-0000-7000-8000-000000000008',`
	first := ref("training_assignment", 10, course+`'assigned_at':'2025-01-02T00:00:00Z','due_on':'2025-02-01',
		'completed_at':'2025-01-20T00:00:00Z','reasons':['program']`)
	second := ref("training_assignment", 11, course+`'round':2,'assigned_at':'2026-06-01T00:00:00Z','due_on':'2026-06-05',
		'started_at':'2026-06-02T00:00:00Z'`)

	w.refuse("round: the user has not completed round 1 of the course", second)
	w.want("2 created, 0 updated, 0 unchanged", second, first)
	w.want("0 created, 0 updated, 2 unchanged", first, second)
	w.is("(1,1001,t,t,f,t)\n(2,1001,f,f,t,t)", `SELECT round, position, superseded, from_program, direct, overdue_noted
		FROM assignments WHERE course_id = '019b7740-0000-7000-8000-000000000008' ORDER BY round`)
	w.is("(2026-06-05)", "SELECT next_due_on FROM users WHERE id = '"+id(3)+"'")

	w.want("0 created, 1 updated, 0 unchanged", ref("training_assignment", 11, course+`'round':2,'completed_at':'2026-06-03T00:00:00Z'`))
	w.is("()", "SELECT next_due_on FROM users WHERE id = '"+id(3)+"'")
	w.want("1 created, 0 updated, 0 unchanged", ref("training_assignment", 12,
		`'user':#3,'course':'019b7740-0000-7000-8000-000000000007','assigned_at':'2026-06-01T00:00:00Z','due_on':'2026-07-01','position':3`))
	for more, reason := range map[string]string{
		`'round':2,'reasons':['boss']`:                                         "reasons[0] must be program, direct, or the ID of a framework assignment",
		`'round':2,'reasons':[#5]`:                                             "reasons[0]: the client has no such framework assignment",
		`'round':2,'due_on':'1969-12-31'`:                                      "due_on must not be before 1970",
		`'round':4,'assigned_at':'2026-06-01T00:00:00Z','due_on':'2026-07-01'`: "round: the user has not completed round 3 of the course",
		`'round':3`:           "assigned_at is required",
		`'completed_at':null`: "completed_at must not be null",
	} {
		w.refuse(reason, ref("training_assignment", 13, course+more))
	}
	w.refuse("user: there is no such user", ref("training_assignment", 13,
		`'user':#99,'course':'019b7740-0000-7000-8000-000000000007','assigned_at':'2026-06-01T00:00:00Z','due_on':'2026-07-01'`))
	w.is("(0,0)", "SELECT (SELECT count(*) FROM events), (SELECT count(*) FROM mail_requests)")
}

// TestCreatorAndJoiningTimes verifies that created_by and added_at are imported, and that members without a time and
// collections without a creator get the defaults.
func TestCreatorAndJoiningTimes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	lines := []string{
		line("partner", 1, `'name':'P'`), ref("client", 2, `'partner':#1,'name':'C'`),
		ref("user", 3, `'client':#2,'email':'a@example.com','created_at':'2025-01-01T00:00:00Z'`),
		ref("user", 4, `'client':#2,'email':'b@example.com','created_at':'2025-01-01T00:00:00Z'`),
		ref("collection", 5, `'client':#2,'name':'K','created_by':'api','created_at':'2025-02-01T00:00:00Z',
			'members':[#3,{'user':#4,'added_at':'2025-03-01T00:00:00Z'}]`),
		ref("collection", 6, `'client':#2,'name':'L','members':[]`),
	}
	w.want("6 created, 0 updated, 0 unchanged", lines...)
	w.want("0 created, 0 updated, 6 unchanged", lines...)
	w.is("(api,2)\n(dashboard,0)", "SELECT created_by, member_count FROM collections ORDER BY name")
	w.is("(\"2025-02-01 00:00:00\")\n(\"2025-03-01 00:00:00\")", "SELECT added_at AT TIME ZONE 'UTC' FROM collection_members ORDER BY 1")
	w.refuse("members[0].added_at must not be in the future", ref("collection", 5, `'members':[{'user':#4,'added_at':'2027-01-01T00:00:00Z'}]`))
	w.refuse("members[0] must be a UUID, or usr_ and 26 characters", ref("collection", 5, `'members':['x']`))
}
