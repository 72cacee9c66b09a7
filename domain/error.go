package domain

import (
	"errors"
	"fmt"
	"time"
)

// Code is the class of an error for callers. Both versions of the API show its text (decisions 3.2).
type Code string

// All codes of errors of operations.
const (
	InvalidRequest Code = "invalid_request"
	Unauthorized   Code = "unauthorized"
	Forbidden      Code = "forbidden"
	NotFound       Code = "not_found"
	// MethodNotAllowed means that no release has the method on the path (decisions 2.4).
	MethodNotAllowed Code = "method_not_allowed"
	Conflict         Code = "conflict"
	PayloadTooLarge  Code = "payload_too_large"
	// UnsupportedEncoding means that the body has a content coding, such as gzip.
	UnsupportedEncoding Code = "unsupported_encoding"
	RequestTimeout      Code = "request_timeout"
	RateLimited         Code = "rate_limited"
	Internal            Code = "internal"
	Unavailable         Code = "unavailable"
	// Misdirected means that the key belongs to another cell (decisions 13).
	Misdirected Code = "misdirected"
)

// Error is an error with a message that may be shown to callers. Its cause, if any, is only for the log.
type Error struct {
	Code    Code
	Message string
	// Fields are the parts of the request that are wrong, or that conflict with an object, if any.
	Fields []FieldError
	// Object is the noun (ID.Noun) of the object that was not found or has a conflict. A version of the API with other
	// statuses than v2 uses it to distinguish the cases.
	Object string
	// RetryAfter is how long the caller should wait before a retry; zero means unknown.
	RetryAfter time.Duration
	// Cell is the code of the cell to call instead; empty if that is this cell.
	Cell string
	// Cause is never shown to callers.
	Cause error
}

// ErrMoving is the cause of an Error that refuses a write because the partner is being moved to another cell.
var ErrMoving = errors.New("its partner is being moved to another cell")

// FieldError is the error of one part of a request.
type FieldError struct {
	// Field is the name of a parameter or a header, or the path of a field in the body, as in user_ids[3].
	Field   string `json:"field" doc:"Name of a parameter or header, or path of a field in the body, such as user_ids[3]."`
	Message string `json:"message" doc:"What is wrong with the field, or what it conflicts with."`
}

// Error returns the code, the message and the cause, for logs.
func (e *Error) Error() string {
	if e.Cause != nil {
		return fmt.Sprintf("%s: %s: %v", e.Code, e.Message, e.Cause)
	}
	return fmt.Sprintf("%s: %s", e.Code, e.Message)
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Cause }

// AsError returns the Error in the chain of err. If there is none, it returns an Internal error with err as its cause
// and a message that reveals nothing about it.
func AsError(err error) *Error {
	var e *Error
	if errors.As(err, &e) {
		return e
	}
	return &Error{Code: Internal, Message: "something went wrong on our side; try again, and report the request ID " +
		"if the problem persists", Cause: err}
}

// IsCode reports whether there is an Error with the code in the chain of err.
func IsCode(err error, code Code) bool {
	var e *Error
	return errors.As(err, &e) && e.Code == code
}

// ErrNotFound returns the error for an object, by its noun, that is not within the caller's reach. The message does not
// reveal whether the object exists.
func ErrNotFound(noun string) *Error {
	return &Error{Code: NotFound, Object: noun, Message: "no such " + noun + ", or this key has no access to it"}
}

// ErrForbidden returns the error for a request that the key is not allowed to make.
func ErrForbidden(message string) *Error { return &Error{Code: Forbidden, Message: message} }

// ErrConflict returns the error for a request that is in conflict with the state of an object, by its noun. fields are
// the parts of the request that conflict; none if no other value of a field would help (decisions 3.2).
func ErrConflict(noun, message string, fields ...FieldError) *Error {
	return &Error{Code: Conflict, Object: noun, Message: message, Fields: fields}
}

// ErrInvalid returns the error for a request in which one part is wrong.
func ErrInvalid(field, message string) *Error {
	return &Error{Code: InvalidRequest, Message: field + " " + message, Fields: []FieldError{{Field: field, Message: message}}}
}

// ErrInvalidFields returns the error for a request with wrong parts, or nil if there are none. Its message is that of
// the first field, for callers who read only the message.
func ErrInvalidFields(fields []FieldError) error {
	if len(fields) == 0 {
		return nil
	}
	return &Error{Code: InvalidRequest, Message: fields[0].Field + " " + fields[0].Message, Fields: fields}
}

// Fault is an error whose text tells callers what a value must be.
type Fault string

func (f Fault) Error() string { return string(f) }
