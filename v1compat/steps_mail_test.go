package v1compat

import "partnerapi/domain"

// mailed adds the record of a mail to a user, the given number of days before noon.
func mailed(user string, kind domain.MessageType, days int) func(*caller) answer {
	return happens(func(c *caller) { c.mail(c.clientID("A"), c.userID(user), kind, noon.AddDate(0, 0, -days)) })
}

// mailsTo are the mails to a user of some types, or of all, in the 30 days from
// a time, or in the last 30.
func mailsTo(user, start string, types ...domain.MessageType) func(*caller) answer {
	return func(c *caller) answer { return c.emails(user, start, types) }
}

// mails are mails by their types alone.
func mails(types ...domain.MessageType) outcome { return each("message_type", types...) }

var mailSteps = []step{
	{"none", mailsTo("Ada", ""), mails()},
	{"a simulation", mailed("Ada", domain.PhishingMail, 0), done},
	{"yesterday's", mailed("Ada", domain.PhishReminder, 1), done},
	{"29 days old", mailed("Ada", domain.TrainingInvite, 29), done},
	{"31 days old", mailed("Ada", domain.CertificateMail, 31), done},
	{"61 days old", mailed("Ada", domain.MonthlyReportMail, 61), done},
	{"of a type that v1 lacks", mailed("Ada", domain.WelcomeMail, 0), done},
	{"of another", mailed("Ada", domain.PolicyReminder, 2), done},
	{"to somebody else", mailed("Bob", domain.PhishingMail, 3), done},

	{"the last 30 days", mailsTo("Ada", ""), shows(
		fields{"message_type": "phishing", "event_time": stamp(noon), "user_infima_id": "Ada", "from_email": "a@example.com", "subject": "S", "send_method": "smtp"},
		fields{"message_type": "phish-reminder"}, fields{"message_type": "training-invite"})},
	{"Bob's", mailsTo("Bob", ""), mails(domain.PhishingMail)},
	{"a type", mailsTo("Ada", "", domain.PhishReminder), mails(domain.PhishReminder)},
	{"two", mailsTo("Ada", "", domain.TrainingInvite, domain.PhishingMail), mails(domain.PhishingMail, domain.TrainingInvite)},
	{"a type of none", mailsTo("Ada", "", domain.MonthlyReportMail), mails()},
	{"from a time on", mailsTo("Ada", "2026-04-15T12:00:00Z"), mails(domain.MonthlyReportMail)},
	{"a second later, 30 days long", mailsTo("Ada", "2026-04-15T12:00:01Z"), mails(domain.CertificateMail)},
	{"from a mail on", mailsTo("Ada", "2026-05-15T12:00:00Z"), mails(domain.TrainingInvite, domain.CertificateMail)},
	{"a second later", mailsTo("Ada", "2026-05-15T12:00:01Z"), mails(domain.PhishReminder, domain.TrainingInvite)},
	{"in another zone", mailsTo("Ada", "2026-05-17T14:00:01+02:00"), mails(domain.PhishingMail, domain.PhishReminder)},
	{"of a type from then on", mailsTo("Ada", "2026-05-15T12:00:00Z", domain.CertificateMail), mails(domain.CertificateMail)},
	{"from the future", mailsTo("Ada", "2026-07-01T00:00:00Z"), mails()},
	{"to the last year", mailsTo("Ada", "9999-12-02T00:00:00Z"), mails()},

	{"a day later", passes(day), done},
	{"the days move along", mailsTo("Ada", "2026-05-17T12:00:00Z"), mails(domain.PhishingMail, domain.PhishReminder, domain.TrainingInvite)},
	{"two more", passes(2 * day), done},
	{"and one is out", mailsTo("Ada", ""), mails(domain.PhishingMail, domain.PhishReminder)},
}
