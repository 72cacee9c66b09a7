package report

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/gin-gonic/gin"
	"golang.org/x/sync/semaphore"

	"partnerapi/db"
	"partnerapi/domain"
)

const (
	// maxLookUps is the maximum number of downloads that query the database at a time: no
	// rate limit applies to links, and they share the connections of the API's requests.
	maxLookUps = 4
	// lookUpTimeout is the maximum time for waiting for a slot and the database.
	lookUpTimeout = 5 * time.Second
	// downloadTimeout is the maximum time for sending the file.
	downloadTimeout = time.Hour
)

// Downloads serves the links to reports' files. Requests need no API key, and no rate limit applies to them.
type Downloads struct {
	db    *db.DB
	links Links
	store *Store
	log   *slog.Logger
	slots *semaphore.Weighted // maxLookUps
}

// NewDownloads returns the handler of links.
func NewDownloads(d *db.DB, links Links, store *Store, log *slog.Logger) *Downloads {
	return &Downloads{db: d, links: links, store: store, log: log, slots: semaphore.NewWeighted(maxLookUps)}
}

// Mount adds the routes GET and HEAD /reports/:token to the engine.
func (d *Downloads) Mount(engine *gin.Engine) {
	for _, method := range []string{http.MethodGet, http.MethodHead} {
		engine.Handle(method, "/reports/:token", d.serve)
	}
}

// refusals are the response texts of errors, by status.
var refusals = map[int]string{
	http.StatusForbidden:          "This link is invalid or has expired. Request a new one.",
	http.StatusNotFound:           "This report no longer exists.",
	http.StatusServiceUnavailable: "This report is temporarily unavailable. Try again in a minute.",
}

// serve writes the file, or the requested range of it. It returns 403 for a link that was altered or has expired, 404
// if there is no client, report or file (see find), and 503 if the database or the store fails or does not answer.
func (d *Downloads) serve(c *gin.Context) {
	c.Header("Cache-Control", "private, no-store")
	c.Header("Referrer-Policy", "no-referrer")
	c.Header("X-Robots-Tag", "noindex")
	c.Header("X-Content-Type-Options", "nosniff")
	client, id, ok := d.links.verify(c.Param("token"))
	if !ok {
		refuse(c, http.StatusForbidden)
		return
	}

	t, r, err := d.find(c.Request.Context(), client, id)
	var file *File
	if err == nil {
		file, err = d.store.Open(c.Request.Context(), r)
	}
	switch {
	case errors.Is(err, ErrNoFile) || domain.IsCode(err, domain.NotFound):
		refuse(c, http.StatusNotFound)
		return
	case err != nil:
		// The path is not logged, because it contains the token.
		d.log.ErrorContext(c.Request.Context(), "a report was not served", "report", id.UUID(), "error", err)
		c.Header("Retry-After", "60")
		refuse(c, http.StatusServiceUnavailable)
		return
	}
	defer func() { _ = file.Close() }()
	c.Header("Content-Disposition", contentDisposition(fileName(t.Name, r)))
	c.Header("Content-Type", contentTypes[r.Format])
	c.Header("No-Gzip-Compression", "1") // PDF and XLSX are compressed already
	_ = http.NewResponseController(c.Writer).SetWriteDeadline(time.Now().Add(downloadTimeout))
	http.ServeContent(c.Writer, c.Request, "" /* the type is set */, file.ModTime, file)
}

// refuse sends a status with its text.
func refuse(c *gin.Context, status int) { c.String(status, refusals[status]+"\n") }

// find waits for a slot and reads the client and the report. The error is NotFound if there is no such client or
// report, and ErrNoFile if the report is not ready or has expired.
func (d *Downloads) find(
	ctx context.Context, client domain.ClientID, id domain.ReportID,
) (*db.Tenant, domain.Report, error) {
	ctx, cancel := context.WithTimeout(ctx, lookUpTimeout)
	defer cancel()
	if err := d.slots.Acquire(ctx, 1); err != nil {
		return nil, domain.Report{}, fmt.Errorf("wait for a turn: %w", err)
	}
	defer d.slots.Release(1)
	t, err := d.db.AnyTenant(ctx, client)
	if err != nil {
		return nil, domain.Report{}, err
	}
	r, err := t.Report(ctx, id)
	switch {
	case err != nil:
		return nil, r, err
	case r.Status != domain.ReportReady || r.Expired(d.db.Now()):
		return nil, r, ErrNoFile
	}
	return t, r, nil
}

// contentDisposition returns the header Content-Disposition for a file's name: in ASCII, with "_" for other characters,
// for old clients, and in UTF-8 (RFC 6266).
func contentDisposition(name string) string {
	ascii := strings.Map(func(c rune) rune {
		if c < ' ' || c > '~' || c == '"' || c == '\\' || c == '%' {
			return '_'
		}
		return c
	}, name)
	return fmt.Sprintf(`attachment; filename="%s"; filename*=UTF-8''%s`, ascii,
		strings.ReplaceAll(url.QueryEscape(name), "+", "%20"))
}
