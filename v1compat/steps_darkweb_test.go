package v1compat

import "partnerapi/domain"

// found counts the exposures of client A's users.
func found(start, end string) func(*caller) answer {
	return func(c *caller) answer { return c.exposures("A", start, end) }
}

// counts is a user with the given number of exposures.
func counts(user string, resolved, unresolved int) fields {
	return fields{"id": user, "resolved_exposures": resolved, "unresolved_exposures": unresolved}
}

// exposed is that Ada's data was found in a breach.
func exposed(breach, at string) func(*caller) answer {
	return hears(domain.ExposureFound, "user_id", "Ada", "breach_name", breach, "at", at)
}

var darkWebSteps = []step{
	{"known breaches", happens(func(c *caller) {
		c.Exec(`INSERT INTO breaches (name, title, severity, data_classes) VALUES
			('Forum', 'Forum', 'critical', '{Passwords}'), ('List', 'List', 'low', '{Emails}'), ('Shop', 'Shop', 'medium', '{Names}')`)
	}), done},
	{"nothing found", found("", ""), shows(counts("Ada", 0, 0), counts("Bob", 0, 0))},
	{"the first", exposed("Forum", "2026-03-01T00:00:00Z"), done},
	{"late on the next day", exposed("List", "2026-03-02T23:59:59.999999Z"), done},
	{"right after it", exposed("Shop", "2026-03-03T00:00:00Z"), done},
	{"Bob's", hears(domain.ExposureFound, "user_id", "Bob", "breach_name", "Forum"), done},
	{"one is settled", hears(domain.ExposureResolved, "user_id", "Ada", "breach_name", "List"), done},
	{"all", found("", ""), shows(counts("Ada", 1, 2), counts("Bob", 0, 1))},

	{"from a day on", found("2026-03-02", ""), shows(counts("Ada", 1, 1), counts("Bob", 0, 1))},
	{"through a day", found("", "2026-03-02"), shows(counts("Ada", 1, 1), counts("Bob", 0, 0))},
	{"on a day", found("2026-03-02", "2026-03-02"), shows(counts("Ada", 1, 0), counts("Bob", 0, 0))},
	{"from a moment on", found("2026-03-02T23:59:59.999999Z", ""), shows(counts("Ada", 1, 1), counts("Bob", 0, 1))},
	{"through a moment", found("", "2026-03-01T00:00:00Z"), shows(counts("Ada", 0, 1), counts("Bob", 0, 0))},
	{"at a moment", found("2026-03-03T00:00:00Z", "2026-03-03T00:00:00Z"), shows(counts("Ada", 0, 1), counts("Bob", 0, 0))},
	{"in another zone", found("2026-03-03T01:00:00+01:00", "2026-03-03T01:00:00+01:00"), shows(counts("Ada", 0, 1), counts("Bob", 0, 0))},
	{"through the last day", found("2026-03-03", "9999-12-31"), shows(counts("Ada", 0, 1), counts("Bob", 0, 1))},
	{"between them", found("2026-03-01T00:00:01Z", "2026-03-02T23:59:59Z"), shows(counts("Ada", 0, 0), counts("Bob", 0, 0))},

	{"the rest is settled", hears(domain.ExposureResolved, "user_id", "Ada", "breach_name", "Forum"), done},
	{"the split is today's", found("", "2026-03-01"), shows(counts("Ada", 1, 0), counts("Bob", 0, 0))},
	{"Bob is inactive", changes("Bob", fields{"status": "inactive"}), done},
	{"and left out", found("", ""), shows(counts("Ada", 2, 1))},
	{"not enabled", happens(func(c *caller) {
		c.Exec("UPDATE clients SET dark_web_monitoring = false WHERE id = $1", c.clientID("A"))
	}), done},
	{"is refused", found("2026-03-02", "2026-03-02"), refuses(domain.Forbidden)},
}
