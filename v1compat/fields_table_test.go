package v1compat

import "fmt"

// fieldTable is every parameter, member of a body and member of an answer of v1's routes,
// and what it is in v2: docs/migrating.md shows it. TestTable says which row is missing,
// or names what does not exist.
//
// The rows of an answer are relative to its items, in both versions.
var fieldTable = map[string]struct{ request, answer []fieldRow }{
	"partner": {
		answer: []fieldRow{
			{"partner_name", "name", renamed},
			{"created_date", "created_at", wholeSeconds},
			{"admins", "admins", unchanged},
			{"admins[].id", "admins[].id", aUUID("adm")},
			{"admins[].email", "admins[].email", unchanged},
			{"admins[].role", "admins[].role", "converted: `Administrator` for `admin`, `owner`; `User` for `viewer`"},
			{"admins[].first_name", "admins[].name", "computed: the name up to its last space"},
			{"admins[].last_name", "admins[].name", "computed: the name after its last space; empty where it has none"},
			{"admins[].created_date", "admins[].created_at", wholeSeconds},
		},
	},
	"clients": {
		request: []fieldRow{
			limitUpTo(50, "20"), offset,
			{"ids", "ids", aNumber("cli")},
			{"", "sort", "computed: `created_at` does what v1 does"},
		},
		answer: []fieldRow{
			{"id", "id", aNumber("cli")},
			{"client_name", "name", renamed},
			{"created_date", "created_at", wholeSeconds},
			{"user_count", "users.active", renamed},
			{"inactive_user_count", "users.inactive", renamed},
			{"phishing_click_rate_total", "phishing.click_rate_total", renamed},
			{"phishing_click_rate_last_year", "phishing.click_rate_365d", renamed},
			{"training_on_track_rate", "training.on_track_rate", renamed},
		},
	},
	"create-client": {
		request: []fieldRow{
			{"company_name", "name", renamed},
		},
		answer: []fieldRow{
			{"id", "id", aNumber("cli")},
			{"client_name", "name", renamed},
		},
	},
	"users": {
		request: []fieldRow{
			{"client_id", "client_id", aNumber("cli")},
			limitUpTo(50, "20"), offset,
			{"status", "status", "same: left out, `active` in v1 and `all` in v2"},
		},
		answer: []fieldRow{
			{"id", "id", aUUID("usr")},
			{"email", "email", unchanged},
			{"first_name", "first_name", unchanged},
			{"last_name", "last_name", unchanged},
			{"department", "department", emptyText},
			{"status", "status", unchanged},
			{"preferred_language", "preferred_language", unchanged},
			{"role", "role", unchanged},
			{"created_date", "created_at", wholeSeconds},
			{"phishing_click_rate_total", "phishing.click_rate", renamed},
			{"phishing_click_rate_last_year", "phishing.click_rate_365d", renamed},
			{"training_on_track", "training.on_track", renamed},
			{"next_course", "training.next_course.title", emptyText},
			{"courses_behind", "training.overdue_count", renamed},
			{"risk_score", "risk.score", renamed},
		},
	},
	"create-user": {
		request: []fieldRow{
			{"client_id", "client_id", aNumber("cli")},
			{"email", "email", unchanged},
			{"first_name", "first_name", unchanged},
			{"last_name", "last_name", unchanged},
			{"department", "department", unchanged},
			{"job_title", "job_title", unchanged},
			{"manager_email", "manager_email", unchanged},
			{"role", "role", unchanged},
			{"preferred_language", "preferred_language", unchanged},
			{"collection_id", "collection_ids", aNumber("col") + "; v2 takes a list"},
		},
		answer: []fieldRow{
			{"id", "id", aUUID("usr")},
			{"email", "email", unchanged},
			{"first_name", "first_name", unchanged},
			{"last_name", "last_name", unchanged},
			{"status", "status", unchanged},
			{"role", "role", unchanged},
		},
	},
	"update-user": {
		request: []fieldRow{
			{"user_id", "user_id", aUUID("usr")},
			{"status", "status", unchanged},
			{"preferred_language", "preferred_language", unchanged},
			{"role", "role", unchanged},
		},
		answer: []fieldRow{
			{"status", "", fixedText + "; v2 answers with the user"},
		},
	},
	"collections": {
		request: []fieldRow{
			{"client_id", "client_id", aNumber("cli")},
			limitUpTo(1000, "200"), offset,
		},
		answer: []fieldRow{
			{"id", "id", aNumber("col")},
			{"name", "name", unchanged},
			{"description", "description", leftOut},
			{"member_count", "member_count", unchanged},
			{"created_date", "created_at", wholeSeconds},
		},
	},
	"create-collection": {
		request: []fieldRow{
			{"client_id", "client_id", aNumber("cli")},
			{"name", "name", unchanged},
			{"description", "description", unchanged},
		},
		answer: []fieldRow{
			{"id", "id", aNumber("col")},
			{"name", "name", unchanged},
			{"description", "description", leftOut},
			{"member_count", "member_count", unchanged},
			{"created_date", "created_at", wholeSeconds},
		},
	},
	"collection-members": {
		request: []fieldRow{
			{"client_id", "client_id", aNumber("cli")},
			{"collection_id", "collection_id", aNumber("col")},
			limitUpTo(1000, "200"), offset,
		},
		answer: []fieldRow{
			{"user_infima_id", "user_id", aUUID("usr")},
			{"name", "name", unchanged},
			{"email", "email", unchanged},
		},
	},
	"add-collection-member": {
		request: []fieldRow{
			{"client_id", "client_id", aNumber("cli")},
			{"collection_id", "collection_id", aNumber("col")},
			{"user_infima_id", "user_ids", aUUID("usr") + "; v2 takes a list; v1 takes the user out of the client's " +
				"other collections, v2 does not: remove them there"},
		},
		answer: []fieldRow{
			{"status", "", fixedText + "; v2 answers with the numbers of members"},
		},
	},
	"remove-collection-member": {
		request: []fieldRow{
			{"client_id", "client_id", aNumber("cli")},
			{"collection_id", "collection_id", aNumber("col")},
			{"user_id", "user_id", aUUID("usr")},
		},
		answer: []fieldRow{
			{"status", "", fixedText + "; v2 answers 204"},
		},
	},
	"policies": {
		request: []fieldRow{
			{"client_id", "client_id", aNumber("cli")},
			limitUpTo(1000, "200"), offset,
		},
		answer: []fieldRow{
			{"id", "id", aNumber("pol")},
			{"title", "title", unchanged},
			{"description", "description", leftOut},
			{"version", "version", unchanged},
			{"scope_type", "scope_type", unchanged},
			{"scope_id", "scope_id", "converted: a number in v1, an id `cli_…`, `col_…`, `grp_…` in v2"},
			{"requires_acknowledgment", "requires_acknowledgment", unchanged},
			{"renewal_period_days", "renewal_period_days", unchanged},
			{"created_date", "created_at", wholeSeconds},
			{"audience_user_count", "audience_user_count", leftOut},
			{"acknowledged_count", "acknowledged_count", leftOut},
			{"acknowledged_percentage", "acknowledged_percentage", leftOut},
		},
	},
	"policy-users": {
		request: []fieldRow{
			{"client_id", "client_id", aNumber("cli")},
			{"policy_id", "policy_id", aNumber("pol")},
			limitUpTo(1000, "200"), offset,
			{"status", "status", unchanged},
		},
		answer: []fieldRow{
			{"id", "user_id", aUUID("usr")},
			{"email", "email", unchanged},
			{"name", "name", unchanged},
			{"acknowledged", "acknowledged", unchanged},
			{"acknowledged_at", "acknowledged_at", wholeSeconds + "; left out in v1 where v2 has null"},
		},
	},
	"exposures": {
		request: []fieldRow{
			{"client_id", "client_id", aNumber("cli")},
			limitUpTo(1000, "200"), offset,
			{"start", "since", "converted: a time or a day in v1, which is its start in UTC; a time in v2"},
			{"end", "until", "computed: v1 counts the last moment or day itself; v2 ends before `until`: send the " +
				"next day, or the next microsecond"},
		},
		answer: []fieldRow{
			{"id", "user_id", aUUID("usr")},
			{"email", "email", unchanged},
			{"first_name", "first_name", unchanged},
			{"last_name", "last_name", unchanged},
			{"resolved_exposures", "resolved_exposures", unchanged},
			{"unresolved_exposures", "unresolved_exposures", unchanged},
		},
	},
	"training": {
		request: []fieldRow{
			{"user_id", "user_id", aUUID("usr")},
			limitUpTo(50, "20"), offset,
		},
		answer: []fieldRow{
			{"order", "order", unchanged},
			{"course_name", "title", renamed},
			{"completed", "completed_at", presence},
			{"completed_date", "completed_at", wholeSeconds + "; `0001-01-01T00:00:00Z` in v1 where v2 has null"},
			{"passed", "completed_at", presence},
			{"passed_date", "completed_at", wholeSeconds + "; `0001-01-01T00:00:00Z` in v1 where v2 has null"},
		},
	},
	"phishing": {
		request: []fieldRow{
			{"user_id", "user_id", aUUID("usr")},
			limitUpTo(50, "20"), offset,
			{"", "client_id", usersClient},
			{"", "status", "computed: `sent,opened,attachment_opened,clicked,credentials_submitted`: v1 lists what was sent"},
		},
		answer: []fieldRow{
			{"status", "status", "converted: `Clicked` for `attachment_opened`, `clicked`, `credentials_submitted`; " +
				"`Opened` for `opened`; `Sent` for `failed`, `scheduled`, `sent`; v2's list also has the mails that " +
				"are `scheduled` or `failed`, which v1's leaves out"},
			{"status_date", "status, sent_at, opened_at, clicked_at, credentials_submitted_at, attachment_opened_at", "" +
				"computed: the time of the first event that made the status: for Clicked the earliest of the three"},
		},
	},
	"sendphishing": {
		request: []fieldRow{
			{"user_id", "user_ids", aUUID("usr") + "; v2 takes a list"},
			{"phishing_template", "template_id", aNumber("tpl")},
			{"send_time", "send_at", "renamed: null, left out or past is at once in both"},
			{"", "client_id", usersClient},
		},
		answer: []fieldRow{
			{"message", "sends[].send_at", "computed: a text for people with the time; v2 has the time itself, and a " +
				"`result_id` to follow"},
		},
	},
	"sentemails": {
		request: []fieldRow{
			limitUpTo(1000, "100"), offset,
			{"user_infima_id", "user_id", aUUID("usr") + "; the id of the user, in the path; v1 takes it before the address"},
			{"email_address", "user_id", "computed: the id of each user whom `GET /v2/users` finds by the address; v1 lists " +
				"the mails of all of them together, the newest first"},
			{"message_types", "message_types", "converted: left out, v1 asks for " +
				"`training-invite,phishing,phish-reminder,certificate,monthly-report`"},
			{"start_time", "since", "renamed: left out, v1 lists the last 30 days and v2 all"},
			{"", "until", "computed: 30 days after `since`: v1 lists no more"},
		},
		answer: []fieldRow{
			{"message_infima_id", "", "given up: v2 names no mails"},
			{"user_infima_id", "user_id", "computed: the user whose list it is"},
			{"event_time", "sent_at", wholeSeconds},
			{"from_email", "from_email", unchanged},
			{"subject", "subject", unchanged},
			{"send_method", "send_method", unchanged},
			{"message_type", "message_type", "same: v1's list leaves out the types that are not its own, such as `welcome`"},
		},
	},
	"reports": {
		request: []fieldRow{
			{"client_id", "client_id", aNumber("cli")},
			limitUpTo(50, "20"), offset,
		},
		answer: []fieldRow{
			{"report_id", "id", "converted: a number as text in v1, an id `rep_…` in v2"},
			{"report_type", "type", renamed},
			{"created_date", "created_at", wholeSeconds},
			{"updated_at", "updated_at", wholeSeconds},
			{"download_link", "", "given up: never there in a list"},
		},
	},
	"download-report": {
		request: []fieldRow{
			{"client_id", "client_id", aNumber("cli")},
			{"report_id", "report_id", aNumber("rep")},
			{"limit", "", theObject},
			{"offset", "", theObject},
		},
		answer: []fieldRow{
			{"items", "", "converted: one item; v2 answers with the object itself"},
			{"limit", "", theObject},
			{"offset", "", theObject},
			{"total", "", "given up: always 1"},
			{"items[].report_id", "id", "converted: a number as text in v1, an id `rep_…` in v2"},
			{"items[].report_type", "type", renamed},
			{"items[].created_date", "created_at", wholeSeconds},
			{"items[].updated_at", "updated_at", wholeSeconds},
			{"items[].download_link", "download_url", leftOut},
		},
	},
}

