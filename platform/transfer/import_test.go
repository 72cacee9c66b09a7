package transfer_test

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"partnerapi/domain"
	"partnerapi/platform/transfer"
)

// school is a platform with one of everything that refers to something.
func school() []string {
	return []string{
		ref("partner", 1, `'name':'Northwind','created_at':'2024-01-01T00:00:00Z'`),
		ref("course", 2, `'title':'Safe work','renewal_months':6,'titles':{'en':'Safe work','es':'Trabajo seguro'}`),
		ref("client", 10, `'partner':#1,'name':'Acme','industry':'Steel','created_at':'2025-01-02T03:04:05Z',
			'program':[{'course':#2,'due_after_days':20},'019B7740-0000-7000-8000-000000000001']`),
		ref("admin", 11, `'client':#10,'email':'Boss@Acme.example','name':'The Boss','role':'owner'`),
		ref("group", 12, `'client':#10,'name':'Sales'`),
		ref("group", 13, `'client':#10,'name':'By hand','manual':true`),
		ref("user", 20, `'client':#10,'email':'Ana@acme.example','first_name':' Ana ','job_title':'CFO',
			'created_at':'2026-06-01T00:00:00Z'`),
		ref("user", 21, `'client':#10,'email':'bo@acme.example','role':'hr','group':#12,'status':'inactive',
			'created_at':'2025-06-01T00:00:00Z','collection_ids':[#30]`),
		ref("collection", 30, `'client':#10,'name':'Board','members':[#20],'created_at':'2026-01-01T00:00:00Z'`),
		ref("policy", 40, `'client':#10,'title':'Clean desk','scope_type':'collection','scope_id':#30,'version':3`),
	}
}

// told are the events and the mails that an import led to.
const told = `SELECT type, user_id FROM events UNION ALL SELECT type, id FROM mail_requests ORDER BY 1, 2`

