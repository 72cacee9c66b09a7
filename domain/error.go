package domain

import (
	"errors"
	"fmt"
	"time"
)

// Code classifies an error for the caller. Its text is what both versions of
// the interface show (decisions 3.2).
type Code string

// Every code that an operation may fail with.
const (
	InvalidRequest  Code = "invalid_request"
	Unauthorized    Code = "unauthorized"
	Forbidden       Code = "forbidden"
	NotFound        Code = "not_found"
	Conflict        Code = "conflict"
	PayloadTooLarge Code = "payload_too_large"
	RequestTimeout  Code = "request_timeout"
	RateLimited     Code = "rate_limited"
	Internal        Code = "internal"
	Unavailable     Code = "unavailable"
	// Misdirected says that the key lives in another cell (decisions 13).
	Misdirected Code = "misdirected"
)

// Error is a failure with a text that is safe to show. Its cause, if any, is
// for the log only.
type Error struct {
	Code    Code
	Message string
	// Fields names the parts of the request that are wrong, if any.
	Fields []FieldError
	// Object is the noun of what was not found or clashed (Kind.Noun), so that
	// a surface with other statuses than v2's can distinguish the cases.
	Object string
	// RetryAfter is how long to wait before trying again; zero means unknown.
	RetryAfter time.Duration
	// Cell is the code of the cell to ask instead; empty where that is this one.
	Cell string
	// Cause is never shown to callers.
	Cause error
}

// ErrMoving is the cause of an Error that refuses a write because the partner is being
// handed over to another cell.
var ErrMoving = errors.New("its partner is being handed over to another cell")

// FieldError says what is wrong with one part of a request.
type FieldError struct {
	// Field is a parameter's name, or the path of a body's member, as in
	// user_ids[3].
	Field   string `json:"field" doc:"Name of a parameter, or path of a member of the body, such as user_ids[3]."`
	Message string `json:"message" doc:"What is wrong with it."`
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

// AsError returns err as an Error. What is not one is Internal, with err as
// its cause and a text that gives nothing away.
func AsError(err error) *Error {
	var e *Error
	if errors.As(err, &e) {
		return e
	}
	return &Error{Code: Internal, Message: "something went wrong on our side; try again, and give us the request id " +
		"if it persists", Cause: err}
}

// IsCode reports whether err is an Error with this code.
func IsCode(err error, code Code) bool {
	var e *Error
	return errors.As(err, &e) && e.Code == code
}

// ErrNotFound says that no such object is within the caller's reach. The text
// is the same for what does not exist and for what others own.
func ErrNotFound(noun string) *Error {
	return &Error{Code: NotFound, Object: noun, Message: "no such " + noun + ", or this key has no access to it"}
}

// ErrForbidden says that the key may not do this.
func ErrForbidden(message string) *Error { return &Error{Code: Forbidden, Message: message} }

// ErrConflict says that the request clashes with an existing object.
func ErrConflict(noun, message string) *Error {
	return &Error{Code: Conflict, Object: noun, Message: message}
}

// ErrInvalid says that one part of the request is wrong.
func ErrInvalid(field, message string) *Error {
	return ErrInvalidFields([]FieldError{{Field: field, Message: message}})
}

// ErrInvalidFields says which parts of the request are wrong. The message
// repeats the first, for people who read only that.
func ErrInvalidFields(fields []FieldError) *Error {
	e := &Error{Code: InvalidRequest, Message: "the request is invalid", Fields: fields}
	if len(fields) > 0 {
		e.Message = fields[0].Field + " " + fields[0].Message
	}
	return e
}

// Fault is an error whose text says to callers what a value must be.
type Fault string

func (f Fault) Error() string { return string(f) }
