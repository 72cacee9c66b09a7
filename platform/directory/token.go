package directory

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"

	"golang.org/x/oauth2"
)

// authorize returns a token: the last one while it is valid, else a new one.
func (s *session) authorize(ctx context.Context) (*oauth2.Token, error) {
	s.fetching.Lock()
	defer s.fetching.Unlock()
	if token := s.token.Load(); token.Valid() {
		return token, nil
	}

	way := &recorder{session: s}
	token, err := s.fetch(context.WithValue(ctx, oauth2.HTTPClient, &http.Client{Transport: way}))
	var refused *oauth2.RetrieveError
	switch {
	case way.err != nil:
		return nil, way.err
	case errors.As(err, &refused):
		var said struct {
			Code        string `json:"error"`
			Description string `json:"error_description"`
		}
		_ = json.Unmarshal(refused.Body, &said) // said stays empty for what is not JSON
		return nil, s.denied(said.Code, said.Description)
	case err != nil:
		return nil, s.malformed("answers the request for a token with something else")
	case token.AccessToken == "":
		return nil, s.malformed("answers the request for a token without one")
	}
	s.token.Store(token)
	return token, nil
}

// recorder is the way of requests for a token. It keeps the failure of the last
// one, which the libraries turn into text.
type recorder struct {
	session *session
	err     error
}

// RoundTrip exchanges one request for its whole answer.
func (r *recorder) RoundTrip(req *http.Request) (*http.Response, error) {
	a, err := r.session.exchange(r.session.tokens, req)
	r.err = err
	if err != nil {
		return nil, err
	}
	return &http.Response{
		StatusCode: a.status, Header: a.header, Request: req, Body: io.NopCloser(bytes.NewReader(a.body)),
		ProtoMajor: 1, ProtoMinor: 1,
	}, nil
}

// fault is an error that begins with the name of a vendor.
func fault(vendor, format string, args ...any) error { return fmt.Errorf(vendor+" "+format, args...) }
