package webhook_test

import (
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"partnerapi/client"
	"partnerapi/db/outbox"
	"partnerapi/domain"
	"partnerapi/platform/seal"
	"partnerapi/platform/webhook"
	v2 "partnerapi/v2"
)

// TestDeliver: every subscription gets its events once, signed with its secret, and
// each try is kept.
func TestDeliver(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var mu sync.Mutex
	got := map[string]int{}
	sink := newSink(t, func(rw http.ResponseWriter, r *http.Request) {
		body := make([]byte, r.ContentLength)
		_, _ = r.Body.Read(body)
		if err := client.Verify(secret, r.Header, body, noon); err != nil {
			t.Error(err)
		}
		mu.Lock()
		got[r.URL.Path+" "+string(body)]++
		mu.Unlock()
		rw.WriteHeader(http.StatusNoContent)
	})
	one, two := w.webhook(sink.URL+"/one"), w.webhook(sink.URL+"/two")
	w.publish(30, one, two)
	e := endpoints(t, webhook.Options{AllowPrivate: true, CAFile: sink.ca(t), Clock: w.DB})
	d := w.dispatcher(e, webhook.Observer{})
	if n := w.once(d); n != 60 {
		t.Errorf("%d deliveries were claimed", n)
	}
	if n := w.once(d); n != 0 || len(got) != 60 {
		t.Errorf("%d again, %d different", n, len(got))
	}
	for what, n := range got {
		if n != 1 {
			t.Errorf("%s: %d times", what, n)
		}
	}
	if n := w.Number("SELECT count(*) FROM webhook_deliveries WHERE status = 'succeeded' AND lease IS NULL AND first_try_at = $1", noon); n != 60 {
		t.Errorf("%d succeeded", n)
	}
	if n := w.Number("SELECT count(*) FROM webhooks WHERE last_delivery_at = $1 AND failing_since IS NULL", noon); n != 2 {
		t.Errorf("%d subscriptions have a last delivery", n)
	}
	if !strings.HasPrefix(w.delivered(one), "succeeded 204; succeeded 204; ") {
		t.Error(w.delivered(one))
	}
}

// TestBodySignedSince verifies that deliveries have the signature of the body alone from release 2.5 on, whichever release
// was served before.
func TestBodySignedSince(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	to := &script{w: w, answer: always(204)}
	d := w.dispatcher(to, webhook.Observer{})
	id := w.webhook("https://fine.example/")
	for _, c := range []struct {
		release string
		signed  bool
	}{{"2.5", true}, {"2.4", false}, {"2.0", false}, {"9.9", true}} {
		w.Must(w.RecordRelease(t.Context(), c.release))
		w.publish(1, id)
		w.once(d)
		if last := to.sent[len(to.sent)-1]; last.BodySigned != c.signed {
			t.Errorf("release %s: the body is signed: %t", c.release, last.BodySigned)
		}
	}
}

// TestSchedule: the pauses between tries, to the one that is a day after the first;
// then the delivery has failed, and the subscription is disabled. What waits for it
// is given up.
func TestSchedule(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	to := &script{w: w, answer: always(500)}
	var disabled, dropped int
	d := w.dispatcher(to, webhook.Observer{Disabled: func(n int) { disabled += n }, Dropped: func(n int) { dropped += n }})
	id := w.webhook("https://dead.example/")
	w.publish(1, id)
	for try := 1; ; try++ {
		if n := w.once(d); n != 1 {
			t.Fatalf("try %d: %d claimed", try, n)
		}
		if strings.HasPrefix(w.delivered(id), "failed") {
			break
		}
		var due time.Time
		w.Scan("SELECT due_at FROM webhook_deliveries", nil, &due)
		pause, want := due.Sub(w.Clock.Now()), webhook.Backoff[min(try, len(webhook.Backoff))-1]
		last := due.Equal(noon.Add(24 * time.Hour))
		if pause > want+want/10 || pause < want-want/10 && !last {
			t.Errorf("after try %d: %v", try, pause)
		}
		w.Clock.Set(due.Add(-time.Microsecond))
		if n := w.once(d); n != 0 {
			t.Errorf("try %d came early", try+1)
		}
		w.Clock.Set(due)
		if last {
			w.publish(1, id)
		}
	}
	if !w.Clock.Now().Equal(noon.Add(24*time.Hour)) || w.status(id) != domain.WebhookDisabled || disabled != 1 {
		t.Errorf("given up at %v: %s, %d disabled", w.Clock.Now(), w.status(id), disabled)
	}
	if n := to.count(); n < 17 || n > 20 {
		t.Errorf("%d tries", n)
	}
	w.once(d)
	if !strings.HasSuffix(w.delivered(id), "; dropped the subscription was disabled 500") && !strings.HasSuffix(w.delivered(id), "; dropped the subscription was disabled") {
		t.Error(w.delivered(id))
	}
	if dropped != 1 {
		t.Errorf("%d were dropped", dropped)
	}
}

