package v2_test

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"partnerapi/db"
	"partnerapi/domain"
	"partnerapi/v2/op"
	"partnerapi/v2/v2test"
)

// signer is a staff whose users sign policies.
type signer struct{ *staff }

func newSigner(t *testing.T, users int) *signer { return &signer{newStaff(t, users)} }

// policy adds a policy that is valid for 30 days.
func (s *signer) policy(scope domain.ScopeType, scopeID string, mustSign bool) domain.PolicyID {
	s.T.Helper()
	id := db.NewID[domain.PolicyKind]()
	s.Exec(`INSERT INTO policies (client_id, id, title, scope_type, scope_id, requires_acknowledgment, renewal_period_days, reviewed_at, created_at, updated_at)
		VALUES ($1, $2, 'Acceptable use', $3, $4, $5, 30, $6, $6, $6)`, s.client.ID, id, scope, scopeID, mustSign, s.Clock.Now())
	return id
}

func (s *signer) tenantPolicy() domain.PolicyID {
	s.T.Helper()
	return s.policy(domain.TenantScope, s.client.ID.UUID(), true)
}

func (s *signer) sign(p domain.PolicyID, user, version int, at time.Time) {
	s.T.Helper()
	s.Signal(domain.Signal{Type: domain.PolicySigned, User: s.users[user].ID, Policy: p, Version: version, At: at})
}

func (s *signer) path() string { return "/v2/clients/" + s.client.ID.String() + "/policies" }

func (s *signer) list(query string) op.Page[map[string]any] {
	s.T.Helper()
	var page op.Page[map[string]any]
	s.Get(s.path()+query, s.tenant.Key).Want(http.StatusOK).Into(&page)
	return page
}

// counts are what the list shows of a policy: audience, acknowledged and the
// percentage.
func (s *signer) counts(p domain.PolicyID) string {
	s.T.Helper()
	for _, item := range s.list("").Data {
		if item["id"] == p.String() {
			return fmt.Sprint(item["audience_user_count"], " ", item["acknowledged_count"], " ", item["acknowledged_percentage"])
		}
	}
	s.T.Fatalf("policy %s is not in the list", p)
	return ""
}

// emails are those of a policy's users who signed, did not, or all.
func (s *signer) emails(p domain.PolicyID, status domain.SignFilter) (emails []string) {
	s.T.Helper()
	var page op.Page[map[string]any]
	s.Get(s.path()+"/"+p.String()+"/users?status="+string(status), s.tenant.Key).Want(http.StatusOK).Into(&page)
	for _, item := range page.Data {
		emails = append(emails, item["email"].(string))
		if (item["acknowledged_at"] != nil) != item["acknowledged"].(bool) {
			s.T.Errorf("shown as %v", item)
		}
	}
	return emails
}

func (s *signer) want(p domain.PolicyID, counts string, signed, unsigned int) {
	s.T.Helper()
	if got := s.counts(p); got != counts {
		s.T.Errorf("counts %s, want %s", got, counts)
	}
	if a, b, c := len(s.emails(p, "signed")), len(s.emails(p, "unsigned")), len(s.emails(p, "all")); a != signed || b != unsigned || c != signed+unsigned {
		s.T.Errorf("%d signed, %d unsigned and %d in all; want %d and %d", a, b, c, signed, unsigned)
	}
}

func TestSignOffLapsesByTheClock(t *testing.T) {
	t.Parallel()
	s := newSigner(t, 3)
	p := s.tenantPolicy()
	s.want(p, "3 0 0", 0, 3)
	at := s.Clock.Now()
	s.sign(p, 0, 1, at)
	s.sign(p, 0, 1, at.Add(-time.Hour)) // a late one changes nothing
	s.want(p, "3 1 33.3", 1, 2)
	s.Clock.Set(at.AddDate(0, 0, 30).Add(-time.Microsecond))
	s.want(p, "3 1 33.3", 1, 2)
	before := s.list("?updated_since=" + s.Clock.Now().Format(time.RFC3339Nano))
	s.Clock.Set(at.AddDate(0, 0, 30))
	s.want(p, "3 0 0", 0, 3)
	after := s.list("?updated_since=" + s.Clock.Now().Format(time.RFC3339Nano))
	if len(before.Data) != 0 || len(after.Data) != 1 || after.Data[0]["updated_at"] != domain.At(s.Clock.Now()).Time.Format("2006-01-02T15:04:05.000000Z") {
		t.Errorf("updated since: %v before the lapse and %v after", before.Data, after.Data)
	}
	s.sign(p, 0, 1, s.Clock.Now()) // again, in a new period
	s.want(p, "3 1 33.3", 1, 2)
}

