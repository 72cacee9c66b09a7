package v1compat

import "strings"

// This file is what no run of a translator can say: sentences for fields that are
// computed or given up, and additions to those that are not. Its keys are a route's
// id, or page and single for the pages that all lists and all single objects are in,
// and the name of the field. A test fails for a key that has no field.

// elsewhere are the paths, in the answer of a route's successor, of what the
// operation that the route itself calls has at another path; by the route's id.
var elsewhere = map[string]map[string]string{
	"sendphishing": {"send_at": "sends[].send_at"},
}

// inputElsewhere are the parameters and members of a successor that stand for those of
// the operation that the route itself calls, by their names; empty for none.
var inputElsewhere = map[string]map[string]string{
	"add-collection-member": {"user_id": "user_ids"},
	"sentemails":            {"start": "since", "email": ""},
}

// inputAdditions are parameters of a successor that v1 does without.
var inputAdditions = map[string][]Field{
	"phishing": {
		{V2: []string{"client_id"}, How: Computed, Explain: "the user's client; a user of v2 has its `client_id`"},
		{V2: []string{"status"}, How: Computed, Explain: "`" + strings.Join(textsOf(sentStatuses), ",") + "`: v1 lists what was sent"},
	},
	"sendphishing": {
		{V2: []string{"client_id"}, How: Computed, Explain: "the user's client; a user of v2 has its `client_id`"},
	},
	"sentemails": {
		{V2: []string{"until"}, How: Computed, Explain: "30 days after `since`: v1 lists no more"},
	},
}

func textsOf[T ~string](values []T) []string {
	texts := make([]string, len(values))
	for i, value := range values {
		texts[i] = string(value)
	}
	return texts
}

const (
	clickRate = "v2 has the rate of a client's last 90 days, `phishing.click_rate_90d`, and the results themselves"
	fixedText = "always the same text; the HTTP status says that it was done"
)

var requestNotes = map[string]string{
	"page offset":   "follow `page.next_cursor`: pass it as `cursor`",
	"single limit":  "v2 answers with the object itself",
	"single offset": "v2 answers with the object itself",

	"exposures end":                        "v1 counts the last moment or day itself; v2 ends before `until`: send the next day, or the next microsecond",
	"add-collection-member user_infima_id": "v2 takes a list; v1 takes the user out of the client's other collections, v2 does not: remove them there",
	"sentemails user_infima_id":            "the id of the user, in the path; v1 takes it before the address",
	"sentemails email_address":             "find the user first: `q` of the list of users takes an address",
	"sentemails start_time":                "left out, v1 lists the last 30 days and v2 all",
	"sendphishing send_time":               "null, left out or past is at once in both",
}

var responseNotes = map[string]string{
	"page limit":    "the caller knows it",
	"page offset":   "a page of v2 has no number; `page.has_more` says whether another follows",
	"page total":    "v2 does not count lists; a client has the numbers of its users in `users`",
	"single items":  "one item; v2 answers with the object itself",
	"single limit":  "v2 answers with the object itself",
	"single offset": "v2 answers with the object itself",
	"single total":  "always 1",

	"partner admins[].first_name": "the name up to its last space",
	"partner admins[].last_name":  "the name after its last space; empty where it has none",

	"clients phishing_click_rate_total":     clickRate,
	"clients phishing_click_rate_last_year": clickRate,
	"users phishing_click_rate_total":       "count the user's phishing results",
	"users phishing_click_rate_last_year":   "count the user's phishing results, with `since`",

	"update-user status":              fixedText + "; v2 answers with the user",
	"add-collection-member status":    fixedText + "; v2 answers with the numbers of members",
	"remove-collection-member status": fixedText + "; v2 answers 204",
	"sendphishing message":            "a text for people with the time; v2 has the time itself, and a `result_id` to follow",

	"phishing status":      "v2's list also has the mails that are `scheduled` or `failed`, which v1's leaves out",
	"phishing status_date": "the time of the first event that made the status: for Clicked the earliest of the three",

	"sentemails message_infima_id": "v2 names no mails",
	"sentemails user_infima_id":    "v2's list is one user's, whose id is in the path",
	"sentemails message_type":      "v1's list leaves out the types that are not its own, such as `welcome`",

	"reports updated_at":         "v2 shows `status`, which is what changes",
	"reports download_link":      "never there in a list",
	"download-report updated_at": "v2 shows `status`, which is what changes",
}
