package v1compat

import "partnerapi/domain"

// found counts the exposures of client A's users.
func found(from, through string) func(*actor) answer {
	return func(a *actor) answer { return a.exposures(a.known["A"], from, through) }
}

// counts is a user with the given number of exposures.
func counts(user string, resolved, unresolved int) fields {
	return fields{"id": user, "resolved": resolved, "unresolved": unresolved}
}

// exposed is that Ada's data was found in a breach.
func exposed(breach, at string) func(*actor) answer {
	return hears(domain.ExposureFound, "user_id", "Ada", "breach_name", breach, "at", at)
}

var darkWebSteps = []step{
	{"known breaches", once(func(a *actor) {
		a.Exec(`INSERT INTO breaches (name, title, severity, data_classes) VALUES
			('Forum', 'Forum', 'critical', '{Passwords}'), ('List', 'List', 'low', '{Emails}'), ('Shop', 'Shop', 'medium', '{Names}')`)
	}), done},
	{"nothing found", found("", ""), shows(counts("Ada", 0, 0), counts("Bob", 0, 0))},
	{"the first", exposed("Forum", "2026-03-01T00:00:00Z"), done},
	{"late on the next day", exposed("List", "2026-03-02T23:59:59.999999Z"), done},
	{"right after it", exposed("Shop", "2026-03-03T00:00:00Z"), done},
	{"Bob's", hears(domain.ExposureFound, "user_id", "Bob", "breach_name", "Forum"), done},
	{"one is settled", hears(domain.ExposureResolved, "user_id", "Ada", "breach_name", "List"), done},
	{"all", found("", ""), shows(
		fields{"id": "Ada", "email": "ada@example.com", "first": "Ada", "last": "King", "resolved": 1, "unresolved": 2}, counts("Bob", 0, 1))},

	{"from a day on", found("2026-03-02", ""), shows(counts("Ada", 1, 1), counts("Bob", 0, 1))},
	{"through a day", found("", "2026-03-02"), shows(counts("Ada", 1, 1), counts("Bob", 0, 0))},
	{"on a day", found("2026-03-02", "2026-03-02"), shows(counts("Ada", 1, 0), counts("Bob", 0, 0))},
	{"from a moment on", found("2026-03-02T23:59:59.999999Z", ""), shows(counts("Ada", 1, 1), counts("Bob", 0, 1))},
	{"through a moment", found("", "2026-03-01T00:00:00Z"), shows(counts("Ada", 0, 1), counts("Bob", 0, 0))},
	{"at a moment", found("2026-03-03T00:00:00Z", "2026-03-03T00:00:00Z"), shows(counts("Ada", 0, 1), counts("Bob", 0, 0))},
	{"in another zone", found("2026-03-03T01:00:00+01:00", "2026-03-03T01:00:00+01:00"), shows(counts("Ada", 0, 1), counts("Bob", 0, 0))},
	{"between them", found("2026-03-01T00:00:01Z", "2026-03-02T23:59:59Z"), shows(counts("Ada", 0, 0), counts("Bob", 0, 0))},
	{"the wrong way round", found("2026-03-03", "2026-03-02"), refuses(domain.InvalidRequest)},
	{"a second the wrong way round", found("2026-03-03T00:00:01Z", "2026-03-03T00:00:00Z"), refuses(domain.InvalidRequest)},
	{"no day", found("2026-02-30", ""), refusesIn(domain.InvalidRequest)},
	{"no time", found("", "yesterday"), refusesIn(domain.InvalidRequest)},
	{"a stranger's client", func(a *actor) answer { return a.exposures(a.known["theirs"], "", "") }, refuses(domain.NotFound)},

	{"the rest is settled", hears(domain.ExposureResolved, "user_id", "Ada", "breach_name", "Forum"), done},
	{"the split is today's", found("", "2026-03-01"), shows(counts("Ada", 1, 0), counts("Bob", 0, 0))},
	{"Bob is inactive", func(a *actor) answer { return a.updateUser(a.known["Bob"], fields{"status": "inactive"}) }, done},
	{"and left out", found("", ""), shows(counts("Ada", 2, 1))},
	{"not enabled", each(func(a *actor) {
		a.Exec("UPDATE clients SET dark_web_monitoring = false WHERE id = $1", a.known["A"])
	}), done},
	{"is refused", found("", ""), refuses(domain.Forbidden)},
	{"whatever the time", found("2026-03-02", "2026-03-02"), refuses(domain.Forbidden)},
}

func darkWebViews(a *actor, x surface) map[string]answer {
	shown := map[string]answer{}
	for _, client := range []string{"A", "B"} {
		if id, ok := a.known[client]; ok {
			shown["exposures of "+client] = x.exposures(id, "", "")
			shown["lately of "+client] = x.exposures(id, "2026-03-02", "2026-06-30")
			shown["users of "+client] = x.users(id, "all")
		}
	}
	return shown
}
