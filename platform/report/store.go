package report

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode"

	"partnerapi/domain"
)

// Store keeps the files of reports. It is safe for concurrent use.
type Store struct{ objects objects }

// objects is a folder, or a bucket of a service. Its methods are safe for concurrent use.
type objects interface {
	// exists reports whether the folder or bucket exists.
	exists(ctx context.Context) (bool, error)
	// put stores an object completely or not at all. It replaces an object of the key.
	put(ctx context.Context, key, contentType string, file io.ReadSeeker) error
	// open opens an object. The error is ErrNoFile if there is none.
	open(ctx context.Context, key string) (*File, error)
	// remove deletes an object and its temporary files; no error if there is none.
	remove(ctx context.Context, key string) error
}

// File is the file of a report, to be read and closed.
type File struct {
	io.ReadSeekCloser
	ModTime time.Time
}

// ErrNoFile is the error if the store has no file of a report.
var ErrNoFile = errors.New("the store has no file for the report")

const (
	// storeCheck bounds the check of a store when it is opened.
	storeCheck = 10 * time.Second
	// chunk is the number of bytes of a file in memory during an upload.
	chunk = 16 << 20
)

// CheckStore returns an error if the URL of a store, which may be empty, is invalid. It sends no request to the store.
func CheckStore(address string) error {
	_, err := parseStore(address)
	return err
}

// storeForms describes the URLs of stores in errors.
const storeForms = "file:///path, s3://bucket?region=…, gs://bucket or azblob://container"

// storeParameters are the allowed parameters of the URL of a store, by scheme.
var storeParameters = map[string]string{
	"file":   "",
	"s3":     "region endpoint use_path_style profile",
	"gs":     "",
	"azblob": "storage_account domain",
}

// parseStore parses the URL of a store, which may be empty. Errors do not contain its user and parameters.
func parseStore(address string) (*url.URL, error) {
	u, err := url.Parse(address)
	if err != nil {
		return nil, errors.New("the store is not a URL; use " + storeForms)
	}
	if address == "" {
		return u, nil
	}

	parameters, known := storeParameters[u.Scheme]
	switch {
	case !known:
		return nil, fmt.Errorf("%q is not the URL of a store; use "+storeForms, bare(u))
	case u.Scheme == "file" && (u.Host != "" || !filepath.IsAbs(u.Path)):
		return nil, fmt.Errorf("%q contains no folder; use file:///absolute/path", bare(u))
	case u.Scheme != "file" && u.Host == "":
		return nil, fmt.Errorf("%q contains no bucket; use %s://name", bare(u), u.Scheme)
	}
	for name := range u.Query() {
		if !slices.Contains(strings.Fields(parameters), name) {
			return nil, fmt.Errorf("%q: the parameter %s is unknown for %s://", bare(u), name, u.Scheme)
		}
	}
	return u, nil
}

// bare returns the URL of a store without its user and its parameters, which may be secret.
func bare(u *url.URL) string {
	return (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}).String()
}

// OpenStore opens the store at a URL: file:///path, s3://bucket, gs://bucket or azblob://container. Without a URL it is
// the folder dir, which is created if it does not exist. A store that does not answer is logged as a warning; a bucket
// that does not exist is an error.
func OpenStore(ctx context.Context, address, dir string, log *slog.Logger) (*Store, error) {
	u, err := parseStore(address)
	if err != nil {
		return nil, err
	}
	var o objects
	switch u.Scheme {
	case "":
		o, err = openFolder(dir, "choose another with --data-dir, or a store with --report-store")
	case "file":
		o, err = openFolder(filepath.FromSlash(u.Path), "choose another with --report-store file:///path")
	case "azblob":
		o, err = openAzure(u)
	default:
		o, err = openS3(u)
	}
	if err != nil {
		return nil, err
	}

	ctx, cancel := context.WithTimeout(ctx, storeCheck)
	defer cancel()
	switch exists, err := o.exists(ctx); {
	case err != nil:
		log.WarnContext(ctx, "the report store does not respond; reports wait until it does", "error", err)
	case !exists:
		return nil, fmt.Errorf("there is no bucket %s; create it, or choose another with --report-store", bare(u))
	}
	return &Store{objects: o}, nil
}