// TestStepEndsNoRetries verifies that a step of the clock ends no retries and disables no subscription: both happen once
// the clock has run.
func TestStepEndsNoRetries(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	d := w.dispatcher(&script{w: w, answer: always(500)}, webhook.Observer{})
	id := w.webhook("https://dead.example/")
	w.publish(1, id)
	w.once(d)
	w.Clock.Step(25 * time.Hour)
	w.Clock.Advance(time.Minute) // until processes claim again
	w.once(d)
	if got := w.delivered(id); got != "waiting 500,500" || w.status(id) != domain.WebhookActive {
		t.Errorf("after a step of 25 hours: %s, %s", got, w.status(id))
	}
	w.Clock.Advance(time.Minute)
	w.once(d)
	if got := w.delivered(id); got != "failed 500,500,500" || w.status(id) != domain.WebhookDisabled {
		t.Errorf("two minutes later: %s, %s", got, w.status(id))
	}
}

// TestRecovery: one success within a day keeps a subscription from being disabled.
func TestRecovery(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	to := &script{w: w, answer: always(503)}
	d := w.dispatcher(to, webhook.Observer{})
	id := w.webhook("https://shaky.example/")
	w.publish(1, id)
	w.once(d)
	w.Clock.Advance(23 * time.Hour)
	w.publish(1, id)
	to.answer = always(200)
	w.once(d)
	to.answer = always(503)
	w.Clock.Advance(2 * time.Hour)
	w.publish(1, id)
	w.once(d)
	if got := w.delivered(id); got != "succeeded 503,200; succeeded 200; waiting 503" || w.status(id) != domain.WebhookActive {
		t.Errorf("%s: %s", w.status(id), got)
	}
	w.Clock.Advance(24 * time.Hour)
	w.publish(1, id)
	w.once(d)
	if w.status(id) != domain.WebhookDisabled {
		t.Error(w.status(id))
	}
}

// TestRetryAfter: an endpoint's wish counts within the bounds of the schedule.
func TestRetryAfter(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		wish     time.Duration
		tries    int
		elapsed  time.Duration
		from, to time.Duration
	}{
		{0, 0, 0, 4 * time.Second, 6 * time.Second},
		{time.Second, 0, 0, 4 * time.Second, 6 * time.Second},
		{5 * time.Minute, 0, 0, 5 * time.Minute, 5 * time.Minute},
		{5 * time.Minute, 4, time.Hour, 27 * time.Minute, 33 * time.Minute},
		{100 * time.Hour, 0, 0, 2 * time.Hour, 2 * time.Hour},
		{2 * time.Hour, 10, 23 * time.Hour, time.Hour, time.Hour},
		{time.Minute, 10, 23 * time.Hour, time.Hour, time.Hour},
	} {
		a := answered(429)
		a.At, a.RetryAfter = noon, c.wish
		l := outbox.DeliveryLease{Tries: c.tries}
		if c.elapsed > 0 {
			l.FirstTry = noon.Add(-c.elapsed)
		}
		m := webhook.Judge(l, a, noon)
		if pause := m.Due.Sub(noon); m.Status != domain.DeliveryWaiting || pause < c.from || pause > c.to {
			t.Errorf("%+v: %s after %v", c, m.Status, pause)
		}
	}
}

// TestEnds: what waits for a subscription that is paused, disabled, or whose key was
// revoked or expired is given up, also if that is over by then; what waits for one
// that was deleted is gone. No request is sent.
func TestEnds(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	to := &script{w: w, answer: always(200)}
	d := w.dispatcher(to, webhook.Observer{})
	for _, c := range []struct{ end, undo, want string }{
		{"UPDATE webhooks SET status = 'paused'", "UPDATE webhooks SET status = 'active'", "dropped the subscription was paused"},
		{"UPDATE webhooks SET status = 'disabled'", "UPDATE webhooks SET status = 'active'", "dropped the subscription was disabled"},
		{"UPDATE api_keys SET revoked_at = '2026-06-15 11:00Z'", "UPDATE api_keys SET revoked_at = NULL", "dropped the API key of the subscription was revoked"},
		{"UPDATE api_keys SET expires_at = '2026-06-15 12:00Z'", "UPDATE api_keys SET expires_at = NULL", "dropped the API key of the subscription has expired"},
		{"UPDATE webhooks SET active_since = clock_timestamp()", "SELECT 1", "dropped the subscription was not active meanwhile"},
		{"UPDATE webhooks SET client_ids = ARRAY[gen_random_uuid()]", "SELECT 1", "dropped the client is no longer within the access of the subscription"},
		{"UPDATE api_keys SET all_clients = false", "UPDATE api_keys SET all_clients = true", "dropped the client is no longer within the access of the subscription"},
		{"UPDATE clients SET archived_at = '2026-06-15 12:00Z'", "UPDATE clients SET archived_at = NULL", "dropped the client was archived"},
		{"UPDATE published_events SET position = -position", "SELECT 1", "dropped the event is no longer kept"},
	} {
		id := w.webhook("https://ended.example/")
		w.publish(1, id)
		w.Exec(c.end)
		w.Must(d.FollowKeysOnce(t.Context()))
		w.once(d)
		w.Exec(c.undo)
		w.once(d)
		if got := w.delivered(id); got != c.want || to.count() != 0 {
			t.Errorf("%s: %q", c.end, got)
		}
		w.Exec("DELETE FROM webhooks")
		if n := w.once(d); n != 0 {
			t.Errorf("%d deliveries of a deleted subscription", n)
		}
	}
}

