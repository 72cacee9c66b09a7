package v1compat

import (
	"regexp"
	"slices"
	"strings"
)

// What the guide's examples have in common. Their commands are run by the test of the
// guides, in the order of the page, on one demonstration for each page.
const (
	guideBase = "http://127.0.0.1:8080"
	guideCurl = `curl -s -H 'X-API-Key: pk_demo_all' `

	guideExchange = guideCurl + `"` + guideBase + `/v1/ids/exchange" \
  -d '{"kind": "client", "ids": [1, "'$CLIENT'", 99999]}' | jq
`
	guidePagingV1 = guideCurl + `"` + guideBase + `/v1/clients?limit=2" \
  | jq '{limit, offset, total}'
` + guideCurl + `\
  "` + guideBase + `/v1/clients?limit=2&offset=2" \
  | jq '{limit, offset, total}'
`
	guidePagingV2 = guideCurl + `\
  "` + guideBase + `/v2/clients?sort=created_at&limit=2" \
  | jq '.page'
CURSOR=$(` + guideCurl + `\
  "` + guideBase + `/v2/clients?sort=created_at&limit=2" \
  | jq -r '.page.next_cursor')
` + guideCurl + `\
  "` + guideBase + `/v2/clients?sort=created_at&limit=2&cursor=$CURSOR" \
  | jq '.page'
`
	guideErrorsV1 = guideCurl + `\
  "` + guideBase + `/v1/clients/99999/users?status=gone" | jq
`
	guideErrorsV2 = guideCurl + `\
  "` + guideBase + `/v2/clients/cli_unknown/users?status=gone" | jq
`
)

// guideVariables are those that examples use, with the requests that find them.
var guideVariables = []struct{ name, request, value string }{
	{"CLIENT", `"` + guideBase + `/v2/clients?sort=created_at&limit=1"`, ".data[0].id"},
	{"PERSON", `"` + guideBase + `/v2/clients/$CLIENT/users?status=active&limit=2"`, ".data[0].id"},
	{"OTHER", `"` + guideBase + `/v2/clients/$CLIENT/users?status=active&limit=2"`, ".data[1].id"},
	{"COLLECTION", `"` + guideBase + `/v2/clients/$CLIENT/collections?limit=2"`, ".data[1].id"},
	{"POLICY", `"` + guideBase + `/v2/clients/$CLIENT/policies?limit=1"`, ".data[0].id"},
	{"REPORT", `"` + guideBase + `/v2/clients/$CLIENT/reports?limit=2"`, ".data[1].id"},
	{"TEMPLATE", `"` + guideBase + `/v2/phishing/templates?limit=1"`, ".data[0].id"},
	{"OLD_USER", `"` + guideBase + `/v1/clients/1/users?limit=1"`, ".items[0].id"},
	{"OLD_COLLECTION", `"` + guideBase + `/v1/clients/1/collections?limit=2"`, ".items[1].id"},
	{"OLD_POLICY", `"` + guideBase + `/v1/clients/1/policies?limit=1"`, ".items[0].id"},
	{"OLD_REPORT", `"` + guideBase + `/v1/ids/exchange" \
  -d '{"kind": "report", "ids": ["'$REPORT'"]}'`, ".items[0].v1"},
}

// setupOf are the commands that set the variables of other commands, and those that
// they need themselves.
func setupOf(commands string) string {
	setup := ""
	for _, v := range slices.Backward(guideVariables) {
		if slices.Contains(variables.FindAllString(setup+commands, -1), "$"+v.name) {
			setup = v.name + "=$(" + guideCurl + "\\\n  " + v.request + " \\\n  | jq -r '" + v.value + "')\n" + setup
		}
	}
	return setup
}

// width is that of the column that samples are read in.
const width = 80

func lastLine(text string) string { return text[strings.LastIndexByte(text, '\n')+1:] }

// command is one that sends a request of a version.
func command(method, path, body string) string {
	line, url := guideCurl, `"`+broken(guideBase+path)+`"`
	if method != "GET" && (method != "POST" || body == "") {
		line += "-X " + method + " "
	}
	if body != "" {
		body = "-d '" + variables.ReplaceAllString(body, "'$0'") + "' "
		if len(line+body) > width-1 {
			line += "\\\n  "
		}
		if line += body; len(lastLine(line)) > width-1 { // its fields in two lines
			at := strings.LastIndex(line[:len(line)-len(body)+width-4], ", ") + 1
			line = line[:at] + "\n      " + line[at:]
		}
	}
	if len(lastLine(line)+url) > width {
		line += "\\\n  "
	}
	return line + url
}

