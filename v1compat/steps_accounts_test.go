package v1compat

// hires creates a user of client A, whose name is the local part of the email.
func hires(name string, body fields) func(*caller) answer {
	return func(c *caller) answer {
		body["email"] = name + "@Example.com"
		return c.keep(name, c.createUser("A", body))
	}
}

var accountSteps = []step{
	{"classified by title", hires("cfo", fields{"first_name": "Ada", "job_title": "CFO", "department": "Board"}),
		shows(fields{"id": "cfo", "email": "cfo@example.com", "role": "executive", "status": "active"})},
	{"with a role", hires("hr", fields{"job_title": "CFO", "role": "hr", "manager_email": "cfo@example.com"}), shows(fields{"role": "hr"})},
	{"by department", hires("x", fields{"department": "Accounts Payable"}), shows(fields{"role": "finance"})},
	{"by email", hires("payroll", fields{}), shows(fields{"role": "finance"})},
	{"in another client", func(c *caller) answer { return c.createUser("B", fields{"email": "cfo@example.com"}) }, done},
	{"a state", changes("hr", fields{"status": "inactive"}), shows(fields{"status": "updated"})},
	{"the same state", changes("hr", fields{"status": "inactive"}), done},
	{"a role and a language", changes("cfo", fields{"role": "standard", "preferred_language": "es"}), done},
	{"who is inactive", func(c *caller) answer { return c.users("A", "inactive") }, shows(fields{"id": "hr", "status": "inactive"})},
	{"50 days later", passes(50 * day), done},
	{"overdue courses", func(c *caller) answer { return c.users("A", "active") }, shows(
		behind("Ada"), behind("Bob"), fields{"id": "cfo", "role": "standard", "preferred_language": "es"}, behind("x"), behind("payroll"))},
}

// behind is a user who did none of the two courses that are due.
func behind(user string) fields {
	return fields{"id": user, "training_on_track": false, "courses_behind": 2, "next_course": foundations}
}
