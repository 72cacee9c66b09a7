package webhook_test

import (
	"context"
	"fmt"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"partnerapi/domain"
	"partnerapi/platform/webhook"
)

// BenchmarkDeliver measures deliveries to a TLS sink on this machine, from the claim
// to the mark, for 200 subscriptions whose events wait.
func BenchmarkDeliver(b *testing.B) {
	w := newWorld(b)
	sink := newSink(b, func(rw http.ResponseWriter, _ *http.Request) { rw.WriteHeader(http.StatusNoContent) })
	var all []domain.WebhookID
	for i := range 200 {
		all = append(all, w.webhook(fmt.Sprintf("%s/%d", sink.URL, i)))
	}
	w.publish(b.N/len(all)+1, all...)
	want := int64(b.N/len(all)+1) * int64(len(all))
	var done atomic.Int64
	finished := make(chan struct{})
	d := w.dispatcher(sink.endpoints(b), webhook.Observer{Tried: func(_ domain.WebhookID, o webhook.Outcome, _ time.Duration) {
		if o != webhook.Succeeded {
			b.Error(o)
		}
		if done.Add(1) == want {
			close(finished)
		}
	}})
	ctx, cancel := context.WithCancel(b.Context())
	ended := make(chan error, 1)
	b.ResetTimer()
	go func() { ended <- d.Run(ctx) }()
	<-finished
	b.StopTimer()
	b.ReportMetric(float64(want)/b.Elapsed().Seconds(), "deliveries/s")
	cancel()
	if err := <-ended; err != nil {
		b.Error(err)
	}
	b.Logf("%d connections", sink.connections.Load())
}
