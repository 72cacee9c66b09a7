package directory_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"partnerapi/domain"
	"partnerapi/platform/directory"
	"partnerapi/platform/directory/directorytest"
)

func microsoft(t *testing.T, d *directorytest.Directory) *directorytest.Microsoft {
	m := directorytest.NewMicrosoft(d)
	t.Cleanup(m.Close)
	return m
}

// bare is an account that a whole reading shows without anything but its name.
func bare(id, email, first, last, group string) domain.DirectoryAccount {
	none := domain.Give("")
	return domain.DirectoryAccount{
		ObjectID: id, Guest: domain.Give(false), Enabled: domain.Give(true), Email: domain.Give(email),
		First: domain.Give(first), Last: domain.Give(last), Display: domain.Give(strings.TrimSpace(first + " " + last)),
		Department: none, JobTitle: none, ManagerEmail: none, Language: domain.Give(domain.English), Group: domain.Give(group),
	}
}

// TestMicrosoft reads everything, then what changed, then nothing.
func TestMicrosoft(t *testing.T) {
	t.Parallel()
	d := directorytest.New(people(45)...)
	d.Put(directorytest.Account{ID: "id-045", First: "No", Last: "Mail", Department: "Sales", Title: "Chief", Language: "es", Disabled: true})
	m := microsoft(t, d)
	m.SetPageSize(30)
	m.Behave(directorytest.Behavior{Minimal: true})
	s, _ := source(t, domain.Microsoft, m, "")

	pages := mustRead(t, s, "")
	got := accounts(pages)
	if len(pages) != 2 || len(got) != 46 || !pages[0].Whole || !pages[1].Whole {
		t.Fatalf("%d accounts on %d pages", len(got), len(pages))
	}
	second := bare("id-001", "user001@example.com", "User", "1", "")
	second.Manager, second.ManagerEmail = domain.Give("id-000"), domain.Give("user000@example.com")
	last := bare("id-045", "", "No", "Mail", "")
	last.Department, last.JobTitle, last.Language, last.Enabled = domain.Give("Sales"), domain.Give("Chief"), domain.Give(domain.Spanish), domain.Give(false)
	wantAccounts(t, got[:2], bare("id-000", "user000@example.com", "User", "0", ""), second)
	wantAccounts(t, got[45:], last)
	if n := m.Requests("$batch"); n != 3 {
		t.Errorf("%d batches of managers", n)
	}

	d.Remove("id-007")
	d.Put(directorytest.Account{ID: "id-045", Email: "mail@example.com", First: "No", Last: "Mail", Title: "Chief"})
	d.Put(directorytest.Account{ID: "id-046", Email: "guest@elsewhere.example", Guest: true})
	changes := mustRead(t, s, next(pages))
	if len(changes) != 1 || changes[0].Whole {
		t.Fatalf("%+v", changes)
	}
	got = changes[0].Accounts
	if len(got) != 3 || got[0] != (domain.DirectoryAccount{ObjectID: "id-007", Removed: true}) || got[2].Guest != domain.Give(true) {
		t.Fatalf("%+v", got)
	}
	if a := got[1]; a.Department != domain.Give("") || a.JobTitle.Given || a.Email != domain.Give("mail@example.com") {
		t.Errorf("%+v", a)
	}
	d.Put(directorytest.Account{ID: "id-046", Email: "guest@elsewhere.example"})
	changes = mustRead(t, s, next(changes))
	if got = accounts(changes); len(got) != 1 || got[0].Guest != domain.Give(false) {
		t.Errorf("a guest who was made a member: %+v", got)
	}
	if unchanged := mustRead(t, s, next(changes)); len(unchanged) != 1 || len(accounts(unchanged)) != 0 || unchanged[0].Next == "" {
		t.Errorf("%+v", unchanged)
	}
}

