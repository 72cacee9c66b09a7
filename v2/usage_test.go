package v2_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"partnerapi/db"
	"partnerapi/db/pg"
	"partnerapi/domain"
	"partnerapi/v2/v2test"
)

// usageOf returns the items of a list of usage as "client period max last", with the client's name.
func usageOf(h *v2test.Harness, key, query string) (items []string) {
	h.T.Helper()
	for _, u := range h.All("/v2/usage?"+query, key) {
		items = append(items, fmt.Sprint(u["client_name"], " ", u["period_start_on"], " ", u["active_users_max"], " ", u["active_users_last"]))
	}
	return items
}

func checkUsage(t *testing.T, h *v2test.Harness, key, query string, want ...string) {
	t.Helper()
	if got := usageOf(h, key, query); !slices.Equal(got, want) {
		t.Errorf("usage?%s:\ngot  %q\nwant %q", query, got, want)
	}
}

// TestUsage verifies the days and months of clients whose users change, who are archived and restored, and which keys
// see them.
func TestUsage(t *testing.T) {
	t.Parallel()
	h := v2test.New(t, v2test.Options{Limits: v2test.Unlimited})
	tenant, other := h.AddPartner("Partner"), h.AddPartner("Other")
	one := h.AddClient(tenant, "One").ID
	h.Clock.Advance(time.Microsecond)
	two := h.AddClient(tenant, "Two").ID
	h.AddUser(other, h.AddClient(other, "Theirs").ID, "a@example.com")
	subset := h.AddKey(tenant, bothScopes, []domain.ClientID{two})
	setStatus := func(user domain.UserID, status string) {
		h.Do("PATCH", "/v2/users/"+user.String(), tenant.Key, map[string]string{"status": status}).Want(200)
	}
	archive := func(archived string) { // as an import does
		h.Must(h.DB.Change(t.Context(), func(ctx context.Context, c *db.Change) error {
			return pg.Run(ctx, c, "archive", pg.SQL("UPDATE clients SET archived_at = "+archived+", updated_at = greatest(updated_at, ?0) WHERE id = ?1", c.At, two))
		}))
	}

	first := h.AddUser(tenant, one, "a@example.com").ID // 15 June
	h.AddUser(tenant, one, "b@example.com")
	h.AddUser(tenant, two, "a@example.com")
	setStatus(first, "inactive")
	checkUsage(t, h, tenant.Key, "", "One 2026-06-01 2 1", "Two 2026-06-01 1 1")
	h.Clock.Advance(3 * day) // 18 June
	setStatus(first, "active")
	h.Clock.Advance(2 * day) // 20 June
	archive("now()")
	h.Clock.Advance(15 * day) // 5 July
	setStatus(first, "inactive")

	checkUsage(t, h, tenant.Key, "", "One 2026-07-01 2 1", "Two 2026-07-01 0 0")
	checkUsage(t, h, tenant.Key, "start_on=2026-05-20", "One 2026-06-01 2 2", "One 2026-07-01 2 1", "Two 2026-06-01 1 0", "Two 2026-07-01 0 0")
	checkUsage(t, h, tenant.Key, "start_on=2026-06-16&end_on=2026-06-17", "One 2026-06-16 1 1", "Two 2026-06-16 1 1")
	checkUsage(t, h, tenant.Key, "end_on=2026-06-30", "One 2026-06-01 2 2", "Two 2026-06-01 1 0")
	checkUsage(t, h, tenant.Key, "interval=day&start_on=2026-06-10&end_on=2026-06-21&client_id="+one.String(),
		"One 2026-06-15 2 1", "One 2026-06-16 1 1", "One 2026-06-17 1 1", "One 2026-06-18 2 2", "One 2026-06-19 2 2", "One 2026-06-20 2 2", "One 2026-06-21 2 2")
	checkUsage(t, h, tenant.Key, "interval=day&start_on=2026-06-19&end_on=2026-06-21&client_id="+two.String(),
		"Two 2026-06-19 1 1", "Two 2026-06-20 1 0", "Two 2026-06-21 0 0")
	checkUsage(t, h, tenant.Key, "interval=day&start_on=2026-07-04&end_on=2026-08-04&client_id="+one.String(), "One 2026-07-04 2 2", "One 2026-07-05 2 1")
	checkUsage(t, h, subset, "end_on=2026-06-30", "Two 2026-06-01 1 0")
	checkUsage(t, h, subset, "client_id="+one.String())
	checkUsage(t, h, other.Key, "", "Theirs 2026-07-01 1 1")
	checkUsage(t, h, other.Key, "client_id="+two.String())
	for _, none := range []string{"end_on=2026-06-14", "start_on=2026-07-06", "start_on=2027-01-01&end_on=2027-01-31", "client_id=x"} {
		checkUsage(t, h, tenant.Key, none)
	}

	archive("NULL")
	checkUsage(t, h, subset, "", "Two 2026-07-01 1 1")
	for query, field := range map[string]string{
		"start_on=2026-02-30": "start_on", "end_on=yesterday": "end_on", "start_on=0001-01-01": "start_on", "interval=week": "interval",
		"start_on=2026-06-02&end_on=2026-06-01": "end_on", "start_on=2025-06-01&end_on=2026-07-06": "end_on", "start_on=2025-05-31": "start_on",
	} {
		checkInvalid(t, h.Get("/v2/usage?"+query, tenant.Key), field)
	}
	h.Get("/v2/usage?start_on=2025-06-01&end_on=2026-07-05", tenant.Key).Want(200) // 400 days
	h.Get("/v2/usage?start_on=2025-06-01", tenant.Key).Want(200)
}

