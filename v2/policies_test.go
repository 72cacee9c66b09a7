package v2_test

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"partnerapi/db"
	"partnerapi/domain"
	"partnerapi/v2/v2test"
)

// policy adds a policy that is valid for 30 days.
func (s *staff) policy(scope domain.ScopeType, scopeID string, mustSign bool) domain.PolicyID {
	s.T.Helper()
	id := db.NewID[domain.PolicyKind]()
	s.Exec(`INSERT INTO policies (client_id, id, title, scope_type, scope_id, requires_acknowledgment, renewal_period_days, reviewed_at, created_at, updated_at)
		VALUES ($1, $2, 'Acceptable use', $3, $4, $5, 30, $6, $6, $6)`, s.client.ID, id, scope, scopeID, mustSign, s.Clock.Now())
	return id
}

func (s *staff) tenantPolicy() domain.PolicyID {
	s.T.Helper()
	return s.policy(domain.TenantScope, s.client.ID.UUID(), true)
}

func (s *staff) sign(p domain.PolicyID, user, version int, at time.Time) {
	s.T.Helper()
	s.Signal(domain.Signal{Type: domain.PolicySigned, User: s.users[user].ID, Policy: p, Version: version, At: at})
}

func (s *staff) policiesPath() string { return "/v2/clients/" + s.client.ID.String() + "/policies" }

func (s *staff) policies(query string) []map[string]any {
	s.T.Helper()
	return rows(s.Get(s.policiesPath()+query, s.tenant.Key).Want(http.StatusOK))
}

// counts are what the list shows of a policy: audience, acknowledged and the
// percentage.
func (s *staff) counts(p domain.PolicyID) string {
	s.T.Helper()
	for _, item := range s.policies("") {
		if item["id"] == p.String() {
			return fmt.Sprint(item["audience_user_count"], " ", item["acknowledged_count"], " ", item["acknowledged_percentage"])
		}
	}
	s.T.Fatalf("policy %s is not in the list", p)
	return ""
}

func TestSignOffLapsesByTheClock(t *testing.T) {
	t.Parallel()
	s := newStaff(t, 3)
	p := s.tenantPolicy()
	want := func(counts string) {
		t.Helper()
		if got := s.counts(p); got != counts {
			t.Errorf("counts %s, want %s", got, counts)
		}
	}
	want("3 0 0")
	at := s.Clock.Now()
	s.sign(p, 0, 1, at)
	s.sign(p, 0, 1, at.Add(-time.Hour)) // a late one changes nothing
	want("3 1 33.3")
	s.Clock.Set(at.AddDate(0, 0, 30).Add(-time.Microsecond))
	want("3 1 33.3")
	before := s.policies("?updated_since=" + s.Clock.Now().Format(time.RFC3339Nano))
	s.Clock.Set(at.AddDate(0, 0, 30))
	want("3 0 0")
	after := s.policies("?updated_since=" + s.Clock.Now().Format(time.RFC3339Nano))
	if len(before) != 0 || len(after) != 1 || after[0]["updated_at"] != domain.At(s.Clock.Now()).Time.Format("2006-01-02T15:04:05.000000Z") {
		t.Errorf("updated since: %v before the lapse and %v after", before, after)
	}
	s.sign(p, 0, 1, s.Clock.Now()) // again, in a new period
	want("3 1 33.3")
}

// TestClockOfASignature: a clock that is behind that of another process never
// moves updated_at or published_at backwards, so that who polls misses nothing.
func TestClockOfASignature(t *testing.T) {
	t.Parallel()
	s := newStaff(t, 2)
	p := s.tenantPolicy()
	ahead := s.Clock.Now().Add(time.Hour)
	s.Exec("UPDATE policies SET updated_at = $1", ahead)
	s.sign(p, 0, 1, s.Clock.Now())
	s.Signal(domain.Signal{Type: domain.PolicyPublished, Policy: p, At: s.Clock.Now()})
	since := "updated_since=" + ahead.Format(time.RFC3339Nano)
	if n := len(s.policies("?" + since)); n != 1 {
		t.Errorf("%d policies changed", n)
	}
	users := s.Get(s.policiesPath()+"/"+p.String()+"/users?"+since, s.tenant.Key).Want(http.StatusOK).Field("data").([]any)
	if len(users) != 2 {
		t.Errorf("%d users are asked to sign the new version", len(users))
	}
}

func TestRemindersGoOutOnceADay(t *testing.T) {
	t.Parallel()
	s := newStaff(t, 3)
	p := s.tenantPolicy()
	s.sign(p, 1, 1, s.Clock.Now())
	s.Clock.Set(v2test.Noon.Add(time.Minute)) // later than all changes
	path := s.policiesPath() + "/" + p.String() + "/reminders"
	seen := v2test.AtOnce(8, func(int) int { return s.Do("POST", path, s.tenant.Key, nil).Status })
	if seen[http.StatusAccepted] != 1 || seen[http.StatusTooManyRequests] != 7 {
		t.Errorf("statuses %v", seen)
	}
	mails := "SELECT count(*) FROM mail_requests WHERE type = 'policy-reminder' AND policy_id = $1"
	if n := s.Number(mails, p); n != 2 {
		t.Errorf("%d mails are asked for", n)
	}
	refused := s.Do("POST", path, s.tenant.Key, nil).Want(http.StatusTooManyRequests)
	if wait := refused.Header.Get("Retry-After"); wait != strconv.Itoa(12*60*60-60) || refused.Code() != domain.RateLimited {
		t.Errorf("Retry-After %s: %s", wait, refused.Body)
	}
	if !strings.Contains(string(refused.Body), "were already sent today; the next can be sent tomorrow (UTC)") {
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
	if got := s.counts(free); got != "<nil> <nil> <nil>" {
		t.Errorf("counts %s where no acknowledgment is required", got)
	}
	group := s.users[0].Group.ID
	s.policy(domain.GroupScope, group.UUID(), true)
	if scopes := column(s.Get(s.policiesPath(), s.tenant.Key), "scope_id"); !slices.Contains(scopes, group.String()) {
		t.Errorf("the scopes are %v, without the group %s", scopes, group)
	}
	if n := s.Do("POST", s.policiesPath()+"/"+free.String()+"/reminders", s.tenant.Key, nil).Want(http.StatusAccepted).Field("recipient_count"); n != 0.0 {
		t.Errorf("%v recipients where nobody has to sign", n)
	}
	s.Exec("UPDATE policies SET archived_at = $2 WHERE id = $1", p, s.Clock.Now()) // and so it is no more
	s.Get(s.policiesPath()+"/"+p.String()+"/users", s.tenant.Key).Want(http.StatusNotFound)
	s.Do("POST", path, s.tenant.Key, nil).Want(http.StatusNotFound)
}