// TestMicrosoftDocumented reads what the documentation shows: a property may be
// absent from a change, or null.
func TestMicrosoftDocumented(t *testing.T) {
	t.Parallel()
	m := microsoft(t, directorytest.New())
	s, _ := source(t, domain.Microsoft, m, "")
	from := next(mustRead(t, s, ""))
	m.Inject(directorytest.Fault{Path: "/users/delta", Body: fixture(t, "graph_delta.json", m.URL)},
		directorytest.Fault{Path: "$batch", Body: fixture(t, "graph_batch.json", m.URL)})

	pages := mustRead(t, s, from)
	group := domain.Give("")
	wantAccounts(t, accounts(pages),
		domain.DirectoryAccount{
			ObjectID: "ffff7b1a-13b6-477e-8c0c-380905cd99f7", Guest: domain.Give(false), Enabled: domain.Give(true),
			Email: domain.Give("Elodie@Contoso.example"), First: domain.Give("Élodie"), Last: domain.Give("Tremblay Roy"),
			Display: domain.Give("Testuser1"), Manager: domain.Give("6a7c3c9d-0000-4000-8000-000000000002"), Department: domain.Give(""), JobTitle: domain.Give("Engineer"),
			ManagerEmail: domain.Give("boss@contoso.example"), Language: domain.Give(domain.French), Group: group,
		},
		domain.DirectoryAccount{
			ObjectID: "605d1257-ffff-40b6-8e6f-528c9f65dd55", JobTitle: domain.Give(""), ManagerEmail: domain.Give(""), Group: group,
		},
		domain.DirectoryAccount{
			ObjectID: "87d349ed-44d7-43e1-9a83-5f2406dee5bd", Enabled: domain.Give(false), First: domain.Give(""),
			Last: domain.Give(""), Display: domain.Give("Anna Maria Lopez"),
			Manager: domain.Give("6a7c3c9d-0000-4000-8000-000000000003"), Language: domain.Give(domain.Spanish), ManagerEmail: domain.Give(""), Group: group,
		},
		domain.DirectoryAccount{
			ObjectID: "1a2b3c4d-0000-4000-8000-000000000001", Guest: domain.Give(true), Email: domain.Give("guest@fabrikam.example"),
			Display: domain.Give("Guest of Fabrikam"), Group: group,
		},
		domain.DirectoryAccount{ObjectID: "ffff5aa7-2ed0-4d1e-b1c4-2d5f1a2a4c11", Removed: true},
		domain.DirectoryAccount{ObjectID: "ffff5aa7-2ed0-4d1e-b1c4-2d5f1a2a4c12", Removed: true},
	)
}

// TestMicrosoftGroup reads the members of a group and of the groups in it.
func TestMicrosoftGroup(t *testing.T) {
	t.Parallel()
	d := directorytest.New(people(8)...)
	d.PutGroup("inner", "Inner", "id-003", "id-004", "outer")
	d.PutGroup("outer", "Head office", "inner", "id-001", "id-002")
	m := microsoft(t, d)
	m.SetPageSize(3)
	s, _ := source(t, domain.Microsoft, m, "outer")

	pages := mustRead(t, s, "")
	if got := objects(accounts(pages)); !slices.Equal(got, []string{"id-001", "id-002", "id-003", "id-004"}) || len(pages) != 2 || !pages[0].Whole {
		t.Errorf("%v on %d pages", got, len(pages))
	}
	if a := pages[0].Accounts[0]; a.Group != domain.Give("Head office") || a.ManagerEmail != domain.Give("user000@example.com") || a.Department != domain.Give("") {
		t.Errorf("%+v", a)
	}
	if next(pages) != "" {
		t.Errorf("the next reading begins at %q", next(pages))
	}
	if rest := mustRead(t, s, pages[0].Next); len(accounts(rest)) != 1 {
		t.Errorf("the rest: %v", objects(accounts(rest)))
	}

	all, _ := source(t, domain.Microsoft, m, "")
	for name, attempt := range map[string]func() error{
		"a group's link without a group": func() error { _, err := read(t.Context(), all, pages[0].Next); return err },
		"a delta link with a group":      func() error { _, err := read(t.Context(), s, next(mustRead(t, all, ""))); return err },
		"another service's link": func() error {
			_, err := read(t.Context(), all, "2 all https://graph.elsewhere.example/v1.0/users/delta")
			return err
		},
	} {
		if err := attempt(); !errors.Is(err, directory.ErrStartOver) {
			t.Errorf("%s: %v", name, err)
		}
	}
	lost, _ := source(t, domain.Microsoft, m, "nobody")
	_, err := read(t.Context(), lost, "")
	wantError(t, m, err, "no group nobody", "404")
}