// day is the length of one.
const day = 24 * time.Hour

// usageModel is a naive model of the usage of clients.
type usageModel struct {
	names  []string
	counts []map[domain.Date][2]int // of each client, by day, from the first that was counted: the highest and the last
}

// set notes the number of a client's users on a day, which may be after the last one that is known.
func (m *usageModel) set(client int, on domain.Date, n int) {
	days := m.counts[client]
	if now, ok := days[on]; ok {
		days[on] = [2]int{max(now[0], n), n}
	} else {
		days[on] = [2]int{n, n}
	}
}

// pass adds a day that begins with the last numbers of the day before.
func (m *usageModel) pass(on domain.Date) {
	for _, days := range m.counts {
		if before, ok := days[on.AddDays(-1)]; ok {
			days[on] = [2]int{before[1], before[1]}
		}
	}
}

// list returns what usageOf does.
func (m *usageModel) list(first, last, kept domain.Date, interval domain.UsageInterval) (items []string) {
	for client, days := range m.counts {
		var start domain.Date
		period := [2]int{-1, -1}
		end := func() {
			if period[1] >= 0 {
				items = append(items, fmt.Sprint(m.names[client], " ", start, " ", period[0], " ", period[1]))
			}
			period = [2]int{-1, -1}
		}
		for on := first; !on.After(last); on = on.AddDays(1) {
			if on == first || interval == domain.DailyUsage || on.Time().Day() == 1 {
				end()
				start = on
			}
			if n, ok := days[on]; ok && !on.Before(kept) {
				period = [2]int{max(period[0], n[0]), n[1]}
			}
		}
		end()
	}
	return items
}

// TestUsageAtMidnight verifies that a day does not end for the list while a change of it is in progress, that a later
// change is then counted on the next day, and that pages continue with the day of the first one.
func TestUsageAtMidnight(t *testing.T) {
	t.Parallel()
	h := v2test.New(t, v2test.Options{Limits: v2test.Unlimited})
	tenant := h.AddPartner("Partner")
	one, two := h.AddClient(tenant, "One").ID, h.AddClient(tenant, "Two").ID
	h.AddUser(tenant, one, "a@example.com")
	const lastDays = "interval=day&start_on=2026-06-14"
	midnight := v2test.Noon.Add(12 * time.Hour)
	h.Clock.Set(midnight.Add(-time.Second))
	count := func(ctx context.Context, c *db.Change, client domain.ClientID, by int) {
		t.Helper()
		h.Must(pg.Run(ctx, c, "count", pg.SQL("UPDATE clients SET users_active = users_active + ?0, updated_at = greatest(updated_at, ?1) WHERE id = ?2", by, c.At, client)))
	}

	var page string
	h.Must(h.DB.Change(t.Context(), func(late context.Context, c *db.Change) error { // its stamp is a second before midnight
		h.Clock.Set(midnight.Add(time.Second))
		checkUsage(t, h, tenant.Key, lastDays, "One 2026-06-15 1 1", "Two 2026-06-15 0 0")
		page, _ = h.Get("/v2/usage?limit=1&"+lastDays, tenant.Key).Want(200).Field("page.next_cursor").(string)
		h.Must(h.DB.Change(t.Context(), func(ctx context.Context, c *db.Change) error {
			count(ctx, c, one, 7)
			return nil
		}))
		checkUsage(t, h, tenant.Key, lastDays, "One 2026-06-15 1 1", "Two 2026-06-15 0 0") // not yet the next day
		count(late, c, one, -3)
		count(late, c, two, 5)
		return nil
	}))
	checkUsage(t, h, tenant.Key, lastDays, "One 2026-06-15 1 1", "One 2026-06-16 8 5", "Two 2026-06-15 5 5", "Two 2026-06-16 5 5")
	checkUsage(t, h, tenant.Key, lastDays+"&limit=1&cursor="+page, "Two 2026-06-15 5 5")
}

