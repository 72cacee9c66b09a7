package v2_test

import (
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"

	"partnerapi/domain"
	"partnerapi/v2/api"
	"partnerapi/v2/v2test"
)

// TestUpdatedSinceOfUsersLists: the lists of a client's users, as members, as an
// audience and by their exposures, have who changed and no other.
func TestUpdatedSinceOfUsersLists(t *testing.T) {
	t.Parallel()
	s := newStaff(t, 3)
	first, second, third := s.users[0], s.users[1], s.users[2]
	collection := s.AddCollection(s.client.ID, "Collection")
	p := s.policy(domain.CollectionScope, collection.UUID(), true)
	members := "/v2/clients/" + s.client.ID.String() + "/collections/" + collection.String() + "/members"
	audience := s.policiesPath() + "/" + p.String() + "/users"
	watched := "/v2/clients/" + s.client.ID.String() + "/dark-web/users"
	join := func(users ...api.User) {
		ids := make([]string, len(users))
		for i, u := range users {
			ids[i] = u.ID.String()
		}
		s.Do("POST", members, s.tenant.Key, map[string]any{"user_ids": ids}).Want(http.StatusOK)
	}
	all := []string{first.Email, second.Email, third.Email}
	join(first, second, third)
	signedAt := s.Clock.Now().Add(-time.Hour)
	if _, _, err := s.DB.ImportBreaches(t.Context(), []domain.Breach{{Name: "List", Title: "A list", Severity: domain.SeverityLow, DataClasses: []string{"Names"}}}); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		what                       string
		do                         func()
		members, audience, watched []string
	}{
		{"nothing", func() {}, nil, nil, nil},
		{"a name", func() {
			s.Do("PATCH", "/v2/users/"+second.ID.String(), s.tenant.Key, `{"first_name":"Grace"}`).Want(http.StatusOK)
		}, all[1:2], all[1:2], all[1:2]},
		{"a signature of an hour ago", func() { s.sign(p, 0, 1, signedAt) }, nil, all[:1], nil},
		{"a late signature", func() { s.sign(p, 0, 1, signedAt.Add(-time.Hour)) }, nil, nil, nil},
		{"an exposure that moves no score", func() {
			s.Signal(domain.Signal{Type: domain.ExposureFound, User: third.ID, Breach: "List", At: s.Clock.Now()})
		}, all[2:], all[2:], all[2:]},
		{"who leaves and joins", func() {
			s.Do("DELETE", members+"/"+first.ID.String(), s.tenant.Key, nil).Want(http.StatusNoContent)
			join(first)
		}, all[:1], all[:1], all[:1]},
		{"a lapse", func() { s.Clock.Set(signedAt.AddDate(0, 0, 30)) }, nil, all[:1], nil},
		{"a new version", func() { s.Signal(domain.Signal{Type: domain.PolicyPublished, Policy: p, At: s.Clock.Now()}) }, nil, all, nil},
	} {
		s.Clock.Advance(time.Second)
		since := s.Clock.Now()
		c.do()
		for path, want := range map[string][]string{members: c.members, audience: c.audience, watched: c.watched} {
			got := column(s.Get(path+"?updated_since="+since.Format(time.RFC3339Nano), s.tenant.Key).Want(http.StatusOK), "email")
			slices.Sort(got)
			if !slices.Equal(got, want) {
				t.Errorf("after %s, %s tells of %v, not %v", c.what, path, got, want)
			}
		}
	}
}

