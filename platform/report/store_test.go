package report_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"

	"partnerapi/domain"
	"partnerapi/platform/report"
	"partnerapi/v2/v2test"
)

// bucket is a server that keeps objects as S3 does, as far as the store asks.
type bucket struct {
	sync.Mutex
	objects map[string]string
}

// ServeHTTP answers for a bucket called reports.
func (b *bucket) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	b.Lock()
	defer b.Unlock()
	key, inside := strings.CutPrefix(r.URL.Path, "/reports/")
	text, there := b.objects[key]
	switch {
	case !inside && r.URL.Path != "/reports":
		w.WriteHeader(http.StatusNotFound)
		_, _ = io.WriteString(w, `<Error><Code>NoSuchBucket</Code></Error>`)
	case r.Method == http.MethodGet && key == "" || !inside:
		_, _ = io.WriteString(w, `<ListBucketResult><Name>reports</Name><IsTruncated>false</IsTruncated></ListBucketResult>`)
	case r.Method == http.MethodPut:
		body, _ := io.ReadAll(r.Body)
		b.objects[key] = string(body)
	case r.Method == http.MethodDelete:
		delete(b.objects, key)
		w.WriteHeader(http.StatusNoContent)
	case !there:
		w.WriteHeader(http.StatusNotFound)
		_, _ = io.WriteString(w, `<Error><Code>NoSuchKey</Code></Error>`)
	default:
		http.ServeContent(w, r, "", v2test.Noon, strings.NewReader(text))
	}
}

// TestBucket keeps a report in a bucket: it is made, downloaded in parts and
// deleted there.
func TestBucket(t *testing.T) {
	t.Setenv("AWS_ACCESS_KEY_ID", "id")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "secret")
	t.Setenv("AWS_EC2_METADATA_DISABLED", "true")
	w := newService(t)
	b := &bucket{objects: map[string]string{}}
	server := httptest.NewServer(b)
	t.Cleanup(server.Close)
	query := "?region=us-east-1&use_path_style=true&endpoint=" + url.QueryEscape(server.URL)
	if _, err := report.OpenStore(t.Context(), "s3://elsewhere"+query, "", w.logger()); err == nil || !strings.Contains(err.Error(), "there is no bucket") {
		t.Errorf("a bucket that is not there opens with %v", err)
	}
	store, err := report.OpenStore(t.Context(), "s3://reports"+query, "", w.logger())
	w.must(err)
	t.Cleanup(func() { _ = store.Close() })
	w.store = store

	r := w.made(domain.RiskOverview)
	if key := r.Client.UUID() + "/" + r.ID.UUID() + ".pdf"; b.objects[key] != contents(w.client.Name, r) || len(b.objects) != 1 {
		t.Errorf("the bucket has %d objects, of the report %d bytes", len(b.objects), len(b.objects[key]))
	}
	link := w.links.To(r)
	if a := w.follow("GET", link); a.Code != http.StatusOK || a.Body.String() != contents(w.client.Name, r) {
		t.Errorf("GET answers %d with %d bytes", a.Code, a.Body.Len())
	}
	if a := w.follow("GET", link, "Range", "bytes=-10"); a.Code != http.StatusPartialContent || a.Body.Len() != 10 {
		t.Errorf("a part is %d with %d bytes", a.Code, a.Body.Len())
	}
	for range 2 {
		w.must(store.Delete(t.Context(), r))
	}
	if a := w.follow("GET", link); a.Code != http.StatusNotFound || len(b.objects) != 0 {
		t.Errorf("deleted, it is answered %d", a.Code)
	}
	if w.log.Len() > 0 {
		t.Errorf("logged %s", w.log)
	}
}
