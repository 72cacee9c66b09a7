package webhook_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"partnerapi/domain"
	"partnerapi/platform/webhook"
)

// hanging is endpoints that answer at once until they are set to hang.
type hanging struct {
	mu      sync.Mutex
	hang    bool
	over    chan struct{}
	running map[string]int // hanging tries by endpoint
	most    int            // of one endpoint
	good    int            // answers of the healthy endpoint
	enough  chan struct{}  // closed when there are that many
	want    int
	timers  map[int]func()
	next    int
}

func (h *hanging) answer(m domain.DeliveryMessage) webhook.Answer {
	h.mu.Lock()
	if !strings.Contains(m.URL, "hang") {
		if h.good++; h.good == h.want {
			close(h.enough)
		}
		h.mu.Unlock()
		return answered(200)
	}
	if !h.hang {
		h.mu.Unlock()
		return answered(200)
	}
	h.running[m.URL]++
	h.most = max(h.most, h.running[m.URL])
	total := 0
	for _, n := range h.running {
		total += n
	}
	// As soon as hanging tries may have all quick places, the time passes after which
	// they are slow.
	var late []func()
	if total%webhook.QuickTries == 0 {
		for n, fn := range h.timers {
			late = append(late, fn)
			delete(h.timers, n)
		}
	}
	h.mu.Unlock()
	for _, fn := range late {
		fn()
	}
	<-h.over
	return answered(0)
}

// after keeps a function until its time has passed.
func (h *hanging) after(_ time.Duration, fn func()) func() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.next++
	n := h.next
	h.timers[n] = fn
	return func() bool {
		h.mu.Lock()
		defer h.mu.Unlock()
		delete(h.timers, n)
		return true
	}
}

// TestFifty: fifty hanging endpoints do not keep a healthy one from its events, whether they
// hung from the first or after they had all their places. Several dispatchers together have no
// more than ten tries of a subscription in progress.
func TestFifty(t *testing.T) {
	for _, known := range []bool{false, true} {
		w := newWorld(t)
		ignore := goleak.IgnoreCurrent()
		h := &hanging{
			hang: !known, over: make(chan struct{}), running: map[string]int{}, enough: make(chan struct{}), want: 300, timers: map[int]func(){},
		}
		var dispatchers [3]*webhook.Dispatcher
		for i := range dispatchers {
			dispatchers[i] = w.dispatcher(&script{w: w, answer: h.answer}, webhook.Observer{})
			dispatchers[i].UseTimer(h.after)
		}
		var all []domain.WebhookID
		for i := range 50 {
			all = append(all, w.webhook(fmt.Sprintf("https://hang%d.example/", i)))
		}
		if known {
			for _, d := range dispatchers {
				w.publish(16, all...)
				w.once(d)
			}
			h.hang = true
		}
		good := w.webhook("https://good.example/")
		w.publish(h.want, append(all, good)...)

		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		for _, d := range dispatchers {
			go func() { ended <- d.Run(ctx) }()
		}
		<-h.enough
		if h.most > domain.MaxConcurrentTries {
			t.Errorf("%d tries of one subscription at a time", h.most)
		}
		cancel()
		close(h.over)
		for range dispatchers {
			if err := <-ended; err != nil {
				t.Error(err)
			}
		}
		if n := w.Number("SELECT count(*) FROM webhook_deliveries WHERE webhook_id = $1 AND status = 'succeeded'", good); n != h.want {
			t.Errorf("%d were delivered", n)
		}
		goleak.VerifyNone(t, ignore, goleak.IgnoreAnyFunction("github.com/jackc/pgx/v5/pgxpool.(*Pool).backgroundHealthCheck"),
			goleak.IgnoreAnyFunction("database/sql.(*DB).connectionOpener"), goleak.IgnoreAnyFunction("github.com/jackc/pgx/v5/pgxpool.(*Pool).triggerHealthCheck.func1"))
	}
}
