package report_test

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gin-gonic/gin"

	"partnerapi/domain"
	"partnerapi/platform/report"
	"partnerapi/v2/op/ginop"
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
	link, text := w.links.To(r), contents(w.client.Name, r)
	get := w.follow("GET", link, "Accept-Encoding", "gzip")
	if get.Code != http.StatusOK || get.Body.String() != text {
		t.Fatalf("GET answers %d with %d bytes", get.Code, get.Body.Len())
	}
	want := map[string]string{
		"Content-Type": "application/pdf", "Content-Length": fmt.Sprint(len(text)), "Content-Encoding": "",
		"Cache-Control": "private, no-store", "X-Content-Type-Options": "nosniff", "Accept-Ranges": "bytes",
		"Content-Disposition": `attachment; filename="risk_overview-_ther & Co-2026-06-15.pdf"; ` +
			`filename*=UTF-8''risk_overview-%C3%86ther%20%26%20Co-2026-06-15.pdf`,
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
	foreign.Client = w.Client(w.Tenant("Another"), "Theirs").ID
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
		"ftp://host/x": "is no address of a store: use file:///", "folder": "is no address of a store", "s3://": "names no bucket",
		"file://relative": "use file:///absolute/path", "file:relative": "use file:///absolute/path", "%zz": "is no URL",
		"s3://reports?rate=1": "the parameter rate is not known for s3://",
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