// broken returns an address in lines of the width, as a shell takes them between double quotes.
func broken(url string) (lines string) {
	for len(url) > width-4 {
		at := strings.LastIndexAny(url[:width-4], "/?&") + 1
		lines += url[:at] + "\\\n"
		url = url[at:]
	}
	return lines + url
}

var variables = regexp.MustCompile(`\$[A-Z_]+`)

func printed(command string) string {
	if len(lastLine(command)+" | jq") > width {
		return command + " \\\n  | jq\n"
	}
	return command + " | jq\n"
}

func bothGet(v1, v2 string) [2]string {
	return [2]string{printed(command("GET", "/v1"+v1, "")), printed(command("GET", "/v2"+v2, ""))}
}

func both(method1, v1, body1, method2, v2, body2 string) [2]string {
	return [2]string{printed(command(method1, "/v1"+v1, body1)), printed(command(method2, "/v2"+v2, body2))}
}

// guideExamples are each route's request in v1 and in v2. Where the lists have another
// order, v1's offset is that of v2's first.
func guideExamples() map[string][2]string {
	const old, new = "/clients/1", "/clients/$CLIENT"
	removed := both("DELETE", old+"/collections/$OLD_COLLECTION/members/$OLD_USER", "", "DELETE", new+"/collections/$COLLECTION/members/$OTHER", "")
	removed[1] = strings.TrimSuffix(strings.TrimSuffix(removed[1], " | jq\n"), " \\\n  | jq\n") + "\n"
	return map[string][2]string{
		"partner":       bothGet("/partner", "/partner"),
		"clients":       bothGet("/clients?limit=1", "/clients?limit=1&sort=created_at"),
		"create-client": both("POST", "/clients", `{"company_name": "Harbour Dental Group"}`, "POST", "/clients", `{"name": "Quay Street Bakery"}`),
		"users":         bothGet(old+"/users?limit=1", new+"/users?limit=1&status=active"),
		"create-user": both(
			"POST", old+"/users", `{"email": "maria.keller@example.com", "first_name": "Maria", "job_title": "Accountant"}`,
			"POST", new+"/users", `{"email": "ana.ruiz@example.com", "first_name": "Ana", "job_title": "Accountant"}`),
		"update-user": both("POST", "/users/$OLD_USER", `{"preferred_language": "es"}`, "PATCH", "/users/$PERSON", `{"preferred_language": "es"}`),

		"collections":        bothGet(old+"/collections?limit=1", new+"/collections?limit=1"),
		"create-collection":  both("POST", old+"/collections", `{"name": "Night shift"}`, "POST", new+"/collections", `{"name": "Day shift"}`),
		"collection-members": bothGet(old+"/collections/$OLD_COLLECTION/members?limit=1", new+"/collections/$COLLECTION/members?limit=1"),
		"add-collection-member": both(
			"POST", old+"/collections/$OLD_COLLECTION/members", `{"user_infima_id": "$OLD_USER"}`,
			"POST", new+"/collections/$COLLECTION/members", `{"user_ids": ["$OTHER"]}`),
		"remove-collection-member": removed,

		"policies":     bothGet(old+"/policies?limit=1", new+"/policies?limit=1"),
		"policy-users": bothGet(old+"/policies/$OLD_POLICY/users?limit=1", new+"/policies/$POLICY/users?limit=1"),
		"exposures":    bothGet(old+"/darkweb/exposures?limit=1&start=2026-01-01", new+"/dark-web/users?limit=1&since=2026-01-01T00:00:00Z"),
		"training":     bothGet("/users/$OLD_USER/training?limit=1", "/users/$PERSON/training?limit=1"),
		"phishing": bothGet("/users/$OLD_USER/phishing?limit=1&offset=31",
			new+"/phishing/results?user_id=$PERSON&status=sent,opened,attachment_opened,clicked,credentials_submitted&limit=1"),
		"sendphishing": both(
			"POST", "/sendphishing", `{"user_id": "$OLD_USER", "phishing_template": 1, "send_time": "2026-06-16T09:00:00Z"}`,
			"POST", new+"/phishing/sends", `{"user_ids": ["$PERSON"], "template_id": "$TEMPLATE", "send_at": "2026-06-16T09:00:00Z"}`),
		"sentemails": both("POST", "/sentemails?limit=1", `{"user_infima_id": "$OLD_USER", "start_time": "2026-04-15T00:00:00Z"}`,
			"GET", "/users/$PERSON/emails?limit=1&since=2026-04-15T00:00:00Z&until=2026-05-15T00:00:00Z", ""),
		"reports":         bothGet(old+"/reports?limit=1&offset=4", new+"/reports?limit=1"),
		"download-report": bothGet(old+"/reports/$OLD_REPORT", new+"/reports/$REPORT"),
	}
}
