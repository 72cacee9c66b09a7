package report_test

import (
	"cmp"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gin-gonic/gin"

	"partnerapi/domain"
	"partnerapi/platform/report"
	"partnerapi/v2/op/ginop"
	"partnerapi/v2/v2test"
)

// follow requests a link.
func (w *service) follow(method, link string, headers ...string) *httptest.ResponseRecorder {
	w.T.Helper()
	gin.SetMode(gin.ReleaseMode)
	engine := gin.New()
	report.NewDownloads(w.DB, w.links, w.store, w.logger()).Mount(engine)
	path, ok := strings.CutPrefix(link, "https://api.example")
	if !ok {
		w.T.Fatalf("the link is %s", link)
	}
	r := httptest.NewRequestWithContext(w.T.Context(), method, path, nil)
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	answer := httptest.NewRecorder()
	ginop.Compress(engine).ServeHTTP(answer, r)
	return answer
}

// TestDownload reads a report's file, whole, its head and a part of it.
func TestDownload(t *testing.T) {
	t.Parallel()
	w := newService(t)
	r := w.made(domain.RiskOverview)
	w.Exec("UPDATE clients SET name = name || ' ' || chr(8238) || 'fdp' WHERE id = $1", w.client.ID)
	link, text := w.links.To(r), contents(w.client.Name, r)
	get := w.follow("GET", link, "Accept-Encoding", "gzip")
	if get.Code != http.StatusOK || get.Body.String() != text {
		t.Fatalf("GET answers %d with %d bytes", get.Code, get.Body.Len())
	}
	want := map[string]string{
		"Content-Type": "application/pdf", "Content-Length": fmt.Sprint(len(text)), "Content-Encoding": "",
		"Cache-Control": "private, no-store", "X-Content-Type-Options": "nosniff", "Accept-Ranges": "bytes",
		"Content-Disposition": `attachment; filename="risk_overview-_ther & Co _fdp-2026-06-15.pdf"; ` +
			`filename*=UTF-8''risk_overview-%C3%86ther%20%26%20Co%20_fdp-2026-06-15.pdf`,
	}
	head := w.follow("HEAD", link)
	if head.Code != http.StatusOK || head.Body.Len() != 0 {
		t.Errorf("HEAD answers %d with %d bytes", head.Code, head.Body.Len())
	}
	for name, value := range want {
		if got, ofHead := get.Header().Get(name), head.Header().Get(name); got != value || ofHead != value {
			t.Errorf("%s is %q to GET and %q to HEAD, not %q", name, got, ofHead, value)
		}
	}
	part := w.follow("GET", link, "Range", "bytes=50000-50009")
	if part.Code != http.StatusPartialContent || part.Body.String() != text[50_000:50_010] {
		t.Errorf("a part is %d %q", part.Code, part.Body)
	}
	if w.log.Len() > 0 || strings.Contains(link, w.tenant.Key) {
		t.Errorf("logged %s", w.log)
	}
}

// TestLinksThatFail follows links that lead nowhere.
func TestLinksThatFail(t *testing.T) {
	t.Parallel()
	w := newService(t)
	r, pending := w.made(domain.RiskOverview), w.request(domain.RiskOverview)
	link := w.links.To(r)
	foreign := r // of another client's path
	foreign.Client = w.AddClient(w.AddPartner("Another"), "Theirs").ID
	unknown := r
	unknown.ID[15] ^= 1
	other := report.NewLinks([]byte("another secret"), "https://api.example", w.DB.Now)
	want := func(what, link string, status int) {
		t.Helper()
		for _, method := range []string{"GET", "HEAD"} {
			a := w.follow(method, link)
			if a.Code != status || status != http.StatusOK && strings.Contains(a.Body.String(), "risk_overview") {
				t.Errorf("%s, %s: %d %s, not %d", what, method, a.Code, a.Body, status)
			}
		}
	}
	base := "https://api.example/reports/"
	raw, err := base64.RawURLEncoding.DecodeString(strings.TrimPrefix(link, base))
	w.must(err)
	for i := range raw {
		altered := append([]byte{}, raw...)
		altered[i] ^= 0x10
		want(fmt.Sprint("byte ", i), base+base64.RawURLEncoding.EncodeToString(altered), http.StatusForbidden)
	}
	for what, text := range map[string]string{
		"cut": link[:len(link)-1], "longer": link + "A", "none": base + "x", "of another secret": other.To(r),
	} {
		want(what, text, http.StatusForbidden)
	}
	want("pending", w.links.To(pending), http.StatusNotFound)
	want("of another client", w.links.To(foreign), http.StatusNotFound)
	want("unknown", w.links.To(unknown), http.StatusNotFound)

	w.Clock.Advance(domain.ReportLinkLife - time.Second)
	want("in its last second", link, http.StatusOK)
	w.Clock.Advance(time.Second)
	want("expired", link, http.StatusForbidden)
	want("new", w.links.To(r), http.StatusOK)

	w.Clock.Set(r.CreatedAt.Add(domain.ReportLife))
	want("after 90 days", w.links.To(r), http.StatusOK)
	w.Clock.Advance(time.Second)
	want("after more than 90 days", w.links.To(r), http.StatusNotFound)
	w.Clock.Set(r.CreatedAt)
	w.Exec("UPDATE clients SET archived_at = now() WHERE id = $1", r.Client)
	want("of an archived client", w.links.To(r), http.StatusNotFound)
	w.Exec("UPDATE clients SET archived_at = NULL")
	path := filepath.Join(w.folder, r.Client.UUID(), r.ID.UUID()+".pdf")
	w.must(os.Remove(path))
	want("without its file", w.links.To(r), http.StatusNotFound)
	if w.log.Len() > 0 {
		t.Errorf("logged %s", w.log)
	}

	breakFolder(t, w.folder, r)
	want("of a store that fails", w.links.To(r), http.StatusServiceUnavailable)
	if token := strings.TrimPrefix(w.links.To(r), base); strings.Contains(w.log.String(), token) {
		t.Errorf("the log has the token: %s", w.log)
	}
}

// TestOpenStore: an address that no store has is refused in words that help.
func TestOpenStore(t *testing.T) {
	t.Parallel()
	w := newService(t)
	file := filepath.Join(t.TempDir(), "file")
	w.must(os.WriteFile(file, nil, 0o600))
	for address, words := range map[string]string{
		"ftp://host/x": "is not the URL of a store; use file:///", "folder": "is not the URL of a store", "s3://": "contains no bucket",
		"file://relative": "use file:///absolute/path", "file:relative": "use file:///absolute/path", "%zz": "is not a URL",
		"s3://reports?rate=1": "the parameter rate is unknown for s3://",
	} {
		err := report.CheckStore(address)
		if err == nil || !strings.Contains(err.Error(), words) {
			t.Errorf("%s: %v", address, err)
		}
		if _, opened := report.OpenStore(t.Context(), address, "", w.logger()); fmt.Sprint(opened) != fmt.Sprint(err) {
			t.Errorf("%s opens with %v", address, opened)
		}
	}
	if _, err := report.OpenStore(t.Context(), "file://"+file, "", w.logger()); err == nil || !strings.Contains(err.Error(), "--report-store") {
		t.Errorf("a file opens with %v", err)
	}
	folder, err := report.OpenStore(t.Context(), "file://"+filepath.Join(t.TempDir(), "a", "b"), "", w.logger())
	w.must(err)
	w.must(folder.Check(t.Context()))
}

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