// TestUsageAfterStepsOfTheClock verifies that the numbers of a clock that was far ahead become those of today, with and
// without a further change, and that a small step back over midnight changes no day that is over.
func TestUsageAfterStepsOfTheClock(t *testing.T) {
	t.Parallel()
	h := v2test.New(t, v2test.Options{Limits: v2test.Unlimited})
	tenant := h.AddPartner("Partner")
	one := h.AddClient(tenant, "One").ID
	h.Clock.Advance(time.Microsecond)
	two := h.AddClient(tenant, "Two").ID
	h.AddUser(tenant, one, "a@example.com")
	h.AddUser(tenant, two, "a@example.com")

	h.Clock.Step(40 * day)
	h.AddUser(tenant, one, "b@example.com")
	h.AddUser(tenant, two, "b@example.com")
	h.Clock.Step(-40 * day)
	h.AddUser(tenant, one, "c@example.com")
	checkUsage(t, h, tenant.Key, "client_id="+one.String(), "One 2026-06-01 3 3")
	_, err := h.DB.WatchClock(t.Context())
	h.Must(err)
	checkUsage(t, h, tenant.Key, "", "One 2026-06-01 3 3", "Two 2026-06-01 2 2")
	h.Clock.Advance(50 * day)
	h.AddUser(tenant, two, "c@example.com")
	checkUsage(t, h, tenant.Key, "start_on=2026-06-01", "One 2026-06-01 3 3", "One 2026-07-01 3 3", "One 2026-08-01 3 3",
		"Two 2026-06-01 2 2", "Two 2026-07-01 2 2", "Two 2026-08-01 3 3")

	h.Clock.Set(time.Date(2026, 9, 1, 0, 1, 0, 0, time.UTC))
	h.AddUser(tenant, one, "d@example.com")
	h.Clock.Step(-10 * time.Minute)
	h.AddUser(tenant, one, "e@example.com") // its stamp stays at 00:01
	checkUsage(t, h, tenant.Key, "client_id="+one.String(), "One 2026-08-01 3 3")
	_, err = h.DB.WatchClock(t.Context())
	h.Must(err)
	h.Clock.Advance(10 * time.Minute)
	checkUsage(t, h, tenant.Key, "start_on=2026-08-01&client_id="+one.String(), "One 2026-08-01 3 3", "One 2026-09-01 5 5")
}

// TestUsageOfConcurrentChanges verifies that the days of a client follow its stored count, whatever changes it at the
// same time.
func TestUsageOfConcurrentChanges(t *testing.T) {
	t.Parallel()
	h := v2test.New(t, v2test.Options{Limits: v2test.Unlimited})
	tenant := h.AddPartner("Partner")
	client := h.AddClient(tenant, "Client").ID
	done := make(chan int)
	const writers, each = 6, 5
	for w := range writers {
		go func() {
			status := 0
			for n := range each {
				body := map[string]string{"email": fmt.Sprintf("%d.%d@example.com", w, n), "first_name": "A"}
				status = max(status, h.Do("POST", "/v2/clients/"+client.String()+"/users", tenant.Key, body).Status)
			}
			done <- status
		}()
	}
	for range writers {
		if status := <-done; status != 201 {
			t.Errorf("a user: %d", status)
		}
	}
	checkUsage(t, h, tenant.Key, "", fmt.Sprint("Client 2026-06-01 ", writers*each, " ", writers*each))
}
