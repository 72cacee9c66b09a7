package v2_test

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"partnerapi/domain"
	"partnerapi/v2/op"
	"partnerapi/v2/v2test"
)

// feedPage is a page of events, without their data.
type feedPage struct {
	Data []struct {
		ID        string
		CreatedAt string `json:"created_at"`
	}
	Page struct {
		NextCursor *string `json:"next_cursor"`
		HasMore    bool    `json:"has_more"`
		AsOf       *string `json:"as_of"`
	}
}

func (w *world) feed(query string) (page feedPage) {
	w.T.Helper()
	w.Get("/v2/events?"+query, w.tenant.Key).Want(http.StatusOK).Into(&page)
	return page
}

// readToEnd reads the feed until next_cursor is null, and returns the ids and the greatest time of its events. It begins
// at the query's cursor, if that ends with one.
func (w *world) readToEnd(query string) (ids []string, greatest string) {
	w.T.Helper()
	query, cursor, _ := strings.Cut(query, "&cursor=")
	for asOf := ""; ; {
		page := w.feed(query + "&cursor=" + cursor)
		for _, e := range page.Data {
			ids, greatest = append(ids, e.ID), max(greatest, e.CreatedAt)
		}
		switch {
		case page.Page.AsOf == nil:
			w.T.Fatalf("%s: a page shows no as_of", query)
		case asOf != "" && asOf != *page.Page.AsOf:
			w.T.Errorf("%s: as_of is %s, then %s", query, asOf, *page.Page.AsOf)
		case page.Page.HasMore != (page.Page.NextCursor != nil):
			w.T.Errorf("%s: has_more is %t, next_cursor %v", query, page.Page.HasMore, page.Page.NextCursor)
		}
		if page.Page.NextCursor == nil {
			return ids, greatest
		}
		cursor, asOf = url.QueryEscape(*page.Page.NextCursor), *page.Page.AsOf
	}
}

// happen adds n users, a second apart, and returns the ids of their events.
func (w *world) happen(n int) (ids []string) {
	w.T.Helper()
	for range n {
		w.Clock.Advance(time.Second)
		user := w.AddUser(w.tenant, w.client.ID, v2test.Email(int(w.sampled.Add(1))))
		ids = append(ids, domain.EventID(uuid.MustParse(w.Text("SELECT id FROM events WHERE user_id = $1", user.ID))).String())
	}
	return ids
}

// TestEventsEnd verifies that follow=false ends the feed, that since filters by created_at, and that both leave other
// readers, and earlier releases, as they were.
func TestEventsEnd(t *testing.T) {
	t.Parallel()
	w := newWorld(t, v2test.Options{Limits: v2test.Unlimited})
	w.Publish()
	w.Clock.Advance(time.Second)
	began := w.Clock.Now().Format(time.RFC3339Nano)
	want := w.happen(7)
	w.Publish()
	w.Clock.Advance(time.Second)
	for _, query := range []string{"since=" + began, "since=" + began + "&follow=false&limit=2", "since=" + began + "&follow=false&types=user.created&limit=7"} {
		if query == "since="+began { // is followed
			page := w.feed(query)
			if len(page.Data) != 7 || page.Page.HasMore || page.Page.NextCursor == nil || page.Page.AsOf == nil {
				t.Errorf("%s: %+v", query, page)
			}
			continue
		}
		if got, _ := w.readToEnd(query); !slices.Equal(got, want) {
			t.Errorf("%s: got %v, want %v", query, got, want)
		}
	}
	all, _ := w.readToEnd("follow=false&limit=3")
	if len(all) <= len(want) || !slices.Equal(all[len(all)-7:], want) {
		t.Errorf("follow=false reads %v, which does not end with %v", all, want)
	}
	if got, _ := w.readToEnd("follow=false&cursor=latest"); len(got) > 0 {
		t.Errorf("after the latest event there are %v", got)
	}
	if got, _ := w.readToEnd("follow=false&since=2030-01-01T00:00:00Z"); len(got) > 0 {
		t.Errorf("in 2030 there are %v", got)
	}

	first := w.feed("follow=false&limit=3")
	w.happen(2)
	w.Publish()
	rest, _ := w.readToEnd("follow=false&limit=3&cursor=" + url.QueryEscape(*first.Page.NextCursor))
	if len(rest) != len(all)-3 {
		t.Errorf("the reading ends with %d events more, which happened after its first page", len(rest)-len(all)+3)
	}

	plain := w.feed("limit=1")
	if plain.Page.AsOf != nil || plain.Page.NextCursor == nil {
		t.Errorf("a feed that is followed has the page %+v", plain.Page)
	}
	cursor := "&cursor=" + url.QueryEscape(*plain.Page.NextCursor)
	w.feed("limit=2&follow=true" + cursor) // the default, given
	checkInvalid(t, w.Get("/v2/events?follow=false"+cursor, w.tenant.Key), "cursor")
	checkInvalid(t, w.Get("/v2/events?since="+began+cursor, w.tenant.Key), "cursor")
	checkInvalid(t, w.Get("/v2/events?limit=3&cursor="+url.QueryEscape(*first.Page.NextCursor), w.tenant.Key), "cursor")
	checkInvalid(t, w.Get("/v2/events?follow=maybe", w.tenant.Key), "follow", "must be true or false")
}