// fieldRow is a field of v1, what it is made of in v2 or becomes there, separated by commas,
// and how (decisions 11.8): same, renamed, converted, computed or given up, and after a
// colon what that leaves open. v1 is empty for a parameter of v2 that v1 does without.
type fieldRow struct{ v1, v2, how string }

// What rows have in common.
const (
	unchanged    = "same"    // the same name and the same JSON
	renamed      = "renamed" // another name, the same JSON
	wholeSeconds = "converted: whole seconds in v1, microseconds in v2"
	emptyText    = "converted: an empty text in v1 where v2 has null"
	leftOut      = "converted: left out in v1 where v2 has null"
	presence     = "converted: `true` unless v2 has null"
	fixedText    = "given up: always the same text; the HTTP status says that it was done"
	theObject    = "given up: v2 answers with the object itself"
	usersClient  = "computed: the user's client; a user of v2 has its `client_id`"
)

func aNumber(prefix string) string {
	return "converted: a number in v1, an id `" + prefix + "_…` in v2"
}

func aUUID(prefix string) string {
	return "converted: a UUID in v1, an id `" + prefix + "_…` in v2"
}

// limitUpTo is the limit of a list.
func limitUpTo(most int, usual string) fieldRow {
	return fieldRow{"limit", "limit", fmt.Sprintf("same: v1: 1 to %d, %s where left out, others moved to the bound; "+
		"v2: 1 to %d, %d where left out, others 400", most, usual, maxLimit, defaultLimit)}
}

// offset is that of a list.
var offset = fieldRow{"offset", "", "given up: follow `page.next_cursor`: pass it as `cursor`"}

// pageAnswer is the page that all lists are in.
var pageAnswer = []fieldRow{
	{"items", "data", renamed},
	{"limit", "", "given up: the caller knows it"},
	{"offset", "", "given up: a page of v2 has no number; `page.has_more` says whether another follows"},
	{"total", "", "given up: v2 does not count lists; a client has the numbers of its users in `users`"},
}
