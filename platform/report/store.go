package report

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"gocloud.dev/blob"
	_ "gocloud.dev/blob/azureblob" // azblob://
	"gocloud.dev/blob/fileblob"
	_ "gocloud.dev/blob/gcsblob" // gs://
	_ "gocloud.dev/blob/s3blob"  // s3://
	"gocloud.dev/gcerrors"

	"partnerapi/domain"
)

// Store keeps the files of reports. It is safe for concurrent use.
type Store struct {
	bucket *blob.Bucket
	// folder says that the files are in a folder of this machine, where a crash may
	// leave parts of a file.
	folder bool
}

// ErrNoFile says that the store has no file of the report.
var ErrNoFile = errors.New("the store has no file of the report")

const (
	// storeCheck bounds the look at a store when it is opened.
	storeCheck = 10 * time.Second
	// chunk is how many bytes of a file are in memory while it is uploaded.
	chunk = 5 << 20
)

// CheckStore reports what is wrong with the URL of a store, without a look at the
// store. None is right.
func CheckStore(address string) error {
	_, err := parseStore(address)
	return err
}

func parseStore(address string) (*url.URL, error) {
	u, err := url.Parse(address)
	if err != nil {
		return nil, errors.New("the address of the store is no URL: use file:///path, s3://bucket?region=…, gs://bucket " +
			"or azblob://container")
	}
	switch u.Scheme {
	case "":
		if address == "" {
			return u, nil
		}
	case "file":
		if u.Host != "" || !filepath.IsAbs(u.Path) {
			return nil, fmt.Errorf("%q names no folder: use file:///absolute/path", u.Redacted())
		}
		return u, nil
	case "s3", "gs", "azblob":
		if u.Host == "" {
			return nil, fmt.Errorf("%q names no bucket: use %s://name", u.Redacted(), u.Scheme)
		}
		return u, nil
	}
	return nil, fmt.Errorf("%q is no address of a store: use file:///path, s3://bucket?region=…, gs://bucket or "+
		"azblob://container", u.Redacted())
}

// OpenStore opens the store at a URL: file:///path, s3://bucket, gs://bucket or
// azblob://container, with the parameters that gocloud.dev/blob takes. Without a URL
// it is the folder dir, which is made where it is not there. It warns of a store that
// does not answer now; one that is not there is an error.
func OpenStore(ctx context.Context, address, dir string, log *slog.Logger) (*Store, error) {
	u, err := parseStore(address)
	switch {
	case err != nil:
		return nil, err
	case u.Scheme == "":
		return openFolder(dir)
	case u.Scheme == "file":
		return openFolder(filepath.FromSlash(u.Path))
	}
	return openBucket(ctx, u, log)
}

func openFolder(dir string) (*Store, error) {
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return nil, fmt.Errorf("make the folder of the reports: %w (choose another with --report-store file:///path)", err)
	}
	bucket, err := fileblob.OpenBucket(dir, &fileblob.Options{
		CreateDir: true, DirFileMode: 0o700, NoTempDir: true, Metadata: fileblob.MetadataDontWrite,
	})
	if err != nil {
		return nil, fmt.Errorf("the folder %s cannot keep reports: %w (choose another with --report-store file:///path)",
			dir, err)
	}
	return &Store{bucket: bucket, folder: true}, nil
}

func openBucket(ctx context.Context, u *url.URL, log *slog.Logger) (*Store, error) {
	bucket, err := blob.OpenBucket(ctx, u.String())
	if err != nil {
		return nil, fmt.Errorf("the store %s cannot be opened: %w (are its name, its region and the credentials of this "+
			"machine right?)", u.Redacted(), err)
	}
	ctx, cancel := context.WithTimeout(ctx, storeCheck)
	defer cancel()
	switch there, err := bucket.IsAccessible(ctx); {
	case err != nil:
		log.WarnContext(ctx, "the store of reports does not answer now; reports wait for it", "error", err)
	case !there:
		return nil, errors.Join(fmt.Errorf("there is no bucket %s: make it, or name another with --report-store",
			u.Redacted()), bucket.Close())
	}
	return &Store{bucket: bucket}, nil
}

// Close ends the use of the store.
func (s *Store) Close() error { return s.bucket.Close() }

