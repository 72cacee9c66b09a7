package v2_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"partnerapi/db"
	"partnerapi/db/reports"
	"partnerapi/domain"
	"partnerapi/v2/v2test"
)

// reportsOf is the path of the reports of the world's client.
func (w *world) reportsOf() string { return "/v2/clients/" + w.client.ID.String() + "/reports" }

// finishReport marks a report, as the job that makes it does.
func finishReport(t *testing.T, h *v2test.Harness, client domain.ClientID, id string, as domain.ReportStatus) {
	t.Helper()
	l := reports.ReportLease{Client: client, Report: idOf[domain.ReportKind](t, id)}
	err := h.DB.SQL().QueryRowContext(t.Context(), "SELECT coalesce(lease, $2) FROM reports WHERE id = $1", l.Report, l.Token).Scan(&l.Token)
	if err != nil {
		t.Fatal(err)
	}
	status, err := reports.FinishReport(t.Context(), h.DB, l, as)
	if err != nil || status != as {
		t.Fatalf("the report is %s: %v", status, err)
	}
}

// TestReport asks for a report, and reads it until it is ready.
func TestReport(t *testing.T) {
	t.Parallel()
	w := newWorld(t, v2test.Options{})
	r := w.Do("POST", w.reportsOf(), w.tenant.Key, map[string]any{
		"type": "phishing_performance", "format": "xlsx", "period": map[string]any{"start_on": "2026-03-01", "end_on": "2026-03-31"},
	}).Want(http.StatusCreated)
	id := r.Field("id").(string)
	if r.Header.Get("Location") != w.reportsOf()+"/"+id {
		t.Errorf("Location is %s", r.Header.Get("Location"))
	}
	want := map[string]any{
		"id": id, "client_id": w.client.ID.String(), "type": "phishing_performance", "format": "xlsx", "status": "pending",
		"period":     map[string]any{"start_on": "2026-03-01", "end_on": "2026-03-31"},
		"created_at": "2026-06-15T12:00:00.000000Z", "updated_at": "2026-06-15T12:00:00.000000Z",
	}
	if got := r.JSON(); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("answered\n%v, not\n%v", got, want)
	}
	if leases, err := reports.ClaimReports(t.Context(), w.DB, 10, time.Minute); err != nil || len(leases) != 1 || leases[0].Report.String() != id {
		t.Errorf("the reports to make are %+v, %v", leases, err)
	}

	read := w.Get(w.reportsOf()+"/"+id, w.tenant.Key).Want(http.StatusOK)
	want["download_url"] = nil
	if got := read.JSON(); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("pending, it is\n%v, not\n%v", got, want)
	}
	w.Clock.Advance(time.Minute)
	finishReport(t, w.Harness, w.client.ID, id, domain.ReportReady)
	read = w.Get(w.reportsOf()+"/"+id, w.tenant.Key).Want(http.StatusOK)
	if read.Field("status") != "ready" || read.Field("download_url") != v2test.ReportLink+id {
		t.Errorf("ready, it is %s", read.Body)
	}
	list := w.Get(w.reportsOf()+"?status=ready&type=phishing_performance&updated_since=2026-06-15T12:01:00Z", w.tenant.Key)
	items := list.Want(http.StatusOK).Field("data").([]any)
	if len(items) != 1 || items[0].(map[string]any)["id"] != id || strings.Contains(string(list.Body), "download_url") {
		t.Errorf("the list is %s", list.Body)
	}
	l := reports.ReportLease{Client: w.client.ID, Report: idOf[domain.ReportKind](t, id)}
	for _, as := range []domain.ReportStatus{domain.ReportReady, domain.ReportFailed} {
		if _, err := reports.FinishReport(t.Context(), w.DB, l, as); !errors.Is(err, db.ErrLeaseLost) {
			t.Errorf("again as %s: %v", as, err)
		}
	}
	if n := w.Number("SELECT count(*) FROM events WHERE type = 'report.ready' AND client_id = $1", w.client.ID); n != 1 {
		t.Errorf("%d events say that it is ready", n)
	}
}

