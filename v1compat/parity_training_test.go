package v1compat

import (
	"net/http"

	"partnerapi/domain"
)

// The titles of the first two courses, of the last of the program and of one
// beyond it.
const (
	foundations = "Security awareness foundations"
	recognizing = "Recognizing phishing"
	reporting   = "Reporting an incident"
	health      = "Handling health information"
)

// coursesOf are the courses of a user from a place to another.
func coursesOf(user string, from, to int) func(*actor) answer {
	return func(a *actor) answer {
		got := a.training(a.someone(user))
		if got.code == "" {
			got.objects = got.objects[from-1 : to]
		}
		return got
	}
}

var trainingSteps = []step{
	{"the catalogue", each(func(a *actor) {
		for n, title := range map[byte]string{1: foundations, 2: recognizing, 7: health} {
			a.known[title] = domain.CourseID{0x01, 0x9b, 0x77, 0x40, 0, 0, 0x70, 0, 0x80, 15: n}.UUID()
		}
	}), done},
	{"assigned", coursesOf("Ada", 1, 6), shows(
		fields{"order": 1, "course": foundations, "completed": false, "at": ""}, fields{"order": 2, "course": recognizing},
		fields{"order": 3}, fields{"order": 4}, fields{"order": 5}, fields{"order": 6, "course": reporting})},
	{"one is completed", hears(domain.CourseCompleted, "user_id", "Ada", "course_id", foundations), done},
	{"and shows when", coursesOf("Ada", 1, 2), shows(
		fields{"order": 1, "completed": true}, fields{"order": 2, "completed": false})},
	{"one beyond the program", each(func(a *actor) {
		v := v2surface{a.service, a.tenant.Key}
		v.Do("POST", v.client(a.known["A"])+"/training/assignments", v.key, fields{
			"course_id": v2id[domain.CourseKind](v, a.known[health]), "audience": fields{"type": "all"}, "notify": false,
		}).Want(http.StatusOK)
	}), done},
	{"comes last", coursesOf("Bob", 7, 7), shows(fields{"order": 7, "course": health})},
	{"50 days later", passes(50 * day), done},
	{"Ada is behind with two", func(a *actor) answer { return a.users(a.known["A"], "active") }, shows(
		fields{"id": "Ada", "on track": false, "behind": 2, "next": health}, fields{"id": "Bob", "behind": 3, "next": foundations})},
	{"overdue is not completed", coursesOf("Bob", 1, 1), shows(fields{"completed": false, "at": ""})},
	{"what was overdue is completed", hears(domain.CourseCompleted, "user_id", "Bob", "course_id", foundations), done},
	{"is completed", coursesOf("Bob", 1, 1), shows(fields{"completed": true})},
	{"until the window ends", passes(320 * day), done},
	{"the day's work", once(func(a *actor) {
		if _, err := a.DB.DailyRefresh(a.T.Context(), domain.DateOf(a.Clock.Now()), nil); err != nil {
			a.T.Fatal(err)
		}
	}), done},
	{"due again", coursesOf("Ada", 1, 1), shows(fields{"order": 1, "course": foundations, "completed": false, "at": ""})},
	{"not yet due again", coursesOf("Bob", 1, 1), shows(fields{"completed": true})},
	{"completed again", hears(domain.CourseCompleted, "user_id", "Ada", "course_id", foundations), done},
	{"counts again", coursesOf("Ada", 1, 1), shows(fields{"completed": true})},
	{"nobody's", coursesOf("nobody", 1, 1), refuses(domain.NotFound)},
	{"a stranger's user's", coursesOf("their user", 1, 1), refuses(domain.NotFound)},
}

func trainingViews(a *actor, x surface) map[string]answer {
	shown := map[string]answer{"clients": x.clients()}
	for _, user := range []string{"Ada", "Bob", "Eve"} {
		if id, ok := a.known[user]; ok {
			shown["training of "+user] = x.training(id)
		}
	}
	if id, ok := a.known["A"]; ok {
		shown["users"] = x.users(id, "all")
	}
	return shown
}