// TestReplacedSecret: both secrets sign until the older one's time is over.
func TestReplacedSecret(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	to := &script{w: w, answer: always(200)}
	d := w.dispatcher(to, webhook.Observer{})
	id := w.webhook("https://hook.example/")
	step := func(want ...string) {
		t.Helper()
		w.publish(1, id)
		w.once(d)
		if got := to.sent[len(to.sent)-1].Secrets; !slices.Equal(got, want) {
			t.Errorf("%q", got)
		}
	}
	step(secret)
	w.Exec("UPDATE webhooks SET replaced_secret = secret, secret = $1, replaced_until = $2", w.sealed(id, older), noon.Add(24*time.Hour))
	step(older, secret)
	w.Clock.Advance(24*time.Hour - time.Second)
	step(older, secret)
	w.Clock.Advance(time.Second)
	step(older)
	// A secret that can't be opened signs nothing: the delivery waits.
	w.Exec("UPDATE webhooks SET secret = '{}'")
	w.publish(1, id)
	n := to.count()
	w.once(d)
	if got := w.delivered(id); !strings.HasSuffix(got, "; waiting") || to.count() != n {
		t.Error(got)
	}
	w.Exec("UPDATE webhooks SET secret = $1", w.sealed(id, secret))
	w.Clock.Advance(time.Minute)
	step(secret)
}

// TestLostLease: a try that takes longer than its lease is made by another
// dispatcher, whose mark counts; the first one's is lost.
func TestLostLease(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	id := w.webhook("https://slow.example/")
	w.publish(1, id)
	begun, over := make(chan struct{}), make(chan struct{})
	slow := &script{w: w, answer: func(domain.DeliveryMessage) webhook.Answer {
		close(begun)
		<-over
		return answered(500)
	}}
	outcomes := make(chan webhook.Outcome, 1)
	first := w.dispatcher(slow, webhook.Observer{Tried: func(_ domain.WebhookID, o webhook.Outcome, _ time.Duration) { outcomes <- o }})
	done := make(chan error)
	go func() { _, err := first.Once(t.Context()); done <- err }()
	<-begun

	other := &script{w: w, answer: always(200)}
	second := w.dispatcher(other, webhook.Observer{})
	w.Clock.Advance(webhook.LeaseFor - time.Second)
	if n := w.once(second); n != 0 {
		t.Errorf("%d claimed before the lease ended", n)
	}
	w.Clock.Advance(time.Second)
	if n := w.once(second); n != 1 {
		t.Errorf("%d claimed", n)
	}
	close(over)
	w.Must(<-done)
	if o := <-outcomes; o != webhook.Lost {
		t.Error(o)
	}
	if got := w.delivered(id); got != "succeeded 200" {
		t.Error(got)
	}
}

// locked opens the secrets of all subscriptions but one, for which it panics.
type locked struct {
	*seal.Keys
	id domain.WebhookID
}

func (l locked) Open(sealed, context []byte) ([]byte, error) {
	if string(context) == string(domain.WebhookSecretContext(l.id)) {
		panic("planted in the keys")
	}
	return l.Keys.Open(sealed, context)
}

// TestPanics: a try that panics is one that failed, on the schedule of all others; a
// secret whose opening panics has its deliveries wait. Neither stops other deliveries.
func TestPanics(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	fine, poison, sealed := w.webhook("https://fine.example/"), w.webhook("https://poison.example/"), w.webhook("https://sealed.example/")
	w.publish(1, fine, poison, sealed)
	d := webhook.NewDispatcher(w.DB, &script{w: w, answer: func(m domain.DeliveryMessage) webhook.Answer {
		if strings.Contains(m.URL, "poison") {
			panic("planted in the endpoint")
		}
		return answered(200)
	}}, locked{w.keys, sealed}, v2.New(w.DB, nil).SignsBodies, slog.New(slog.DiscardHandler), webhook.Observer{})

	w.once(d)
	if got := w.delivered(fine); !strings.HasPrefix(got, "succeeded 200") {
		t.Errorf("the fine one: %s", got)
	}
	if n := w.Number("SELECT jsonb_array_length(tries) FROM webhook_deliveries WHERE webhook_id = $1 AND lease IS NULL", poison); n != 1 {
		t.Errorf("%d tries of the one that panics: %s", n, w.delivered(poison))
	}
	if n := w.Number("SELECT jsonb_array_length(tries) FROM webhook_deliveries WHERE webhook_id = $1 AND lease IS NULL", sealed); n != 0 {
		t.Errorf("%d tries of the one whose secret cannot be opened", n)
	}
	w.Clock.Advance(domain.WebhookRetryFor)
	w.once(d)
	if got := w.delivered(poison); !strings.HasPrefix(got, "failed 0") {
		t.Errorf("after a day: %s", got)
	}
}