func TestPublishingUnsigns(t *testing.T) {
	t.Parallel()
	s := newSigner(t, 2)
	p := s.tenantPolicy()
	now := s.Clock.Now()
	s.sign(p, 0, 1, now)
	s.sign(p, 1, 2, now) // the signal of a version that comes before it
	s.want(p, "2 1 50", 1, 1)
	s.Signal(domain.Signal{Type: domain.PolicyPublished, Policy: p, At: now})
	s.want(p, "2 1 50", 1, 1)
	if got := s.emails(p, "signed"); got[0] != v2test.Email(1) {
		t.Errorf("signed by %v", got)
	}
	if v := s.list("").Data[0]["version"]; v != 2.0 {
		t.Errorf("version %v", v)
	}
	s.Exec("UPDATE policies SET archived_at = now()")
	if len(s.list("").Data) != 0 {
		t.Error("an archived policy is shown")
	}
	s.Get(s.path()+"/"+p.String()+"/users", s.tenant.Key).Want(http.StatusNotFound)
	for _, signal := range []domain.Signal{
		{Type: domain.PolicyPublished, Policy: p, At: now},
		{Type: domain.PolicySigned, User: s.users[0].ID, Policy: p, Version: 2, At: now},
	} {
		if refusal := s.Ingest(signal); refusal != domain.NoSuchObject(p.Noun()) {
			t.Errorf("%s of an archived policy: %s", signal.Type, refusal)
		}
	}
	s.Exec("UPDATE policies SET archived_at = NULL")
	stranger := domain.Signal{Type: domain.PolicySigned, User: db.NewID[domain.UserKind](), Policy: p, Version: 2, At: now}
	if refusal := s.Ingest(stranger); refusal != domain.NoSuchObject("user") {
		t.Errorf("signed by a stranger: %s", refusal)
	}
}

// TestClockOfASignature: a clock that is behind that of another process never
// moves updated_at or published_at backwards, so that who polls misses nothing.
func TestClockOfASignature(t *testing.T) {
	t.Parallel()
	s := newSigner(t, 2)
	p := s.tenantPolicy()
	ahead := s.Clock.Now().Add(time.Hour)
	s.Exec("UPDATE policies SET updated_at = $1", ahead)
	s.sign(p, 0, 1, s.Clock.Now())
	s.Signal(domain.Signal{Type: domain.PolicyPublished, Policy: p, At: s.Clock.Now()})
	since := "updated_since=" + ahead.Format(time.RFC3339Nano)
	if n := len(s.list("?" + since).Data); n != 1 {
		t.Errorf("%d policies changed", n)
	}
	users := s.Get(s.path()+"/"+p.String()+"/users?"+since, s.tenant.Key).Want(http.StatusOK).Field("data").([]any)
	if len(users) != 2 {
		t.Errorf("%d users are asked to sign the new version", len(users))
	}
}

