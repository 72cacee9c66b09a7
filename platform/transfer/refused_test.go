package transfer_test

import (
	"strings"
	"testing"
)

// TestBadLines: a line that is no good by itself is refused with all that is wrong.
func TestBadLines(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	long := strings.Repeat("x", 201)
	for line, reason := range map[string]string{
		`{`:                                   "must be valid JSON in UTF-8",
		`[]`:                                  "must be a JSON object",
		`nonsense`:                            "must be a JSON object",
		`{"object":"user"} {}`:                "must be one JSON object and nothing after it",
		"{\"object\":\"us\xffer\"}":           "must be valid JSON in UTF-8",
		`{}`:                                  "object is required",
		`{"object":7}`:                        "object must be a string",
		`{"object":"robot"}`:                  "object must be one of partner, course, client, admin, group, user, collection, policy, framework_assignment, phishing_result, sent_email, exposure",
		`{"object":"user"}`:                   "id is required",
		`{"object":"user","id":7}`:            "id must be the id of a user",
		`{"object":"user","id":"x","id":"y"}`: "id must be a UUID, or usr_ and 26 characters",
		`{"object":"user","id":"00000000-0000-0000-0000-000000000000"}`:      "id must be a UUID, or usr_ and 26 characters",
		`{"object":"user","id":"` + cli(1) + `"}`:                            "id must be a UUID, or usr_ and 26 characters",
		`{"object":"partner","id":"par_1"}`:                                  "id must be a UUID, or par_ and 26 characters",
		line("user", 1, `'shoe_size':3`):                                     "shoe_size is unknown",
		line("user", 1, `'email':null`):                                      "email must not be null",
		line("user", 1, `'email':7,'role':'king','status':'gone'`):           "email must be a string; role must be one of admin, executive, hr, finance, standard; status must be one of active, inactive",
		line("user", 1, `'email':'nobody'`):                                  "email must be an email address",
		line("user", 1, `'first_name':'`+long+`'`):                           "first_name must be at most 200 characters",
		line("user", 1, `'first_name':'a\u0007b'`):                           "first_name must not hold control characters",
		line("user", 1, `'department':'a\u0000b'`):                           "department must not hold a NUL",
		line("user", 1, `'created_at':'2026-06-16T00:00:00Z'`):               "created_at must not be in the future",
		line("user", 1, `'created_at':'yesterday'`):                          "created_at must be an RFC 3339 date-time, such as 2026-01-31T08:00:00Z",
		line("user", 1, `'created_at':'1969-01-01T00:00:00Z'`):               "created_at must not be before 1970",
		line("user", 1, `'client':'acme'`):                                   "client must be a UUID, or cli_ and 26 characters",
		line("user", 1, `'collection_ids':['x']`):                            "collection_ids[0] must be a UUID, or col_ and 26 characters",
		line("user", 1, `'collection_ids':'x'`):                              "collection_ids must be an array",
		line("user", 1, `'send_welcome_email':true`):                         "send_welcome_email must be false: an import sends no mail",
		line("user", 1, `'overrides':['role','shoes']`):                      "overrides[1] must be one of first_name, last_name, department, job_title, manager_email, status, role, preferred_language",
		line("client", 1, `'name':' '`):                                      "name must not be blank",
		line("client", 1, `'archived':'yes'`):                                "archived must be true or false",
		line("client", 1, `'program':[{}]`):                                  "program[0].course is required",
		line("client", 1, `'program':[{'course':'x','due_after_days':1}]`):   "program[0].course must be a UUID, or crs_ and 26 characters",
		line("course", 1, `'renewal_months':-1`):                             "renewal_months must be between 0 and 1200",
		line("course", 1, `'renewal_months':1.5`):                            "renewal_months must be an integer",
		line("course", 1, `'titles':{'de':'Titel'}`):                         `titles[de] must be one of en, es, fr-ca`,
		line("policy", 1, `'scope_id':'usr_1'`):                              "scope_id must be a UUID, or an id as the API shows it",
		line("policy", 1, `'version':0`):                                     "version must be between 1 and 2147483647",
		"{\"object\":\"user\",\"x\":\"" + strings.Repeat("x", 1<<20) + "\"}": "is longer than 1048576 bytes",
	} {
		w.refuse(reason, line)
	}
	if counts, _ := w.take("\ufeff", "", " \t"); counts != "0 created, 0 updated, 0 unchanged, 0 refused" {
		t.Error("empty lines:", counts)
	}
}

