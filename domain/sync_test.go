package domain_test

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"partnerapi/domain"
)

// TestAccountRecord: whatever a directory says can be kept, and is bounded.
func TestAccountRecord(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("ü", 600)
	a := domain.DirectoryAccount{
		ObjectID: "1", Email: domain.Give(" Ada@EXAMPLE.com "), First: domain.Give(" A\x00d\xffa\n"), Last: domain.Give(long),
		Department: domain.Give(long), JobTitle: domain.Give("\u200b"), ManagerEmail: domain.Give("nobody"), Language: domain.Give(domain.Language("xx")),
	}
	got, _ := json.Marshal(a.Record())
	want := `{"gone":false,"email":"ada@example.com","given_name":"A da","family_name":"` + long[:400] + `","department":"` +
		long[:1000] + `","job_title":"","manager_email":"nobody","language":"en"}`
	if string(got) != want {
		t.Errorf("the record is\n%s\nnot\n%s", got, want)
	}
	spaced := domain.DirectoryAccount{Department: domain.Give(" \u00a0Sales\t"), JobTitle: domain.Give(" \u00a0")}
	record := spaced.Record()
	if u := (domain.User{JobTitle: new("Clerk")}).WithAccount(&record, domain.FromGoogle, "a@b.example"); u.JobTitle != nil || *u.Department != "Sales" {
		t.Errorf("the user has the department %q and the title %v, want Sales and none", *u.Department, u.JobTitle)
	}
	for text, valid := range map[string]bool{
		"a@b.example": true, "a@b.example" + strings.Repeat(" ", 300) + "x": false, "a\xff@b.example": false,
		"a@" + strings.Repeat("b", 60) + strings.Repeat("."+strings.Repeat("c", 60), 4): false, "": false, "nobody": false,
	} {
		account := domain.DirectoryAccount{Email: domain.Give(text)}
		record := account.Record()
		if _, ok := record.Address(); ok != valid {
			t.Errorf("%.40q is kept as %q", text, *record.Email)
		}
	}
	gone := domain.DirectoryAccount{Removed: true, Email: domain.Give("a@b.example")}
	if record := gone.Record(); record.Email != nil || !*record.Gone {
		t.Errorf("the record of a removed account is %+v", record)
	}
}

func TestAccountRecordOfAnything(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := string(rapid.SliceOf(rapid.Byte()).Draw(t, "text"))
		a := domain.DirectoryAccount{Email: domain.Give(text), First: domain.Give(text), Group: domain.Give(text)}
		r := a.Record()
		for _, kept := range []string{*r.Email, *r.GivenName, *r.Group} {
			if !utf8.ValidString(kept) || strings.ContainsRune(kept, 0) || utf8.RuneCountInString(kept) > domain.MaxEmail+1 || domain.CheckName(kept) != "" {
				t.Fatalf("%q is kept as %q", text, kept)
			}
		}
		_, valid := domain.CleanEmail(domain.CleanName(text))
		if _, kept := r.Address(); kept != valid {
			t.Fatalf("%q is kept as the address %q", text, *r.Email)
		}
	})
}

// TestSyncGuarded verifies that the guard stops a run that would deactivate many users, or all of two or more.
func TestSyncGuarded(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		deactivated, users, kept int
		guarded                  bool
	}{
		{5, 6, 0, false}, {6, 30, 0, false}, {6, 29, 0, true}, {20, 100, 0, false}, {21, 100, 0, true}, {0, 0, 0, false},
		{0, 3, 0, false}, {1, 1, 0, false}, {2, 2, 0, true}, {1, 2, 0, false}, {5, 5, 0, true}, {4, 5, 0, false},
		{4, 5, 1, true}, {1, 2, 1, false}, {0, 2, 2, false},
	} {
		if domain.SyncGuarded(c.deactivated, c.users, c.kept) != c.guarded {
			t.Errorf("%d of %d users, of whom %d are kept: got %t", c.deactivated, c.users, c.kept, !c.guarded)
		}
	}
}

// TestManagerEmail verifies that a user gets the email address of a manager only if it is a valid one.
func TestManagerEmail(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{"Boss@Example.com": "boss@example.com", "nobody": "", "": ""} {
		account := domain.DirectoryAccount{ManagerEmail: domain.Give(text)}
		record := account.Record()
		u := domain.User{ManagerEmail: new("old@example.com")}.WithAccount(&record, domain.FromMicrosoft, "a@example.com")
		if got := domain.OrZero(u.ManagerEmail); got != want {
			t.Errorf("got %q of %q, want %q", got, text, want)
		}
	}
}
