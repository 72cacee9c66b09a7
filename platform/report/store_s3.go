package report

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"
)

// googleEndpoint is the S3-compatible endpoint of Google Cloud Storage, for callers with HMAC keys.
const googleEndpoint = "https://storage.googleapis.com"

// storeTries is the maximum number of attempts of a request to a store. Few are enough, because the worker repeats the
// whole report.
const storeTries = 3

// s3 keeps objects in a bucket of an S3-compatible service.
type s3 struct {
	client *minio.Client
	bucket string
}

// openS3 opens s3://bucket, with the parameters endpoint, region, profile and use_path_style, or gs://bucket, which
// needs an HMAC key in the environment. It sends no request yet.
func openS3(u *url.URL) (*s3, error) {
	query := u.Query()
	endpoint := query.Get("endpoint")
	region := cmp.Or(query.Get("region"), os.Getenv("AWS_REGION"), os.Getenv("AWS_DEFAULT_REGION"))
	providers := []credentials.Provider{&credentials.EnvAWS{}}
	if u.Scheme == "gs" {
		if os.Getenv("AWS_ACCESS_KEY_ID") == "" {
			return nil, errors.New("gs:// requires a Google Cloud Storage HMAC key; set AWS_ACCESS_KEY_ID to the key's access ID " +
				"and AWS_SECRET_ACCESS_KEY to its secret (Cloud Storage, Settings, Interoperability)")
		}
		endpoint, region = googleEndpoint, "auto"
	} else {
		providers = append(providers, &credentials.FileAWSCredentials{Profile: query.Get("profile")},
			&credentials.IAM{Client: &http.Client{Transport: http.DefaultTransport}})
	}

	at, err := url.Parse(cmp.Or(endpoint, "https://s3.amazonaws.com"))
	if err != nil || at.Host == "" || at.User != nil || at.Scheme != "https" && at.Scheme != "http" {
		return nil, errors.New("the store's endpoint must be an http or https URL with a host, such as https://host")
	}
	options := &minio.Options{
		Creds: credentials.NewChainCredentials(providers), Secure: at.Scheme == "https", Region: region,
		MaxRetries: storeTries,
	}
	if query.Get("use_path_style") == "true" {
		options.BucketLookup = minio.BucketLookupPath
	}
	client, err := minio.New(at.Host, options)
	if err != nil {
		return nil, fmt.Errorf("the store %s cannot be opened: %w", bare(u), err)
	}
	return &s3{client: client, bucket: u.Host}, nil
}

// exists reports whether the bucket exists.
func (s *s3) exists(ctx context.Context) (bool, error) { return s.client.BucketExists(ctx, s.bucket) }

func (s *s3) put(ctx context.Context, key, contentType string, file io.ReadSeeker) error {
	size, err := file.Seek(0, io.SeekEnd) // the size, which PutObject needs
	if err == nil {
		_, err = file.Seek(0, io.SeekStart)
	}
	if err != nil {
		return err
	}
	_, err = s.client.PutObject(ctx, s.bucket, key, file, size,
		minio.PutObjectOptions{ContentType: contentType, PartSize: chunk, NumThreads: 1})
	return err
}

// open opens an object. The error is ErrNoFile if there is no such object.
func (s *s3) open(ctx context.Context, key string) (*File, error) {
	object, err := s.client.GetObject(ctx, s.bucket, key, minio.GetObjectOptions{})
	if err != nil {
		return nil, err
	}
	info, err := object.Stat()
	if err != nil {
		_ = object.Close()
		if minio.ToErrorResponse(err).Code == minio.NoSuchKey {
			return nil, ErrNoFile
		}
		return nil, err
	}
	return &File{ReadSeekCloser: object, ModTime: info.LastModified}, nil
}

func (s *s3) remove(ctx context.Context, key string) error {
	return s.client.RemoveObject(ctx, s.bucket, key, minio.RemoveObjectOptions{})
}