// TestEventsEndInEarlierReleases verifies that earlier releases ignore follow and since.
func TestEventsEndInEarlierReleases(t *testing.T) {
	t.Parallel()
	w := newWorld(t, v2test.Options{Limits: v2test.Unlimited, Release: op.V2_4})
	w.happen(2)
	w.Publish()
	page := w.feed("follow=false&since=2030-01-01T00:00:00Z")
	if len(page.Data) < 2 || page.Page.NextCursor == nil || page.Page.AsOf != nil {
		t.Errorf("the page is %+v", page)
	}
}

// TestEventsByTime verifies that no reader by time misses an event, or receives one twice, in whatever order events are
// published: neither one that polls since the greatest time that it saw, nor one that follows a feed since a time.
func TestEventsByTime(t *testing.T) {
	t.Parallel()
	w := newWorld(t, v2test.Options{Limits: v2test.Unlimited})
	w.Publish()
	w.Clock.Advance(time.Second)
	dice := rand.New(rand.NewPCG(9, 41))
	began := w.Clock.Now().Format(time.RFC3339Nano)
	var want []string
	polled, followed := map[string]int{}, map[string]int{}
	since, cursor := began, ""
	poll := func() {
		ids, greatest := w.readToEnd(fmt.Sprintf("follow=false&limit=%d&since=%s", 1+dice.IntN(4), url.QueryEscape(since)))
		for _, id := range ids {
			polled[id]++
		}
		since = max(since, greatest)
	}
	follow := func() {
		for more := true; more; {
			page := w.feed(fmt.Sprintf("limit=%d&since=%s&cursor=%s", 1+dice.IntN(4), url.QueryEscape(began), url.QueryEscape(cursor)))
			for _, e := range page.Data {
				followed[e.ID]++
			}
			cursor, more = *page.Page.NextCursor, page.Page.HasMore
		}
	}
	for range 40 {
		want = append(want, w.happen(1+dice.IntN(3))...)
		var held []string // in this round
		for _, id := range want {
			if dice.IntN(5) < 2 {
				held = append(held, idOf[domain.EventKind](t, id).UUID())
			}
		}
		w.Exec("UPDATE events SET postponed_until = CASE WHEN id = ANY($1::text[]::uuid[]) THEN 'infinity'::timestamptz END", held)
		w.Publish()
		w.Clock.Advance(time.Duration(dice.IntN(2)) * time.Second)
		if dice.IntN(2) == 0 {
			poll()
		}
		if dice.IntN(2) == 0 {
			follow()
		}
	}
	w.Exec("UPDATE events SET postponed_until = NULL")
	w.Publish()
	w.Clock.Advance(time.Second)
	poll()
	follow()
	for _, id := range want {
		if polled[id] == 0 {
			t.Errorf("the poller missed %s", id)
		}
		if followed[id] != 1 {
			t.Errorf("the follower received %s %d times", id, followed[id])
		}
	}
	if len(followed) != len(want) {
		t.Errorf("the follower received %d events, not %d", len(followed), len(want))
	}
}
