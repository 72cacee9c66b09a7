package openapi

import (
	"net/http"

	"partnerapi/domain"
)

// Failure is an error as documents show it.
type Failure struct {
	Status int
	Code   domain.Code
	// Description says when it happens, in Markdown.
	Description string
	// Message and Fields are those of an example.
	Message string
	Fields  []domain.FieldError
}

// ExampleRequestID is the request id of examples.
const ExampleRequestID = "req_01jxt3e8f0c7kq5v9m2hz4p6wn"

// failures are the errors by their status.
var failures = func() map[int]Failure {
	list := []Failure{
		{http.StatusBadRequest, domain.InvalidRequest, "`invalid_request`: a parameter or the body is wrong. `fields` names each wrong part.",
			"the request is invalid", []domain.FieldError{{Field: "limit", Message: "must be between 1 and 500"}}},
		{http.StatusUnauthorized, domain.Unauthorized, "`unauthorized`: the key is missing, unknown, expired or revoked.",
			"the API key is unknown, expired or revoked", nil},
		{http.StatusForbidden, domain.Forbidden, "`forbidden`: the key lacks the scope or the access that the operation needs, " +
			"or the client does not have the feature.", "this key lacks the scope write", nil},
		{http.StatusNotFound, domain.NotFound, "`not_found`: an object of the path does not exist, or the key does not reach it.",
			"no such client, or this key has no access to it", nil},
		{http.StatusRequestTimeout, domain.RequestTimeout, "`request_timeout`: the body did not arrive in time.",
			"the body did not arrive in time; send the request again", nil},
		{http.StatusConflict, domain.Conflict, "`conflict`: what is asked for clashes with what there is, or the " +
			"`Idempotency-Key` was used for another request. With `Retry-After`, an earlier request with this key is still running.",
			"a client with this name exists already", nil},
		{http.StatusRequestEntityTooLarge, domain.PayloadTooLarge, "`payload_too_large`: the body has more than 1 MiB.",
			"the body is larger than 1 MiB", nil},
		{http.StatusTooManyRequests, domain.RateLimited, "`rate_limited`: the rate limit is reached, or the operation's own limit is reached. " +
			"Wait for `Retry-After` seconds.", "more than 600 requests a minute with this key", nil},
		{http.StatusInternalServerError, domain.Internal, "`internal`: the service failed. Its log has the request id.",
			"something went wrong on our side; try again, and give us the request id if it persists", nil},
		{http.StatusServiceUnavailable, domain.Unavailable, "`unavailable`: the service cannot reach its database. " +
			"Wait for `Retry-After` seconds.", "temporarily offline; try again later", nil},
	}
	byStatus := make(map[int]Failure, len(list))
	for _, f := range list {
		byStatus[f.Status] = f
	}
	return byStatus
}()

// envelope is the body of an error of v2.
func envelope(f Failure) any {
	type body struct {
		Code      domain.Code         `json:"code"`
		Message   string              `json:"message"`
		RequestID string              `json:"request_id"`
		Fields    []domain.FieldError `json:"fields,omitempty"`
	}
	return struct {
		Error body `json:"error"`
	}{body{f.Code, f.Message, ExampleRequestID, f.Fields}}
}