// TestUpdatedSinceOfTemplates: an import that changes a template is listed.
func TestUpdatedSinceOfTemplates(t *testing.T) {
	t.Parallel()
	s := newStaff(t, 0)
	lesson := domain.TemplateContent{Indicators: []domain.Indicator{}, Difficulty: 3, Landing: domain.LandingLesson}
	imported := []domain.Template{
		{Name: "One", Language: domain.English, Category: "general", Subject: "S", From: "A <a@example.com>", TemplateContent: lesson},
		{Name: "Two", Language: domain.English, Category: "general", Subject: "S", From: "A <a@example.com>", TemplateContent: lesson},
	}
	var since time.Time
	for _, want := range [][]string{{"One", "Two"}, nil, {"Two"}} {
		s.Clock.Advance(time.Second)
		since = s.Clock.Now()
		if want != nil {
			imported[1].Subject += "!"
		}
		if _, _, err := s.DB.ImportTemplates(t.Context(), slices.Clone(imported)); err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, row := range rows(s.Get("/v2/phishing/templates?updated_since="+since.Format(time.RFC3339Nano), s.tenant.Key)) {
			got = append(got, row["name"].(string))
		}
		if !slices.Equal(got, want) {
			t.Errorf("changed are %v, not %v", got, want)
		}
	}
}

// TestUpdatedSinceOfReportedEmails: a mail is listed that was reported or classified since.
func TestUpdatedSinceOfReportedEmails(t *testing.T) {
	t.Parallel()
	s := newStaff(t, 1)
	for _, signal := range []domain.Signal{
		{Type: domain.EmailReported, User: s.users[0].ID, Message: "a@x", Sender: "s"},
		{Type: domain.EmailClassified, Message: "a@x", Class: domain.SentClass(domain.ClassPhishing)},
	} {
		s.Clock.Advance(time.Minute)
		signal.At = s.Clock.Now()
		s.Signal(signal)
		since := "?updated_since=" + s.Clock.Now().Format(time.RFC3339)
		if got := rows(s.Get("/v2/clients/"+s.client.ID.String()+"/phishing/reported"+since, s.tenant.Key)); len(got) != 1 {
			t.Errorf("after %s, changed are %v", signal.Type, got)
		}
	}
}

// TestRemindersWaitForAPublication: reminders that wait for a new version go to
// those who have not signed that.
func TestRemindersWaitForAPublication(t *testing.T) {
	t.Parallel()
	s := newStaff(t, 2)
	p := s.tenantPolicy()
	s.sign(p, 0, 1, s.Clock.Now())
	tx, err := s.DB.SQL().BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback() // after a commit without effect
	if _, err := tx.ExecContext(t.Context(), "UPDATE policies SET version = 2 WHERE id = $1", p); err != nil {
		t.Fatal(err)
	}
	reminded := make(chan v2test.Response)
	go func() { reminded <- s.Do("POST", s.policiesPath()+"/"+p.String()+"/reminders", s.tenant.Key, nil) }()
	for s.Number("SELECT count(*) FROM pg_locks AS l JOIN pg_stat_activity AS a USING (pid) WHERE NOT l.granted AND a.datname = current_database()") == 0 {
	}
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
	if n := (<-reminded).Want(http.StatusAccepted).Field("recipient_count"); n != 2.0 {
		t.Errorf("%v were reminded, not 2", n)
	}
}

