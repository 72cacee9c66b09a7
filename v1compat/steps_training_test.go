package v1compat

import (
	"net/http"
	"time"

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
func coursesOf(user string, from, to int) func(*caller) answer {
	return func(c *caller) answer {
		a := c.get("training", "/v1/users/"+c.known[user]+"/training?limit=50")
		a.objects = a.objects[from-1 : to]
		return a
	}
}

// never is how v1 writes the time of what did not happen.
const never = "0001-01-01T00:00:00Z"

// isDone is a course by whether it is completed.
func isDone(completed bool) outcome {
	return shows(fields{"completed": completed, "passed": completed})
}

var trainingSteps = []step{
	{"the catalogue", happens(func(c *caller) {
		for n, title := range map[byte]string{1: foundations, 2: recognizing, 7: health} {
			c.known[title] = domain.CourseID{0x01, 0x9b, 0x77, 0x40, 0, 0, 0x70, 0, 0x80, 15: n}.UUID()
		}
	}), done},
	{"assigned", coursesOf("Ada", 1, 6), shows(
		fields{"order": 1, "course_name": foundations, "completed": false, "completed_date": never, "passed_date": never},
		fields{"order": 2, "course_name": recognizing}, fields{"order": 3}, fields{"order": 4}, fields{"order": 5}, fields{"order": 6, "course_name": reporting})},
	{"one is completed", hears(domain.CourseCompleted, "user_id", "Ada", "course_id", foundations), done},
	{"and shows when", coursesOf("Ada", 1, 2), shows(
		fields{"completed": true, "completed_date": stamp(noon.Add(8 * time.Second)), "passed_date": stamp(noon.Add(8 * time.Second))}, fields{"completed": false})},
	{"one beyond the program", happens(func(c *caller) {
		c.Do("POST", "/v2/clients/"+c.clientID("A").String()+"/training/assignments", c.tenant.Key, fields{
			"course_id": idOf[domain.CourseKind](c)(health), "audience": fields{"type": "all"}, "notify": false,
		}).Want(http.StatusOK)
	}), done},
	{"comes last", coursesOf("Bob", 7, 7), shows(fields{"order": 7, "course_name": health})},
	{"50 days later", passes(50 * day), done},
	{"Ada is behind with two", func(c *caller) answer { return c.users("A", "active") }, shows(
		fields{"id": "Ada", "training_on_track": false, "courses_behind": 2, "next_course": health}, fields{"id": "Bob", "courses_behind": 3, "next_course": foundations})},
	{"overdue is not completed", coursesOf("Bob", 1, 1), isDone(false)},
	{"what was overdue is completed", hears(domain.CourseCompleted, "user_id", "Bob", "course_id", foundations), done},
	{"is completed", coursesOf("Bob", 1, 1), isDone(true)},
	{"until the window ends", passes(320 * day), done},
	{"the day's work", happens(func(c *caller) {
		if _, err := c.DB.DailyRefresh(c.T.Context(), domain.DateOf(c.Clock.Now()), nil); err != nil {
			c.T.Fatal(err)
		}
	}), done},
	{"due again", coursesOf("Ada", 1, 1), shows(fields{"order": 1, "course_name": foundations, "completed": false, "completed_date": never})},
	{"not yet due again", coursesOf("Bob", 1, 1), isDone(true)},
	{"completed again", hears(domain.CourseCompleted, "user_id", "Ada", "course_id", foundations), done},
	{"counts again", coursesOf("Ada", 1, 1), isDone(true)},
}