// TestNew: what is not there is made with its own id and fields, and with all that
// follows; no event or mail is sent. A dry run makes nothing.
func TestNew(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	before := w.everything()
	if w.run(transfer.Try, strings.Join(school(), "\n")); w.everything() != before {
		t.Errorf("a dry run leaves\n%s\nnot\n%s", w.everything(), before)
	}
	w.want("10 created, 0 updated, 0 unchanged", school()...)

	w.is(`("2024-01-01 00:00:00+00",northwind,1)`, "SELECT created_at, name_key, client_count FROM partners WHERE id = $1", id(1))
	w.is(`("Safe work",6,"{en,es}")`, "SELECT title, renewal_months, languages FROM courses WHERE id = $1", id(2))
	w.is(`(acme,Steel,t,"2025-01-02 03:04:05+00",1,1,)`, `SELECT name_key, industry, dark_web_monitoring, created_at,
		users_active, users_inactive, archived_at FROM clients WHERE id = $1`, id(10))
	w.is(`(1,20)`+"\n"+`(2,44)`, "SELECT position, due_after_days FROM program_courses WHERE client_id = $1 ORDER BY 1", id(10))
	w.is(`(boss@acme.example,"The Boss",owner,`+id(1)+`)`, "SELECT email, name, role, partner_id FROM admins WHERE id = $1", id(11))
	w.is(`(Sales,f)`+"\n"+`("By hand",t)`, "SELECT name, manual FROM groups WHERE client_id = $1 ORDER BY id", id(10))

	w.is(`(ana@acme.example,Ana,executive,{},manual,active,`+id(13)+`,2026-06-21,"2026-06-01 00:00:00+00")`, `
		SELECT email, first_name, role, overrides, source, status, group_id, next_due_on, created_at FROM users
		WHERE id = $1`, id(20))
	w.is(`(bo@acme.example,"",hr,{role},manual,inactive,`+id(12)+`)`, `
		SELECT email, first_name, role, overrides, source, status, group_id FROM users WHERE id = $1`, id(21))
	w.is(`("2026-06-01 00:00:00+00",2026-06-21,f,t)`+"\n"+`("2026-06-01 00:00:00+00",2026-07-15,f,t)`, `
		SELECT assigned_at, due_on, overdue_noted, from_program FROM assignments WHERE user_id = $1 ORDER BY position`, id(20))
	w.is(`(2025-06-21,t)`+"\n"+`(2025-07-15,t)`,
		"SELECT due_on, overdue_noted FROM assignments WHERE user_id = $1 ORDER BY position", id(21))
	w.is(`(2)`, "SELECT count(*) FROM user_risks AS r JOIN users AS u ON u.id = r.user_id WHERE u.score > 0")

	w.is(`(board,2,dashboard)`, "SELECT name_key, member_count, created_by FROM collections WHERE id = $1", id(30))
	w.is(`("2026-06-01 00:00:00+00")`, "SELECT added_at FROM collection_members WHERE user_id = $1", id(20))
	w.is(`(3,collection,`+id(30)+`,t,365)`, `
		SELECT version, scope_type, scope_id, requires_acknowledgment, renewal_period_days FROM policies WHERE id = $1`, id(40))

	w.is("", told)
	if _, _, err := w.NoteOverdue(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.is("", told)
}

// TestSame: what says nothing new writes nothing, in either form of an id.
func TestSame(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.want("10 created, 0 updated, 0 unchanged", school()...)
	before := w.everything()
	w.clock.Set(noon.AddDate(0, 0, 1))
	w.want("0 created, 0 updated, 10 unchanged", school()...)
	for _, l := range school() {
		w.want("0 created, 0 updated, 1 unchanged", strings.ReplaceAll(l, id(10), strings.ToUpper(id(10))))
	}
	if after := w.everything(); after != before {
		t.Errorf("%s\nis\n%s", before, after)
	}
}

// TestUpdate: a line sets the fields that it names of what is there, and leads to what
// a change through the API leads to.
func TestUpdate(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.want("10 created, 0 updated, 0 unchanged", school()...)
	w.clock.Set(noon.AddDate(0, 0, 1))
	set := func(l, want, query string) {
		t.Helper()
		w.want("0 created, 1 updated, 0 unchanged", l)
		w.want("0 created, 0 updated, 1 unchanged", l)
		w.is(want, query)
	}

	set(ref("partner", 1, `'name':'South'`), `(South,south)`, "SELECT name, name_key FROM partners")
	set(ref("course", 2, `'titles':{'fr-ca':'Travail'}`), `("Safe work",{fr-ca})`, "SELECT title, languages FROM courses WHERE id = '"+id(2)+"'")
	set(ref("client", 10, `'industry':null`), `(Acme,)`, "SELECT name, industry FROM clients")
	set(ref("client", 10, `'archived':true`), `(t,0)`, "SELECT c.archived_at IS NOT NULL, client_count FROM clients AS c, partners")
	set(ref("client", 10, `'archived':false`), `(f,1)`, "SELECT c.archived_at IS NOT NULL, client_count FROM clients AS c, partners")
	set(ref("client", 10, `'program':[#2]`), `(1,14)`, "SELECT position, due_after_days FROM program_courses")
	set(ref("client", 10, `'dark_web_monitoring':false`), `(f)`, "SELECT dark_web_monitoring FROM clients")
	set(ref("admin", 11, `'last_login_at':'2026-01-01T00:00:00Z'`), `("2026-01-01 00:00:00+00")`, "SELECT last_login_at FROM admins")
	set(ref("group", 12, `'name':'Vente'`), `(Vente)`, "SELECT name FROM groups WHERE NOT manual")
	w.is("", told)

	set(ref("user", 20, `'status':'inactive'`), `(0,2)`, "SELECT users_active, users_inactive FROM clients")
	set(ref("user", 21, `'status':'active'`), `(1,1)`, "SELECT users_active, users_inactive FROM clients")
	set(ref("user", 20, `'job_title':null,'email':'payroll@acme.example'`), `(finance,)`, "SELECT role, job_title FROM users WHERE id = '"+id(20)+"'")
	set(ref("user", 20, `'department':' \u00a0Sales\t','job_title':'  '`), `(Sales,)`, "SELECT department, job_title FROM users WHERE id = '"+id(20)+"'")
	w.want("0 created, 0 updated, 1 unchanged", ref("user", 20, `'department':'Sales','job_title':null`))
	set(ref("user", 20, `'department':'\u3000'`), `()`, "SELECT department FROM users WHERE id = '"+id(20)+"'")
	set(ref("user", 20, `'source':'google','role':'admin','group':#12`), `(admin,{},google)`, "SELECT role, overrides, source FROM users WHERE id = '"+id(20)+"'")
	w.is(`(user.deactivated,`+id(20)+`)`+strings.Repeat("\n"+`(user.updated,`+id(20)+`)`, 4)+"\n"+`(user.updated,`+id(21)+`)`, told)
	w.is(`(2)`, "SELECT count(*) FROM users WHERE updated_at = '2026-06-16T12:00:00Z'")

	set(ref("collection", 30, `'name':'Heads','description':'All'`), `(heads,All,2)`, "SELECT name_key, description, member_count FROM collections")
	set(ref("policy", 40, `'version':4,'scope_type':'tenant'`), `(4,tenant,`+id(10)+`,"2026-06-16 12:00:00+00")`,
		"SELECT version, scope_type, scope_id, published_at FROM policies")
	set(ref("policy", 40, `'archived':true`), `(t)`, "SELECT archived_at IS NOT NULL FROM policies")
}

// TestNames: names and addresses may go from one object to another within a file,
// whatever the order; what another object keeps is refused.
func TestNames(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.want("10 created, 0 updated, 0 unchanged", school()...)
	w.want("0 created, 2 updated, 0 unchanged",
		ref("user", 20, `'email':'bo@acme.example'`), ref("user", 21, `'email':'ana@acme.example'`))
	w.want("1 created, 1 updated, 0 unchanged",
		ref("client", 14, `'partner':#1,'name':'Acme'`), ref("client", 10, `'name':'Old Acme'`))
	w.want("1 created, 1 updated, 0 unchanged",
		ref("client", 15, `'partner':#1,'name':'Old  ACME'`), ref("client", 10, `'archived':true`))
	w.refuse("name is already used by the client "+cli(15), ref("client", 10, `'archived':false`))
	w.want("1 created, 0 updated, 1 unchanged", ref("collection", 31, `'client':#10,'name':'Other'`), ref("collection", 30, `'name':'Board'`))
	w.want("0 created, 2 updated, 0 unchanged", ref("collection", 31, `'name':'Board'`), ref("collection", 30, `'name':'Other'`))
	w.is(`(bo@acme.example,ana@acme.example)`, `SELECT
		(SELECT email FROM users WHERE id = $1), (SELECT email FROM users WHERE id = $2)`, id(20), id(21))

	counts, refusals := w.take(ref("user", 22, `'client':#10,'email':'new@acme.example'`),
		ref("user", 23, `'client':#10,'email':'New@acme.example'`), ref("user", 24, `'client':#10,'email':'bo@acme.example'`))
	if counts != "1 created, 0 updated, 0 unchanged, 2 refused" ||
		refusals != "line 2: email is already used by the user "+usr(22)+"\nline 3: email is already used by the user "+usr(20)+"\n" {
		t.Errorf("%s\n%s", counts, refusals)
	}
}

// TestSpellings verifies that addresses are compared by their key: a line that gives a user another spelling of an
// address that another user keeps is refused, and keys go from one user to another as addresses do. Users and admins of
// 1.0 with the same key stay.
func TestSpellings(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.want("10 created, 0 updated, 0 unchanged", school()...)
	for _, kind := range []struct{ object, id, more string }{{"user", usr(22), ""}, {"admin", prefixed[domain.AdminKind](22), `,'name':'A','role':'admin'`}} {
		add := func(n int, email string) string {
			return ref(kind.object, n, `'client':#10,'email':'`+email+`'`+kind.more)
		}
		set := func(n int, email string) string { return ref(kind.object, n, `'email':'`+email+`'`) }
		emails := func(want string) {
			t.Helper()
			w.is(want, "SELECT string_agg(email || coalesce(' ' || email_state, ''), ', ' ORDER BY id) FROM "+kind.object+"s WHERE id >= $1", id(22))
		}
		counts, refusals := w.take(add(22, "straße@acme.example"), add(23, "STRASSE@acme.example"), add(24, "a@bücher.example"), add(25, "Νίκος@acme.example"))
		if counts != "3 created, 0 updated, 0 unchanged, 1 refused" || refusals != "line 2: email is already used by the "+kind.object+" "+kind.id+"\n" {
			t.Errorf("%s\n%s", counts, refusals)
		}
		counts, refusals = w.take(add(26, "strasse@acme.example"), set(24, "ΝΊΚΟΣ@acme.example"))
		if counts != "0 created, 0 updated, 0 unchanged, 2 refused" {
			t.Errorf("%s\n%s", counts, refusals)
		}
		w.want("0 created, 0 updated, 3 unchanged", set(22, "Straße@acme.example"), set(24, "A@XN--BCHER-KVA.example"), set(25, "νίκος@acme.example"))
		w.want("0 created, 3 updated, 0 unchanged", set(22, "ΝΊΚΟσ@acme.example"), set(25, "strasse@acme.example"), set(24, "b@acme.example"))
		emails(`("νίκοσ@acme.example, b@acme.example, strasse@acme.example")`)

		// as 1.0 stored it
		if _, err := w.SQL().Exec("UPDATE "+kind.object+"s SET email = 'straße@acme.example' WHERE id = $1", id(24)); err != nil {
			t.Fatal(err)
		}
		if _, err := w.SettleEmails(t.Context()); err != nil {
			t.Fatal(err)
		}
		emails(`("νίκοσ@acme.example, straße@acme.example shared, strasse@acme.example")`)
		w.want("0 created, 0 updated, 2 unchanged", set(24, "straße@acme.example"), set(25, "strasse@acme.example"))
		counts, refusals = w.take(set(24, "strasse@acme.example"), set(22, "STRASSE@acme.example"), set(22, "straſſe@acme.example"))
		if counts != "0 created, 0 updated, 0 unchanged, 3 refused" {
			t.Errorf("%s\n%s", counts, refusals)
		}
		w.want("0 created, 2 updated, 0 unchanged", set(24, "straſſe@acme.example"), set(22, "straße@zebra.example"))
		emails(`("straße@zebra.example, straſſe@acme.example shared, strasse@acme.example")`)
		w.want("0 created, 2 updated, 0 unchanged", set(24, "strasse@acme.example"), set(25, "straße@acme.example")) // both swap
		emails(`("straße@zebra.example, strasse@acme.example shared, straße@acme.example")`)
		w.want("0 created, 1 updated, 0 unchanged", set(24, "free@acme.example"))
		emails(`("straße@zebra.example, free@acme.example, straße@acme.example")`)
	}
	w.want("1 created, 0 updated, 0 unchanged", ref("admin", 60, `'partner':#1,'email':'é@acme.example','name':'A','role':'owner'`))
	w.want("0 created, 1 updated, 0 unchanged", ref("admin", 60, `'email':'ö@acme.example'`))
	w.is("(ö@acme.example,ö@acme.example,)", "SELECT email, email_key, email_state FROM admins WHERE id = $1", id(60))
}

// TestLines: the lines of one object are applied in their order. A line that wants what a later
// batch gives up waits for it, and so do the later lines of its object.
func TestLines(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	counts, refusals := w.take(append(school(),
		ref("user", 22, `'client':#10,'email':'one@acme.example','first_name':'One'`),
		ref("user", 22, `'first_name':'Two'`),
		ref("user", 22, `'email':'ana@acme.example','last_name':'Two'`),
		ref("user", 22, `'last_name':'Three'`),
		ref("user", 22, `'last_name':'Three'`),
	)...)
	if counts != "11 created, 2 updated, 1 unchanged, 1 refused" || !strings.HasPrefix(refusals, "line 13: email is already used by ") {
		t.Errorf("%s\n%s", counts, refusals)
	}
	w.is(`(one@acme.example,Two,Three)`, "SELECT email, first_name, last_name FROM users WHERE id = $1", id(22))

	report, err := w.takeIn(1, ref("user", 21, `'email':'ana@acme.example','first_name':'First'`),
		ref("user", 21, `'first_name':'Then'`), ref("user", 20, `'email':'gone@acme.example'`))
	if err != nil || report.Updated != 3 || report.Refused != 0 {
		t.Fatal(report, err)
	}
	w.is(`(ana@acme.example,Then)`, "SELECT email, first_name FROM users WHERE id = $1", id(21))
}

const guides = "../../docs/operate/"

var (
	heading = regexp.MustCompile(`(?m)^## ([a-z_]+)$`)
	tabled  = regexp.MustCompile("(?m)^\\| `([a-z_]+)` \\| [a-z]+ \\| ([a-z, ]*)\\|")
)

// TestGuide: the guide has a table of each kind's fields, in their order and with
// their marks, and the kinds are in the order in which they are applied.
func TestGuide(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(guides + "import.md")
	if err != nil {
		t.Fatal(err)
	}
	want := transfer.Fields()
	places := heading.FindAllSubmatchIndex(text, -1)
	if len(places) != len(want) {
		t.Errorf("the guide has %d kinds of objects, and not %d", len(places), len(want))
	}
	for i, place := range places {
		object, end := string(text[place[2]:place[3]]), len(text)
		if i+1 < len(places) {
			end = places[i+1][0]
		}
		var fields []string
		for _, row := range tabled.FindAllStringSubmatch(string(text[place[1]:end]), -1) {
			marks := strings.Fields(strings.ReplaceAll(row[2], ",", " "))
			slices.Sort(marks)
			fields = append(fields, fmt.Sprint(row[1], " ", marks))
		}
		if !slices.Equal(fields, want[object]) {
			t.Errorf("%s has the fields\n%v and not\n%v", object, fields, want[object])
		}
	}
}

// TestGuideExample: the examples have a line of each kind, and are imported as they are.
func TestGuideExample(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	if err := w.LoadTemplates(t.Context()); err != nil { // as the command migrate does
		t.Fatal(err)
	}
	w.catalogue()
	var texts []string
	for _, name := range []string{"import-example.ndjson", "import-example-exposures.ndjson"} {
		text, err := os.ReadFile(guides + name)
		w.must(err)
		texts = append(texts, string(text))
	}
	all := strings.Join(texts, "")
	for object := range transfer.Fields() {
		if !strings.Contains(all, `"object": "`+object+`"`) {
			t.Errorf("no line of a %s", object)
		}
	}
	w.want("16 created, 0 updated, 0 unchanged", texts[0])
	w.want("1 created, 0 updated, 0 unchanged", texts[1])
	w.want("0 created, 0 updated, 17 unchanged", all)
}

// TestBadLines: a line that is no good by itself is refused with all that is wrong.
func TestBadLines(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	long := strings.Repeat("x", 201)
	for line, reason := range map[string]string{
		`{"object":"user"`:                    "must be valid JSON in UTF-8",
		`7`:                                   "must be a JSON object",
		`nonsense`:                            "must be a JSON object",
		`{"object":"user"} {}`:                "must be one JSON object and nothing after it",
		"{\"object\":\"us\xffer\"}":           "must be valid JSON in UTF-8",
		`{}`:                                  "object is required",
		`{"object":7}`:                        "object must be a string",
		`{"object":"robot"}`:                  "object must be one of partner, course, client, branding, admin, group, user, collection, policy, framework_assignment, training_assignment, phishing_result, sent_email, exposure",
		`{"object":"user"}`:                   "id is required",
		`{"object":"user","id":7}`:            "id must be the ID of a user",
		`{"object":"user","id":"x","id":"y"}`: "id must be a UUID, or usr_ and 26 characters",
		`{"object":"user","id":"00000000-0000-0000-0000-000000000000"}`:      "id must be a UUID, or usr_ and 26 characters",
		`{"object":"user","id":"` + cli(1) + `"}`:                            "id must be a UUID, or usr_ and 26 characters",
		`{"object":"partner","id":"par_1"}`:                                  "id must be a UUID, or par_ and 26 characters",
		line("user", 1, `'shoe_size':3`):                                     "shoe_size is unknown",
		line("user", 1, `'email':null`):                                      "email must not be null",
		line("user", 1, `'email':7,'role':'king','status':'gone'`):           "email must be a string; role must be one of admin, executive, hr, finance, standard; status must be one of active, inactive",
		line("user", 1, `'email':'nobody'`):                                  "email must be an email address",
		line("user", 1, `'first_name':'`+long+`'`):                           "first_name must be at most 200 characters",
		line("user", 1, `'first_name':'a\u0007b'`):                           "first_name must not contain control characters",
		line("user", 1, `'department':'a\u0000b'`):                           "department must not contain a NUL",
		line("user", 1, `'created_at':'2026-06-16T00:00:00Z'`):               "created_at must not be in the future",
		line("user", 1, `'created_at':'yesterday'`):                          "created_at must be an RFC 3339 date-time, such as 2026-01-31T08:00:00Z",
		line("user", 1, `'created_at':'1969-01-01T00:00:00Z'`):               "created_at must not be before 1970",
		line("user", 1, `'client':'acme'`):                                   "client must be a UUID, or cli_ and 26 characters",
		line("user", 1, `'collection_ids':['x']`):                            "collection_ids[0] must be a UUID, or col_ and 26 characters",
		line("user", 1, `'collection_ids':'x'`):                              "collection_ids must be an array",
		line("user", 1, `'send_welcome_email':true`):                         "send_welcome_email must be false, because an import sends no emails",
		line("user", 1, `'overrides':['role','shoes']`):                      "overrides[1] must be one of first_name, last_name, department, job_title, manager_email, status, role, preferred_language",
		line("client", 1, `'name':' '`):                                      "name must not be blank",
		line("client", 1, `'archived':'yes'`):                                "archived must be true or false",
		line("client", 1, `'program':[{}]`):                                  "program[0].course is required",
		line("client", 1, `'program':[{'course':'x','due_after_days':1}]`):   "program[0].course must be a UUID, or crs_ and 26 characters",
		line("course", 1, `'renewal_months':-1`):                             "renewal_months must be between 0 and 1200",
		line("course", 1, `'renewal_months':1.5`):                            "renewal_months must be an integer",
		line("course", 1, `'titles':{'de':'Titel'}`):                         `titles[de] must be one of en, es, fr-ca`,
		line("policy", 1, `'scope_id':'usr_1'`):                              "scope_id must be a UUID or an ID from the API",
		line("policy", 1, `'version':0`):                                     "version must be between 1 and 2147483647",
		"{\"object\":\"user\",\"x\":\"" + strings.Repeat("x", 1<<20) + "\"}": "the line is longer than 1048576 bytes",
	} {
		w.refuse(reason, line)
	}
	if counts, _ := w.take("\ufeff", "", " \t"); counts != "0 created, 0 updated, 0 unchanged, 0 refused" {
		t.Error("empty lines:", counts)
	}
}

// TestManualGroupsOfOneBatch: an empty Manual group that is changed is not replaced by a later line, and one that was
// replaced is not changed.
func TestManualGroupsOfOneBatch(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.want("3 created, 0 updated, 0 unchanged", ref("partner", 1, `'name':'Northwind'`), ref("client", 10, `'partner':#1,'name':'Acme'`),
		ref("group", 11, `'client':#10,'name':'A','manual':true`))
	other := ref("group", 12, `'client':#10,'name':'B','manual':true`)
	for _, c := range []struct {
		lines        []string
		counts, held string
	}{
		{[]string{ref("group", 11, `'name':'C'`), other}, "0 created, 1 updated, 0 unchanged, 1 refused", prefixed[domain.GroupKind](11)},
		{[]string{other, ref("group", 11, `'name':'D'`)}, "1 created, 0 updated, 0 unchanged, 1 refused", prefixed[domain.GroupKind](12)},
	} {
		counts, refusals := w.take(c.lines...)
		if want := "line 2: manual: the client already has the group " + c.held + " for manually managed users\n"; counts != c.counts || refusals != want {
			t.Errorf("%s\n%snot %s\n%s", counts, refusals, c.counts, want)
		}
	}
	w.is("("+id(12)+",B)", "SELECT id, name FROM groups WHERE manual")
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
		ref("partner", 4, `'name':'NORTHWIND'`):                                                       "name is already used by the partner " + id(1),
		ref("course", 4, ""):                                                                          "title is required",
		ref("client", 60, `'name':'X'`):                                                               "partner is required",
		ref("client", 60, `'partner':#9,'name':'X'`):                                                  "partner: " + nothing + "partner",
		ref("client", 60, `'partner':#1,'name':'X','program':[#9]`):                                   "program: " + nothing + "course",
		ref("client", 60, `'partner':#1,'name':'ACME'`):                                               "name is already used by the client " + cli(10),
		ref("client", 10, `'partner':#3`):                                                             "partner cannot be changed",
		ref("admin", 60, `'email':'a@b.example','name':'A'`):                                          "partner or client is required",
		ref("admin", 60, `'client':#10,'name':'A','role':'admin'`):                                    "email is required",
		ref("admin", 60, `'client':#9,'email':'a@b.example','name':'A','role':'admin'`):               "client: " + nothing + "client",
		ref("admin", 60, `'client':#10,'partner':#3,'email':'a@b.example','name':'A','role':'admin'`): "client belongs to another partner",
		ref("admin", 60, `'client':#10,'email':'boss@acme.example','name':'A','role':'admin'`):        "email is already used by the admin " + prefixed[domain.AdminKind](11),
		ref("admin", 11, `'client':#50`):                                                              "client cannot be changed",
		ref("group", 60, `'client':#9,'name':'G'`):                                                    "client: " + nothing + "client",
		ref("group", 60, `'client':#10,'name':'G','manual':true`):                                     "manual: the client already has the group " + prefixed[domain.GroupKind](13) + " for manually managed users",
		ref("group", 12, `'manual':true`):                                                             "manual cannot be changed",
		ref("group", 12, `'client':#50`):                                                              "client cannot be changed",
		ref("user", 60, `'email':'a@b.example'`):                                                      "client is required",
		ref("user", 60, `'client':#9,'email':'a@b.example'`):                                          "client: " + nothing + "client",
		ref("user", 60, `'client':#10,'email':'a@b.example','group':#51`):                             "group: " + nothing + "group",
		ref("user", 20, `'client':#50`):                                                               "client cannot be changed",
		ref("user", 20, `'collection_ids':[#9]`):                                                      "collection_ids[0]: " + nothing + "collection; the user was imported but not added to any collection",
		ref("collection", 60, `'client':#10`):                                                         "name is required",
		ref("collection", 60, `'client':#10,'name':'board'`):                                          "name is already used by the collection " + prefixed[domain.CollectionKind](30),
		ref("collection", 30, `'members':[#20,#52]`):                                                  "members[1]: the client has no such user",
		ref("collection", 30, `'client':#50`):                                                         "client cannot be changed",
		ref("policy", 60, `'client':#10`):                                                             "title is required",
		ref("policy", 60, `'client':#10,'title':'T','scope_type':'collection'`):                       "scope_id is required",
		ref("policy", 60, `'client':#10,'title':'T','scope_type':'collection','scope_id':#12`):        "scope_id: " + nothing + "collection",
		ref("policy", 60, `'client':#10,'title':'T','scope_type':'user_container','scope_id':#51`):    "scope_id: " + nothing + "group",
		ref("policy", 60, `'client':#10,'title':'T','scope_id':#50`):                                  "scope_id must be the policy's client or be omitted",
	} {
		w.refuse(reason, line)
	}
	if after := w.everything(); after != before {
		t.Errorf("%s\nis\n%s", before, after)
	}
}