// TestRefused: a line that does not fit what is there is refused, and changes nothing.
func TestRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.want("10 created, 0 updated, 0 unchanged", school()...)
	w.want("4 created, 0 updated, 0 unchanged", ref("partner", 3, `'name':'Other'`), ref("client", 50, `'partner':#3,'name':'Acme'`),
		ref("group", 51, `'client':#50,'name':'Theirs'`), ref("user", 52, `'client':#50,'email':'x@y.example'`))
	before := w.everything()
	const nothing = "there is no such "
	for line, reason := range map[string]string{
		ref("partner", 4, ""):                                                                         "name is required",
		ref("partner", 4, `'name':'NORTHWIND'`):                                                       "name: the partner " + id(1) + " has it already",
		ref("course", 4, ""):                                                                          "title is required",
		ref("client", 60, `'name':'X'`):                                                               "partner is required",
		ref("client", 60, `'partner':#9,'name':'X'`):                                                  "partner: " + nothing + "partner",
		ref("client", 60, `'partner':#1,'name':'X','program':[#9]`):                                   "program: " + nothing + "course",
		ref("client", 60, `'partner':#1,'name':'ACME'`):                                               "name: the client " + cli(10) + " has it already",
		ref("client", 10, `'partner':#3`):                                                             "partner cannot be changed",
		ref("admin", 60, `'email':'a@b.example','name':'A'`):                                          "partner or client is required",
		ref("admin", 60, `'client':#10,'name':'A','role':'admin'`):                                    "email is required",
		ref("admin", 60, `'client':#9,'email':'a@b.example','name':'A','role':'admin'`):               "client: " + nothing + "client",
		ref("admin", 60, `'client':#10,'partner':#3,'email':'a@b.example','name':'A','role':'admin'`): "client: it is another partner's",
		ref("admin", 60, `'client':#10,'email':'boss@acme.example','name':'A','role':'admin'`):        "email: the admin " + adm(11) + " has it already",
		ref("admin", 11, `'client':#50`):                                                              "client cannot be changed",
		ref("group", 60, `'client':#9,'name':'G'`):                                                    "client: " + nothing + "client",
		ref("group", 60, `'client':#10,'name':'G','manual':true`):                                     "manual: the client has the group " + grp(13) + " for users who are kept by hand",
		ref("group", 12, `'manual':true`):                                                             "manual cannot be changed",
		ref("group", 12, `'client':#50`):                                                              "client cannot be changed",
		ref("user", 60, `'email':'a@b.example'`):                                                      "client is required",
		ref("user", 60, `'client':#9,'email':'a@b.example'`):                                          "client: " + nothing + "client",
		ref("user", 60, `'client':#10,'email':'a@b.example','group':#51`):                             "group: " + nothing + "group",
		ref("user", 20, `'client':#50`):                                                               "client cannot be changed",
		ref("user", 20, `'collection_ids':[#9]`):                                                      "collection_ids[0]: " + nothing + "collection; the user is there without them",
		ref("collection", 60, `'client':#10`):                                                         "name is required",
		ref("collection", 60, `'client':#10,'name':'board'`):                                          "name: the collection " + col(30) + " has it already",
		ref("collection", 30, `'members':[#20,#52]`):                                                  "members[1]: " + nothing + "user of the client",
		ref("collection", 30, `'client':#50`):                                                         "client cannot be changed",
		ref("policy", 60, `'client':#10`):                                                             "title is required",
		ref("policy", 60, `'client':#10,'title':'T','scope_type':'collection'`):                       "scope_id is required",
		ref("policy", 60, `'client':#10,'title':'T','scope_type':'collection','scope_id':#12`):        "scope_id: " + nothing + "collection",
		ref("policy", 60, `'client':#10,'title':'T','scope_type':'user_container','scope_id':#51`):    "scope_id: " + nothing + "group",
		ref("policy", 60, `'client':#10,'title':'T','scope_id':#50`):                                  "scope_id: must be the policy's client, or be left out",
	} {
		w.refuse(reason, line)
	}
	if after := w.everything(); after != before {
		t.Errorf("%s\nis\n%s", before, after)
	}
}