// keyOf returns the key of a report's file. It is the same at every attempt, so that an attempt after a crash
// overwrites the file. A report's id cannot be guessed.
func keyOf(r domain.Report) string {
	return r.Client.UUID() + "/" + r.ID.UUID() + "." + string(r.Format)
}

var contentTypes = map[domain.ReportFormat]string{
	domain.PDF:  "application/pdf",
	domain.XLSX: "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
}

// Put stores the file of a report, and replaces an existing file.
func (s *Store) Put(ctx context.Context, r domain.Report, file io.ReadSeeker) error {
	if err := s.objects.put(ctx, keyOf(r), contentTypes[r.Format], file); err != nil {
		return &storeError{fmt.Errorf("store a report: %w", err)}
	}
	return nil
}

// storeError is an error of the store, not of a report.
type storeError struct{ error }

func (e *storeError) Unwrap() error { return e.error }

// Open opens the file of a report, which can be read until ctx ends. The error is ErrNoFile if there is none.
func (s *Store) Open(ctx context.Context, r domain.Report) (*File, error) {
	file, err := s.objects.open(ctx, keyOf(r))
	if err != nil && !errors.Is(err, ErrNoFile) {
		return nil, fmt.Errorf("read a report: %w", err)
	}
	return file, err
}

// Delete deletes the file of a report and its temporary files. A file that does not exist is no error.
func (s *Store) Delete(ctx context.Context, r domain.Report) error {
	if err := s.objects.remove(ctx, keyOf(r)); err != nil {
		return &storeError{fmt.Errorf("delete the file of a report: %w", err)}
	}
	return nil
}

// checkKey is the prefix of the key of the object that Check writes.
const checkKey = "check-"

// Check writes a small object, reads it and deletes it, beside the files of reports.
func (s *Store) Check(ctx context.Context) error {
	key := checkKey + rand.Text()
	if err := s.objects.put(ctx, key, "text/plain", strings.NewReader(key)); err != nil {
		return fmt.Errorf("write to the store: %w", err)
	}
	if err := s.checkReads(ctx, key); err != nil {
		return errors.Join(fmt.Errorf("read from the store: %w", err), s.objects.remove(ctx, key))
	}
	if err := s.objects.remove(ctx, key); err != nil {
		return fmt.Errorf("delete from the store: %w", err)
	}
	return nil
}

// checkReads reads the object that Check wrote, and returns an error unless its content is the key.
func (s *Store) checkReads(ctx context.Context, key string) error {
	file, err := s.objects.open(ctx, key)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()

	got, err := io.ReadAll(file)
	if err == nil && string(got) != key {
		err = errors.New("the content differs from what was written")
	}
	return err
}

// createTemporary creates a temporary file, which discard closes and removes. Where the system allows it, the file's
// name is removed at once, so that no file remains after a crash.
func createTemporary() (file *os.File, discard func(), err error) {
	file, err = os.CreateTemp("", "report-*")
	if err != nil {
		return nil, nil, fmt.Errorf("create a temporary file: %w", err)
	}
	removed := os.Remove(file.Name()) == nil // false if the system does not remove open files
	return file, func() {
		_ = file.Close()
		if !removed {
			_ = os.Remove(file.Name())
		}
	}, nil
}

// fileName returns the name of a report's file for a download, such as phishing_overview-Client-2026-06-15.pdf. "_"
// replaces characters that file names cannot have, and invisible ones, which could reverse the name's end.
func fileName(client string, r domain.Report) string {
	name := strings.Map(func(c rune) rune {
		if !unicode.IsGraphic(c) || strings.ContainsRune(`/\:*?"<>|`, c) {
			return '_'
		}
		return c
	}, client)
	return fmt.Sprintf("%s-%s-%s.%s", r.Type, name, domain.DateOf(r.CreatedAt), r.Format)
}
