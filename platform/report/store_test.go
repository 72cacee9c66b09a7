package report_test

import (
	"cmp"
	"encoding/pem"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"partnerapi/domain"
	"partnerapi/platform/report"
	"partnerapi/v2/v2test"
)

// bucket is a server that keeps objects as S3 and Azure do, as far as the store asks.
type bucket struct {
	sync.Mutex
	objects map[string]string
}

// ServeHTTP answers for a bucket, or a container of an account, called reports.
func (b *bucket) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	b.Lock()
	defer b.Unlock()
	missing := func(code string) {
		w.Header().Set("x-ms-error-code", code)
		w.WriteHeader(http.StatusNotFound)
		if r.Method != http.MethodHead {
			_, _ = io.WriteString(w, "<Error><Code>"+code+"</Code></Error>")
		}
	}
	azure := strings.HasPrefix(r.URL.Path, "/account/")
	key, inside := strings.CutPrefix(strings.TrimPrefix(r.URL.Path, "/account"), "/reports")
	key = strings.TrimPrefix(key, "/")
	text, there := b.objects[key]
	switch {
	case !inside && azure:
		missing("ContainerNotFound")
	case !inside:
		missing("NoSuchBucket")
	case key == "":
		w.Header().Set("Last-Modified", v2test.Noon.Format(http.TimeFormat))
	case r.Method == http.MethodPut:
		body, _ := io.ReadAll(r.Body)
		b.objects[key] = string(body)
		w.Header().Set("ETag", `"1"`)
		w.WriteHeader(map[bool]int{true: http.StatusCreated, false: http.StatusOK}[azure])
	case !there && r.Method == http.MethodDelete && !azure:
		w.WriteHeader(http.StatusNoContent)
	case !there:
		missing(map[bool]string{true: "BlobNotFound", false: "NoSuchKey"}[azure])
	case r.Method == http.MethodDelete:
		delete(b.objects, key)
		w.WriteHeader(map[bool]int{true: http.StatusAccepted, false: http.StatusNoContent}[azure])
	default:
		w.Header().Set("ETag", `"1"`)
		r.Header.Set("Range", cmp.Or(r.Header.Get("Range"), r.Header.Get("x-ms-range")))
		http.ServeContent(w, r, "", v2test.Noon, strings.NewReader(text))
	}
}

// TestBucket keeps a report in a bucket of each service: it is made, downloaded in
// parts and deleted there.
func TestBucket(t *testing.T) {
	b := &bucket{objects: map[string]string{}}
	server := httptest.NewTLSServer(b)
	t.Cleanup(server.Close)
	trust(t, server)
	t.Setenv("AWS_ACCESS_KEY_ID", "id")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "secret")
	t.Setenv("AZURE_STORAGE_CONNECTION_STRING", "DefaultEndpointsProtocol=https;AccountName=account;AccountKey=a2V5;BlobEndpoint="+
		server.URL+"/account")

	query := "?region=us-east-1&use_path_style=true&endpoint=" + url.QueryEscape(server.URL)
	for scheme, query := range map[string]string{"s3": query, "azblob": ""} {
		t.Run(scheme, func(t *testing.T) {
			w := newService(t)
			if _, err := report.OpenStore(t.Context(), scheme+"://elsewhere"+query, "", w.logger()); err == nil ||
				!strings.Contains(err.Error(), "there is no bucket") {
				t.Errorf("a bucket that is not there opens with %v", err)
			}
			store, err := report.OpenStore(t.Context(), scheme+"://reports"+query, "", w.logger())
			w.must(err)
			w.must(store.Check(t.Context()))
			w.store = store
			w.inBucket(b)
		})
	}
}

// inBucket makes a report, and wants its file in the bucket and at its link until it
// is deleted.
func (w *service) inBucket(b *bucket) {
	t := w.T
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
		w.must(w.store.Delete(t.Context(), r))
	}
	if a := w.follow("GET", link); a.Code != http.StatusNotFound || len(b.objects) != 0 {
		t.Errorf("deleted, it is answered %d", a.Code)
	}
	if w.log.Len() > 0 {
		t.Errorf("logged %s", w.log)
	}
}

// trust makes this process's HTTP clients take the certificate of a test's server.
func trust(t *testing.T, server *httptest.Server) {
	file := filepath.Join(t.TempDir(), "ca.pem")
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("SSL_CERT_FILE", file)
}