// TestMicrosoftForgets answers 410 to a delta link, and to one within a round.
func TestMicrosoftForgets(t *testing.T) {
	t.Parallel()
	m := microsoft(t, directorytest.New(people(6)...))
	m.SetPageSize(2)
	s, w := source(t, domain.Microsoft, m, "")
	pages := mustRead(t, s, "")
	m.ForgetPositions()
	for _, position := range []string{pages[0].Next, next(pages)} {
		if _, err := read(t.Context(), s, position); !errors.Is(err, directory.ErrStartOver) {
			t.Errorf("%v", err)
		}
	}
	m.Inject(directorytest.Failing("/users/delta", http.StatusGone, 1))
	if _, err := read(t.Context(), s, ""); !errors.Is(err, directory.ErrStartOver) {
		t.Errorf("%v", err)
	}
	if len(w.list) > 0 {
		t.Errorf("waited %v", w.list)
	}
	if pages := mustRead(t, s, ""); len(accounts(pages)) != 6 {
		t.Errorf("%d accounts", len(accounts(pages)))
	}
}

// TestMicrosoftBatch throttles requests within a batch: only they are sent again.
func TestMicrosoftBatch(t *testing.T) {
	t.Parallel()
	m := microsoft(t, directorytest.New(people(10)...))
	s, w := source(t, domain.Microsoft, m, "")
	m.Inject(directorytest.Throttled("/manager", "9", 3), directorytest.Failing("/manager", 500, 1))
	for i, a := range accounts(mustRead(t, s, "")) {
		if want := domain.Give([]string{"", "user000@example.com"}[min(i, 1)]); a.ManagerEmail != want {
			t.Errorf("%s has the manager %v", a.ObjectID, a.ManagerEmail)
		}
	}
	if n := m.Requests("/manager"); n != 14 || !slices.Equal(w.list, []time.Duration{9 * time.Second}) {
		t.Errorf("%d requests, waited %v", n, w.list)
	}

	again, w := source(t, domain.Microsoft, m, "")
	m.Inject(directorytest.Fault{Path: "$batch", Body: `{"responses": [{"id": "0", "status": 404}, {"id": "77", "status": 200}, {"id": "x"}]}`})
	if got := accounts(mustRead(t, again, "")); len(got) != 10 || len(w.list) != 1 {
		t.Errorf("%d accounts, waited %v", len(got), w.list)
	}
}

// TestMicrosoftForeignLinks follows no link to another host: the token would go
// there.
func TestMicrosoftForeignLinks(t *testing.T) {
	t.Parallel()
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("the link was followed") }))
	t.Cleanup(elsewhere.Close)
	m := microsoft(t, directorytest.New())
	s, _ := source(t, domain.Microsoft, m, "")
	for _, name := range []string{"@odata.nextLink", "@odata.deltaLink"} {
		m.Inject(directorytest.Fault{Path: "/users/delta", Body: `{"value": [], "` + name + `": "` + elsewhere.URL + `/v1.0/users/delta"}`})
		pages, err := read(t.Context(), s, "")
		wantError(t, m, err, "another host")
		if len(pages) > 0 {
			t.Errorf("%+v", pages)
		}
	}
	m.Inject(directorytest.Fault{Path: "/users/delta", Status: http.StatusTemporaryRedirect, Header: map[string]string{"Location": elsewhere.URL}})
	_, err := read(t.Context(), s, "")
	wantError(t, m, err, "another host")
}