// TestUpdatedSinceOfTraining: of a user's courses those are listed whose item changed,
// if only by its place, whatever date the change has.
func TestUpdatedSinceOfTraining(t *testing.T) {
	t.Parallel()
	w := newStaff(t, 1)
	user := w.users[0]
	path := "/v2/users/" + user.ID.String() + "/training"
	shown := func() map[string]string {
		all := map[string]string{}
		for _, row := range w.training(user) {
			all[row["course_id"].(string)] = fmt.Sprint(row)
		}
		return all
	}
	w.Exec("DELETE FROM program_courses WHERE position > 2")
	w.Exec("DELETE FROM assignments WHERE position > 2")
	w.Exec("UPDATE assignments SET position = position + 10")
	remove := func(r v2test.Response) func() {
		return func() {
			w.Do("DELETE", w.frameworksPath()+"/"+r.Field("assignment.id").(string), w.tenant.Key, nil).Want(http.StatusNoContent)
		}
	}
	removed := w.follow(`{"framework_id":"gdpr"}`).Want(http.StatusCreated)
	direct := func(n byte) func() {
		return func() {
			w.assign(fmt.Sprintf(`{"course_id":%q,"audience":{"type":"all"}}`, course(n))).Want(http.StatusOK)
		}
	}
	for _, c := range []struct {
		what string
		do   func()
	}{
		{"nothing", func() {}},
		{"one at the end", direct(8)},
		{"a framework that ends", remove(removed)},
		{"a completion of last month", func() { w.complete(user, 8, w.Clock.Now().AddDate(0, -1, 0), true) }},
		{"a later one of last week", func() { w.complete(user, 8, w.Clock.Now().AddDate(0, 0, -7), false) }},
		{"one that was never given", func() { w.complete(user, 3, w.Clock.Now().AddDate(0, -1, 0), true) }},
		{"one of the program", func() {
			w.Exec("INSERT INTO program_courses (client_id, position, course_id, due_after_days) VALUES ($1, 3, $2, 30)", w.client.ID, course(10))
			direct(10)()
		}},
	} {
		before := shown()
		w.Clock.Advance(time.Minute)
		since := w.Clock.Now()
		c.do()
		var want, got []string
		for id, row := range shown() {
			if before[id] != row {
				want = append(want, id)
			}
		}
		for _, row := range rows(w.Get(path+"?updated_since="+since.Format(time.RFC3339Nano), w.tenant.Key).Want(http.StatusOK)) {
			got = append(got, row["course_id"].(string))
		}
		slices.Sort(want)
		slices.Sort(got)
		if !slices.Equal(got, want) || (len(want) == 0) != (c.what == "nothing") {
			t.Errorf("%s: %v are told, %v changed", c.what, got, want)
		}
	}
}

// TestUpdatedSinceOfFrameworks: assignments are listed whose evaluation moved, whose
// collection was renamed or deleted, and new ones; not those that were evaluated again.
func TestUpdatedSinceOfFrameworks(t *testing.T) {
	t.Parallel()
	w := newStaff(t, 2)
	collection := w.AddCollection(w.client.ID, "Some")
	w.Exec("INSERT INTO collection_members (client_id, collection_id, user_id, added_at) VALUES ($1, $2, $3, $4)",
		w.client.ID, collection, w.users[0].ID, w.Clock.Now())
	ids := map[string]string{}
	assign := func(name, body string) func() {
		return func() { ids[w.follow(body).Want(http.StatusCreated).Field("assignment.id").(string)] = name }
	}
	some := fmt.Sprintf(`"audience":{"type":"collection","collection_id":%q}`, collection)
	for _, c := range []struct {
		what string
		do   func()
		want []string
	}{
		{"one of all", assign("all", `{"framework_id":"gdpr"}`), []string{"all"}},
		{"one of some", assign("some", `{"framework_id":"iso_27001",`+some+`}`), []string{"some"}},
		{"time", func() { w.Clock.Advance(time.Hour) }, nil},
		{"a completion", func() { w.Clock.Advance(time.Hour); w.complete(w.users[1], 9, w.Clock.Now(), true) }, []string{"all"}},
		{"a collection that is deleted", func() {
			w.Do("DELETE", "/v2/clients/"+w.client.ID.String()+"/collections/"+collection.String(), w.tenant.Key, nil).Want(http.StatusNoContent)
		}, []string{"some"}},
	} {
		w.Get(w.frameworksPath(), w.tenant.Key).Want(http.StatusOK)
		w.Clock.Advance(time.Minute)
		since := w.Clock.Now()
		c.do()
		w.Clock.Advance(domain.SummaryAge + time.Second)
		var got []string
		for _, row := range rows(w.Get(w.frameworksPath()+"?updated_since="+since.Format(time.RFC3339Nano), w.tenant.Key).Want(http.StatusOK)) {
			got = append(got, ids[row["id"].(string)])
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %v are told, not %v", c.what, got, c.want)
		}
	}
}