// keyOf is where a report's file is: the same at every try, so that a try after a
// crash writes the file of the one before. A report's id cannot be guessed.
func keyOf(r domain.Report) string { return prefixOf(r) + string(r.Format) }

// prefixOf is what the keys of a report's file and of the parts of it begin with.
func prefixOf(r domain.Report) string { return r.Client.UUID() + "/" + r.ID.UUID() + "." }

var contentTypes = map[domain.ReportFormat]string{
	domain.PDF:  "application/pdf",
	domain.XLSX: "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
}

// Put keeps the file of a report, in the place of one that was there.
func (s *Store) Put(ctx context.Context, r domain.Report, file io.ReadSeeker) error {
	if s.folder {
		if err := s.Delete(ctx, r); err != nil { // parts that a crash left
			return err
		}
	}
	options := &blob.WriterOptions{ContentType: contentTypes[r.Format], BufferSize: chunk, MaxConcurrency: 1}
	if err := s.bucket.Upload(ctx, keyOf(r), file, options); err != nil {
		return fmt.Errorf("upload a report: %w", err)
	}
	return nil
}

// Open reads the file of a report. ErrNoFile where there is none.
func (s *Store) Open(ctx context.Context, r domain.Report) (*blob.Reader, error) {
	reader, err := s.bucket.NewReader(ctx, keyOf(r), nil)
	if gcerrors.Code(err) == gcerrors.NotFound {
		return nil, ErrNoFile
	}
	if err != nil {
		return nil, fmt.Errorf("read a report: %w", err)
	}
	return reader, nil
}

// Delete deletes the file of a report and the parts that a crash left of it. That
// there are none is no error.
func (s *Store) Delete(ctx context.Context, r domain.Report) error {
	keys := []string{keyOf(r)}
	if s.folder {
		var err error
		if keys, err = s.list(ctx, prefixOf(r)); err != nil {
			return fmt.Errorf("look for the file of a report: %w", err)
		}
	}
	for _, key := range keys {
		if err := s.bucket.Delete(ctx, key); err != nil && gcerrors.Code(err) != gcerrors.NotFound {
			return fmt.Errorf("delete the file of a report: %w", err)
		}
	}
	return nil
}

func (s *Store) list(ctx context.Context, prefix string) (keys []string, err error) {
	list := s.bucket.List(&blob.ListOptions{Prefix: prefix})
	for {
		object, err := list.Next(ctx)
		switch {
		case errors.Is(err, io.EOF):
			return keys, nil
		case err != nil:
			return nil, err
		}
		keys = append(keys, object.Key)
	}
}

// checkKey begins the key of the object that Check writes.
const checkKey = "check-"

// Check writes a small object, reads it and deletes it, beside the files of reports.
func (s *Store) Check(ctx context.Context) error {
	key := checkKey + rand.Text()
	want := []byte(key)
	if err := s.bucket.WriteAll(ctx, key, want, nil); err != nil {
		return fmt.Errorf("write to the store: %w", err)
	}
	got, err := s.bucket.ReadAll(ctx, key)
	if err == nil && !bytes.Equal(got, want) {
		err = errors.New("it is not what was written")
	}
	if err != nil {
		return errors.Join(fmt.Errorf("read from the store: %w", err), s.bucket.Delete(ctx, key))
	}
	if err := s.bucket.Delete(ctx, key); err != nil {
		return fmt.Errorf("delete from the store: %w", err)
	}
	return nil
}

// scratch is a file of this machine that no other process sees and no crash leaves.
func scratch() (file *os.File, discard func(), err error) {
	file, err = os.CreateTemp("", "report-*")
	if err != nil {
		return nil, nil, fmt.Errorf("make a temporary file: %w", err)
	}
	removed := os.Remove(file.Name()) == nil // where a file can be removed that is open
	return file, func() {
		_ = file.Close()
		if !removed {
			_ = os.Remove(file.Name())
		}
	}, nil
}

// fileName is what a report's file is called where it is downloaded:
// phishing_overview-Client-2026-06-15.pdf.
func fileName(client string, r domain.Report) string {
	name := strings.Map(func(c rune) rune {
		if c < ' ' || c == 0x7f || strings.ContainsRune(`/\:*?"<>|`, c) {
			return '_'
		}
		return c
	}, client)
	return fmt.Sprintf("%s-%s-%s.%s", r.Type, name, domain.DateOf(r.CreatedAt), r.Format)
}