// TestReportPeriods holds the rules of decisions 8.9. Today is 2026-06-15.
func TestReportPeriods(t *testing.T) {
	t.Parallel()
	w := newWorld(t, v2test.Options{Limits: v2test.Unlimited})
	for _, c := range []struct {
		kind, period string // as it is asked for
		want         string // the period, or the field that is wrong
	}{
		{"policy", ``, "null"},
		{"policy", `null`, "null"},
		{"phishing_overview", ``, `{"start_on":"2026-03-18","end_on":"2026-06-15"}`},
		{"executive_summary", `null`, `{"start_on":"2026-03-18","end_on":"2026-06-15"}`},
		{"monthly_report", ``, `{"start_on":"2026-05-01","end_on":"2026-05-31"}`},
		{"monthly_report", `{"start_on":"2026-06-15","end_on":"2026-06-15"}`, `{"start_on":"2026-06-15","end_on":"2026-06-15"}`},
		{"dark_web", `{"start_on":"2025-06-15","end_on":"2026-06-15"}`, `{"start_on":"2025-06-15","end_on":"2026-06-15"}`},

		{"risk_overview", `{"start_on":"2026-03-01","end_on":"2026-03-31"}`, "period"},
		{"course_details", `{}`, "period"},
		{"dark_web", `{}`, "period.start_on period.end_on"},
		{"dark_web", `{"start_on":"2026-03-01"}`, "period.end_on"},
		{"dark_web", `{"start_on":null,"end_on":"2026-03-31"}`, "period.start_on"},
		{"dark_web", `{"start_on":"2026-03-02","end_on":"2026-03-01"}`, "period.start_on"},
		{"dark_web", `{"start_on":"2026-06-15","end_on":"2026-06-16"}`, "period.end_on"},
		{"dark_web", `{"start_on":"2026-06-16","end_on":"2026-06-17"}`, "period.start_on period.end_on"},
		{"dark_web", `{"start_on":"2025-06-14","end_on":"2026-06-15"}`, "period"},
		{"dark_web", `{"start_on":"2026-02-30","end_on":"2026-06-15"}`, "period.start_on"},
		{"dark_web", `{"start_on":"2026-03-01","end_on":"2026-03-31","more":1}`, "period.more"},
	} {
		body := fmt.Sprintf(`{"type":%q}`, c.kind)
		if c.period != "" {
			body = fmt.Sprintf(`{"type":%q,"period":%s}`, c.kind, c.period)
		}
		r := w.Do("POST", w.reportsOf(), w.tenant.Key, body)
		if c.want[0] != 'p' {
			period, _ := json.Marshal(r.Want(http.StatusCreated).Field("period"))
			var got, want any
			_, _ = json.Unmarshal(period, &got), json.Unmarshal([]byte(c.want), &want)
			if fmt.Sprint(got) != fmt.Sprint(want) {
				t.Errorf("%s: the period is %s", body, period)
			}
			w.Exec("UPDATE reports SET created_at = created_at - interval '1 hour'") // out of the window
			continue
		}
		checkError(t, r, domain.InvalidRequest)
		var fields []string
		for _, f := range r.Field("error.fields").([]any) {
			fields = append(fields, f.(map[string]any)["field"].(string))
		}
		if got := strings.Join(fields, " "); got != c.want {
			t.Errorf("%s: the fields are %s, not %s", body, got, c.want)
		}
	}
}

// TestReportsLimit accepts five reports of a client within an hour, whichever key
// asks and whatever becomes of them, and no more however many ask at once.
func TestReportsLimit(t *testing.T) {
	t.Parallel()
	w := newWorld(t, v2test.Options{Limits: v2test.Unlimited})
	other := w.AddKey(w.tenant, bothScopes, nil)
	first := w.Do("POST", w.reportsOf(), w.tenant.Key, `{"type":"policy"}`, "Idempotency-Key", "k").Want(http.StatusCreated)
	finishReport(t, w.Harness, w.client.ID, first.Field("id").(string), domain.ReportFailed)
	w.Clock.Advance(10 * time.Minute)

	count := v2test.AtOnce(10, func(i int) int {
		return w.Do("POST", w.reportsOf(), []string{w.tenant.Key, other}[i%2], `{"type":"policy"}`).Status
	})
	if count[http.StatusCreated] != domain.MaxReports-1 || count[http.StatusTooManyRequests] != 10-domain.MaxReports+1 {
		t.Fatalf("ten at once beside one are answered %v", count)
	}
	if n := w.Number("SELECT count(*) FROM reports WHERE status <> 'ready'"); n != domain.MaxReports {
		t.Errorf("there are %d reports", n)
	}

	r := w.Do("POST", w.reportsOf(), w.tenant.Key, `{"type":"policy"}`)
	wait, _ := strconv.Atoi(r.Header.Get("Retry-After"))
	if r.Status != http.StatusTooManyRequests || r.Code() != domain.RateLimited || wait != 50*60 {
		t.Errorf("a sixth: %d %s, Retry-After %d", r.Status, r.Body, wait)
	}
	replay := w.Do("POST", w.reportsOf(), w.tenant.Key, `{"type":"policy"}`, "Idempotency-Key", "k").Want(http.StatusCreated)
	if replay.Header.Get("Idempotent-Replayed") != "true" {
		t.Error("the first is not replayed")
	}
	beside := w.AddClient(w.tenant, "Beside")
	w.Do("POST", "/v2/clients/"+beside.ID.String()+"/reports", w.tenant.Key, `{"type":"policy"}`).Want(http.StatusCreated)

	w.Clock.Advance(time.Duration(wait)*time.Second - time.Millisecond)
	w.Do("POST", w.reportsOf(), w.tenant.Key, `{"type":"policy"}`).Want(http.StatusTooManyRequests)
	w.Clock.Advance(time.Millisecond)
	w.Do("POST", w.reportsOf(), w.tenant.Key, `{"type":"policy"}`).Want(http.StatusCreated)
	w.Do("POST", w.reportsOf(), w.tenant.Key, `{"type":"policy"}`).Want(http.StatusTooManyRequests)
}

// TestDarkWebReport: a client without Dark Web Monitoring has none, and a refused
// one does not count.
func TestDarkWebReport(t *testing.T) {
	t.Parallel()
	w := newWorld(t, v2test.Options{Limits: v2test.Unlimited})
	w.Exec("UPDATE clients SET dark_web_monitoring = false")
	for range domain.MaxReports + 1 {
		checkError(t, w.Do("POST", w.reportsOf(), w.tenant.Key, `{"type":"dark_web"}`), domain.Forbidden)
	}
	if n := w.Number("SELECT count(*) FROM reports WHERE type = 'dark_web'"); n != 0 {
		t.Errorf("refused requests left %d rows", n)
	}
}