func TestAudiences(t *testing.T) {
	t.Parallel()
	s := newSigner(t, 4)
	collection := s.Collection(s.client.ID, "Sales")
	group := s.users[0].Group.ID
	s.Exec("INSERT INTO groups (client_id, id, name, manual, created_at) VALUES ($1, $2, 'Directory', false, now())", s.client.ID, db.NewID[domain.GroupKind]())
	s.Exec("UPDATE users SET group_id = (SELECT id FROM groups WHERE NOT manual) WHERE id = $1", s.users[3].ID)
	all, grouped := s.tenantPolicy(), s.policy(domain.GroupScope, group.UUID(), true)
	members, free := s.policy(domain.CollectionScope, collection.UUID(), true), s.policy(domain.TenantScope, s.client.ID.UUID(), false)
	for _, p := range []domain.PolicyID{all, grouped, members, free} {
		for user := range s.users {
			s.sign(p, user, 1, s.Clock.Now())
		}
	}
	s.want(members, "0 0 0", 0, 0)
	s.Clock.Advance(time.Minute)
	since := s.Clock.Now()
	s.Do("POST", "/v2/clients/"+s.client.ID.String()+"/collections/"+collection.String()+"/members", s.tenant.Key,
		map[string]any{"user_ids": []string{s.users[0].ID.String(), s.users[1].ID.String()}}).Want(http.StatusOK)
	if got := s.list("?updated_since=" + since.Format(time.RFC3339Nano)).Data; len(got) != 1 || got[0]["id"] != members.String() {
		t.Errorf("updated since the members came: %v", got)
	}
	s.want(all, "4 4 100", 4, 0)
	s.want(grouped, "3 3 100", 3, 0)
	s.want(members, "2 2 100", 2, 0)
	if got := s.counts(free); got != "<nil> <nil> <nil>" {
		t.Errorf("counts %s where no acknowledgment is required", got)
	}
	s.Do("PATCH", "/v2/users/"+s.users[0].ID.String(), s.tenant.Key, `{"status":"inactive"}`).Want(http.StatusOK)
	s.want(all, "3 3 100", 3, 0)
	s.want(grouped, "2 2 100", 2, 0)
	s.want(members, "1 1 100", 1, 0)
	s.Do("DELETE", "/v2/clients/"+s.client.ID.String()+"/collections/"+collection.String(), s.tenant.Key, nil).Want(http.StatusNoContent)
	s.want(members, "0 0 0", 0, 0)
	for _, item := range s.list("").Data {
		want := map[any]string{"tenant": s.client.ID.String(), "user_container": group.String(), "collection": collection.String()}[item["scope_type"]]
		if item["scope_id"] != want {
			t.Errorf("scope %v of a %v, want %s", item["scope_id"], item["scope_type"], want)
		}
	}
}

func TestRemindersGoOutOnceADay(t *testing.T) {
	t.Parallel()
	s := newSigner(t, 3)
	p := s.tenantPolicy()
	s.sign(p, 1, 1, s.Clock.Now())
	s.Clock.Set(v2test.Noon)
	path := s.path() + "/" + p.String() + "/reminders"
	seen := v2test.AtOnce(8, func(int) int { return s.Do("POST", path, s.tenant.Key, nil).Status })
	if seen[http.StatusAccepted] != 1 || seen[http.StatusTooManyRequests] != 7 {
		t.Errorf("statuses %v", seen)
	}
	mails := "SELECT count(*) FROM mail_requests WHERE type = 'policy-reminder' AND policy_id = $1"
	if n := s.Number(mails, p); n != 2 {
		t.Errorf("%d mails are asked for", n)
	}
	refused := s.Do("POST", path, s.tenant.Key, nil).Want(http.StatusTooManyRequests)
	if wait := refused.Header.Get("Retry-After"); wait != strconv.Itoa(12*60*60) || refused.Code() != domain.RateLimited {
		t.Errorf("Retry-After %s: %s", wait, refused.Body)
	}
	if !strings.Contains(string(refused.Body), "were sent today already; the next can be sent tomorrow (UTC)") {
		t.Errorf("refused with %s", refused.Body)
	}
	s.Clock.Set(v2test.Noon.Add(12 * time.Hour))
	if n := s.Do("POST", path, s.tenant.Key, nil).Want(http.StatusAccepted).Field("recipient_count"); n != 2.0 {
		t.Errorf("%v recipients", n)
	}
	if n := s.Number(mails, p); n != 4 {
		t.Errorf("%d mails are asked for", n)
	}
	free := s.policy(domain.TenantScope, s.client.ID.UUID(), false)
	if n := s.Do("POST", s.path()+"/"+free.String()+"/reminders", s.tenant.Key, nil).Want(http.StatusAccepted).Field("recipient_count"); n != 0.0 {
		t.Errorf("%v recipients where nobody has to sign", n)
	}
}

// TestStatementsOfReminders: as many for a hundred users as for one.
func TestStatementsOfReminders(t *testing.T) {
	s := newSigner(t, 1)
	p := s.tenantPolicy()
	remind := func() int {
		return s.Statements.During(func() {
			s.Do("POST", s.path()+"/"+p.String()+"/reminders", s.tenant.Key, nil).Want(http.StatusAccepted)
		})
	}
	s.list("") // the key is known
	few := remind()
	s.more(100)
	s.Clock.Advance(24 * time.Hour)
	s.list("") // looks the key up again
	if many := remind(); few != many {
		t.Errorf("%d statements for one user, %d for 101", few, many)
	}
}
