package directory

// Temporary is an error of a Source after which the same position may well be read:
// an outage, a connection that was cut. A run tries again until it has made no
// progress for half an hour. Any other error ends the run as failed, and its text is
// shown: it says what to do.
type Temporary struct{ Cause error }

// Error is the text of the cause.
func (t *Temporary) Error() string { return t.Cause.Error() }

// Unwrap returns the cause.
func (t *Temporary) Unwrap() error { return t.Cause }
